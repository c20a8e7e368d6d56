#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make JPEGs of ImageNet's size from photographs, with about as many bits a pixel as asked for.

    apt-get install mate-backgrounds lomiri-wallpapers-16.04 lomiri-wallpapers-20.04 ukui-wallpapers
    pip install pillow
    bench/photographs.py BITS FOLDER [--every N] /usr/share/backgrounds/*.jpg \
        /usr/share/backgrounds/mate/nature/*.jpg

Each photograph is shrunk to a width of 1,500 pixels and cut into pieces of 500 x 375, each stored with the
least quality that gives BITS (4:2:0, libjpeg's standard Huffman tables). Pieces too smooth for that
at quality 99 are left out. --every N: keep one of N.
"""
import argparse
import bisect
import io
import os

from PIL import Image

WIDTH, HEIGHT, COLUMNS, BEST = 500, 375, 3, 99


def pieces(path):
    picture = Image.open(path).convert('RGB')
    height = round(picture.height * COLUMNS * WIDTH / picture.width)
    picture = picture.resize((COLUMNS * WIDTH, height), Image.LANCZOS)
    for y in range(0, height - HEIGHT + 1, HEIGHT):
        for x in range(0, COLUMNS * WIDTH, WIDTH):
            yield picture.crop((x, y, x + WIDTH, y + HEIGHT))


def encode(picture, quality):
    target = io.BytesIO()
    picture.save(target, 'JPEG', quality=quality, subsampling='4:2:0')
    return target.getvalue()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('bits', type=float)
    parser.add_argument('folder')
    parser.add_argument('photographs', nargs='+')
    parser.add_argument('--every', type=int, default=1)
    given = parser.parse_args()
    os.makedirs(given.folder, exist_ok=True)
    sizes, made = [], 0
    for path in given.photographs:
        for piece in pieces(path):
            qualities = range(20, BEST + 1)
            quality = bisect.bisect_left(qualities, given.bits * WIDTH * HEIGHT / 8,
                                         key=lambda quality: len(encode(piece, quality)))
            if quality == len(qualities):
                continue
            if made % given.every == 0:
                with open(f'{given.folder}/{made:03}.jpg', 'wb') as file:
                    sizes.append(file.write(encode(piece, qualities[quality])))
            made += 1
    print(f'{len(sizes)} images, {sum(sizes) * 8 / len(sizes) / (WIDTH * HEIGHT):.2f} bits a pixel')


main()
