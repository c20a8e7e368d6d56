# SPDX-License-Identifier: Apache-2.0
# Real runs of the built program. UPDATE=1 rewrites the texts in tests/cli/saved.
CLI_TESTS = \
	tests/cli/accounts.sh \
	tests/cli/against.sh \
	tests/cli/as_found.sh \
	tests/cli/beside.sh \
	tests/cli/cachectl.sh \
	tests/cli/checkpoint.sh \
	tests/cli/compare.sh \
	tests/cli/cut_loans.sh \
	tests/cli/damage.sh \
	tests/cli/examples.sh \
	tests/cli/features.sh \
	tests/cli/documents.sh \
	tests/cli/entry_points.sh \
	tests/cli/few_files.sh \
	tests/cli/full_disk.sh \
	tests/cli/infer.sh tests/cli/weights.sh \
	tests/cli/interrupt.sh \
	tests/cli/jobfile.sh \
	tests/cli/large_records.sh \
	tests/cli/limits.sh \
	tests/cli/loop.sh \
	tests/cli/memory_group.sh \
	tests/cli/memory_limit.sh \
	tests/cli/metrics.sh \
	tests/cli/mistakes.sh \
	tests/cli/monitor.sh \
	tests/cli/network_start.sh \
	tests/cli/options.sh \
	tests/cli/outside_sets.sh tests/cli/pages.sh tests/cli/pages_results.sh \
	tests/cli/pack.sh \
	tests/cli/pack_crash.sh tests/cli/pack_safety.sh \
	tests/cli/place.sh \
	tests/cli/plan.sh \
	tests/cli/plot.sh \
	tests/cli/modules.sh tests/cli/portable.sh \
	tests/cli/ramp.sh \
	tests/cli/refusals-clusters.sh tests/cli/refusals-commands.sh tests/cli/refusals-files.sh \
	tests/cli/refusals-rest.sh tests/cli/refusals-runs.sh tests/cli/refusals-sweeps.sh \
	tests/cli/resume.sh \
	tests/cli/run.sh \
	tests/cli/sandbox.sh \
	tests/cli/size.sh tests/cli/size_worked.sh \
	tests/cli/soak.sh \
	tests/cli/schema.sh \
	tests/cli/server.sh \
	tests/cli/show.sh \
	tests/cli/shuffle.sh \
	tests/cli/strange_files.sh \
	tests/cli/study.sh \
	tests/cli/sweep.sh tests/cli/sweep_kill.sh tests/cli/sweep_ranks.sh \
	tests/cli/threads.sh tests/cli/train.sh \
	tests/cli/train_cold.sh \
	tests/cli/trace.sh \
	tests/cli/verify.sh \
	tests/cli/claims.sh tests/cli/width.sh tests/cli/window.sh \
	tests/cli/workload.sh
CLI_TESTS += tests/cli/inherited.sh tests/cli/run_jobs.sh
# These compile sources by other compilers and flags than this build's: in .ci/run once.
CROSS_TESTS = tests/cli/cross.sh tests/cli/baseline_cross.sh tests/cli/baseline_library.sh
CLI_TESTS += tests/cli/escapes.sh
CLI_TESTS += tests/cli/report.sh tests/cli/report_browser.sh
CLI_TESTS += tests/cli/uring.sh tests/cli/sources.sh tests/cli/starved.sh
CLI_TESTS += tests/cli/doctor.sh tests/cli/gather.sh tests/cli/packaging.sh tests/cli/generated.sh
check_PROGRAMS += tests/cli/refuse
tests_cli_refuse_SOURCES = tests/cli/refuse.c
tests_cli_refuse_LDADD =
if HAVE_DNNL
check_PROGRAMS += tests/cli/signal_at.so
tests_cli_signal_at_so_SOURCES = tests/cli/signal_at.c
tests_cli_signal_at_so_LDADD =
tests_cli_signal_at_so_CFLAGS = $(WARNINGS) -fPIC
tests_cli_signal_at_so_LDFLAGS = -shared
endif
TESTS += $(CROSS_TESTS) $(CLI_TESTS)
EXTRA_DIST += tests/cli/cross.sh tests/cli/baseline_cross.sh tests/cli/baseline_library.sh
EXTRA_DIST += $(CLI_TESTS) tests/cli/cli.sh tests/cli/hold.sh tests/cli/browser.py tests/cli/as_found.py tests/cli/net_document.py tests/cli/sandbox_probe.c tests/cli/fortified.h \
	tests/cli/refusals.sh tests/cli/streams.sh tests/cli/watched.py \
	tests/cli/saved

check_PROGRAMS += tests/cli/metrics_check
tests_cli_metrics_check_SOURCES = tests/cli/metrics_check.c
tests_cli_metrics_check_LDADD = $(JANSSON_LIBS)
