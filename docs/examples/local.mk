# SPDX-License-Identifier: Apache-2.0
# tests/cli/examples.sh compiles and runs each.
EXTRA_DIST += docs/examples/README.md docs/examples/jpeg.c docs/examples/result.py docs/examples/result.jq docs/examples/from_0_2.py
check_PROGRAMS += docs/examples/iobench
docs_examples_iobench_SOURCES = $(iobench_SOURCES) docs/examples/reader.c
docs_examples_iobench_LDADD = $(LIBIOBENCH_LIBS)
