# SPDX-License-Identifier: Apache-2.0
# tests/cli/examples.sh compiles and runs each.
EXTRA_DIST += examples/README.md examples/jpeg.c examples/result.py examples/result.jq
check_PROGRAMS += examples/iobench
examples_iobench_SOURCES = $(iobench_SOURCES) examples/reader.c
examples_iobench_LDADD = $(LIBIOBENCH_LIBS)
