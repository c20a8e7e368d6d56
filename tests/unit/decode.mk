# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_conventions
UNIT_TESTS += tests/unit/test_view
UNIT_TESTS += tests/unit/test_checksum
UNIT_TESTS += tests/unit/test_resize

UNIT_TESTS += tests/unit/test_jpeg
EXTRA_DIST += tests/fixtures/images

UNIT_TESTS += tests/unit/test_raw
UNIT_TESTS += tests/unit/test_costs
UNIT_TESTS += tests/unit/test_entry_points
UNIT_TESTS += tests/unit/test_baseline
UNIT_TESTS += tests/unit/test_baseline_kernels
tests_unit_test_baseline_kernels_SOURCES = tests/unit/test_baseline_kernels.c
tests_unit_test_baseline_kernels_LDADD = libiobench.a

UNIT_TESTS += tests/unit/test_image_memory

UNIT_TESTS += tests/unit/test_undecoded
tests_unit_test_undecoded_SOURCES = tests/unit/test_undecoded.c $(PICTURE_TESTS)
PICTURE_TESTS = tests/unit/pictures.h tests/unit/decoding.h tests/unit/unit.h
if HAVE_WEBP
UNIT_TESTS += tests/unit/test_webp
tests_unit_test_webp_SOURCES = tests/unit/test_webp.c $(PICTURE_TESTS)
endif
