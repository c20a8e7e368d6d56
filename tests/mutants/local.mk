# SPDX-License-Identifier: Apache-2.0
# Small bugs, written by hand with the tests that must detect each, or drawn by a seed. Not part of `make check`.
MUTANTS_LISTS = tests/mutants/base.list tests/mutants/cachectl.list tests/mutants/checkpoint.list tests/mutants/cmd.list \
	tests/mutants/dataset.list tests/mutants/decode.list tests/mutants/fabric.list tests/mutants/formats.list \
	tests/mutants/pack.list tests/mutants/pipeline.list tests/mutants/ranks.list tests/mutants/readers.list \
	tests/mutants/report.list tests/mutants/shuffle.list tests/mutants/sizing.list tests/mutants/telemetry.list \
	tests/mutants/trainer.list
EXTRA_DIST += tests/mutants/run.sh tests/mutants/generate.py tests/mutants/equivalent.list $(MUTANTS_LISTS)
.PHONY: mutants
#: mutants     inject small bugs, one at a time, and run the tests that must catch each (an hour)
mutants: all
	if [ -n "$(SEED)" ]; then python3 $(srcdir)/tests/mutants/generate.py --seed $(SEED) --count $(COUNT) \
		--folder "$(FOLDER)" --workers $(WORKERS); else srcdir=$(srcdir) sh $(srcdir)/tests/mutants/run.sh; fi
COUNT = 60
WORKERS = 2
clean-local: clean-mutants
.PHONY: clean-mutants
clean-mutants:
	rm -rf mutants.work
