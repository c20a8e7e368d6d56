# SPDX-License-Identifier: Apache-2.0
# What is pure and tested by itself.
libiobench_a_SOURCES += \
	cmd/arguments.c cmd/arguments.h \
	cmd/jobfile.c cmd/jobfile.h \
	cmd/nearest.c cmd/nearest.h \
	cmd/ramp_search.c cmd/ramp_search.h \
	cmd/sweep_figures.c cmd/sweep_figures.h cmd/sweep_plan.c cmd/sweep_plan.h

bin_PROGRAMS += iobench
iobench_SOURCES = cmd/main.c \
	cmd/command.c cmd/command.h cmd/commands.h cmd/registry.c \
	cmd/checkpoint.c cmd/checkpoint_report.c cmd/checkpoint_report.h \
	cmd/compare.c cmd/completion.c cmd/list.c \
	cmd/size.c cmd/size.h cmd/size_cluster.c cmd/size_page.c cmd/size_page.h \
	cmd/doctor.c cmd/doctor.h cmd/doctor_machine.c cmd/doctor_path.c cmd/finding.c \
	cmd/families.c cmd/families.h \
	cmd/explain.c cmd/help.c cmd/help.h \
	cmd/infer.c cmd/inspect.c \
	cmd/json_file.c cmd/json_file.h \
	cmd/layers.c cmd/layers.h cmd/line.c cmd/line.h \
	cmd/monitor.c \
	cmd/network.c cmd/network.h \
	cmd/manual.c cmd/manual.h \
	cmd/outputs.c cmd/outputs.h \
	cmd/pack.c cmd/plan.c cmd/plot.c \
	cmd/shuffle.c cmd/shuffle.h cmd/shuffle_measure.c cmd/shuffle_report.c \
	cmd/shuffle_plot.c cmd/shuffle_plot.h \
	cmd/verify.c \
	cmd/progress.c cmd/progress.h \
	cmd/ramp.c cmd/ramp.h cmd/ramp_report.c \
	cmd/rivals.c cmd/rivals.h cmd/run.c \
	cmd/sandbox.c cmd/sandbox.h \
	cmd/train.c cmd/train_report.c cmd/train_report.h \
	cmd/sweep.c cmd/sweep.h cmd/sweep_cell.c cmd/sweep_files.c cmd/sweep_folder.c \
	cmd/sweep_live.c cmd/sweep_live.h cmd/sweep_load.c cmd/sweep_report.c \
	cmd/sweep_scaling.c cmd/sweep_scaling.h \
	cmd/synthetic.c cmd/synthetic.h
iobench_LDADD = $(LIBIOBENCH_LIBS)
