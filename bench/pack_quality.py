#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a crop loses when it is taken from an image that `pack --side` has made smaller.

    pip install pillow numpy
    bench/pack_quality.py IOBENCH DATA [SIDE]

DATA: a data set of plain files (format files). It is packed with --side SIDE (256) as JPEG of quality
95 and 90 and as pixels (--raw). Random boxes (area 0.05..1, aspect ratio 3/4..4/3) of each smaller
image and the same boxes of the original are resized to 224 x 224 by Pillow's antialiased bilinear
filter. Prints PSNR in dB, mean over images and the worst, for boxes that are at least 224 pixels wide
and high in the smaller image, and for smaller ones, which the second resize enlarges.
"""
import glob
import math
import os
import random
import subprocess
import sys
import tempfile

import numpy
from PIL import Image

SIDE, BOXES = 224, 8
STORED = {'--quality 95': ['--quality', '95'], '--quality 90': ['--quality', '90'], '--raw': ['--raw']}


def draw(generator, width, height):
    while True:
        area = width * height * generator.uniform(0.05, 1)
        aspect = math.exp(generator.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            x, y = generator.randint(0, width - w), generator.randint(0, height - h)
            return x, y, x + w, y + h


def crop(image, box):
    return numpy.asarray(image.resize((SIDE, SIDE), Image.BILINEAR, box=box)).astype(float)


def psnr(a, b):
    error = numpy.mean((a - b) ** 2)
    return 10 * math.log10(255 ** 2 / max(error, 1e-3))


def compare(original, smaller, generator):
    """Lists of PSNR for boxes that are large enough, and for boxes that are enlarged."""
    found = ([], [])
    across, down = original.width / smaller.width, original.height / smaller.height
    for _ in range(BOXES):
        x, y, right, bottom = box = draw(generator, *smaller.size)
        same = (x * across, y * down, min(right * across, original.width),
                min(bottom * down, original.height))
        found[min(right - x, bottom - y) < SIDE].append(psnr(crop(original, same), crop(smaller, box)))
    return found


def images(folder):
    """By name without suffix: --raw changes the suffix."""
    names = sorted(name for name in glob.glob(folder + '/**/*', recursive=True) if os.path.isfile(name))
    return {os.path.splitext(os.path.relpath(name, folder))[0]: name for name in names
            if name.endswith(('.jpg', '.JPEG', '.ppm'))}


def main():
    iobench, data = sys.argv[1:3]
    side = sys.argv[3] if len(sys.argv) > 3 else '256'
    with tempfile.TemporaryDirectory() as folder:
        def packed(name, *options):  # pack numbers the files, each time the same way
            target = os.path.join(folder, name)
            subprocess.run([iobench, 'pack', '--format', 'files', *options, data, target],
                           check=True, stdout=subprocess.DEVNULL)
            return images(target)

        originals = packed('original')
        for stored, options in STORED.items():
            smaller = packed(stored.strip('-').replace(' ', ''), '--side', side, *options)
            generator, found = random.Random(1), ([], [])
            for name, original in originals.items():
                both = compare(Image.open(original).convert('RGB'),
                               Image.open(smaller[name]).convert('RGB'), generator)
                found[0].extend(both[0])
                found[1].extend(both[1])
            print(f'| `{stored}` | ' + ' | '.join(
                f'{sum(values) / len(values):.1f}, {min(values):.1f}' for values in found if values), '|')


main()
