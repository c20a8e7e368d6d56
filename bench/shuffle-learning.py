#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The accuracy cost of sample orders: one network, one data set sorted by label, every strategy.

    bench/shuffle-learning.py --iobench build/iobench [--folder DIR] [--seeds N] [--minutes N]

Takes the first --images pictures of Fashion-MNIST's training set (as many of each label) and --test of
its test set, sorts them by label, packs them as JPEG in RecordIO files of --shard records, and
trains on them with `iobench train` in each order; the same seed gives the same initial weights and
crops. The output lists the accuracy with the measures of `iobench shuffle` on the same files. Buffers
and blocks are shares of the data set: those in use on ImageNet, and larger ones.

Every run is kept in DIR/runs.csv; the same command resumes after an interruption. --svg charts
accuracy against the measures, --csv has one row per strategy.
"""
import argparse
import csv
import gzip
import json
import math
import os
import statistics
import struct
import subprocess
import sys
import time

SOURCE = "/usr/share/datasets/fashion-mnist"  # Debian: dataset-fashion-mnist
CLASSES, PIXELS = 10, 28 * 28
GOAL = 0.9  # rank correlation with training that a measure needs for choosing an order
MEASURES = [("labels_per_batch", "distinct labels in a batch, over those of a random draw"),
            ("same_label_probability", "chance that the next sample has the same label")]


def strategies(images, shard_bytes, data_bytes):
    """Return names and orders. Shares are of the data set; marked ones match the authors' sizes on
    ImageNet."""
    def part(share):
        return max(2, round(images * share))
    return [
        ("epoch", "epoch"),
        ("none", "none"),
        ("buffer 0.8%", f"buffer:{part(0.0078)}"),  # 10,000 records
        ("buffer 5%", f"buffer:{part(0.05)}"),
        ("buffer 10%", f"buffer:{part(0.1)}"),
        ("buffer 25%", f"buffer:{part(0.25)}"),
        ("buffer 50%", f"buffer:{part(0.5)}"),
        ("chunk 0.4% permuted", f"mxnet-chunk:{shard_bytes},permute=yes"),
        ("chunk 5% permuted", f"mxnet-chunk:{data_bytes // 20},permute=yes"),
        ("tfdata 2 files + 0.8%", f"tfdata:{part(0.0078)},interleave=2"),  # 1% of the files
        ("tfdata 10 files + 0.8%", f"tfdata:{part(0.0078)},interleave=10"),
        ("tfdata 10 files + 5%", f"tfdata:{part(0.05)},interleave=10"),
        ("dali 0.08%", f"dali:{part(0.0008)}"),  # 1024 records
        ("webdataset 0.08%", f"webdataset:{part(0.0008)}"),  # 1000 records
        ("webdataset 0.8%", f"webdataset:{part(0.0078)}"),
        ("ffcv 3% open", f"ffcv:{max(1, round(0.031 * data_bytes / shard_bytes))},"
                         f"page={shard_bytes}"),  # 512 pages of 8 MiB
        ("corgipile 10%", f"corgipile:0.1,block={shard_bytes}"),
        ("corgipile 1%", f"corgipile:0.01,block={shard_bytes}"),
        ("py1s", "py1s"),
        ("py1br 20%", f"py1br:{part(0.2)}"),  # 256k records
        ("py1e 20%", f"py1e:{part(0.2)}"),
    ]


def take(stem, count, folder):
    """The first count pictures of an IDX pair, as many of each label, sorted by label."""
    with gzip.open(f"{SOURCE}/{stem}-images-idx3-ubyte.gz") as file:
        images = file.read()[16:]
    with gzip.open(f"{SOURCE}/{stem}-labels-idx1-ubyte.gz") as file:
        labels = file.read()[8:]
    chosen = []
    for label in range(CLASSES):
        chosen += [i for i, have in enumerate(labels) if have == label][:count // CLASSES]
    os.makedirs(folder, exist_ok=True)
    with gzip.open(f"{folder}/{stem}-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4I", 0x803, len(chosen), 28, 28))
        for i in chosen:
            file.write(images[PIXELS * i:PIXELS * (i + 1)])
    with gzip.open(f"{folder}/{stem}-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">2I", 0x801, len(chosen)) + bytes(labels[i] for i in chosen))


def prepare(args):
    """Pack both sets once; returns the bytes of the training set's files."""
    for stem, name, count, shards in (("train", "train", args.images, args.images // args.shard),
                                      ("t10k", "test", args.test, 1)):
        target = os.path.join(args.folder, name)
        if not os.path.isdir(target):
            take(stem, count, os.path.join(args.folder, "idx-" + name))
            subprocess.run([args.iobench, "pack", os.path.join(args.folder, "idx-" + name), target,
                            "-f", "recordio", "--shards", str(shards)], check=True,
                           stdout=subprocess.DEVNULL)
    folder = os.path.join(args.folder, "train")
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)
               if name.endswith(".rec"))


