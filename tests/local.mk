# SPDX-License-Identifier: Apache-2.0
# One unit test program a module: tests/unit/test_MODULE.c, linked against libiobench.a and cmocka.
# Each folder's programs are listed in tests/unit/FOLDER.mk.
UNIT_LIBS = $(LIBIOBENCH_LIBS) $(CMOCKA_LIBS)
if HAVE_CMOCKA
UNIT_TESTS =
include tests/unit/base.mk
include tests/unit/dataset.mk
include tests/unit/readers.mk
include tests/unit/formats.mk
include tests/unit/shuffle.mk
include tests/unit/decode.mk
include tests/unit/trainer.mk
include tests/unit/telemetry.mk
include tests/unit/cachectl.mk
include tests/unit/pipeline.mk
include tests/unit/report.mk
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif
