# SPDX-License-Identifier: Apache-2.0
# Real runs of the program that was built.
CLI_TESTS = tests/cli/full_disk.sh tests/cli/pack.sh tests/cli/resume.sh tests/cli/verify.sh
TESTS += $(CLI_TESTS)
EXTRA_DIST += $(CLI_TESTS) tests/cli/cli.sh
