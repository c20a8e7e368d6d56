# SPDX-License-Identifier: Apache-2.0
# Small bugs, drawn by a seed. Not part of `make check`.
EXTRA_DIST += tests/mutants/generate.py tests/mutants/equivalent.list
.PHONY: mutants
#: mutants     SEED=1 COUNT=60 [FOLDER=report]: small bugs, one at a time, and the tests that reach each
mutants: all
	python3 $(srcdir)/tests/mutants/generate.py --seed $(SEED) --count $(COUNT) --folder "$(FOLDER)" \
		--without "$(WITHOUT)" --workers $(WORKERS) --slow $(SLOW) --budget $(BUDGET)
SEED = 1
COUNT = 60
WORKERS = 2
SLOW = 1200
BUDGET = 1e9
clean-local: clean-mutants
.PHONY: clean-mutants
clean-mutants:
	rm -rf mutants.work
