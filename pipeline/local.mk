# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	pipeline/settings/job.c \
	pipeline/settings/job.h
libiobench_a_SOURCES += \
	pipeline/result/gather.c \
	pipeline/result/result.c \
	pipeline/result/result.h \
	pipeline/result/timeline.c \
	pipeline/result/timeline.h
libiobench_a_SOURCES += \
	pipeline/loader/blocks.c \
	pipeline/loader/blocks.h \
	pipeline/loader/loader.c \
	pipeline/loader/loader.h
libiobench_a_SOURCES += \
	pipeline/engine/batches.c \
	pipeline/engine/batches.h \
	pipeline/engine/decoders.c \
	pipeline/engine/decoders.h \
	pipeline/engine/engine.c \
	pipeline/engine/engine.h
libiobench_a_SOURCES += \
	pipeline/evidence/validity.c \
	pipeline/evidence/validity.h \
	pipeline/evidence/witness.c \
	pipeline/evidence/witness.h
libiobench_a_SOURCES += \
	pipeline/jobs/infer.c \
	pipeline/jobs/infer.h \
	pipeline/jobs/network_input.c \
	pipeline/jobs/network_input.h \
	pipeline/jobs/run.c \
	pipeline/jobs/run.h \
	pipeline/jobs/session.c \
	pipeline/jobs/session.h \
	pipeline/jobs/train.c \
	pipeline/jobs/train.h
