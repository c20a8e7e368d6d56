# SPDX-License-Identifier: Apache-2.0
# Add new pages here: what is not listed is not in the tarball.
EXTRA_DIST += docs/design.md docs/training.md docs/formats.md docs/pack.md docs/json.md docs/networks.md docs/shuffle.md docs/gpu.md

# Figures of docs/shuffle.md and what they were drawn from.
EXTRA_DIST += \
	docs/results/epoch-border-drained.csv docs/results/epoch-border-overlapping.csv \
	docs/results/epoch-border.gp docs/results/epoch-border.svg \
	docs/results/shuffle-front.csv docs/results/shuffle-front.svg \
	docs/results/shuffle-learning.csv docs/results/shuffle-learning.svg
