# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_shuffle_order
UNIT_TESTS += tests/unit/test_shuffle_quality