def call(args, *words):
    """Return the JSON output of a command."""
    done = subprocess.run([args.iobench, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"shuffle-learning: iobench {' '.join(map(str, words))}\n{done.stderr}")
    return json.loads(done.stdout)


def learn(args, order, seed):
    """Return top-1 on the test set after the last epoch, and images/s."""
    rate = ["--lr", args.lr] if args.lr else []
    result = call(args, "train", *rate, "--network", args.network, "--data", f"{args.folder}/train",
                  "--eval-data", f"{args.folder}/test", "--shuffle", order, "--epochs",
                  args.epochs, "--eval-every", args.epochs, "--batch-size", args.batch, "--seed",
                  seed, "--decode", "jpeg:min-area=0.7,crop=1", "--compute-threads", 1,
                  "-t", 1, "--json", "-")
    return result["epochs"][-1]["top1"], result["epochs"][-1]["samples_per_s"]


def judge(args, order, seed):
    row = call(args, "shuffle", order, "--data", f"{args.folder}/train", "--classes", CLASSES,
               "--batch-size", args.batch, "--epochs", args.epochs, "--seed", seed, "--json")[0]
    if "refused" in row:
        sys.exit(f"shuffle-learning: {order}: {row['refused']}")
    return {"labels_per_batch": row["labels_per_batch"] / row["labels_per_batch_at_random"],
            "same_label_probability": row["same_label_probability"]}


def run_all(args, orders):
    """Run seed by seed, so that the results are balanced when time runs out."""
    path = os.path.join(args.folder, "runs.csv")
    terms = f"{args.network}/{args.images}/{args.test}/{args.epochs}/{args.batch}"
    if args.lr:
        terms += f"/{args.lr:g}"
    runs = {}
    if os.path.exists(path):
        with open(path, newline="") as file:
            runs = {(row[1], int(row[2])): float(row[3])
                    for row in csv.reader(file) if row[0] == terms}
    end = time.monotonic() + 60 * args.minutes
    for seed in range(1, args.seeds + 1):
        for _, order in orders:
            if (order, seed) in runs:
                continue
            if time.monotonic() > end:
                return runs
            runs[order, seed], speed = learn(args, order, seed)
            with open(path, "a", newline="") as file:
                csv.writer(file).writerow([terms, order, seed, runs[order, seed]])
            print(f"{order:32} seed {seed}: {runs[order, seed]:.1%}, {speed:.0f} images/s",
                  file=sys.stderr)
    return runs


def ranks_of(values):
    """Return ranks, 1 for the smallest; equal values share their mean rank."""
    ordered = sorted(values)
    return [ordered.index(v) + (ordered.count(v) + 1) / 2 for v in values]


def spearman(a, b):
    return statistics.correlation(ranks_of(a), ranks_of(b))


def collect(args, orders, runs):
    """Return one row per strategy: means of the measures and the accuracies of its seeds."""
    rows = []
    for name, order in orders:
        seeds = [seed for seed in range(1, args.seeds + 1) if (order, seed) in runs]
        if not seeds:
            continue
        judged = [judge(args, order, seed) for seed in seeds]
        row = {"strategy": name, "order": order, "seeds": len(seeds)}
        for key, _ in MEASURES:
            row[key] = statistics.mean(one[key] for one in judged)
        top1 = [runs[order, seed] for seed in seeds]
        row.update(top1=statistics.median(top1), top1_min=min(top1), top1_max=max(top1))
        rows.append(row)
    return rows


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: round(v, 4) if isinstance(v, float) else v
                             for k, v in row.items()})


# ---- the chart ----

LEFT, WIDTH, HEIGHT, NAMES = 60, 900, 420, 150


