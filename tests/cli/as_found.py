#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""as_found.py PLAIN: in this folder, makes sets as other tools leave them, of the images in PLAIN/CLASS/."""

import glob
import io
import json
import os
import shutil
import struct
import sys
import tarfile
import zipfile

images = []
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*", "*.jpg"))):
    with open(path, "rb") as file:
        images.append((file.read(), int(os.path.basename(os.path.dirname(path)))))


def save(path, content):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


# ---- tar ----


def add(archive, name, content, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(content)
    archive.addfile(info, io.BytesIO(content))


def tar(name, members, order=None):
    """tar/NAME/a.tar and tar/NAME.tar.gz; members(i, image, label) gives files, or links as (NAME, kind, target)."""
    os.makedirs(f"tar/{name}", exist_ok=True)
    all_members = [member for i, (image, label) in enumerate(images) for member in members(f"s{i:02}", image, label)]
    if order:
        all_members.sort(key=order)
    for path, mode in (f"tar/{name}/a.tar", "w"), (f"tar/{name}.tar.gz", "w:gz"):
        with tarfile.open(path, mode) as archive:
            for member in all_members:
                if len(member) == 2:
                    add(archive, *member)
                else:
                    add(archive, member[0], b"", member[1], member[2])


def labelled(label_file, text):
    return lambda key, image, label: [(f"{key}.jpg", image), (f"{key}.{label_file}", text(label))]


words = ["cat", "dog", "cow"]
tar("numbers", labelled("cls", lambda label: b"%d\r\n" % label))
tar("blank", labelled("cls", lambda label: b" \n"))
tar("words", labelled("cls", lambda label: words[label].encode()))
tar("json", labelled("json", lambda label: json.dumps({"label": float(label)}).encode()))
tar("text-number", labelled("json", lambda label: json.dumps({"label": str(label)}).encode()))
tar("json-words", labelled("json", lambda label: json.dumps({"label": words[label]}).encode()))
tar("masks", lambda key, image, label: [(f"{key}.seg.jpg", images[0][0]), (f"{key}.jpg", image),
                                        (f"{key}.json", b'{"label": %d.0}' % label)])
tar("views", lambda key, image, label: [(f"{key}.left.jpg", image), (f"{key}.right.jpg", images[0][0]),
                                        (f"{key}.cls", b"%d" % label)])
tar("json-last", labelled("json", lambda label: b'{"label": %d}' % label), lambda member: member[0].endswith("json"))
tar("json-first", labelled("json", lambda label: b'{"label": %d}' % label), lambda member: member[0].endswith("jpg"))
tar("cls-first", labelled("cls", lambda label: b"%d" % label), lambda member: not member[0].endswith("cls"))
tar("sounds", lambda key, image, label: [(f"{key}.wav", image), (f"{key}.json", b'{"text": "hm"}')])


def links(key, image, label):
    number = int(key[1:])
    return [(f"{key}.jpg", tarfile.LNKTYPE, "s00.jpg") if number == 1 else (f"{key}.jpg", image),
            (f"{key}.cls", tarfile.SYMTYPE, "s00.cls") if number == 2 else (f"{key}.cls", b"%d" % label)]


tar("links", links)

# ---- folders ----

for i, (image, label) in enumerate(images):
    save(f"folder/{words[label]}/{i}.jpg", image)
    save(f"folder/__MACOSX/{words[label]}/._{i}.jpg", b"\0\5\x16\7")
with zipfile.ZipFile("folder.zip", "w") as archive:
    for path in sorted(glob.glob("folder/**/*", recursive=True) + glob.glob("folder/__MACOSX/*/._*")):
        archive.write(path, os.path.relpath(path, "folder"))
    archive.writestr("notes.json", '{"label": 1}\n{"label": 2}\n')  # lines of JSON: no label

# ---- TFRecord ----

table = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    table.append(byte)


def masked(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(contents):
    parts = []
    for content in contents:
        head = struct.pack("<Q", len(content))
        parts += [head, struct.pack("<I", masked(head)), content, struct.pack("<I", masked(content))]
    return b"".join(parts)


def field(number, content):
    length, size = b"", len(content)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def feature(key, kind, value):
    return field(1, field(1, key) + field(2, field(kind, field(1, value))))


def example(*features):
    return field(1, b"".join(features))


shards = sorted(glob.glob("records/train-*"))
for suffix in "index", "md5", "tfindex":
    shutil.copytree("records", f"records-{suffix}")
    for shard in shards:
        save(f"records-{suffix}/{os.path.basename(shard)}.{suffix}", b"0 1234\n")
for folder in "empty", "suffix", "record":
    os.makedirs(f"records-{folder}")
for i, shard in enumerate(shards):
    shutil.copy(shard, f"records-empty/train-{i:05}-of-00003")
    shutil.copy(shard, f"records-suffix/{i:02}-512x512-6.tfrec")
    shutil.copy(shard, f"records-record/train{i}.record")
save("records-empty/train-00002-of-00003", b"")
save("other/texts/train-00000-of-00001", records([example(feature(b"input_ids", 3, b"\5\6\7"))] * 4))
save("other/sequence/train-00000-of-00001", records([field(2, feature(b"frames", 1, b"x"))] * 4))
save("other/nothing/train-00000-of-00001", records([b"\xff" * 40] * 4))
save("other/key/train-00000-of-00001",
     records([example(feature(b"image_raw", 1, image), feature(b"label", 3, b"\1")) for image, _ in images[:4]]))

# ---- records without an image ----

contents = [images[0][0], images[1][0], b"", images[2][0]]
save("empty/train-00000-of-00001",
     records([example(feature(b"image/encoded", 1, image), feature(b"image/class/label", 3, b"\1"))
              for image in contents]))
save("empty/most/train-00000-of-00001",
     records([example(feature(b"image/encoded", 1, image), feature(b"image/class/label", 3, b"\1"))
              for image in (images[0][0], b"", b"", b"")]))
parts = []
for i, image in enumerate(contents):
    payload = struct.pack("<IfQQ", 0, 0.0, i, 0) + image
    parts += [struct.pack("<II", 0xCED7230A, len(payload)), payload, bytes(-len(payload) % 4)]
save("empty/record.rec", b"".join(parts))
