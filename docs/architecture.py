#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw the folders of the sources and what they include.

    docs/architecture.py [--check] [SOURCE_FOLDER]

Writes docs/architecture.svg: a box per folder with its files and lines, an arrow per folder that it
includes; the rooms of cmd/ are one. Arrows that follow from others (a -> b -> c implies a -> c) are left out. A box stands
below all that include it, so every arrow points down; two folders that include each other are an
error. --check writes nothing and exits 1 if boxes or arrows are not what the sources say.
"""
import os
import re
import sys

FOLDERS = "base cachectl cmd dataset decode formats kernels pipeline ranks readers report shuffle telemetry trainer".split()
KINDS = (".c", ".h", ".cu", ".cuh")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
SIZE = re.compile(r"[0-9.]+ k lines")
WIDTH, BOX_WIDTH, BOX_HEIGHT, ROW_HEIGHT, TOP = 1180, 132, 40, 92, 30


def read_tree(root):
    """Folder -> [files, lines], and the folder pairs of includes."""
    sizes, pairs = {}, set()
    for folder in FOLDERS:
        for path, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                if not name.endswith(KINDS):
                    continue
                room = os.path.relpath(path, root)
                room = "cmd" if room.startswith("cmd/") else room
                with open(os.path.join(path, name), encoding="utf-8") as file:
                    text = file.read()
                size = sizes.setdefault(room, [0, 0])
                size[0] += 1
                size[1] += text.count("\n")
                for header in INCLUDE.findall(text):
                    of = "cmd" if header.startswith("cmd/") else os.path.dirname(header)
                    if of not in ("", room):
                        pairs.add((room, of))
    return sizes, {(a, b) for a, b in pairs if a in sizes and b in sizes}


def find_levels(rooms, pairs):
    """Rows from the bottom: one above all that a room includes."""
    below = {room: {b for a, b in pairs if a == room} for room in rooms}
    levels = {}
    while len(levels) < len(rooms):
        ready = [r for r in rooms if r not in levels and all(b in levels for b in below[r])]
        if not ready:
            circle = sorted(set(rooms) - set(levels))
            sys.exit(f"architecture: folders include each other: {', '.join(circle)}")
        levels.update({r: 1 + max((levels[b] for b in below[r]), default=-1) for r in ready})
    return levels


def reduce_pairs(pairs):
    def reaches(start, goal, skip):
        seen, open_ = set(), [start]
        while open_:
            room = open_.pop()
            for a, b in pairs:
                if a == room and (a, b) != skip and b not in seen:
                    if b == goal:
                        return True
                    seen.add(b)
                    open_.append(b)
        return False
    return {pair for pair in pairs if not reaches(pair[0], pair[1], pair)}


def place(levels, pairs):
    """Centres of the boxes; in a row sorted by where their arrows lead."""
    top = max(levels.values())
    centres = {}
    for level in range(top + 1):
        row = sorted(r for r in levels if levels[r] == level)

        def lean(room):
            ends = [centres[b][0] for a, b in pairs if a == room]
            return (sum(ends) / len(ends) if ends else 0, room)
        row.sort(key=lean)
        for i, room in enumerate(row):
            x = WIDTH * (i + 0.5) / len(row) + (WIDTH / 14 if level % 2 and len(row) < 4 else 0)
            centres[room] = (x, TOP + (top - level) * ROW_HEIGHT)
    return centres


def draw(sizes, pairs):
    levels = find_levels(sizes, pairs)
    pairs = reduce_pairs(pairs)
    centres = place(levels, pairs)
    height = TOP + max(y for _, y in centres.values()) + BOX_HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
           'font-family="sans-serif" font-size="12" text-anchor="middle">',
           '<rect width="100%" height="100%" fill="#fff"/>',
           '<marker id="a" markerWidth="7" markerHeight="6" refX="6" refY="3" orient="auto">'
           '<path d="M0,0L7,3L0,6z" fill="#567"/></marker>']
    for a, b in sorted(pairs):
        (x1, y1), (x2, y2) = centres[a], centres[b]
        out.append(f'<line x1="{x1:.0f}" y1="{y1 + BOX_HEIGHT:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" '
                   'stroke="#89a" marker-end="url(#a)"/>')
    for room, (x, y) in sorted(centres.items()):
        files, lines = sizes[room]
        out.append(f'<rect x="{x - BOX_WIDTH / 2:.0f}" y="{y:.0f}" width="{BOX_WIDTH}" '
                   f'height="{BOX_HEIGHT}" rx="4" fill="#eef3f8" stroke="#567"/>')
        out.append(f'<text x="{x:.0f}" y="{y + 16:.0f}" font-weight="bold">{room}/</text>')
        size = f"{max(1, round(lines / 500)) / 2:g} k lines"
        out.append(f'<text x="{x:.0f}" y="{y + 32:.0f}" fill="#567">{size}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    root = arguments[0] if arguments else os.path.join(os.path.dirname(__file__), "..")
    picture = draw(*read_tree(root))
    path = os.path.join(root, "docs", "architecture.svg")
    if "--check" not in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(picture)
        return
    with open(path, encoding="utf-8") as file:
        if SIZE.sub("", file.read()) != SIZE.sub("", picture):
            sys.exit("docs/architecture.svg: not what the sources say: run docs/architecture.py")


if __name__ == "__main__":
    main()
