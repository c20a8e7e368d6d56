# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	pack/cursor.c pack/cursor.h \
	pack/inspect.c pack/inspect.h \
	pack/labels.c pack/labels.h \
	pack/shard_writer.c pack/shard_writer.h \
	pack/source.c pack/source.h \
	pack/source_dataset.c pack/source_mnist.c pack/source_synthetic.c \
	pack/pack.c pack/pack.h \
	pack/image_check.c pack/image_check.h \
	pack/place.c pack/place.h \
	pack/plugins.h pack/registry.c \
	pack/recoder.c pack/recoder.h \
	pack/target.c pack/target.h pack/target_private.h pack/target_proof.c \
	pack/verify.c pack/verify.h
if HAVE_ARCHIVE
libiobench_a_SOURCES += pack/source_archive.c
endif
