# SPDX-License-Identifier: Apache-2.0
# The program generates its manual pages and completions from its option tables. They depend on the
# sources with those tables, so a release, which ships them, does not regenerate them (or run a program
# built for another machine; a checkout does, by binfmt_misc or EMULATOR). tests/cli/generated.sh checks
# that each command has a page.
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
COMMAND_PAGES = packaging/man/iobench-run.1 packaging/man/iobench-train.1 packaging/man/iobench-infer.1 packaging/man/iobench-checkpoint.1 \
	packaging/man/iobench-net.1 packaging/man/iobench-pack.1 packaging/man/iobench-verify.1 packaging/man/iobench-inspect.1 packaging/man/iobench-show.1 \
	packaging/man/iobench-list.1 packaging/man/iobench-doctor.1 packaging/man/iobench-compare.1 packaging/man/iobench-gather.1 packaging/man/iobench-size.1 \
	packaging/man/iobench-ramp.1 packaging/man/iobench-study.1 packaging/man/iobench-shuffle.1 packaging/man/iobench-sweep.1 packaging/man/iobench-monitor.1 \
	packaging/man/iobench-plot.1 packaging/man/iobench-report.1 packaging/man/iobench-plan.1 packaging/man/iobench-completion.1 packaging/man/iobench-help.1
dist_man_MANS += packaging/man/iobench.1 $(COMMAND_PAGES)
dist_bashcompletion_DATA = packaging/man/iobench
dist_zshcompletion_DATA = packaging/man/_iobench
dist_fishcompletion_DATA = packaging/man/iobench.fish
MADE_FROM = $(iobench_SOURCES) $(libiobench_a_SOURCES)

packaging/man/iobench.1: $(MADE_FROM) | iobench$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) packaging/man && $(EMULATOR) ./iobench help --man >$@.partial && mv $@.partial $@

$(COMMAND_PAGES): $(MADE_FROM) | iobench$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) packaging/man && page=$@ && page=$${page##*/iobench-} && \
		$(EMULATOR) ./iobench help $${page%.1} --man >$@.partial && mv $@.partial $@

packaging/man/iobench packaging/man/_iobench packaging/man/iobench.fish: $(MADE_FROM) | iobench$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) packaging/man && \
		case $@ in */_*) shell=zsh ;; *.fish) shell=fish ;; *) shell=bash ;; esac && \
		$(EMULATOR) ./iobench completion $$shell >$@.partial && mv $@.partial $@

MAINTAINERCLEANFILES = packaging/man/iobench.1 $(COMMAND_PAGES) packaging/man/iobench packaging/man/_iobench packaging/man/iobench.fish
