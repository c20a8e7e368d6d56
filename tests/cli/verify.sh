#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench verify finds and locates each fault in bad files; inspect describes a set.
. "$(dirname "$0")/cli.sh"

poke() { # FILE OFFSET BYTES
    # shellcheck disable=SC2059 # escapes
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# Offset of record N (0..7) of a data set, as shown by inspect.
offset_of() {
    "$IOBENCH" inspect --show 8 "$1" | sed -n "s/^record $2 .* at \([0-9]*\):.*/\1/p"
}

expect 0 "$IOBENCH" pack synthetic:count=40,classes=5,mean=8k good --shards 1
shard=train-00000-of-00001
for format in $(formats); do
    expect 0 "$IOBENCH" pack good "good-$format" --format "$format"
    expect 0 "$IOBENCH" verify "good-$format"
    says "40 records" "no fault" "image headers"
    expect 0 "$IOBENCH" verify --decode "good-$format"
    says "no fault" "whole images"
    expect 0 "$IOBENCH" inspect "good-$format"
    says "format     $format" "records    40" "40 JPEG" "labels     0 .. 4"
done

# ---- two flipped bytes are two faults, each with its offset ----
cp -r good flipped
two=$(offset_of good 2) five=$(offset_of good 5)
poke flipped/$shard $((two + 3000)) 'Z'
poke flipped/$shard $((five + 3000)) 'Z'
expect 1 "$IOBENCH" verify flipped
says "flipped/$shard: offset $two: " "flipped/$shard: offset $five: " "2 faults" "40 records"
expect 1 "$IOBENCH" verify --json flipped
says '"sound": false' '"fault_count": 2' "\"offset\": $two," '"records": 40'
expect 1 "$IOBENCH" verify --json=faults.json flipped
grep -q '"fault_count": 2' faults.json || die "no JSON in the file"
"$IOBENCH" verify flipped -t 1 | grep offset >one
"$IOBENCH" verify flipped -t 7 | grep offset >seven
cmp one seven || die "the faults depend on the threads"

# ---- a file truncated between records looks complete: its .idx or the missing end reveals it ----
cp -r good-recordio cut-record
five=$(offset_of good-recordio 5)
truncate -s "$five" cut-record/train.rec
expect 1 "$IOBENCH" verify cut-record
says "train.rec: offset $five: the file ends here, its .idx lists 35 more records: truncated" "1 fault" "5 records"
expect 1 "$IOBENCH" run --data cut-record
says "train.rec: offset $five: "
expect 0 "$IOBENCH" pack good good-dali --format shards:idx=yes
five=$(offset_of good-dali 5)
cp -r good-dali cut-dali
truncate -s "$five" cut-dali/$shard
expect 1 "$IOBENCH" verify cut-dali
says "$shard: offset $five: the file ends here, its .idx lists 35 more records" "1 fault"
five=$(offset_of good-tar 5) all=$(cat good-tar/*.tar | wc -c)
for end in "$five" $((all - 1024)); do # between two samples, and after the last one
    cp -r good-tar "cut-tar-$end"
    truncate -s "$end" "cut-tar-$end"/*.tar
    expect 1 "$IOBENCH" verify "cut-tar-$end"
    says ".tar: offset $end: the archive ends without its final blocks of zeros" "1 fault"
    expect 1 "$IOBENCH" run --data "cut-tar-$end"
    says ".tar: offset $end: "
done
cat good-tar/*.tar | head -c $((all - 512)) >one.tar # a single block of zeros is also an end
expect 0 "$IOBENCH" verify one.tar

# ---- images: RecordIO has no checksum, so only the header and the pixels show damage ----
cp -r good-recordio bad-image
three=$(offset_of good-recordio 3) four=$(offset_of good-recordio 4)
poke bad-image/train.rec $((three + 32)) 'XX' # of the JPEG's first marker
expect 1 "$IOBENCH" verify bad-image
says "train.rec: offset $three: byte 0 of the image: neither a JPEG, PNG" "1 fault"
cp -r good-recordio bad-pixels
poke bad-pixels/train.rec $((four + 4000)) '\377\331\377\331\377\331' # markers within the pixels
expect 0 "$IOBENCH" verify bad-pixels
expect 1 "$IOBENCH" verify --decode bad-pixels
says "offset $four: Corrupt JPEG data: "

# ---- inspect ----
expect 0 "$IOBENCH" inspect good-recordio
says "index      none yet"
digest good-recordio >/dev/null
expect 0 "$IOBENCH" inspect good-recordio
says "index      kept beside the data"
touch good-recordio/train.rec
expect 0 "$IOBENCH" inspect good-recordio
says "index      stale: the data changed"
expect 0 "$IOBENCH" inspect --json --samples 10 good
says '"format": "shards"' '"records": 40' '"index": "none"' '"jpeg": 10' '"median":'
expect 1 "$IOBENCH" inspect flipped
says "2 damaged" "DAMAGED    2 of 40 sampled records" "$shard: offset $two: "
expect 1 "$IOBENCH" inspect --json flipped
says '"damaged": 2' "\"first_damage\": \"$shard: offset $two: "
for format in $(formats); do # all 40
    cp -r "good-$format" "rotten-$format"
    find "rotten-$format" -type f ! -name '.*' ! -name '*.idx' ! -name 'lock.mdb' |
        while read -r file; do
            LC_ALL=C sed -i 's/\xff\xd8\xff/no!/g; s/image\/encoded/image_encoded/g' "$file"
        done
    expect 1 "$IOBENCH" inspect "rotten-$format"
    says "40 damaged" "DAMAGED    40 of 40 sampled records, the first: "
done

# ---- entry points: noted beside the data, used by runs, told when the data changed ----
runs() { # SET OPTIONS: a run of two epochs, as text and JSON
    expect 0 "$IOBENCH" run --data "$1" --decode "jpeg:engine=own,scale=none${2-}" --runs 1 --epochs 2 --batch-size 8 \
        --no-calibrate --json=run.json
}
entered() {
    sed -n 's/.*"entered_images": \([0-9]*\).*/\1/p' run.json
}

expect 0 "$IOBENCH" pack synthetic:count=40,mean=30k points -f recordio --entry-points
says "entry points of 40 images are in points/.iobench-hints"
runs points
says " of 80 images, at their crops; 0 changed since"
[ "$(entered)" -gt 10 ] || die "entry points are not used"
runs points ,entry-points=no
[ "$(entered)" = 0 ] || die "entry points are used against the user's will"
cp points/.iobench-hints hints
cp points/.iobench-hints good-recordio/
runs good-recordio
says "good-recordio/.iobench-hints: hints of other data" "verify --entry-points"
expect 0 "$IOBENCH" verify --entry-points good-recordio --json
says '"entry_point_images": 40'
runs good-recordio
says "images, at their crops"
# Images of the same lengths with other bytes: no point may be used.
LC_ALL=C sed -i 's/\xff\xd8\xff\xe0..JFIF/\xff\xd8\xff\xe0\x00\x10JFIX/g' points/train.rec
runs points
says "0 of 80 images, at their crops; "
grep -q '"stale_hints": 0' run.json && die "stale points are not told"
poke points/.iobench-hints 100 'Z'
runs points
says "points/.iobench-hints: damaged hints: wrong CRC"
expect 0 "$IOBENCH" pack good single -f recordio --entry-points
expect 0 "$IOBENCH" verify --entry-points single/train.rec
says "in single/train.rec.iobench-hints"
runs single/train.rec
exit 0
