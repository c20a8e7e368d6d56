# SPDX-License-Identifier: Apache-2.0
# Pure code with its own unit tests.
libiobench_a_SOURCES += \
	cmd/arguments.c cmd/arguments.h \
	cmd/foreign_job.c cmd/foreign_job.h \
	cmd/jobfile.c cmd/jobfile.h \
	cmd/ramp_point.c cmd/ramp_point.h cmd/ramp_search.c cmd/ramp_search.h \
	cmd/sweep_figures.c cmd/sweep_figures.h cmd/sweep_plan.c cmd/sweep_plan.h

bin_PROGRAMS += iobench
iobench_SOURCES = cmd/main.c \
	cmd/beside.c cmd/beside.h cmd/beside_report.c \
	cmd/command.c cmd/command.h cmd/commands.h cmd/registry.c \
	cmd/checkpoint.c cmd/checkpoint_report.c cmd/checkpoint_report.h \
	cmd/compare.c cmd/list.c \
	cmd/completion.c cmd/completion.h cmd/completion_bash.c cmd/completion_fish.c cmd/completion_words.c cmd/completion_zsh.c \
	cmd/size.c cmd/size.h cmd/size_acceptance.c cmd/size_cluster.c cmd/size_forms.c cmd/size_forms.h cmd/size_measure.c cmd/size_page.c cmd/size_page.h \
	cmd/size_recording.c cmd/size_recording.h \
	cmd/doctor.c cmd/doctor.h cmd/doctor_machine.c cmd/doctor_path.c cmd/finding.c \
	cmd/doctor_fabric.c cmd/doctor_launch.c cmd/doctor_ports.c \
	cmd/families.c cmd/families.h cmd/gather.c \
	cmd/explain.c cmd/help.c cmd/help.h \
	cmd/infer.c cmd/inspect.c \
	cmd/json_file.c cmd/json_file.h \
	cmd/layers.c cmd/layers.h cmd/line.c cmd/line.h \
	cmd/monitor.c \
	cmd/net.c cmd/net_report.c cmd/net_report.h \
	cmd/net_beside.c cmd/net_beside.h cmd/net_beside_report.c cmd/run_member.h \
	cmd/network.c cmd/network.h \
	cmd/manual.c cmd/manual.h \
	cmd/members.c cmd/members.h \
	cmd/outputs.c cmd/outputs.h \
	cmd/pack.c cmd/plan.c cmd/plot.c \
	cmd/report.c cmd/report_data.c cmd/report_data.h \
	cmd/show.c cmd/show_sheet.c cmd/show_sheet.h \
	cmd/shuffle.c cmd/shuffle.h cmd/shuffle_measure.c cmd/shuffle_report.c \
	cmd/shuffle_plot.c cmd/shuffle_plot.h \
	cmd/verify.c \
	cmd/program.c cmd/program.h cmd/progress.c cmd/progress.h \
	cmd/ramp.c cmd/ramp.h cmd/ramp_report.c \
	cmd/rivals.c cmd/rivals.h cmd/run.c cmd/start_at.c cmd/start_at.h \
	cmd/sandbox.c cmd/sandbox.h cmd/section.c cmd/section.h \
	cmd/study.c cmd/study.h cmd/study_needs.c cmd/study_nodes.c cmd/study_plan.c cmd/study_run.c \
	cmd/study_figures.c cmd/study_picture.c cmd/study_page.c \
	cmd/train.c cmd/train_report.c cmd/train_report.h \
	cmd/sweep.c cmd/sweep.h cmd/sweep_cell.c cmd/sweep_files.c cmd/sweep_folder.c \
	cmd/sweep_live.c cmd/sweep_live.h cmd/sweep_load.c cmd/sweep_report.c \
	cmd/sweep_scaling.c cmd/sweep_scaling.h \
	cmd/synthetic.c cmd/synthetic.h
iobench_LDADD = $(MODULE_HOST_LIBS)

# Studies are data: studies/embed.sh converts their files to one array.
nodist_libiobench_a_SOURCES += study_shipped.c
CLEANFILES += study_shipped.c
EXTRA_DIST += studies/embed.sh $(STUDIES)
STUDIES = studies/formats.ini studies/nodes.ini studies/fabric.ini studies/lmdb.ini \
	studies/precision.ini studies/scaling.ini studies/update.ini studies/memory.ini \
	studies/power.ini studies/accuracy.ini studies/networks.ini studies/inference.ini \
	studies/beside.ini studies/machines.ini studies/sizing.ini studies/prelude.jq studies/nodes.sh
study_shipped.c: $(STUDIES) studies/embed.sh
	$(AM_V_GEN)sh $(srcdir)/studies/embed.sh $(srcdir) $(STUDIES) >$@.partial && mv $@.partial $@
