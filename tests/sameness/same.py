#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do two builds of iobench behave alike? For changes that must not change behaviour.

    tests/sameness/same.py OLD NEW [--words] [--keep FOLDER] [COMMAND-PREFIX...]

OLD and NEW are build folders. Runs a fixed set of commands with both, in one scratch folder each:
packed data sets must have the same bytes, JSON the same keys and values, other text the same words.
OLD runs twice: a value that differs between its two runs is a time or a rate and is not compared.
Keys that only NEW writes are listed, not counted as differences; a key that is gone is one.
Prose differs when messages are reworded, so strings with a space in them, and text, are compared
only with --words, digits left out. Exits 1 on a difference.
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

FORMATS = {"files": "files", "recordio": "recordio", "shards": "shards", "lmdb": "lmdb",
           "tar": "tar", "caffe2": "lmdb:flavour=tensors"}
SHUFFLES = ["none", "epoch", "block:256KiB", "buffer:64", "mxnet-chunk:1MiB",
            "tfdata:64,interleave=2", "dali:32", "webdataset:20", "ffcv:4,page=256KiB",
            "corgipile:0.25,block=256KiB", "py1s", "py1br:16", "py1e:16"]
QUIET = ["--no-calibrate", "--sample-interval", "none", "--json", "out.json"]

# Values that depend on time, dropped caches, the allocator or other processes: they may be equal twice
# by chance.
TIMES = re.compile(r"_[nm]?s(_reason)?$|_percent|_ratio|device|cold|\.series|resident_|\.advice"
                   r"|cache_before|\.limit|notices|valid|degraded|memory_peak_bytes|quantiles")


def commands():
    """(name, arguments, kind of output: json, text or files)."""
    yield "version", ["--version"], "text"
    yield "list", ["list"], "text"
    for name in ("run", "train", "infer", "pack", "shuffle", "size", "all"):
        yield f"help-{name}", ["help", name], "text"
    for name, form in FORMATS.items():
        shards = [] if name in ("files", "lmdb", "caffe2") else ["--shards", "3"]
        yield f"pack-{name}", ["pack", "synthetic:count=300,mean=20000,classes=7", f"set-{name}",
                               "-f", form, *shards], "files"
        yield f"verify-{name}", ["verify", f"set-{name}"], "text"
        yield f"inspect-{name}", ["inspect", f"set-{name}"], "text"
        for reader in ("uring", "pread", "mmap"):
            yield f"run-{name}-{reader}", ["run", "-d", f"set-{name}", "-r", reader, "--digest",
                                           "--runs", "1", "-e", "2", *QUIET], "json"
    yield "run-lmdb-lmdb", ["run", "-d", "set-lmdb", "-r", "lmdb", "--digest", "--runs", "1",
                            *QUIET], "json"
    for i, shuffle in enumerate(SHUFFLES):
        name = "recordio" if i % 2 else "shards"
        yield f"order-{shuffle}", ["run", "-d", f"set-{name}", "-s", shuffle, "--digest", "--runs",
                                   "1", "-e", "2", "--ranks", "3", "--rank", "1", "-B", "16",
                                   *QUIET], "json"
        yield f"quality-{shuffle}", ["shuffle", "-d", f"set-{name}", shuffle, "-B", "16",
                                     "--json=out.json"], "json"
    for name, more in {
            "plain": [], "direct": ["--direct"], "loaders": ["--io-threads", "2"],
            "window": ["--window", "1"], "overlap": ["--overlap-epochs", "-e", "3"],
            "null": ["-r", "null"], "limit": ["--limit-samples", "100"],
            "resume": ["--resume-at", "0:32", "-B", "16"], "raw": ["--decode", "none"],
            "damaged": ["--on-error", "skip"], "dry": ["--dry-run"],
            "lenet": ["--trainer", "lenet", "-B", "50"],
            "memory": ["--memory", "32m"], "cold": ["--drop-caches"]}.items():
        yield f"run-{name}", ["run", "-d", "set-shards", "--runs", "1", *more, *QUIET], "json"
    yield "csv", ["run", "-d", "set-tar", "--runs", "2", "--no-calibrate", "--csv", "-"], "text"
    yield "train", ["train", "--network", "lenet", "--data", "set-recordio", "--epochs", "2",
                    "--batch-size", "50", "--backend", "reference", "--json", "out.json"], "json"
    yield "infer", ["infer", "--network", "lenet", "--data", "set-recordio", "--backend",
                    "reference", "--batch-size", "1,8", "--json", "out.json"], "json"
    yield "size", ["size", "--gpus", "8", "--gpu", "h100"], "text"
    for name, wrong in {
            "option": ["run", "--dta", "x"], "absent": ["run", "-d", "absent"],
            "reader": ["run", "-d", "set-tar", "-r", "lmdb"], "shuffle": ["run", "-s", "buffer:0"],
            "pack": ["pack", "set-tar", "set-tar", "-f", "tar"]}.items():
        yield f"wrong-{name}", wrong, "text"


