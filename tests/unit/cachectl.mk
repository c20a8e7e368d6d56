# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_cold
UNIT_TESTS += tests/unit/test_outside
UNIT_TESTS += tests/unit/test_server
