# SPDX-License-Identifier: Apache-2.0
# Pure code with its own unit tests.
libiobench_a_SOURCES += \
	cmd/arguments.c cmd/arguments.h cmd/line.c cmd/line.h \
	cmd/size/model.c cmd/size/model.h \
	cmd/study/evaluate.c \
	cmd/sweep/plan.c

bin_PROGRAMS += iobench
iobench_SOURCES = \
	cmd/command.c cmd/command.h cmd/commands.h cmd/layers.c cmd/layers.h \
	cmd/main.c cmd/members.c cmd/members.h cmd/outputs.c cmd/outputs.h \
	cmd/registry.c cmd/sandbox.c \
	cmd/checkpoint/checkpoint.c cmd/checkpoint/checkpoint.h \
	cmd/doctor/doctor.c \
	cmd/help/help.c \
	cmd/infer/infer.c \
	cmd/monitor/monitor.c \
	cmd/net/net.c cmd/net/report.c cmd/net/report.h \
	cmd/pack/inspect.c cmd/pack/pack.c \
	cmd/ramp/ramp.c cmd/ramp/ramp.h \
	cmd/results/compare.c cmd/results/gather.c cmd/results/plot.c \
	cmd/results/report.c cmd/results/show.c \
	cmd/run/run.c \
	cmd/shuffle/shuffle.c cmd/shuffle/shuffle.h cmd/size/size.c \
	cmd/study/study.c cmd/study/study.h \
	cmd/sweep/sweep.c cmd/sweep/sweep.h \
	cmd/train/plan.c cmd/train/report.h cmd/train/train.c
iobench_LDADD = $(MODULE_HOST_LIBS)

# Studies are data: cmd/study/embed.sh converts their files to one array.
nodist_libiobench_a_SOURCES += study_shipped.c
CLEANFILES += study_shipped.c
EXTRA_DIST += cmd/study/embed.sh $(STUDIES)
STUDIES = cmd/study/formats.ini cmd/study/nodes.ini cmd/study/fabric.ini cmd/study/lmdb.ini \
	cmd/study/precision.ini cmd/study/scaling.ini cmd/study/update.ini cmd/study/memory.ini \
	cmd/study/power.ini cmd/study/accuracy.ini cmd/study/networks.ini cmd/study/inference.ini \
	cmd/study/beside.ini cmd/study/machines.ini cmd/study/sizing.ini cmd/study/profile.ini \
	cmd/study/demand.ini cmd/study/nodes.sh
study_shipped.c: $(STUDIES) cmd/study/embed.sh
	$(AM_V_GEN)sh $(srcdir)/cmd/study/embed.sh $(srcdir) $(STUDIES) >$@.partial && mv $@.partial $@
