# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	dataset/catalog.c dataset/catalog.h \
	dataset/hints.c dataset/hints.h dataset/hints_file.c dataset/hints_file.h \
	dataset/inflate.c dataset/inflate.h \
	dataset/lmdb_keys.h \
	dataset/manifest.c dataset/manifest.h \
	dataset/names_below.c dataset/names_below.h \
	dataset/registry.c \
	dataset/store.c dataset/store.h dataset/store_local.c \
	dataset/synthesis.c dataset/synthesis.h \
	dataset/sidecar.c dataset/sidecar.h \
	dataset/zstd_stream.h

if HAVE_NFS
libiobench_a_SOURCES += dataset/store_nfs.c dataset/nfs_link.c dataset/nfs_link.h dataset/libnfs.h
endif
if HAVE_ZSTD
libiobench_a_SOURCES += dataset/zstd_stream.c
else
libiobench_a_SOURCES += dataset/zstd_absent.c
endif
