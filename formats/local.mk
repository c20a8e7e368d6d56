# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	formats/caffe.c formats/caffe.h \
	formats/files.c \
	formats/format.c formats/format.h \
	formats/image_names.c formats/image_names.h \
	formats/mds.c \
	formats/plugins.h formats/registry.c \
	formats/lmdb.c \
	formats/protobuf.c formats/protobuf.h \
	formats/recordio.c \
	formats/scan.c formats/scan.h \
	formats/tar.c formats/tar_walk.h \
	formats/tfrecord.c
if HAVE_LMDB
libiobench_a_SOURCES += formats/lmdb_write.c
endif
