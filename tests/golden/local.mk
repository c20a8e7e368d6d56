# SPDX-License-Identifier: Apache-2.0
# Small files written by the reference tools of each format (with the make_*.py next to them, which
# the build does not need), and manifests of their contents.
EXTRA_DIST += \
	tests/golden/make_quantise.py \
	tests/golden/make_recordio.py \
	tests/golden/recordio.manifest \
	tests/golden/recordio/shards/part-0.idx \
	tests/golden/recordio/shards/part-0.rec \
	tests/golden/recordio/shards/part-1.rec \
	tests/golden/recordio/train.idx \
	tests/golden/recordio/train.rec

EXTRA_DIST += \
	tests/golden/make_mds.py \
	tests/golden/mds.manifest \
	tests/golden/mds/columns/index.json \
	tests/golden/mds/columns/shard.00000.mds \
	tests/golden/mds/pil/index.json \
	tests/golden/mds/pil/shard.00000.mds \
	tests/golden/mds/plain/index.json \
	tests/golden/mds/plain/shard.00000.mds \
	tests/golden/mds/plain/shard.00001.mds \
	tests/golden/mds/zstd/index.json \
	tests/golden/mds/zstd/shard.00000.mds.zstd \
	tests/golden/mds/zstd/shard.00001.mds.zstd

EXTRA_DIST += \
	tests/golden/make_tfrecord.py \
	tests/golden/tfrecord.manifest \
	tests/golden/tfrecord/imagenet/train-00000-of-00002 \
	tests/golden/tfrecord/imagenet/train-00001-of-00002 \
	tests/golden/tfrecord/packed/gzip-00000-of-00001 \
	tests/golden/tfrecord/packed/zlib.tfrecord \
	tests/golden/tfrecord/tfds/tiny-train.tfrecord-00000-of-00001

EXTRA_DIST += \
	tests/golden/caffe_messages.py \
	tests/golden/make_lmdb.py \
	tests/golden/lmdb.manifest \
	tests/golden/lmdb/datum/data.mdb \
	tests/golden/lmdb/datum_raw.mdb \
	tests/golden/lmdb/deep/data.mdb \
	tests/golden/lmdb/lsun/data.mdb \
	tests/golden/lmdb/tensors/data.mdb

# iobench's files, read by the reference tools: tests/golden/peers.sh, run by hand.
EXTRA_PROGRAMS += tests/golden/peers
tests_golden_peers_SOURCES = tests/golden/peers.c
tests_golden_peers_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_DIST += tests/golden/peers.sh tests/golden/peers.py

EXTRA_DIST += \
	tests/golden/make_tar.py \
	tests/golden/tar.manifest \
	tests/golden/tar/gnu.tar \
	tests/golden/tar/old.tar \
	tests/golden/tar/pax.tar \
	tests/golden/tar/ustar.tar \
	tests/golden/tar/webdataset/train-000000.tar \
	tests/golden/tar/webdataset/train-000001.tar

# For tests/golden/peer_shuffle.py, run by hand.
EXTRA_PROGRAMS += tests/golden/order
tests_golden_order_SOURCES = tests/golden/order.c
tests_golden_order_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_DIST += tests/golden/peer_shuffle.py

EXTRA_DIST += tests/golden/make_trainer.py tests/golden/trainer.golden

# The steps of ResNet-50 on an H100; tests/cli/plan.sh compares, and says how to renew it.
EXTRA_DIST += tests/golden/plan-h100.txt

# What test_pages compares with; it can write them anew. Sessions of tests/unit/session.h.
EXTRA_DIST += tests/golden/pages tests/golden/sessions tests/golden/pictures.zip
