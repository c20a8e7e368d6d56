#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make tests/golden/recordio/* and recordio.manifest with MXNet.

Not needed to build or to test: the files are committed. usage: make_recordio.py FOLDER
Manifest: format, path, number of the record, label, CRC-32 and length of the image, -.
"""
import os
import sys
import zlib

import numpy

numpy.bool = bool  # MXNet 1.9.1 uses the name that NumPy 1.24 removed
import mxnet as mx

MAGIC = (0xCED7230A).to_bytes(4, "little")


def images():
    """Yield (label, id, bytes): the cases differ in where the payload contains the magic number."""
    plain = bytes(range(1, 200))
    yield 0, 0, plain
    yield 1, 1, b""
    yield 2, 2, b"x"
    yield 3, 3, MAGIC + plain  # aligned: the writer splits the record in two
    yield 4, 4, plain[:3] + MAGIC + plain  # not aligned: it is kept
    yield 5, 5, plain[:8] + MAGIC + MAGIC + MAGIC + plain[:5]
    yield 6, 6, plain[:8] + MAGIC  # the last part is empty
    yield 7, 0xCED7230A, plain[:10]  # in the header
    yield 8, 0xCED7230ACED7230A, MAGIC + MAGIC
    yield 999, 9, MAGIC[:3] + plain[:8] + MAGIC[1:]
    yield [10.0, 0.5, 0.25], 10, plain[:11]  # several labels
    yield [11.0, -1.0], 11, MAGIC + plain[:2]
    yield [12.0], 12, plain


def write(folder, name, which, manifest):
    path = os.path.join(folder, "recordio", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    writer = mx.recordio.MXIndexedRecordIO(path[:-4] + ".idx", path, "w")
    for record, (label, number, image) in enumerate(which):
        # IRHeader takes ids as unsigned 64-bit numbers.
        writer.write_idx(record, mx.recordio.pack(mx.recordio.IRHeader(0, label, number, 0), image))
        first = label[0] if isinstance(label, list) else label
        print("recordio", "recordio/" + name, record, int(first), f"{zlib.crc32(image):08x}",
              len(image), "-", file=manifest)
    writer.close()


def main(folder):
    with open(os.path.join(folder, "recordio.manifest"), "w") as manifest:
        everything = list(images())
        write(folder, "train.rec", everything, manifest)
        write(folder, "shards/part-0.rec", everything[:5], manifest)
        write(folder, "shards/part-1.rec", everything[5:], manifest)
    # A file that must be scanned.
    os.remove(os.path.join(folder, "recordio", "shards/part-1.idx"))


main(sys.argv[1])
