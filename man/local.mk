# SPDX-License-Identifier: Apache-2.0
# The program generates its manual pages and completions from its option tables. They depend on the
# sources with those tables, so a release, which ships them, does not regenerate them (or run a program
# built for another machine; a checkout does, by binfmt_misc or EMULATOR). tests/cli/generated.sh checks
# that each command has a page.
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
COMMAND_PAGES = man/iobench-run.1 man/iobench-train.1 man/iobench-infer.1 man/iobench-checkpoint.1 \
	man/iobench-net.1 man/iobench-pack.1 man/iobench-verify.1 man/iobench-inspect.1 man/iobench-show.1 \
	man/iobench-list.1 man/iobench-doctor.1 man/iobench-compare.1 man/iobench-gather.1 man/iobench-size.1 \
	man/iobench-ramp.1 man/iobench-study.1 man/iobench-shuffle.1 man/iobench-sweep.1 man/iobench-monitor.1 \
	man/iobench-plot.1 man/iobench-report.1 man/iobench-plan.1 man/iobench-completion.1 man/iobench-help.1
dist_man_MANS += man/iobench.1 $(COMMAND_PAGES)
dist_bashcompletion_DATA = man/iobench
dist_zshcompletion_DATA = man/_iobench
dist_fishcompletion_DATA = man/iobench.fish
MADE_FROM = $(iobench_SOURCES) $(libiobench_a_SOURCES)

man/iobench.1: $(MADE_FROM) | iobench$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) man && $(EMULATOR) ./iobench help --man >$@.partial && mv $@.partial $@

$(COMMAND_PAGES): $(MADE_FROM) | iobench$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) man && page=$@ && page=$${page##*/iobench-} && \
		$(EMULATOR) ./iobench help $${page%.1} --man >$@.partial && mv $@.partial $@

man/iobench man/_iobench man/iobench.fish: $(MADE_FROM) | iobench$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) man && \
		case $@ in */_*) shell=zsh ;; *.fish) shell=fish ;; *) shell=bash ;; esac && \
		$(EMULATOR) ./iobench completion $$shell >$@.partial && mv $@.partial $@

MAINTAINERCLEANFILES = man/iobench.1 $(COMMAND_PAGES) man/iobench man/_iobench man/iobench.fish
