#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same record-reading job for iobench and for loaders in common use, on one core.

    bench/loaders.py --iobench build/iobench [--folder DIR] [--images N] [--rounds N] [--cold]

Generates one set of images in each format, then has each loader read all of it: take each record,
extract image and label, and read every byte of the image (the peers sum it as 64-bit words,
iobench computes a CRC-32C of it), so that no loader wins by not touching the data. Warm: everything is
in the page cache, and each loader is bound to the same core. --cold: the page cache is dropped
before each pass (root), on all cores; a virtual machine may report free memory to its host, which
takes it away, so each pass begins with memory that was just used, as in bench/io.c.

CRC of the records: iobench and tf.data check those of TFRecord, DALI skips them; RecordIO, LMDB,
tar and plain files have none. Rounds alternate; figures are medians. A peer that is not installed
is left out; --install installs them into a private environment (PyPI) and continues there.

    python3 bench/loaders.py --install --iobench build/iobench

iobench reads with io_uring (a copy out of the page cache) and with mmap (none), LMDB also through
liblmdb's own map, and cold also with O_DIRECT and with the kernel's read-ahead; the fastest
counts.
--format: only this format; may be repeated.
"""
import argparse
import functools
import glob
import json
import os
import statistics
import struct
import subprocess
import sys
import time

PEERS = ["lmdb", "webdataset", "mxnet", "tensorflow-cpu", "torch", "nvidia-dali-cuda120",
         "numpy<2"]  # last: MXNet needs it, and the others work with it
GOALS = {"tf.data": 5.0}  # others: 2.0
PASSES = 10  # warm; one alone takes us 20 ms
REPORT_SECONDS = 3  # a virtual machine reports free memory after two


def touch(numpy, image):
    words = len(image) // 8
    return int(numpy.frombuffer(image, numpy.uint64, words).sum())


def read_tfdata(folder, threads):
    """TFRecordDataset, parse_single_example and a sum in its graph; its own threads."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    features = {"image/encoded": tf.io.FixedLenFeature([], tf.string),
                "image/class/label": tf.io.FixedLenFeature([], tf.int64)}

    def parse(record):
        example = tf.io.parse_single_example(record, features)
        image = example["image/encoded"]
        words = tf.io.decode_raw(
            tf.strings.substr(image, 0, tf.strings.length(image) // 8 * 8), tf.int64)
        return tf.reduce_sum(words), example["image/class/label"]

    files = sorted(glob.glob(folder + "/train-*-of-?????"))

    def read():
        set_ = tf.data.TFRecordDataset(files, buffer_size=1 << 20, num_parallel_reads=threads)
        set_ = set_.map(parse, num_parallel_calls=threads).batch(256).prefetch(2)
        return sum(int(labels.shape[0]) for _, labels in set_)
    return read


def read_mxnet(folder, threads):
    """MXRecordIO and recordio.unpack, in order."""
    import numpy
    numpy.bool = bool  # MXNet 1.9 uses a name that NumPy 1.24 dropped
    import mxnet
    files = sorted(glob.glob(folder + "/*.rec"))

    def read():
        count = 0
        for path in files:
            reader = mxnet.recordio.MXRecordIO(path, "r")
            while True:
                record = reader.read()
                if record is None:
                    break
                _, image = mxnet.recordio.unpack(record)
                touch(numpy, image)
                count += 1
        return count
    return read


def read_pylmdb(folder, threads):
    """py-lmdb, zero-copy cursor; the Datum's fields are walked by hand, as the fastest loaders do."""
    import lmdb
    import numpy

    def datum_image(value):
        at, end = 0, len(value)
        while at < end:
            tag, at = value[at], at + 1
            number, shift = 0, 0
            while True:
                byte, at = value[at], at + 1
                number |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            if tag & 7 == 2:
                if tag >> 3 == 4:
                    return value[at:at + number]
                at += number
        raise ValueError("no image in the Datum")

    def read():
        count = 0
        with lmdb.open(folder, readonly=True, lock=False, readahead=True) as environment:
            with environment.begin(buffers=True) as transaction:
                for _, value in transaction.cursor():
                    touch(numpy, datum_image(value))
                    count += 1
        return count
    return read


def read_webdataset(folder, threads):
    """webdataset without decoding."""
    import numpy
    import webdataset
    files = sorted(glob.glob(folder + "/*.tar"))

    def read():
        count = 0
        for sample in webdataset.WebDataset(files, shardshuffle=False, empty_check=False):
            touch(numpy, sample["jpg"] if "jpg" in sample else sample["jpeg"])
            int(sample["cls"])
            count += 1
        return count
    return read


def read_torch(folder, threads):
    """PyTorch DataLoader over the files of a folder, class by folder."""
    import numpy
    import torch
    paths = sorted(glob.glob(folder + "/*/*"))

    class Files(torch.utils.data.Dataset):
        def __len__(self):
            return len(paths)

        def __getitem__(self, index):
            with open(paths[index], "rb") as file:
                touch(numpy, file.read())
            return index

    loader = torch.utils.data.DataLoader(Files(), batch_size=256, num_workers=threads,
                                         persistent_workers=True)

    def read():
        return sum(len(batch) for batch in loader)
    return read


def tfrecord_index(path):
    """Write the offsets of all records for DALI, once, in a folder next to the set's."""
    index = os.path.dirname(path) + ".index/" + os.path.basename(path)
    if not os.path.exists(index):
        os.makedirs(os.path.dirname(index), exist_ok=True)
        with open(path, "rb") as file, open(index, "w", encoding="ascii") as lines:
            at, size = 0, os.path.getsize(path)
            while at < size:
                file.seek(at)
                bytes_ = 16 + struct.unpack("<Q", file.read(8))[0]  # length, two CRCs
                lines.write(f"{at} {bytes_}\n")
                at += bytes_
    return index


def dali_source(format_, folder):
    """Return DALI's reader of the format; it outputs images as stored in the records."""
    from nvidia.dali import fn, tfrecord
    if format_ == "recordio":
        files = sorted(glob.glob(folder + "/*.rec"))
        return fn.readers.mxnet(path=files, index_path=[path[:-4] + ".idx" for path in files],
                                name="reader")[0]
    if format_ == "shards":
        files = sorted(glob.glob(folder + "/train-*-of-?????"))
        features = {"image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, ""),
                    "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1)}
        return fn.readers.tfrecord(path=files, index_path=[tfrecord_index(path) for path in files],
                                   features=features, name="reader")["image/encoded"]
    if format_ == "tar":
        return fn.readers.webdataset(paths=sorted(glob.glob(folder + "/*.tar")),
                                     ext=["jpg;jpeg", "cls"], name="reader")[0]
    return fn.readers.file(file_root=folder, name="reader")[0]


def read_dali(format_, folder, threads):
    """DALI on the CPU, with its reader for each format, without a decoder."""
    import numpy
    from nvidia.dali import pipeline_def

    @pipeline_def(batch_size=256, num_threads=threads, device_id=None)
    def pipeline():
        return dali_source(format_, folder)

    pipe = pipeline()
    pipe.build()

    def read():
        total, count = pipe.epoch_size("reader"), 0
        while count < total:
            images, = pipe.run()
            for i in range(len(images)):
                touch(numpy, numpy.asarray(images.at(i)))
            count += len(images)
        return total
    return read


READERS = {  # name: (format, function)
    "tf.data": ("shards", read_tfdata),
    "MXNet": ("recordio", read_mxnet),
    "py-lmdb": ("lmdb", read_pylmdb),
    "webdataset": ("tar", read_webdataset),
    "DataLoader": ("files", read_torch),
    **{"DALI, " + format_: (format_, functools.partial(read_dali, format_))
       for format_ in ("recordio", "shards", "tar", "files")},
}


def peer(name, folder, cold, threads):
    """Run in a separate process, because the libraries conflict. Print one line: records per
    second."""
    read = READERS[name][1](folder, threads)
    if cold:
        settle(folder)
    else:
        read()
    start = time.perf_counter()
    count = sum(read() for _ in range(1 if cold else PASSES))
    print(count / (time.perf_counter() - start))


def drop():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")


def settle(folder):
    """Drop the page cache, after free memory was reported to the host and the set was read into what
    that left (bench/io.c says why)."""
    drop()
    time.sleep(REPORT_SECONDS)
    for parent, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(parent, name), "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass
    drop()


def run_peer(name, folder, cold, bind, threads):
    command = bind + [sys.executable, os.path.abspath(__file__), "--peer", name, "--folder", folder,
                      "--threads", str(threads)] + (["--cold"] if cold else [])
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        return None, last[0]
    return float(done.stdout.strip().splitlines()[-1]), ""


def run_iobench(program, folder, cold, bind, reader, threads):
    command = bind + [program, "--data", folder, "--decode", "checksum", "--shuffle", "none",
                      "--reader", reader, "--decode-threads", str(threads), "--runs", "1",
                      "--no-calibrate", "--json", "-", "--epochs", str(1 if cold else 1 + PASSES)]
    if cold:
        settle(folder)
    done = subprocess.run(command + (["--drop-caches"] if cold else []), capture_output=True,
                          text=True, timeout=900)
    if done.returncode:
        raise SystemExit("iobench failed: " + done.stderr)
    epochs = json.loads(done.stdout)["jobs"][0]["runs"][0]["epochs"][-PASSES:]
    return sum(e["samples"] for e in epochs) / sum(e["wall_s"] for e in epochs)


def install():
    folder = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")),
                          "iobench", "peers")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    for package in PEERS:
        if subprocess.run([python, "-m", "pip", "install", "-q", package]).returncode:
            print(f"{package} cannot be installed here; it is left out", file=sys.stderr)
    arguments = [a for a in sys.argv[1:] if a != "--install"]
    os.execv(python, [python, os.path.abspath(__file__)] + arguments)


def our_readers(format_, cold):
    return (["uring", "mmap"] + (["lmdb"] if format_ == "lmdb" else []) +
            (["uring:direct=yes", "uring:readahead=auto"] if cold else []))


def measure(options, where, bind, threads):
    """Return {(format, loader): [records/s, ...]} and the reasons for loaders that did not run."""
    figures, missing = {}, {}
    for _ in range(options.rounds):
        for name, (format_, _) in READERS.items():
            folder = os.path.join(where, format_)
            if format_ in options.format and name not in missing:
                figure, reason = run_peer(name, folder, options.cold, bind, threads)
                if figure is None:
                    missing[name] = reason
                else:
                    figures.setdefault((format_, name), []).append(figure)
        for format_ in options.format:
            for reader in our_readers(format_, options.cold):
                figures.setdefault((format_, "iobench " + reader), []).append(
                    run_iobench(options.iobench, os.path.join(where, format_), options.cold, bind,
                                reader, threads))
    return figures, missing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iobench", default="build/iobench")
    parser.add_argument("--folder", default="/tmp/iobench-loaders")
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    formats = sorted({format_ for format_, _ in READERS.values()})
    parser.add_argument("--format", action="append", choices=formats)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.format = options.format or formats
    if options.install:
        install()
    if options.peer:
        peer(options.peer, options.folder, options.cold, options.threads)
        return
    for format_ in options.format:
        folder = os.path.join(options.folder, format_)
        if not os.path.isdir(folder):
            shards = ["--shards", "1"] if format_ == "recordio" else []  # DALI reads one file
            subprocess.run([options.iobench, "pack", f"synthetic:count={options.images}", folder,
                            "--format", format_, *shards], check=True, stdout=subprocess.DEVNULL)
    cpus = sorted(os.sched_getaffinity(0))
    bind = [] if options.cold else ["taskset", "-c", str(cpus[-1])]
    threads = len(cpus) if options.cold else options.threads
    figures, missing = measure(options, options.folder, bind, threads)
    for name, reason in missing.items():
        print(f"skipped {name}: {reason}")
    print(f"{'cold, all cores' if options.cold else 'warm, one core'}, {options.images} images, "
          f"medians of {options.rounds}")
    median = {key: statistics.median(values) for key, values in figures.items()}
    for (format_, name), values in sorted(figures.items()):
        print(f"{format_:9} {name:27} {median[format_, name]:9.0f} records/s "
              f"({min(values):.0f} .. {max(values):.0f})")
    for (format_, name) in sorted(median):
        if name.startswith("iobench"):
            continue
        ours = max(median[format_, "iobench " + reader]
                   for reader in our_readers(format_, options.cold))
        ratio, goal = ours / median[format_, name], 1.0 if options.cold else GOALS.get(name, 2.0)
        print(f"claim {format_}_over_{name.split(',')[0]} {ratio:.2f} x goal >={goal:g} "
              f"{'ok' if ratio >= goal else 'short'}")


if __name__ == "__main__":
    main()
