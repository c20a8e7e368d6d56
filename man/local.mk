# SPDX-License-Identifier: Apache-2.0
# The program generates the manual page and the bash completion from its option tables. They depend
# on the sources with those tables, so a release, which ships them, does not regenerate them (or run
# a program built for another machine).
bashcompletiondir = $(datadir)/bash-completion/completions
dist_man_MANS += man/iobench.1
dist_bashcompletion_DATA = man/iobench
MADE_FROM = $(iobench_SOURCES) $(libiobench_a_SOURCES)

man/iobench.1: $(MADE_FROM) | iobench$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) man && ./iobench help --man >$@.partial && mv $@.partial $@

man/iobench: $(MADE_FROM) | iobench$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) man && ./iobench completion >$@.partial && mv $@.partial $@

MAINTAINERCLEANFILES = man/iobench.1 man/iobench
