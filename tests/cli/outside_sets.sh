#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No output becomes part of a data set, by whatever command.
. "$(dirname "$0")/cli.sh"

for format in files shards recordio tar; do
    expect 0 "$IOBENCH" pack synthetic:count=12,classes=3,mean=6k $format -f $format
done
expect 0 "$IOBENCH" pack synthetic:count=12,classes=3,mean=6k alone -f files
find alone -name '.iobench-*' -delete
mkdir results
expect 0 "$IOBENCH" run --data files -n 1 --no-calibrate --batch-size 4 --memory 16m --json results/r.json
class=$(find files -mindepth 1 -maxdepth 1 -type d | sort | head -n 1)
ln -s "../$class" results/link
printf '[job]\ndata = shards\nruns = 1\ncalibrate = no\nmemory = 16m\nbatch-size = 4\njson = shards/x-00001-of-00002\n' >job.ini

contents() { find files shards recordio tar alone ! -name .iobench-index | sort | cksum; }
before=$(contents)
refused() { # STATUS COMMAND...
    expect "$@"
    says "is inside the data set $(pwd -P)/" "of which it would become a part; name a file outside"
    [ "$(contents)" = "$before" ] || die "$*: the set was changed"
}
refused 2 "$IOBENCH" report results/r.json -o "$class/x.png"
refused 2 "$IOBENCH" report results/r.json -o files/x.png
refused 2 "$IOBENCH" report results/r.json -o results/link/x.png
refused 2 "$IOBENCH" plot results/r.json -o "$class/x.png"
refused 2 "$IOBENCH" show recordio -o files/x.png
refused 2 "$IOBENCH" show files -o "$class/x.png"
refused 2 "$IOBENCH" inspect files --json=shards/x.tfrecord
refused 2 "$IOBENCH" inspect recordio --json=recordio/x.rec
refused 2 "$IOBENCH" inspect tar --json=tar/x.tar
refused 2 "$IOBENCH" run --data files -n 1 --json "$class/x.jpg"
refused 2 "$IOBENCH" run --data files -n 1 --csv "$class/x.avif"
refused 2 "$IOBENCH" run job.ini
(cd "$class" && "$IOBENCH" report ../../results/r.json -o x.png) >out 2>&1 && die "in the folder itself"
grep -q "x.png: is inside the data set" out || die "in the folder itself: $(cat out)"
# A set that bears no mark yet: that of the command.
refused 2 "$IOBENCH" run --data alone -n 1 --json alone/x.jpg
refused 2 "$IOBENCH" show alone -o alone/x.png

# What the set's format does not read may be there, and beside it anything.
expect 0 "$IOBENCH" inspect shards --json=shards/x.json
expect 0 "$IOBENCH" show shards -o shards/x.png
mkdir recordio/charts
expect 0 "$IOBENCH" show files -o recordio/charts/x.png
expect 0 "$IOBENCH" show files -o results/x.png
for format in shards recordio; do
    expect 0 "$IOBENCH" inspect $format
    says "records    12"
done
