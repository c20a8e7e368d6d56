# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	pipeline/batcher.c pipeline/batcher.h \
	pipeline/budget.c pipeline/budget.h \
	pipeline/engine.c pipeline/engine.h \
	pipeline/compare.c pipeline/feed.c pipeline/feed.h pipeline/feeds.h \
	pipeline/find.c pipeline/find.h pipeline/proof.c pipeline/proof.h \
	pipeline/findings.c pipeline/findings.h \
	pipeline/gather.c pipeline/gather.h \
	pipeline/invariants.c pipeline/invariants.h \
	pipeline/infer.c pipeline/infer.h pipeline/job.c pipeline/job.h \
	pipeline/job_options.h \
	pipeline/loader.c pipeline/loader.h pipeline/loader_private.h pipeline/room.c \
	pipeline/window.c \
	pipeline/memory_limit.c pipeline/memory_limit.h \
	pipeline/meter.c pipeline/meter.h \
	pipeline/orders.c pipeline/orders.h \
	pipeline/recorder.c pipeline/recorder.h \
	pipeline/result.c pipeline/result.h \
	pipeline/run.c pipeline/run.h pipeline/train.c pipeline/train.h \
	pipeline/stage.c pipeline/stage.h \
	pipeline/timeline.c pipeline/timeline_join.c pipeline/timeline.h \
	pipeline/witness.c pipeline/witness.h
