#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read the files written by tests/golden/peers with the reference tool of each format.

usage: peers.py FOLDER < lines of peers
"""
import collections
import os
import sys
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def read_recordio(path):
    import numpy
    numpy.bool = bool  # MXNet 1.9.1 uses the name that NumPy 1.24 removed
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


def read_tar(path):
    """Read with webdataset; tarfile checks that it accepts every header."""
    import tarfile
    import webdataset

    samples = []
    for sample in webdataset.WebDataset(path, shardshuffle=False):
        samples.append((int(sample["cls"]), sample["jpg"], "-"))
    with tarfile.open(path) as archive:
        assert len(archive.getmembers()) == 2 * len(samples)
    return samples


def read_lmdb(path):
    """Read like Caffe and Caffe2: in key order, with the generated classes."""
    import lmdb
    from caffe_messages import Datum, INT32, STRING, TensorProtos

    samples = []
    with lmdb.open(os.path.dirname(path), readonly=True, lock=False) as environment:
        with environment.begin() as transaction:
            for number, (key, value) in enumerate(transaction.cursor()):
                name = key.decode()
                assert name.startswith(f"{number:08d}_"), name
                if "datum" in path:
                    datum = Datum.FromString(value)
                    assert datum.encoded and datum.SerializeToString() == value
                    label, image = datum.label, datum.data
                else:
                    protos = TensorProtos.FromString(value)
                    assert protos.SerializeToString() == value
                    first, second = protos.protos
                    assert (first.data_type, second.data_type) == (STRING, INT32)
                    label, image = second.int32_data[0], first.string_data[0]
                samples.append((label, image, name.split("_", 1)[1]))
    return samples


READERS = {"recordio": read_recordio, "shards": read_shards, "tar": read_tar, "lmdb": read_lmdb}


def main(folder):
    expected = collections.defaultdict(list)
    for line in sys.stdin:
        format_, path, number, label, crc, count, name = line.split()
        expected[format_, path].append((int(label), crc, int(count), name))
    wrong = 0
    for (format_, path), records in expected.items():
        got = [(label, f"{zlib.crc32(image):08x}", len(image), name)
               for label, image, name in READERS[format_](os.path.join(folder, path))]
        print(f"{path}: {len(got)} records, {'as written' if got == records else 'NOT as written'}")
        wrong += got != records
    return 1 if wrong or not expected else 0


sys.exit(main(sys.argv[1]))
