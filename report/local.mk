# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	report/compare.c report/compare.h \
	report/document.c report/result.c report/report.h \
	report/svg.c report/svg.h report/chart.c report/chart.h \
	report/timeline.c \
	report/summary.c report/summary.h \
	report/words.c report/words.h

# The page of `iobench report`, and its chart library: empty if configure found none.
PAGE_FILES = report/page/page.html report/page/page.css report/page/page.js report/page/embed.sh
EXTRA_DIST += $(PAGE_FILES)
nodist_libiobench_a_SOURCES += page_files.c
CLEANFILES += page_files.c
page_files.c: $(PAGE_FILES) Makefile
	$(AM_V_GEN)$(srcdir)/report/page/embed.sh \
		template=$(srcdir)/report/page/page.html style=$(srcdir)/report/page/page.css \
		program=$(srcdir)/report/page/page.js \
		library=$(DYGRAPHS_SCRIPT) library_style=$(DYGRAPHS_STYLE) >$@.partial && mv $@.partial $@
