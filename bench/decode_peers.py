#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other CPU paths decode on one core, by turns with bench/decode: same files, same boxes.

    pip install pillow opencv-python-headless simplejpeg torchvision tensorflow-cpu nvidia-dali-cuda120
    bench/decode --write FOLDER; bench/decode_peers.py FOLDER bench/decode [--turns N]
        [--python PYTHON]... [--libjpeg FOLDER]...

Each library that is installed decodes the same files, crops the boxes that bench/decode draws (area
0.05..1, aspect 3/4..4/3, another box each turn), resizes them to 224 x 224 (antialiased bilinear;
TensorFlow: bilinear; OpenCV: INTER_AREA when shrinking) and mirrors half of them. TensorFlow and
DALI decode no more than the box. The last image of the first turn must look alike in all of them.
Each has a process of its own and one thread, all on one CPU; CPU time of the process. Figures are
microseconds an image, medians over the turns (smallest .. largest), and how many times iobench's
time they are: the geometric mean of the turns' ratios and its 95% interval.

--python: also the libraries of another Python, as Pillow-SIMD takes Pillow's place:

    python3 -m venv simd; CC='cc -mavx2' simd/bin/pip install pillow-simd numpy

--libjpeg: what libjpeg-turbo does also with the libjpeg.so.62 of this folder, in bench/decode. "plain" is
the whole image by its defaults, then crop and resize by iobench.
"""
import argparse
import glob
import importlib.metadata
import io
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

SIDE = 224


def each(decode):
    """Decode all; return the last row."""
    def run(images, boxes, mirrors):
        for image, box, mirror in zip(images, boxes, mirrors):
            row = decode(image, box, mirror)
        return row
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
    each_one = tensorflow.function(
        lambda *inputs: tensorflow.map_fn(one, inputs, fn_output_signature=tensorflow.uint8),
        input_signature=kinds)
    return lambda *inputs: each_one(*inputs)[-1]


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

    pipeline = None

    def decode(images, boxes, mirrors):
        nonlocal pipeline
        if not pipeline:
            pipeline = graph(batch_size=len(images))
            pipeline.build()
        feed = {'images': [numpy.frombuffer(image, numpy.uint8) for image in images],
                'starts': [numpy.array(box[:2], numpy.float32) for box in boxes],
                'sizes': [numpy.array(box[2:], numpy.float32) for box in boxes],
                'mirrors': [numpy.array(mirror, numpy.int32) for mirror in mirrors]}
        for name, values in feed.items():
            pipeline.feed_input(name, values)
        return pipeline.run()[0].at(len(images) - 1)

    return decode


PEERS = {'Pillow': (pillow, 'pillow'), 'Pillow-SIMD': (pillow, 'pillow-simd'),
         'OpenCV': (opencv, 'opencv-python-headless'),
         'simplejpeg, resized by OpenCV': (simplejpeg_opencv, 'simplejpeg'),
         'torchvision': (torchvision, 'torchvision'),
         'TensorFlow': (tensorflow, 'tensorflow-cpu'), 'DALI': (dali, 'nvidia-dali-cuda120')}


# Of bench/decode, in groups whose rows are compared with the first; with "libjpeg" those that it decodes.
CROPS = 'random crop, resized to 224'
OURS = {'entropy decoding alone': ['own scan'], 'whole image': ['own whole'],
        CROPS: ['jpeg', 'entered', 'jpeg:scale=none']}
LIBJPEG = {'entropy decoding alone': ['scan'], 'whole image': ['whole'],
           CROPS: ['jpeg:engine=turbo', 'plain']}
T = [0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]  # Student's t, 95%, by turns - 1


def read_images(folder):
    names = sorted(glob.glob(folder + '/*.jpg') + glob.glob(folder + '/*.JPEG'))  # as bench/decode
    return [open(name, 'rb').read() for name in names]


def mean_of_corner(row):
    import numpy
    row = numpy.frombuffer(row, numpy.uint8) if isinstance(row, bytes) else numpy.asarray(row)
    if row.shape[0] == 3:  # torchvision
        row = row.transpose(1, 2, 0)
    return row.reshape(SIDE, SIDE, 3)[:SIDE // 2, :SIDE // 2].mean()


def serve(name, folder):
    """Print the version; then, for each line of boxes, the time of an image and a mean level."""
    prepare, package = PEERS[name]
    try:
        version = importlib.metadata.version(package)
        decode = prepare()
    except ImportError as error:
        sys.exit(f'{name} is left out: {error}')
    images = read_images(folder)
    print(version, flush=True)
    for line in sys.stdin:
        boxes = json.loads(line)
        start = time.process_time()
        row = decode(images, [box[:4] for box in boxes], [box[4] == 1 for box in boxes])
        took = time.process_time() - start
        print(took / len(images) * 1e6, mean_of_corner(row), flush=True)


class Program:
    """A process that answers lines."""

    def __init__(self, command, **more):
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, **more)

    def ask(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline()


class Row:
    """One row of the table: what a program does, turn by turn."""

    def __init__(self, group, name, program, variant=None):
        self.group, self.name, self.program, self.variant = group, name, program, variant
        self.times, self.level = [], None

    def turn(self, number, boxes):
        line = f'{number} {self.variant}' if self.variant else boxes
        answer = self.program.ask(line)
        if not answer:
            sys.exit(f'{self.name}: ended, status {self.program.process.wait()}')
        took, level = map(float, answer.split())
        self.level = self.level or level
        self.times.append(took)


def peer_rows(pythons, folder):
    for name in PEERS:
        for python in pythons:
            program = Program([python, __file__, '--serve', name, folder],
                              stderr=subprocess.DEVNULL if python != sys.executable else None)
            version = program.process.stdout.readline().strip()
            if version:
                yield Row(CROPS, f'{name} ({version})', program)


def libjpeg_version(folder, decode):
    path = folder + '/libjpeg.so.62' if folder else re.search(
        r'libjpeg\.so\S* => (\S+)', subprocess.check_output(['ldd', decode], text=True))[1]
    with open(path, 'rb') as file:
        return re.search(rb'libjpeg-turbo version ([0-9.]+)', file.read())[1].decode()


def decode_rows(decode, folder, libraries):
    for library in [None] + libraries:
        environment = dict(os.environ, LD_LIBRARY_PATH=library) if library else None
        program = Program([decode, '--serve', folder], env=environment)
        version = libjpeg_version(library, decode)
        for group, variants in OURS.items() if not library else ():
            yield from (Row(group, f'iobench, {name}', program, name) for name in variants)
        for group, variants in LIBJPEG.items():
            yield from (Row(group, f'libjpeg-turbo {version}, {name}', program, name)
                        for name in variants)


def interval(ratios):
    logs = [math.log(ratio) for ratio in ratios]
    mean, half = statistics.mean(logs), math.inf
    if len(logs) > 1:
        half = T[min(len(logs), len(T)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return '%.2f (%.2f .. %.2f)' % tuple(map(math.exp, (mean, mean - half, mean + half)))


def print_groups(rows):
    for group in OURS:
        print(f'| {group} | us an image | times iobench |\n|---|---|---|')
        own = next(row for row in rows if row.group == group)
        for row in rows:
            times = row.times[1:]  # the first warms up
            if row.group != group:
                continue
            ratios = interval([a / b for a, b in zip(times, own.times[1:])])
            print(f'| {row.name} | {statistics.median(times):,.0f} ({min(times):,.0f} .. {max(times):,.0f}) '
                  f'| {"" if row is own else ratios} |')
        print()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('decode', nargs='?')
    parser.add_argument('--turns', type=int, default=7)
    parser.add_argument('--python', action='append', default=[])
    parser.add_argument('--libjpeg', action='append', default=[])
    parser.add_argument('--serve', metavar='PEER')
    given = parser.parse_args()
    if given.serve:
        return serve(given.serve, given.folder)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows = list(decode_rows(given.decode, given.folder, given.libjpeg))
    rows += peer_rows([sys.executable] + given.python, given.folder)
    for turn in range(given.turns + 1):
        boxes = rows[0].program.ask(f'{turn} boxes').strip()
        for row in rows:
            row.turn(turn, boxes)
    levels = {row.name: row.level for row in rows if row.group == CROPS}
    if max(levels.values()) - min(levels.values()) > 2:
        sys.exit(f'they do not show the same box: {levels}')
    images = read_images(given.folder)
    print(f'{len(images)} images, {sum(map(len, images)) / len(images) / 1e3:,.0f} KB on average, {given.turns} turns\n')
    print_groups(rows)
    return None


main()
