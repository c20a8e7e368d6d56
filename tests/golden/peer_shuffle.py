#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are our orders those of the original programs? Run by hand: needs numpy and whichever of the
originals are installed (the others are skipped):

    pip install numpy tensorflow-cpu webdataset nvidia-dali-cuda120
    pip install --no-deps mosaicml-streaming        # only its shuffle functions are loaded
    FFCV_SOURCE=.../ffcv/traversal_order/quasi_random.py

    make -C build tests/golden/order
    tests/golden/peer_shuffle.py build/tests/golden/order [mosaic web tensorflow dali ffcv]

The same seed cannot give the same order: the originals draw from NumPy's Generator (whose streams
may change from version to version, NEP 19), Python's random, std::mt19937 or TensorFlow's Philox
and shuffle whole arrays, where ours are bijections without tables. What can be the same is the
distribution. For many seeds each side gives one epoch of 8192 records in 128 shards, 64 classes,
batches of 32, and four figures of it: distinct labels a batch, how often neighbours have the same
label, mean distance of a draw from the record's place, and the same over the last quarter of the
epoch alone (where buffers drain). A two-sample Kolmogorov-Smirnov test compares each figure; the
smallest p of four is to be above 0.001. Exit 77: nothing to compare with."""

import ast
import importlib.util
import io
import math
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import types

RECORDS, SHARDS, CLASSES, BATCH, SEEDS = 8192, 128, 64, 32, 200
PER_SHARD = RECORDS // SHARDS

try:
    import numpy as np
except ImportError:
    print("skipped: there is no numpy")
    sys.exit(77)


def figures(order):
    order = np.asarray(order, dtype=np.int64)
    assert (np.sort(order) == np.arange(RECORDS)).all(), "not each record once"
    labels = order * CLASSES // RECORDS
    batches = np.sort(labels.reshape(-1, BATCH), axis=1)
    moved = np.abs(order - np.arange(RECORDS))
    return (
        (1 + (np.diff(batches, axis=1) != 0).sum(axis=1)).mean(),
        (labels[1:] == labels[:-1]).mean(),
        moved.mean(),
        moved[-RECORDS // 4 :].mean(),
    )


def ours(program, strategy):
    for seed in range(SEEDS):
        text = subprocess.run(
            [program, strategy, str(RECORDS), str(SHARDS), str(seed), str(seed % 3)],
            check=True, capture_output=True, text=True).stdout
        yield [int(line) for line in text.split()]


def ks_p(a, b):
    """Two-sample Kolmogorov-Smirnov, asymptotic."""
    values = np.sort(np.concatenate([a, b]))
    distance = np.abs(np.searchsorted(np.sort(a), values, side="right") / len(a)
                      - np.searchsorted(np.sort(b), values, side="right") / len(b)).max()
    n = math.sqrt(len(a) * len(b) / (len(a) + len(b)))
    x = (n + 0.12 + 0.11 / n) * distance
    return min(1.0, max(0.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * x * x)
                                     for k in range(1, 101)))) if x > 0.2 else 1.0


# ---- the originals: (our strategy, function from seed to sample order) ----

def mosaic():
    spec = importlib.util.find_spec("streaming")
    if not spec:
        return
    root = list(spec.submodule_search_locations)[0]
    # Importing the package needs torch and more; its shuffle functions need only NumPy.
    for name, path in (("streaming", root), ("streaming.base", os.path.join(root, "base"))):
        module = types.ModuleType(name)
        module.__path__ = [path]
        sys.modules[name] = module
    from streaming.base.shuffle import get_shuffle
    sizes = np.full(SHARDS, PER_SHARD)
    for name, strategy, block in (("naive", "naive", 1), ("py1s", "py1s", 1), ("py2s", "py2s", 1),
                                  ("py1br", "py1br:512", 512), ("py1e", "py1e:512", 512)):
        yield strategy, lambda seed, n=name, b=block: get_shuffle(n, sizes, 1, seed, seed % 3, b)


def web():
    if not importlib.util.find_spec("webdataset"):
        return
    from webdataset.filters import _shuffle

    def order(seed):
        rng = random.Random(seed)
        shards = list(range(SHARDS))
        rng.shuffle(shards)
        source = (s * PER_SHARD + i for s in shards for i in range(PER_SHARD))
        return list(_shuffle(source, 200, 20, rng=rng))
    yield "webdataset:200,initial=20", order


def tensorflow():
    if not importlib.util.find_spec("tensorflow"):
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    def order(seed):
        tf.random.set_seed(seed)
        files = tf.data.Dataset.range(SHARDS).shuffle(SHARDS, seed=seed)
        records = files.interleave(
            lambda s: tf.data.Dataset.range(s * PER_SHARD, (s + 1) * PER_SHARD), cycle_length=10)
        return list(records.shuffle(500, seed=seed + 1).as_numpy_iterator())

    def plain(seed):
        return list(tf.data.Dataset.range(RECORDS).shuffle(500, seed=seed).as_numpy_iterator())
    yield "tfdata:500,interleave=10", order
    yield "buffer:500", plain


def dali():
    if not importlib.util.find_spec("nvidia") or not importlib.util.find_spec("nvidia.dali"):
        return
    from nvidia.dali import fn, pipeline_def, types as types_of
    # A tar file, because the reader of plain files also shuffles the whole file list.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "all.tar")
        with tarfile.open(path, "w") as tar:
            for record in range(RECORDS):
                member = tarfile.TarInfo(f"{record:06}.num")
                member.size = 4
                tar.addfile(member, io.BytesIO(record.to_bytes(4, "little")))

        @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
        def reader():
            return fn.readers.webdataset(paths=[path], ext=["num"], dtypes=[types_of.INT32],
                                         random_shuffle=True, initial_fill=256)

        def order(seed):
            pipe = reader(seed=seed + 1)
            pipe.build()
            return np.concatenate([np.array(pipe.run()[0].as_array()).ravel()
                                   for _ in range(RECORDS // BATCH)])
        yield "dali:256", order


def ffcv():
    path = os.environ.get("FFCV_SOURCE", "")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    tree.body = [n for n in tree.body if getattr(n, "name", "") == "generate_order_inner"]
    tree.body[0].decorator_list = []
    space = {"np": np, "random": random}
    exec(compile(tree, path, "exec"), space)
    page = 16  # records of 4 KiB in pages of 64 KiB

    def order(seed):
        pages = np.arange(RECORDS).reshape(-1, page).copy()
        result = np.zeros(RECORDS, dtype=np.int64)
        # The function shuffles rows of a NumPy array in place.
        space["generate_order_inner"](seed, pages, np.full(len(pages), page), result, 64)
        return result
    yield "ffcv:64,page=64KiB", order


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    compared = failed = 0
    for peer in (mosaic, web, tensorflow, dali, ffcv):
        if sys.argv[2:] and peer.__name__ not in sys.argv[2:]:
            continue
        found = False
        for strategy, order in peer():
            found = True
            theirs = np.array([figures(order(seed)) for seed in range(SEEDS)])
            mine = np.array([figures(o) for o in ours(sys.argv[1], strategy)])
            p = [ks_p(mine[:, i], theirs[:, i]) for i in range(mine.shape[1])]
            good = min(p) > 0.001
            compared += 1
            failed += not good
            print(f"{peer.__name__:10} {strategy:26} labels {mine[:, 0].mean():6.2f} "
                  f"{theirs[:, 0].mean():6.2f}  same {mine[:, 1].mean():.4f} "
                  f"{theirs[:, 1].mean():.4f}  moved {mine[:, 2].mean():7.1f} "
                  f"{theirs[:, 2].mean():7.1f}  p {' '.join(f'{x:.3f}' for x in p)}  "
                  f"{'ok' if good else 'DIFFERENT'}", flush=True)
        if not found:
            print(f"{peer.__name__:10} skipped: not installed")
    if compared == 0:
        return 77
    return failed != 0


sys.exit(main())
