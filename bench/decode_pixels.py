#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far the pixels of jpeg:as=NAME are from those of the loader's own library, box for box.

    pip install pillow opencv-python-headless numpy
    bench/decode_pixels.py IOBENCH DATA [COUNT]

DATA: a data set of plain files (format files). `iobench show` tells the box and writes the row of each
of the first COUNT (20) records; the library that the loader calls decodes the file, crops the same box
and resizes it to the same side: Pillow for torchvision (and for DALI, whose filter is the same, after
turning the image upright), OpenCV's INTER_LINEAR for MXNet (and TensorFlow, whose filter is the same),
INTER_AREA for FFCV. Prints PSNR in dB: the mean over images and the worst.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

import cv2
import numpy
from PIL import Image, ImageOps

SIDE, MARGIN = 224, 8


def pillow(path, box, upright=False):
    image = Image.open(path)
    image = (ImageOps.exif_transpose(image) if upright else image).convert('RGB')
    x, y, width, height = box
    return numpy.asarray(image.crop((x, y, x + width, y + height)).resize((SIDE, SIDE), Image.BILINEAR))


def opencv(path, box, area):
    flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    x, y, width, height = box
    image = cv2.imread(path, flags)[y:y + height, x:x + width, ::-1]
    return cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA if area else cv2.INTER_LINEAR)


PEERS = {
    'iobench': ('Pillow', pillow),
    'torchvision': ('Pillow', pillow),
    'tensorflow': ('OpenCV INTER_LINEAR', lambda path, box: opencv(path, box, False)),
    'dali': ('Pillow, turned upright', lambda path, box: pillow(path, box, True)),
    'mxnet': ('OpenCV INTER_LINEAR', lambda path, box: opencv(path, box, False)),
    'ffcv': ('OpenCV INTER_AREA', lambda path, box: opencv(path, box, True)),
}


def seen(iobench, data, record, name, folder):
    picture, figures = os.path.join(folder, 'seen.png'), os.path.join(folder, 'seen.json')
    subprocess.run([iobench, 'show', data, '--format', 'files', '--record', str(record), '--decode',
                    f'jpeg:size={SIDE},as={name}', '-o', picture, f'--json={figures}'],
                   check=True, stdout=subprocess.DEVNULL)
    with open(figures) as file:
        shown = json.load(file)['records'][0]
    sheet = numpy.asarray(Image.open(picture))
    left = sheet.shape[1] - MARGIN - SIDE
    row = sheet[MARGIN:MARGIN + SIDE, left:left + SIDE]
    box = tuple(int(shown['box'][key]) for key in ('x', 'y', 'width', 'height'))
    return shown['shard'], box, row[:, ::-1] if shown['box']['mirror'] else row


def psnr(a, b):
    error = numpy.mean((a.astype(float) - b.astype(float)) ** 2)
    return math.inf if error == 0 else 10 * math.log10(255 ** 2 / error)


def main():
    iobench, data = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    with tempfile.TemporaryDirectory() as folder:
        for name, (library, decode) in PEERS.items():
            values = []
            for record in range(count):
                path, box, row = seen(iobench, data, record, name, folder)
                values.append(psnr(row, decode(path, box)))
            print(f'| `{name}` | {library} | {sum(values) / count:.1f} | {min(values):.1f} |', flush=True)


main()
