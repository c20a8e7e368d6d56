# SPDX-License-Identifier: Apache-2.0
# Add new pages here: unlisted pages are missing from the tarball.
EXTRA_DIST += docs/design.md docs/training.md docs/formats.md docs/pack.md docs/json.md docs/metrics.md docs/networks.md docs/shuffle.md docs/gpu.md
EXTRA_DIST += docs/sizing.md docs/decode.md
EXTRA_DIST += docs/glossary.md docs/mlperf.md docs/ramp.md docs/results/fuzz.md docs/results/mutants.md docs/monitor.md docs/results/predictions.md docs/results/telemetry.md docs/results/io-engine.md
EXTRA_DIST += docs/checkpoint.md docs/net.md docs/trace.md docs/decisions

EXTRA_DIST += docs/results/claims.md docs/results/claims/epyc-zen3.json docs/results/claims/epyc-zen4.json \
	docs/results/claims/xeon-emerald-rapids.json

# Figures of docs/shuffle.md and their data.
EXTRA_DIST += \
	docs/results/epoch-border-drained.csv docs/results/epoch-border-overlapping.csv \
	docs/results/epoch-border.gp docs/results/epoch-border.svg \
	docs/results/shuffle-front.csv docs/results/shuffle-front.svg \
	docs/results/shuffle-learning.csv docs/results/shuffle-learning.svg

EXTRA_DIST += docs/sweep.md
EXTRA_DIST += docs/architecture.py docs/architecture.svg docs/cluster.md docs/security.md docs/reliability.md docs/truth.md

# Measurements on guests, with their commands.
EXTRA_DIST += docs/results/gpu/h100.txt docs/results/gpu/h200.txt
EXTRA_DIST += docs/results/guests/README.md docs/results/guests/epochs.csv \
	docs/results/guests/large-4-caffe2.csv docs/results/guests/large-4-mxnet.csv \
	docs/results/guests/large-4-tensorflow.csv docs/results/guests/rdma-epochs.csv \
	docs/results/guests/rdma-read.csv docs/results/guests/rdma.svg \
	docs/results/guests/gradients-epochs.csv docs/results/guests/gradients.csv \
	docs/results/guests/gradients.svg docs/results/guests/large-1-caffe2.csv \
	docs/results/guests/large-1-mxnet.csv docs/results/guests/large-1-tensorflow.csv \
	docs/results/guests/large-2-caffe2.csv docs/results/guests/large-2-mxnet.csv \
	docs/results/guests/large-2-tensorflow.csv docs/results/guests/lmdb-large.csv \
	docs/results/guests/lmdb-small.csv docs/results/guests/lmdb.svg \
	docs/results/guests/small-1-caffe2.csv docs/results/guests/small-1-mxnet.csv \
	docs/results/guests/small-1-tensorflow.csv docs/results/guests/small-2-caffe2.csv \
	docs/results/guests/small-2-mxnet.csv docs/results/guests/small-2-tensorflow.csv \
	docs/results/guests/storage-large.svg docs/results/guests/storage-small.svg \
	docs/results/guests/study-fabric.md docs/results/guests/study-fabric.svg \
	docs/results/guests/study-nodes.md docs/results/guests/study-nodes.svg

# Studies: their pages and pictures.

EXTRA_DIST += docs/report.md docs/report/light.png docs/report/dark.png docs/report/narrow.png
EXTRA_DIST += docs/studies/README.md docs/features.md
# Pages of ./bootstrap studies.
EXTRA_DIST += \
	docs/studies/demand.md docs/studies/demand.svg docs/studies/profile.md docs/studies/profile.svg \
	docs/studies/accuracy.md docs/studies/accuracy.svg docs/studies/beside.md \
	docs/studies/fabric.md docs/studies/fabric.svg \
	docs/studies/beside.svg docs/studies/formats.md docs/studies/formats.svg \
	docs/studies/inference.md docs/studies/inference.svg docs/studies/lmdb.md \
	docs/studies/lmdb.svg docs/studies/machines.md docs/studies/machines.svg \
	docs/studies/memory.md docs/studies/memory.svg docs/studies/networks.md \
	docs/studies/networks.svg docs/studies/nodes.md docs/studies/nodes.svg \
	docs/studies/precision.md docs/studies/precision.svg docs/studies/scaling.md \
	docs/studies/scaling.svg docs/studies/sizing.md docs/studies/sizing.svg \
	docs/studies/update.md docs/studies/update.svg
EXTRA_DIST += docs/kubernetes.md
EXTRA_DIST += docs/tutorial.md docs/README.md docs/faq.md docs/questions.md docs/result.md docs/from-0.2.md
EXTRA_DIST += docs/schema/iobench.schema.json
EXTRA_DIST += docs/report/shots.sh
