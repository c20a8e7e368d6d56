#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other CPU paths decode on one core, for comparison with bench/decode.

    bench/decode --write FOLDER; bench/decode_peers.py FOLDER

Each library that is installed (Pillow, Pillow with draft, OpenCV) decodes the same files, crops a
random box of area 0.05..1 and aspect 3/4..4/3, resizes it to 224 x 224 with its antialiased
bilinear filter (OpenCV: INTER_AREA when shrinking) and mirrors half of them. One thread; the
libraries take turns; figures are medians of CPU time.
"""
import glob
import io
import math
import random
import statistics
import sys
import time

SIDE = 224


def crop_box(generator, width, height):
    for _ in range(10):
        area = width * height * generator.uniform(0.05, 1)
        aspect = math.exp(generator.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return generator.randint(0, width - w), generator.randint(0, height - h), w, h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


def peers():
    found = {}
    try:
        from PIL import Image

        def pillow(image, generator, draft=False):
            picture = Image.open(io.BytesIO(image))
            width, height = picture.size
            x, y, w, h = crop_box(generator, width, height)
            if draft and min(w, h) >= 2 * SIDE:
                scale = min(w, h) // SIDE
                picture.draft('RGB', (width // scale, height // scale))
            picture = picture.convert('RGB')
            fx, fy = picture.width / width, picture.height / height
            picture = picture.resize((SIDE, SIDE), Image.BILINEAR,
                                     box=(x * fx, y * fy, (x + w) * fx, (y + h) * fy))
            if generator.random() < 0.5:
                picture = picture.transpose(Image.FLIP_LEFT_RIGHT)
            return picture.tobytes()

        found['Pillow'] = pillow
        found['Pillow, draft'] = lambda image, generator: pillow(image, generator, True)
    except ImportError:
        pass
    try:
        import cv2
        import numpy
        cv2.setNumThreads(1)

        def opencv(image, generator):
            picture = cv2.imdecode(numpy.frombuffer(image, numpy.uint8), cv2.IMREAD_COLOR)
            x, y, w, h = crop_box(generator, picture.shape[1], picture.shape[0])
            shrinks = w > SIDE and h > SIDE
            picture = cv2.resize(picture[y:y + h, x:x + w], (SIDE, SIDE),
                                 interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
            if generator.random() < 0.5:
                picture = cv2.flip(picture, 1)
            return cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)

        found['OpenCV'] = opencv
    except ImportError:
        pass
    return found


def main():
    names = sorted(glob.glob(sys.argv[1] + '/*.jpg') + glob.glob(sys.argv[1] + '/*.JPEG'))
    images = [open(name, 'rb').read() for name in names]
    found = peers()
    if not found or not images:
        sys.exit('no peer is installed, or no image is there')
    times = {name: [] for name in found}
    for turn in range(7):
        for name, decode in found.items():
            generator = random.Random(turn)
            start = time.thread_time()
            for image in images:
                decode(image, generator)
            times[name].append((time.thread_time() - start) / len(images))
    for name, rounds in times.items():
        median = statistics.median(rounds)
        print(f'{name:16s} {median * 1e6:8.0f} us/image {1 / median:8.0f} images/s')


main()
