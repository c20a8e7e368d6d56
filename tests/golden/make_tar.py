#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make tests/golden/tar/* and tar.manifest with webdataset and Python's tarfile.

Not needed to build or to test: the files are committed. usage: make_tar.py FOLDER
Manifest: format, path, number of the record, label, CRC-32 and length of the image, name.
"""
import io
import os
import random
import shutil
import sys
import tarfile
import zlib

import webdataset
from PIL import Image

tarfile.RECORDSIZE = 1024  # files need no padding to 10 KiB


def image(seed, kind="JPEG"):
    noise = random.Random(seed)
    picture = Image.new("RGB", (8, 8))
    picture.putdata([(noise.randrange(256), x * 3, 99) for x in range(64)])
    file = io.BytesIO()
    picture.save(file, kind)
    return file.getvalue()


class Expected:
    def __init__(self, manifest, name):
        self.manifest, self.name, self.record = manifest, name, 0

    def sample(self, label, content, path):
        print("tar", "tar/" + self.name, self.record, label, f"{zlib.crc32(content):08x}",
              len(content), path, file=self.manifest)
        self.record += 1


def shards(folder, manifest):
    """As written by webdataset's ShardWriter, with a .json file that is ignored."""
    expected = Expected(manifest, "webdataset")
    os.makedirs(os.path.join(folder, "tar/webdataset"))
    pattern = os.path.join(folder, "tar/webdataset/train-%06d.tar")
    with webdataset.ShardWriter(pattern, maxcount=3, verbose=0) as writer:
        for i in range(5):
            content = image(i)
            writer.write({"__key__": f"n{i:02d}/sample{i:03d}", "jpg": content, "cls": i * 100,
                          "json": {"width": 8}})
            expected.sample(i * 100, content, f"n{i:02d}/sample{i:03d}.jpg")


def add(archive, path, content=b"", **fields):
    member = tarfile.TarInfo(path)
    member.size = len(content)
    for name, value in fields.items():
        setattr(member, name, value)
    archive.addfile(member, io.BytesIO(content))


def archive(folder, manifest, name, form, long_path):
    """Names of every length the format can hold, with all kinds of non-samples in between."""
    expected = Expected(manifest, name)
    with tarfile.open(os.path.join(folder, "tar", name), "w", format=form) as tar:
        add(tar, "folder", type=tarfile.DIRTYPE)
        add(tar, "README", b"no extension")
        for record, length in enumerate((20, 100, 180, 300)):
            if length > long_path:
                break
            stem = "folder.with.dots/" + f"{record}" * 60 + "/"
            stem = stem if length > 100 else ""
            while length > 160 and len(stem) < length - 60:
                stem += "x" * 30 + "/"
            path = stem + "k" * (length - len(stem) - 4) + ".jpg"
            assert len(path) == length
            content = image(50 + record)
            add(tar, path, content, mtime=1.5 if form == tarfile.PAX_FORMAT else 1)
            add(tar, "__notes__/other.txt", b"left out")
            add(tar, "link.jpg", type=tarfile.SYMTYPE, linkname="elsewhere.jpg")
            add(tar, path[:-3] + "cls", b"%d\n" % record)
            expected.sample(record, content, path)
        add(tar, "only.cls", b"5")
        content = image(70, "PNG")
        add(tar, "upper.PNG", content)
        add(tar, "upper.seg.png", b"another extension: seg.png")
        expected.sample(-1, content, "upper.PNG")
        content = image(71)
        add(tar, ".hidden.jpg", content)
        add(tar, "last.JPEG", content)
        add(tar, "last.CLS", b" -1 ")
        expected.sample(-1, content, "last.JPEG")


def old(folder, manifest):
    """Built by hand: no magic (version 7), a size in base 256, a checksum of signed bytes."""
    def header(name, size, signed=False):
        block = bytearray(512)
        block[:len(name)] = name
        block[100:108] = b"0000644\0"
        block[124:136] = size
        block[136:148] = b"00000000000\0"
        block[148:156] = b" " * 8
        total = sum(x - 256 if signed and x > 127 else x for x in block)
        block[148:156] = b"%6o\0 " % total
        return bytes(block)

    with open(os.path.join(folder, "tar/old.tar"), "wb") as file:
        for record, signed in enumerate((False, True)):
            content, name = image(80 + record), b"caf\xe9%d.jpg" % record
            size = b"\x80" + len(content).to_bytes(11, "big") if record == 0 else \
                b"%11o " % len(content)
            file.write(header(name, size, signed) + content + bytes(-len(content) % 512))
            print("tar", "tar/old.tar", record, -1, f"{zlib.crc32(content):08x}", len(content), "-",
                  file=manifest)
        file.write(bytes(1024))


def main(folder):
    shutil.rmtree(os.path.join(folder, "tar"), ignore_errors=True)
    os.makedirs(os.path.join(folder, "tar"))
    with open(os.path.join(folder, "tar.manifest"), "w") as manifest:
        shards(folder, manifest)
        archive(folder, manifest, "ustar.tar", tarfile.USTAR_FORMAT, 180)
        archive(folder, manifest, "gnu.tar", tarfile.GNU_FORMAT, 300)
        archive(folder, manifest, "pax.tar", tarfile.PAX_FORMAT, 300)
        old(folder, manifest)


main(sys.argv[1])
