#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench show: the records of a batch, their boxes, and the pixels that the trainer gets.
. "$(dirname "$0")/cli.sh"

records() { # ARGUMENT...: the numbers of the records shown
    "$IOBENCH" show "$@" | sed -n 's/^record \([0-9]*\) .*/\1/p'
}

expect 0 "$IOBENCH" pack synthetic:count=20,classes=5,mean=8k set --format files

# ---- a batch: its records, in the order of the shuffle; the last one is short ----
for shuffle in none epoch buffer:7; do
    for batch in 0 1 2; do
        records set --shuffle "$shuffle" --batch-size 8 --batch $batch >"batch$batch"
    done
    [ "$(wc -l <batch2)" = 4 ] || die "$shuffle: the last batch has $(wc -l <batch2) records"
    [ "$(cat batch? | sort -nu | wc -l)" = 20 ] || die "$shuffle: not each record once"
done
records set --shuffle none --batch-size 8 --batch 1 | tr '\n' ' ' | grep -qx '8 9 10 11 12 13 14 15 ' ||
    die "not in storage order"

# ---- the same seed and epoch give the same picture, another epoch another one ----
for epoch in 3 3 4; do
    expect 0 "$IOBENCH" show set --batch-size 3 --shuffle none --epoch $epoch -o sheet.png
    cksum <sheet.png >>sums
done
[ "$(sed -n 1p sums)" = "$(sed -n 2p sums)" ] || die "the picture does not repeat"
[ "$(sed -n 2p sums)" = "$(sed -n 3p sums)" ] && die "epoch 4 is epoch 3"

# ---- nothing of the user's is replaced ----
echo mine >mine.png
expect 1 "$IOBENCH" show set -o mine.png
says "mine.png" "not replaced"
expect 2 "$IOBENCH" show set -o set/sheet.png
says "set/sheet.png" "would become a part"

# ---- a damaged image: named, the rest is shown ----
damaged=$(find set -name '*.jpg' | sort | sed -n 3p)
truncate -s -2 "$damaged"
expect 1 "$IOBENCH" show set --shuffle none --batch-size 4 -o damaged.png
says "DAMAGED: the JPEG is cut short" "record 3  "
expect 1 "$IOBENCH" show set --record 2 --decode jpeg:damaged=decode --json
says '"damaged": "the JPEG is cut short"' '"mirror": '

# ---- pixels: red is the column and green the row, so the picture tells which box it is ----
command -v python3 >/dev/null || exit 0
mkdir -p gradient/a
cat >png.py <<'END'
import itertools
import json
import struct
import sys
import zlib

def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))

def write(path, width, height):
    rows = b''.join(b'\0' + bytes(v for x in range(width) for v in (x, y, 128)) for y in range(height))
    with open(path, 'wb') as file:
        file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)) +
                   chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))

def paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]

def read(path):
    data = open(path, 'rb').read()
    at, packed = 8, b''
    while at < len(data):
        length, kind = struct.unpack('>I4s', data[at:at + 8])
        if kind == b'IHDR':
            width, height = struct.unpack('>II', data[at + 8:at + 16])
        if kind == b'IDAT':
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    raw, rows, above = zlib.decompress(packed), [], bytes(3 * width)
    for y in range(height):
        kind, line = raw[y * (3 * width + 1)], bytearray(raw[y * (3 * width + 1) + 1:(y + 1) * (3 * width + 1)])
        for i in range(len(line)):
            a, b, c = line[i - 3] if i >= 3 else 0, above[i], above[i - 3] if i >= 3 else 0
            line[i] = line[i] + (0, a, b, (a + b) // 2, paeth(a, b, c))[kind] & 255
        rows.append(line)
        above = line
    return rows

if sys.argv[1] == 'write':
    write(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    sys.exit()
if sys.argv[1] == 'map':  # each row: how many pixels of paper, a box, a cross, an image; equal rows once
    kinds = {b'\xff\xff\xff': '.', b'\xff\x40\x00': '#', b'\x60\x60\x60': 'x'}
    rows = (''.join(kinds.get(bytes(row[x:x + 3]), 'o') for x in range(0, len(row), 3)) for row in read(sys.argv[2]))
    for text, equal in itertools.groupby(rows):
        print(len(list(equal)), 'rows:', *(f'{len(list(run))}{kind}' for kind, run in itertools.groupby(text)))
    sys.exit()
shown = json.load(open(sys.argv[3]))['records'][0]
box, rows, side = shown['box'], read(sys.argv[2]), 64
left = len(rows[0]) // 3 - 8 - side  # of the row, at the right margin
for y in (8, 32, 56):
    for x in (8, 32, 56):
        column = side - 1 - x if box['mirror'] else x
        expected = (box['x'] + (column + 0.5) * box['width'] / side - 0.5,
                    box['y'] + (y + 0.5) * box['height'] / side - 0.5)
        pixel = rows[8 + y][3 * (left + x):][:2]
        if max(abs(pixel[i] - expected[i]) for i in (0, 1)) > 1.5:
            sys.exit(f'pixel {x}, {y} is {tuple(pixel)}, not {expected}, of {box}')
END
python3 png.py write gradient/a/0.png 256 256
for epoch in 1 2 3; do # both kinds of mirror
    expect 0 "$IOBENCH" show gradient --decode jpeg:size=64 --record 0 --epoch $epoch -o seen.png --json=seen.json
    expect 0 python3 png.py read seen.png seen.json
    grep '"mirror"' seen.json >>mirrors
done
[ "$(sort -u mirrors | wc -l)" = 2 ] || die "never or always mirrored"
# Where all that is drawn stands: boxes, crosses, and images of three shapes, one of them damaged.
python3 png.py write gradient/a/1.png 250 90 && python3 png.py write gradient/a/2.png 40 200
head -c 900 gradient/a/0.png >gradient/a/3.png
"$IOBENCH" show gradient --decode jpeg:size=64 --shuffle none --batch-size 5 --seed 2 -o seen.png >seen
# shellcheck disable=SC2094 # one or the other
python3 png.py map seen.png >map
[ "${UPDATE:-0}" = 0 ] || cp map "$SRCDIR/tests/cli/saved/show.txt"
diff -u "$SRCDIR/tests/cli/saved/show.txt" map || die "the picture differs from saved/show.txt"
exit 0
