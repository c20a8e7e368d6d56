# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_report
UNIT_TESTS += tests/unit/test_summary
UNIT_TESTS += tests/unit/test_replaced
UNIT_TESTS += tests/unit/test_compare
UNIT_TESTS += tests/unit/test_mlperf
UNIT_TESTS += tests/unit/test_ramp
UNIT_TESTS += tests/unit/test_arguments
UNIT_TESTS += tests/unit/test_sweep
UNIT_TESTS += tests/unit/test_timeline_files
UNIT_TESTS += tests/unit/test_figures
