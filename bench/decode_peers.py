#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other CPU paths decode on one core, by turns with bench/decode.

    pip install pillow opencv-python-headless simplejpeg torchvision tensorflow-cpu nvidia-dali-cuda120
    bench/decode --write FOLDER; bench/decode_peers.py FOLDER [bench/decode] [--python PYTHON]...

Each library that is installed decodes the same files, crops the same random boxes of area 0.05..1
and aspect 3/4..4/3, resizes them to 224 x 224 (antialiased bilinear; TensorFlow: bilinear; OpenCV:
INTER_AREA when shrinking) and mirrors half of them. bench/decode draws its own boxes of this
distribution. TensorFlow and DALI decode no more than the box. Each has a process of its own and one
thread; CPU time of the process, in microseconds an image; medians over 7 turns (smallest ..
largest). --python: also the libraries of another Python, as Pillow-SIMD takes Pillow's place:

    python3 -m venv simd; CC='cc -mavx2' simd/bin/pip install pillow-simd
"""
import argparse
import glob
import importlib.metadata
import io
import math
import os
import random
import re
import statistics
import subprocess
import sys
import time

SIDE, TURNS = 224, 7


def crop_box(generator, width, height):
    for _ in range(10):
        area = width * height * generator.uniform(0.05, 1)
        aspect = math.exp(generator.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return generator.randint(0, width - w), generator.randint(0, height - h), w, h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


def each(decode):
    def run(images, boxes, mirrors):
        for image, box, mirror in zip(images, boxes, mirrors):
            decode(image, box, mirror)
    return run


def pillow():
    from PIL import Image

    def decode(image, box, mirror):
        x, y, w, h = box
        picture = Image.open(io.BytesIO(image)).convert('RGB')
        picture = picture.resize((SIDE, SIDE), Image.BILINEAR, box=(x, y, x + w, y + h))
        return (picture.transpose(Image.FLIP_LEFT_RIGHT) if mirror else picture).tobytes()

    return each(decode)


def cropped(picture, box, mirror):
    import cv2
    x, y, w, h = box
    shrinks = w > SIDE and h > SIDE
    picture = cv2.resize(picture[y:y + h, x:x + w], (SIDE, SIDE),
                         interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    return cv2.flip(picture, 1) if mirror else picture


def opencv():
    import cv2
    import numpy
    cv2.setNumThreads(1)

    def decode(image, box, mirror):
        picture = cv2.imdecode(numpy.frombuffer(image, numpy.uint8), cv2.IMREAD_COLOR)
        return cv2.cvtColor(cropped(picture, box, mirror), cv2.COLOR_BGR2RGB)

    return each(decode)


def simplejpeg_opencv():
    import cv2
    import simplejpeg
    cv2.setNumThreads(1)
    return each(lambda image, box, mirror: cropped(simplejpeg.decode_jpeg(image), box, mirror))


def torchvision():
    import numpy
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms.v2 import functional
    torch.set_num_threads(1)

    def decode(image, box, mirror):
        x, y, w, h = box
        picture = decode_jpeg(torch.from_numpy(numpy.frombuffer(image, numpy.uint8).copy()),
                              mode=ImageReadMode.RGB)
        picture = functional.resized_crop(picture, y, x, h, w, [SIDE, SIDE], antialias=True)
        return functional.horizontal_flip(picture).contiguous() if mirror else picture

    return each(decode)


def tensorflow():
    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
    import tensorflow
    tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)

    def one(inputs):
        image, box, mirror = inputs
        x, y, w, h = box[0], box[1], box[2], box[3]
        picture = tensorflow.io.decode_and_crop_jpeg(image, [y, x, h, w], channels=3)
        picture = tensorflow.image.resize(picture, [SIDE, SIDE])
        picture = tensorflow.cast(picture + 0.5, tensorflow.uint8)
        return tensorflow.cond(mirror, lambda: picture[:, ::-1], lambda: picture)

    kinds = [tensorflow.TensorSpec([None], tensorflow.string),
             tensorflow.TensorSpec([None, 4], tensorflow.int32),
             tensorflow.TensorSpec([None], tensorflow.bool)]
    return tensorflow.function(
        lambda *inputs: tensorflow.map_fn(one, inputs, fn_output_signature=tensorflow.uint8),
        input_signature=kinds)


def dali():
    import numpy
    from nvidia.dali import fn, pipeline_def

    @pipeline_def(num_threads=1, device_id=None, prefetch_queue_depth=1)
    def graph():
        picture = fn.decoders.image_slice(
            fn.external_source(name='images'), fn.external_source(name='starts'),
            fn.external_source(name='sizes'), axis_names='WH', normalized_anchor=False,
            normalized_shape=False)
        picture = fn.resize(picture, size=(SIDE, SIDE))
        return fn.flip(picture, horizontal=fn.external_source(name='mirrors'))

    pipelines = {}

    def decode(images, boxes, mirrors):
        if len(images) not in pipelines:
            pipelines[len(images)] = graph(batch_size=len(images))
            pipelines[len(images)].build()
        pipeline = pipelines[len(images)]
        feed = {'images': [numpy.frombuffer(image, numpy.uint8) for image in images],
                'starts': [numpy.array(box[:2], numpy.float32) for box in boxes],
                'sizes': [numpy.array(box[2:], numpy.float32) for box in boxes],
                'mirrors': [numpy.array(mirror, numpy.int32) for mirror in mirrors]}
        for name, values in feed.items():
            pipeline.feed_input(name, values)
        pipeline.run()

    return decode


PEERS = {'Pillow': (pillow, 'pillow'), 'Pillow-SIMD': (pillow, 'pillow-simd'),
         'OpenCV': (opencv, 'opencv-python-headless'),
         'simplejpeg, resized by OpenCV': (simplejpeg_opencv, 'simplejpeg'),
         'torchvision': (torchvision, 'torchvision'),
         'TensorFlow': (tensorflow, 'tensorflow-cpu'), 'DALI': (dali, 'nvidia-dali-cuda120')}


def size_of(image):
    """Height and width in the first frame header (SOF0..SOF2)."""
    at = 2
    while image[at + 1] not in (0xc0, 0xc1, 0xc2):
        at += 2 + int.from_bytes(image[at + 2:at + 4], 'big')
    return int.from_bytes(image[at + 7:at + 9], 'big'), int.from_bytes(image[at + 5:at + 7], 'big')


def run_ours(program, folder, turn):
    text = subprocess.run([program, '--round', str(turn), folder], check=True, capture_output=True,
                          text=True).stdout
    return {f'iobench {name}': float(re.search(rf'^{name} +([0-9]+) ', text, re.M)[1])
            for name in ('jpeg', 'jpeg:engine=turbo')}


def read_images(folder):
    names = sorted(glob.glob(folder + '/*.jpg') + glob.glob(folder + '/*.JPEG'))
    return [open(name, 'rb').read() for name in names]


def serve(name, folder):
    """Print the version; then, for each turn on standard input, the time of an image."""
    prepare, package = PEERS[name]
    try:
        version = importlib.metadata.version(package)
        decode = prepare()
    except ImportError as error:
        sys.exit(f'{name} is left out: {error}')
    images = read_images(folder)
    sizes = [size_of(image) for image in images]
    print(version, flush=True)
    for line in sys.stdin:
        generator = random.Random(int(line))
        boxes = [crop_box(generator, *size) for size in sizes]
        mirrors = [generator.random() < 0.5 for _ in images]
        start = time.process_time()
        decode(images, boxes, mirrors)
        print((time.process_time() - start) / len(images) * 1e6, flush=True)


class Peer:
    """A library in a process of its own; name: None if this Python lacks it."""

    def __init__(self, python, name, folder, quiet):
        self.process = subprocess.Popen([python, __file__, '--serve', name, folder], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL if quiet else None)
        version = self.process.stdout.readline().strip()
        self.name = f'{name} ({version})' if version else None

    def turn(self, number):
        self.process.stdin.write(f'{number}\n')
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('decode', nargs='?')
    parser.add_argument('--python', action='append', default=[])
    parser.add_argument('--serve', metavar='PEER')
    given = parser.parse_args()
    if given.serve:
        return serve(given.serve, given.folder)
    peers = [Peer(python, name, given.folder, python != sys.executable)
             for name in PEERS for python in [sys.executable] + given.python]
    peers = [peer for peer in peers if peer.name]
    if not peers or not read_images(given.folder):
        sys.exit('no peer is installed, or no image is there')
    times = {}
    for turn in range(-1, TURNS):  # the first warms up
        figures = run_ours(given.decode, given.folder, max(turn, 0)) if given.decode else {}
        figures |= {peer.name: peer.turn(turn) for peer in peers}
        for name, figure in figures.items() if turn >= 0 else ():
            times.setdefault(name, []).append(figure)
    for name, rounds in times.items():
        print(f'| {name} | {statistics.median(rounds):,.0f} ({min(rounds):,.0f} .. {max(rounds):,.0f}) |')
    return None


main()
