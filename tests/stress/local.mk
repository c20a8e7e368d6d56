# SPDX-License-Identifier: Apache-2.0
# Kills and races at random moments: a few rounds here, all with IOBENCH_LONG=1.
STRESS_TESTS = tests/stress/kill_checkpoint.sh tests/stress/kill_json.sh tests/stress/kill_pack.sh \
	tests/stress/kill_sweep.sh tests/stress/kill_train.sh tests/stress/pack_race.sh
TESTS += $(STRESS_TESTS)
EXTRA_DIST += $(STRESS_TESTS) tests/stress/stress.sh
