# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_conventions
tests_unit_test_conventions_SOURCES = tests/unit/test_conventions.c tests/unit/unit.h
tests_unit_test_conventions_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_view
tests_unit_test_view_SOURCES = tests/unit/test_view.c tests/unit/unit.h
tests_unit_test_view_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_checksum
tests_unit_test_checksum_SOURCES = tests/unit/test_checksum.c tests/unit/unit.h
tests_unit_test_checksum_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_resize
tests_unit_test_resize_SOURCES = tests/unit/test_resize.c tests/unit/unit.h
tests_unit_test_resize_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_jpeg
tests_unit_test_jpeg_SOURCES = tests/unit/test_jpeg.c tests/unit/allocations.h tests/unit/decoding.h tests/unit/fixture.h tests/unit/unit.h
tests_unit_test_jpeg_LDADD = $(UNIT_LIBS)
EXTRA_DIST += tests/fixtures/images

UNIT_TESTS += tests/unit/test_raw
tests_unit_test_raw_SOURCES = tests/unit/test_raw.c tests/unit/decoding.h tests/unit/unit.h
tests_unit_test_raw_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_costs
tests_unit_test_costs_SOURCES = tests/unit/test_costs.c tests/unit/decoding.h tests/unit/unit.h
tests_unit_test_costs_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_entry_points
tests_unit_test_entry_points_SOURCES = tests/unit/test_entry_points.c tests/unit/decoding.h tests/unit/fixture.h tests/unit/unit.h
tests_unit_test_entry_points_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test_baseline
tests_unit_test_baseline_SOURCES = tests/unit/test_baseline.c tests/unit/unit.h
tests_unit_test_baseline_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test_baseline_kernels
tests_unit_test_baseline_kernels_SOURCES = tests/unit/test_baseline_kernels.c
tests_unit_test_baseline_kernels_LDADD = libiobench.a

UNIT_TESTS += tests/unit/test_undecoded
tests_unit_test_undecoded_SOURCES = tests/unit/test_undecoded.c $(PICTURE_TESTS)
tests_unit_test_undecoded_LDADD = $(UNIT_LIBS)
PICTURE_TESTS = tests/unit/pictures.h tests/unit/decoding.h tests/unit/unit.h
if HAVE_WEBP
UNIT_TESTS += tests/unit/test_webp
tests_unit_test_webp_SOURCES = tests/unit/test_webp.c $(PICTURE_TESTS)
tests_unit_test_webp_LDADD = $(UNIT_LIBS)
endif
