# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	dataset/catalog.c dataset/catalog.h \
	dataset/hints.c dataset/hints.h \
	dataset/inflate.c dataset/inflate.h \
	dataset/manifest.c dataset/manifest.h \
	dataset/registry.c \
	dataset/sidecar.c dataset/sidecar.h \
	dataset/store.c dataset/store.h \
	dataset/synthesis.c dataset/synthesis.h

if HAVE_NFS
libiobench_a_SOURCES += dataset/store_nfs.c dataset/store_nfs.h
endif
if HAVE_ZSTD
libiobench_a_SOURCES += dataset/zstd_stream.c
endif