def leaves(node, path=""):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, f"{path}.{key}")
    elif isinstance(node, list):
        yield f"{path}#", len(node)
        for i, value in enumerate(node):
            yield from leaves(value, f"{path}[{i}]")
    else:
        yield path, node


def digest_of(folder):
    rows = {}
    for root, _, names in os.walk(folder):
        for name in names:
            if name.startswith(".iobench"):
                continue
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                rows[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return rows


def outcome(build, folder, arguments, kind, words):
    document = os.path.join(folder, "out.json")
    if os.path.exists(document):
        os.remove(document)
    environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"), TZ="UTC",
                       COLUMNS="100")
    done = subprocess.run([os.path.join(build, "iobench"), *arguments], cwd=folder, check=False,
                          env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace")
    found = {"status": done.returncode}
    if kind == "files":
        found.update(digest_of(os.path.join(folder, arguments[2])))
    elif kind == "json" and os.path.exists(document):
        with open(document, encoding="utf-8") as file:
            for path, value in leaves(json.load(file)):
                if TIMES.search(path):
                    continue
                if isinstance(value, str) and " " in value:
                    if not words:
                        continue
                    value = re.sub(r"\d", "0", value)
                found[path] = value
    if words and kind != "json":
        text = re.sub(r"[-+]?\d[\d,.:]*", "0", done.stdout + done.stderr)
        found["text"] = re.sub(r"\b0 ?[kMGTmunµ]?i?[sB]?\b|\s+", " ", text)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("only", nargs="*")
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--keep")
    options = parser.parse_intermixed_args()
    scratch = options.keep or tempfile.mkdtemp(prefix="iobench-same-")
    old, new = os.path.abspath(options.old), os.path.abspath(options.new)
    # All in the same folder, one at a time: paths are part of the output.
    found, folder = [], os.path.join(scratch, "work")
    for build in (old, old, new):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        found.append({name: outcome(build, folder, arguments, kind, options.words)
                      for name, arguments, kind in commands()
                      if kind == "files" or not options.only or name.startswith(tuple(options.only))})
    compared = differ = varied = 0
    added = set()
    for name, first in found[0].items():
        for key in sorted(set(first) | set(found[2][name])):
            one, again, other = (rows[name].get(key) for rows in found)
            if one != again:
                varied += 1
                continue
            if key not in first:
                added.add(re.sub(r"\[\d+\]", "[]", key.rstrip("#")))
                continue
            compared += 1
            if one != other:
                differ += 1
                print(f"{name} {key}: {one!r} -> {other!r}")
    if not options.keep:
        shutil.rmtree(scratch)
    if added:
        print("added:", ", ".join(sorted(added)))
    print(f"{len(found[0])} commands: {compared} values compared, {differ} differ; "
          f"{varied} vary between runs of one build")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
