#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read what tests/golden/peers wrote with the reference tool of each format.

usage: peers.py FOLDER < lines of peers
"""
import collections
import os
import sys
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def read_recordio(path):
    import numpy
    numpy.bool = bool  # MXNet 1.9.1 uses the name that numpy 1.24 dropped
    import mxnet as mx

    plain = mx.recordio.MXRecordIO(path, "r")
    in_order = []
    while (record := plain.read()) is not None:
        header, image = mx.recordio.unpack(record)
        in_order.append((int(header.label), image, "-"))
    by_key = mx.recordio.MXIndexedRecordIO(path[:-4] + ".idx", path, "r")
    for key in by_key.keys:
        header, image = mx.recordio.unpack(by_key.read_idx(key))
        assert (int(header.label), image, "-") == in_order[key], key
        assert header.id == (0xCED7230A if key == 7 else key), key
    return in_order


def read_shards(path):
    import tensorflow as tf

    compression = "GZIP" if "gzip" in path else "ZLIB" if "zlib" in path else ""
    keys = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/filename": tf.io.FixedLenFeature([], tf.string),
    }
    samples, offset = [], 0
    lines = open(path + ".idx").read().splitlines() if os.path.exists(path + ".idx") else []
    for number, record in enumerate(tf.data.TFRecordDataset(path, compression)):
        example = tf.io.parse_single_example(record, keys)
        samples.append((int(example["image/class/label"]) - 1, example["image/encoded"].numpy(),
                        example["image/filename"].numpy().decode()))
        if lines:
            assert lines[number] == f"{offset} {len(record.numpy()) + 16}", lines[number]
            offset += len(record.numpy()) + 16
    return samples


def main(folder):
    expected = collections.defaultdict(list)
    for line in sys.stdin:
        format_, path, number, label, crc, count, name = line.split()
        expected[format_, path].append((int(label), crc, int(count), name))
    wrong = 0
    for (format_, path), records in expected.items():
        read = {"recordio": read_recordio, "shards": read_shards}[format_]
        got = [(label, f"{zlib.crc32(image):08x}", len(image), name)
               for label, image, name in read(os.path.join(folder, path))]
        print(f"{path}: {len(got)} records, {'as written' if got == records else 'NOT as written'}")
        wrong += got != records
    return 1 if wrong or not expected else 0


sys.exit(main(sys.argv[1]))
