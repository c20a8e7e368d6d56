#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make tests/golden/lmdb/* and lmdb.manifest with py-lmdb, protobuf and Pillow.

Not needed to build or to test: the files are committed. usage: make_lmdb.py FOLDER
Manifest: format, path, number of the record, label, CRC-32 and length of the image, -.
"""
import io
import os
import random
import shutil
import sys
import zlib

import lmdb
from PIL import Image

from caffe_messages import BYTE, FLOAT, INT32, STRING, Datum, TensorProtos


def jpeg(seed, side, kind="JPEG"):
    """Return an image whose length grows with side: 24 fits in a leaf page, 72 takes one overflow
    page and 96 two."""
    noise = random.Random(seed)
    image = Image.new("RGB", (side, side))
    image.putdata([(noise.randrange(256), x % 256, 99) for x in range(side * side)])
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def datum(image, label, **fields):
    return Datum(data=image, label=label, **fields).SerializeToString()


def tensors(image, label, real=False, raw=None, box=False):
    protos = TensorProtos()
    first, second = protos.protos.add(), protos.protos.add()
    if raw:
        first.data_type, first.byte_data = BYTE, image
        first.dims.extend(raw)
    else:
        first.data_type = STRING
        first.dims.append(1)
        first.string_data.append(image)
    second.dims.append(1)
    if real:
        second.data_type = FLOAT
        second.float_data.append(label)
    else:
        second.data_type = INT32
        second.int32_data.append(label)
    if box:
        third = protos.protos.add(data_type=INT32)
        third.dims.append(4)
        third.int32_data.extend([1, 2, 300, 400])
    return protos.SerializeToString()


class Database:
    def __init__(self, folder, name, manifest, subdir=True):
        self.path, self.name, self.manifest = os.path.join(folder, "lmdb", name), name, manifest
        shutil.rmtree(self.path, ignore_errors=True)
        if not subdir and os.path.exists(self.path):
            os.remove(self.path)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.env = lmdb.open(self.path, map_size=1 << 24, subdir=subdir)
        self.subdir = subdir
        self.samples = {}

    def put(self, key, value, label, image):
        self.samples[key] = (label, image)
        return key, value

    def write(self, rows, extra=()):
        with self.env.begin(write=True) as transaction:
            for key, value in list(rows) + list(extra):
                transaction.put(key, value)

    def delete(self, keys):
        with self.env.begin(write=True) as transaction:
            for key in keys:
                assert transaction.delete(key)
                del self.samples[key]

    def close(self):
        self.env.close()
        lock = os.path.join(self.path, "lock.mdb") if self.subdir else self.path + "-lock"
        os.remove(lock)
        for record, key in enumerate(sorted(self.samples)):
            label, image = self.samples[key]
            print("lmdb", "lmdb/" + self.name, record, label, f"{zlib.crc32(image):08x}",
                  len(image), "-", file=self.manifest)


def caffe_encoded(folder, manifest):
    """Like convert_imageset --encoded; in-page and overflow values."""
    made = Database(folder, "datum", manifest)
    rows = []
    for i in range(7):
        image = jpeg(i, (96, 24, 24, 72)[i % 4], "PNG" if i == 5 else "JPEG")
        rows.append(made.put(b"%08d_n%08d/%d.JPEG" % (i, i, i), datum(image, i * 111, encoded=True),
                             i * 111, image))
    made.write(rows)
    made.close()


def caffe_raw(folder, manifest):
    """One file (NOSUBDIR); planes, grey; labels: missing, none, negative and largest."""
    made = Database(folder, "datum_raw.mdb", manifest, subdir=False)
    raw = bytes(range(256)) * 3
    rows = [
        made.put(b"00000000", datum(raw, 5, channels=3, height=16, width=16, encoded=False), 5, raw),
        made.put(b"00000001", datum(raw, 6, channels=1, height=24, width=32), 6, raw),
        made.put(b"00000002", Datum(data=raw, channels=3, height=16, width=16).SerializeToString(),
                 0, raw),
        made.put(b"00000003", datum(raw, -1, channels=3, height=8, width=32), -1, raw),
        made.put(b"00000004", datum(raw * 3, 2**31 - 1, channels=3, height=24, width=32), 2**31 - 1,
                 raw * 3),
    ]
    made.write(rows)
    made.close()


def caffe2(folder, manifest):
    made = Database(folder, "tensors", manifest)
    small, large, raw = jpeg(20, 24), jpeg(21, 72), bytes(range(200)) * 3
    rows = [
        made.put(b"00000000_a", tensors(small, 1), 1, small),
        made.put(b"00000001_b", tensors(large, 999), 999, large),
        made.put(b"00000002_c", tensors(small, 3.0, real=True), 3, small),
        made.put(b"00000003_d", tensors(raw, 4, raw=[10, 20, 3]), 4, raw),
        made.put(b"00000004_e", tensors(raw, 5, raw=[20, 30]), 5, raw),
        made.put(b"00000005_f", tensors(large, 6, box=True), 6, large),
        made.put(b"00000006_g", tensors(small, 0), 0, small),
    ]
    made.write(rows)
    made.close()


def lsun(folder, manifest):
    """Unwrapped images under hash-like keys, with the two names that are not samples."""
    made = Database(folder, "lsun", manifest)
    rows = []
    for i in range(6):
        image = jpeg(30 + i, 24 if i % 2 else 72)
        rows.append(made.put(b"%040x" % random.Random(i).getrandbits(160), image, -1, image))
    made.write(rows, [(b"__len__", b"\x80\x04K\x06."), (b"__keys__", b"not a sample" * 300)])
    made.close()


def deep(folder, manifest):
    """Long keys make a tree of depth 3; many transactions and deletes leave free pages, pages out
    of order, half-filled leaves and values that shrank or grew."""
    made = Database(folder, "deep", manifest)
    noise = random.Random(40)

    def key(i):
        return b"%08d_" % i + b"k" * 490

    order = [i * 15 % 46 for i in range(46)]
    for start in range(0, len(order), 19):
        rows = []
        for i in order[start:start + 19]:
            image = b"\xff\xd8\xff" + b"%d" % i * 7
            rows.append(made.put(key(i), datum(image, i, encoded=True), i, image))
        made.write(rows)
    made.delete([key(i) for i in range(0, 46, 12)])
    for i in (1, 2):
        image = jpeg(41 + i, 56)
        made.write([made.put(key(i), datum(image, i, encoded=True), i, image)])
    made.delete([key(2)])
    depth, free = made.env.stat()["depth"], made.env.info()["last_pgno"]
    assert depth >= 3, depth
    print("deep: depth", depth, "pages", free + 1)
    made.close()


def main(folder):
    with open(os.path.join(folder, "lmdb.manifest"), "w") as manifest:
        for make in caffe_encoded, caffe_raw, caffe2, lsun, deep:
            make(folder, manifest)


main(sys.argv[1])
