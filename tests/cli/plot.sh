#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench plot: a series of known shape, and the curves, names and shades of its picture.
. "$(dirname "$0")/cli.sh"

# A square wave of 0 and 100 MB/s from storage, the fabric with 10 MB/s both ways beside it.
awk 'BEGIN {
    print "time_s,phases,read_bytes_per_s,from_local_bytes_per_s,from_fabric_bytes_per_s," \
        "fabric_receive_bytes_per_s,fabric_send_bytes_per_s"
    for (i = 1; i <= 20; i++) {
        rate = int((i - 1) / 5) % 2 * 1e8
        phases = i <= 5 ? "drop 0" : i <= 10 ? "epoch 0" : i <= 15 ? "shuffle 1" : "epoch 1"
        printf "%g,%s,%g,0,%g,%g,1e7\n", i / 10, phases, rate, rate, rate + 1e7
    }
}' >series.csv

# Missing gnuplot is said; its program can still be had.
mkdir none
expect 1 env PATH="$T/none" "$IOBENCH" plot series.csv
says "gnuplot" "not installed" "apt-get install"
expect 0 env PATH="$T/none" "$IOBENCH" plot --script -o - series.csv
says "set multiplot layout 2,1" "received - sent"
[ ! -e series.csv.svg ] || die "a picture without gnuplot"

expect 1 "$IOBENCH" plot none.csv
says none.csv
echo nonsense >other
expect 1 "$IOBENCH" plot other
says other
expect 2 "$IOBENCH" plot

command -v gnuplot >/dev/null || skip "gnuplot is not installed"
expect 0 "$IOBENCH" plot --title "a'b <&> \`id\`" series.csv
python3 - series.csv.svg <<'END' || die "the picture is not what the series says"
import re, sys, xml.dom.minidom
svg = open(sys.argv[1]).read()
document = xml.dom.minidom.parseString(svg)
def inside(node):
    return node.data if node.nodeType == node.TEXT_NODE else "".join(map(inside, node.childNodes))
said = [" ".join(inside(text).split()) for text in document.getElementsByTagName("text")]
for text in ("a'b <&> `id`", "Storage read throughput", "from storage", "Fabric", "received",
             "sent", "received - sent", "epoch 0", "epoch 1", "caches dropped", "shuffle",
             "seconds", "MB/s"):
    assert text in said, (text, said)
# The points of a colour; y grows downwards.
def curve(color):
    points = []
    for path in re.findall(r"<path stroke='rgb\(%s\)'\s+d='([^']*)'" % color, svg):
        points += [(float(x), float(y)) for x, y in re.findall(r"([\d.]+),([\d.]+)", path)]
    return points
first = curve(r"\s*31, 119, 180")[2:22] # behind the two of its key
assert len(first) == 20, first
low, high = max(y for _, y in first), min(y for _, y in first)
shape = "".join("#" if abs(y - high) < 1 else "." if abs(y - low) < 1 else "?" for _, y in first)
assert shape == "....." + "#####" + "....." + "#####", shape
for color in ("#bdd7e7", "#fdae6b"):
    assert color in svg or "rgb(%d, %d, %d)" % tuple(bytes.fromhex(color[1:])) in svg, color
END

# Two nodes: each of them, and their sum.
expect 0 "$IOBENCH" plot -o both.svg series.csv series.csv
for text in 'all nodes' 'Fabric of series.csv' 'series.csv'; do
    grep -q "$text" both.svg || die "no '$text' in the picture of two nodes"
done

# What a monitor writes is drawn.
expect 0 "$IOBENCH" monitor --json=lines --interval=50ms --sample=20ms --count=3 .
if grep -qE '"(storage_read|net_receive)_bytes_per_s":[0-9]' lines; then
    expect 0 "$IOBENCH" plot lines
    grep -q '</svg>' lines.svg || die "no picture of a profile"
fi
exit 0
