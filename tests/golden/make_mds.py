#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/golden/mds with MosaicML Streaming's own MDSWriter, and the manifest of its contents.

    pip install mosaicml-streaming    # 0.13.0 wrote the files here
    tests/golden/make_mds.py tests/golden
"""
import io
import os
import random
import sys
import zlib

from PIL import Image
from streaming import MDSWriter


def picture(number, width=16, height=12):
    return Image.frombytes("RGB", (width, height), random.Random(number).randbytes(width * height * 3))


def jpeg(number):
    out = io.BytesIO()
    picture(number).save(out, format="JPEG", quality=75)
    return out.getvalue()


SETS = {  # name: columns, sample of a number, label and stored image of a number, options of the writer
    "plain": ({"image": "jpeg", "label": "int"}, lambda i: {"image": picture(i), "label": i % 5},
              lambda i: (i % 5, jpeg(i)), {"size_limit": 3000}),
    "columns": ({"caption": "str", "image": "png", "b": "uint8", "y": "int32", "z": "int"},
                lambda i: {"caption": "x" * i * i, "image": picture(i), "b": 200, "y": i, "z": -i},
                lambda i: (i, None), {}),
    "pil": ({"img": "pil", "class": "uint16", "note": "json"},
            lambda i: {"img": picture(i), "class": 1000 * i, "note": {"a": i}},
            lambda i: (1000 * i, picture(i).tobytes()), {}),
    "zstd": ({"image": "jpeg", "label": "int"}, lambda i: {"image": picture(i), "label": i % 5},
             None, {"size_limit": 3000, "compression": "zstd:3", "hashes": ["sha1"]}),
}


def png(number):
    out = io.BytesIO()
    picture(number).save(out, format="PNG")
    return out.getvalue()


def main(folder):
    with open(os.path.join(folder, "mds.manifest"), "w", encoding="ascii") as manifest:
        for name, (columns, sample, stored, options) in SETS.items():
            with MDSWriter(out=os.path.join(folder, "mds", name), columns=columns, **options) as writer:
                for i in range(6):
                    writer.write(sample(i))
            for i in range(6 if stored else 0):  # test_mds compares zstd with plain
                label, image = stored(i)
                image = image or png(i)
                manifest.write(f"mds mds/{name} {i} {label} {zlib.crc32(image):08x} {len(image)} -\n")


main(sys.argv[1])
