# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	pipeline/batcher.c pipeline/batcher.h \
	pipeline/engine.c pipeline/engine.h \
	pipeline/feeds.h pipeline/job.c pipeline/job.h \
	pipeline/loader.c pipeline/loader.h pipeline/loader_private.h pipeline/window.c \
	pipeline/result.c pipeline/result.h \
	pipeline/run.c pipeline/run.h \
	pipeline/stage.c pipeline/stage.h \
	pipeline/witness.c pipeline/witness.h \
	pipeline/cursor.c pipeline/cursor.h \
	pipeline/inspect.c pipeline/inspect.h \
	pipeline/lane.c pipeline/lane.h \
	pipeline/manifest.c pipeline/manifest.h \
	pipeline/pack.c pipeline/pack.h \
	pipeline/picture.c pipeline/picture.h \
	pipeline/origin.c pipeline/origin.h \
	pipeline/origin_dataset.c pipeline/origin_idx.c pipeline/origin_synthetic.c \
	pipeline/plugins.h pipeline/registry.c \
	pipeline/target.c pipeline/target.h \
	pipeline/verify.c pipeline/verify.h
if HAVE_ARCHIVE
libiobench_a_SOURCES += pipeline/origin_archive.c
endif
