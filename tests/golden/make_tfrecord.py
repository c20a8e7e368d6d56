#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make tests/golden/tfrecord/* and tfrecord.manifest with TensorFlow.

Not needed to build or to test: the files are committed. usage: make_tfrecord.py FOLDER
Manifest: format, path, number of the record, label, CRC-32 and length of the image, name or -.
"""
import os
import sys
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf


def picture(number, channels=3):
    """Return a small gradient, different for each number."""
    height, width = 20 + number, 32
    pixels = [
        [[(x * 7 + y * 3 + number * 29 + c * 50) % 256 for c in range(channels)] for x in range(width)]
        for y in range(height)
    ]
    return tf.constant(pixels, tf.uint8), height, width


def texts(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def numbers(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def reals(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def imagenet(number):
    pixels, height, width = picture(number)
    encoded = tf.io.encode_jpeg(pixels).numpy()
    name = f"n0{number:07d}_{number}.JPEG"
    example = tf.train.Example(features=tf.train.Features(feature={
        "image/height": numbers(height),
        "image/width": numbers(width),
        "image/colorspace": texts(b"RGB"),
        "image/channels": numbers(3),
        "image/class/label": numbers(number * 111 + 1),
        "image/class/synset": texts(b"n%08d" % number),
        "image/class/text": texts(b"a thing, the same thing"),
        "image/object/bbox/xmin": reals(0.1, 0.25),
        "image/object/bbox/xmax": reals(0.5, 0.75),
        "image/object/bbox/ymin": reals(),
        "image/object/bbox/ymax": reals(),
        "image/object/bbox/label": numbers(number * 111 + 1, 3),
        "image/format": texts(b"JPEG"),
        "image/filename": texts(name.encode()),
        "image/encoded": texts(encoded),
    }))
    return example.SerializeToString(), number * 111, encoded, name


def tfds(number):
    pixels, _, _ = picture(number)
    encoded = tf.io.encode_png(pixels).numpy()
    name = f"{number}.png"
    example = tf.train.Example(features=tf.train.Features(feature={
        "image": texts(encoded),
        "label": numbers(number),
        "file_name": texts(name.encode()),
    }))
    return example.SerializeToString(), number, encoded, name


def main(folder):
    manifest = open(os.path.join(folder, "tfrecord.manifest"), "w")
    sets = [
        ("imagenet/train-00000-of-00002", "", imagenet, range(0, 4)),
        ("imagenet/train-00001-of-00002", "", imagenet, range(4, 9)),
        ("tfds/tiny-train.tfrecord-00000-of-00001", "", tfds, range(0, 4)),
        ("packed/gzip-00000-of-00001", "GZIP", imagenet, range(0, 5)),
        ("packed/zlib.tfrecord", "ZLIB", imagenet, range(2, 6)),
    ]
    for name, compression, make, which in sets:
        path = os.path.join(folder, "tfrecord", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression)) as writer:
            for record, number in enumerate(which):
                bytes_, label, image, image_name = make(number)
                writer.write(bytes_)
                print("shards", "tfrecord/" + name, record, label, f"{zlib.crc32(image):08x}",
                      len(image), image_name, file=manifest)


main(sys.argv[1])
