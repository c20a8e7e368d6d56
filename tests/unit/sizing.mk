# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_profiles
UNIT_TESTS += tests/unit/test_sizing
