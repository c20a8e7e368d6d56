# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_synthesis
UNIT_TESTS += tests/unit/test_sidecar
UNIT_TESTS += tests/unit/test_manifest
UNIT_TESTS += tests/unit/test_read_only_store
