# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_fabric
UNIT_TESTS += tests/unit/test_ranks_compare
