# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	pack/cursor.c pack/cursor.h \
	pack/inspect.c pack/inspect.h \
	pack/labels.c pack/labels.h \
	pack/lane.c pack/lane.h \
	pack/origin.c pack/origin.h \
	pack/origin_dataset.c pack/origin_idx.c pack/origin_synthetic.c \
	pack/pack.c pack/pack.h \
	pack/picture.c pack/picture.h \
	pack/place.c pack/place.h \
	pack/plugins.h pack/registry.c \
	pack/target.c pack/target.h pack/target_private.h pack/target_proof.c \
	pack/team.c pack/team.h \
	pack/verify.c pack/verify.h
if HAVE_ARCHIVE
libiobench_a_SOURCES += pack/origin_archive.c
endif