def draw_names(points):
    """Draw names to the right of their points; if two overlap, move the lower one."""
    placed, out = [], []
    for x, y, name in sorted(points, key=lambda point: point[1]):
        row, width = y + 4, 6.2 * len(name)
        moved = True
        while moved:
            moved = False
            for left, line, wide in placed:
                if abs(line - row) < 12.5 and x + 9 < left + wide and left < x + 9 + width:
                    row, moved = line + 13, True
        placed.append((x + 9, row, width))
        if row > y + 17:
            out.append(f'<path stroke="#bbb" d="M{x + 4:.1f} {y:.1f}L{x + 7:.1f} {row - 4:.1f}"/>')
        out.append(f'<text x="{x + 9:.1f}" y="{row:.1f}">{name}</text>')
    return out


def draw(rows, key, title, top, place, ticks):
    """Chart accuracy over one measure; bars span the worst to the best seed."""
    def up(value):
        return top + HEIGHT - value * HEIGHT
    out = [f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}"/>']
    for percent in range(0, 101, 20):
        y = up(percent / 100)
        out += [f'<path stroke="#ddd" d="M{LEFT} {y:.1f}h{WIDTH}"/>',
                f'<text x="24" y="{y + 4:.1f}">{percent}%</text>']
    for tick in ticks:
        x = LEFT + place(tick) * (WIDTH - NAMES)
        out += [f'<path stroke="#ddd" d="M{x:.1f} {top}v{HEIGHT}"/>',
                f'<text x="{x - 8:.1f}" y="{top + HEIGHT + 15}">{tick:g}</text>']
    points = []
    for row in rows:
        x, y = LEFT + place(row[key]) * (WIDTH - NAMES), up(row["top1"])
        out += [f'<path d="M{x:.1f} {up(row["top1_min"]):.1f}V{up(row["top1_max"]):.1f}"/>',
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#136"/>']
        points.append((x, y, row["strategy"]))
    return out + draw_names(points) + [
        f'<text x="24" y="{top - 8}">top-1 of the test set</text>',
        f'<text x="{LEFT}" y="{top + HEIGHT + 32}">{title}</text>']


def write_svg(path, rows):
    width, height = LEFT + WIDTH + 24, 2 * (HEIGHT + 80)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
           '<rect width="100%" height="100%" fill="#fff"/>',
           '<g font-family="sans-serif" font-size="12" fill="none" stroke="#136">',
           '<style>text{fill:#222;stroke:none}rect{stroke:#bbb}</style>']
    (labels, labels_title), (same, same_title) = MEASURES
    out += draw(rows, labels, labels_title, 36, lambda value: min(value, 1),
                [0, 0.25, 0.5, 0.75, 1])
    out += draw(rows, same, same_title + " (logarithmic, random is left)", HEIGHT + 116,
                lambda value: math.log(max(value, 0.1) / 0.1, 10), [0.1, 0.2, 0.5, 1])
    with open(path, "w") as file:
        file.write("\n".join(out + ["</g></svg>", ""]))


def report(args, rows):
    print(f"{'':24}{'order':36}{'labels':>7}{'same':>8}{'top-1':>8}  seeds")
    for row in rows:
        print(f"{row['strategy']:24}{row['order']:36}{row['labels_per_batch']:7.3f}"
              f"{row['same_label_probability']:8.3f}{row['top1']:8.1%}"
              f"  {row['top1_min']:.1%} to {row['top1_max']:.1%} ({row['seeds']})")
    if args.csv:
        write_csv(args.csv, rows)
    if args.svg:
        write_svg(args.svg, rows)
    top1 = [row["top1"] for row in rows]
    for key, sign in (("labels_per_batch", 1), ("same_label_probability", -1)):
        figure = sign * spearman([row[key] for row in rows], top1)
        print(f"claim shuffle_learning_{key} {figure:.2f} rank correlation with accuracy "
              f"goal >={GOAL} {'ok' if figure >= GOAL else 'short'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--iobench", default="build/iobench")
    parser.add_argument("--folder", default="shuffle-learning")
    parser.add_argument("--network", default="tiny")
    parser.add_argument("--images", type=int, default=6000)
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--shard", type=int, default=24, help="records of a file")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, help="highest learning rate; else the recipe's")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--svg")
    parser.add_argument("--csv")
    parser.add_argument("--minutes", type=float, default=50, help="start no run after so many")
    args = parser.parse_args()
    data_bytes = prepare(args)
    orders = strategies(args.images, data_bytes * args.shard // args.images, data_bytes)
    report(args, collect(args, orders, run_all(args, orders)))


if __name__ == "__main__":
    main()
