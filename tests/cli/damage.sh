#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Damaged samples, in every format: counted, named, and never part of a valid figure.
. "$(dirname "$0")/cli.sh"

poke() { # FILE OFFSET BYTES
    # shellcheck disable=SC2059 # escapes
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# Offset of record N (0..7) of a data set, as shown by inspect.
offset_of() {
    "$IOBENCH" inspect --show 8 "$1" | sed -n "s/^record $2 .* at \([0-9]*\):.*/\1/p"
}

# Decode whole images, so that each corrupt byte is read.
# shellcheck disable=SC2317 # expect calls it
run() { # DATA DECODER-OPTIONS OPTION...
    data=$1 decode=$2
    shift 2
    "$IOBENCH" run --data "$data" --runs 1 --no-calibrate --batch-size 8 --memory 16m --digest \
        --decode "jpeg:size=32,view=evaluate,crop=1$decode" "$@"
}

tells() { # FILE PATTERN...
    file=$1
    shift
    for pattern; do
        grep -q -e "$pattern" "$file" || die "$file does not tell: $pattern"
    done
}

# ---- truncated images, and images with an end marker within their data ----
expect 0 "$IOBENCH" pack synthetic:count=40,classes=5,mean=8k good --format files
cp -r good bad-files
cut=$(find bad-files -name '*.jpg' | sort | sed -n 3p)
corrupt=$(find bad-files -name '*.jpg' | sort | sed -n 6p)
truncate -s -2 "$cut"
poke "$corrupt" 4000 '\377\331\377\331\377\331'
for format in $(formats); do
    [ "$format" = files ] || expect 0 "$IOBENCH" pack bad-files "bad-$format" --format "$format"
    two=$(offset_of "bad-$format" 2) five=$(offset_of "bad-$format" 5)
    expect 1 "$IOBENCH" run --data "bad-$format" --runs 1 --no-calibrate --decode-threads 1 # regardless of the crop
    says "INVALID: run 1: " "offset $two: record 2: " "the JPEG is cut short"
    expect 1 run "bad-$format" "" --on-error skip --json skip.json
    says "DEGRADED: 2 records were skipped" "Found    skipped: "
    tells skip.json '"truncated_images": 1' '"corrupt_images": 1' '"failed_images": 2' \
        "offset $two: record 2: .*the JPEG is cut short" \
        "offset $five: record 5: .*premature end of data segment" '"degraded": true'
    expect 1 run "bad-$format" ,damaged=decode --json decode.json
    says "DEGRADED: 2 damaged images were decoded as far as they go" "damaged, but decoded: "
    tells decode.json '"samples": 40' "offset $two: record 2: " "offset $five: record 5: " \
        '"degraded": true' '"degraded_reason": "2 damaged images were decoded' '"failed_images": 0'
    sed -n 's/.*"digest": "\(.*\)".*/\1/p' skip.json decode.json | sort -u >digests
    [ "$(wc -l <digests)" = 2 ] || die "left out or decoded, the digest is the same"
done
expect 0 run good ""
says "valid"

# ---- a label that is not a class ----
if formats | grep -q recordio; then
    expect 0 "$IOBENCH" pack good label --format recordio
    four=$(offset_of label 4)
    poke label/train.rec $((four + 12)) '\315\314\154\100' # 3.7
    expect 0 run label "" --json label.json
    says "1 label is not a class number" "without a class: "
    tells label.json "offset $four: record 4: label 3.7 is not a class number" '"degraded": false'
    expect 0 "$IOBENCH" verify label
    says "labels that are not class numbers: 1; the first: label/train.rec: offset $four: label 3.7"
    expect 0 "$IOBENCH" inspect label
    says "offset $four: label 3.7 is not a class number"
    expect 1 "$IOBENCH" pack label away --format files
    says "label 3.7 is not a class number" "--odd-labels round"
    expect 1 run label "" --odd-labels refuse
    says "label 3.7 is not a class number"
    poke label/train.rec $((four + 12)) '\146\146\326\100' # 6.7; the classes are 0 to 4
    run label "" --odd-labels round >rounded.txt 2>&1 || die "6.7 is not rounded: $(cat rounded.txt)"
    expect 1 grep "not a class" rounded.txt
    expect 0 "$IOBENCH" pack label rounded --format files --odd-labels round
    [ -d rounded/00007 ] || die "6.7 is not rounded to 7: $(ls rounded)"
fi

# ---- samples that are left out ----
cp -r good mixed
for i in 1 2 3 4 5; do
    echo text >"mixed/00002/more$i.avif"
done
echo text >mixed/00002/notes.txt
expect 1 run mixed "" --json mixed.json
says "DEGRADED: 5 samples are left out"
tells mixed.json '"unread_samples": 5' 'more1.avif: offset 0: unsupported kind' \
    '"other_files": 1' '"samples": 40' '"degraded": true'
expect 1 run mixed "" # and in every run
says "DEGRADED: 5 samples"
expect 1 "$IOBENCH" verify mixed
says "more5.avif: offset 0: unsupported kind of image" "5 faults"
expect 1 "$IOBENCH" inspect mixed
says "samples that are left out: 5; the first: mixed/00002/more1.avif" "other      1 file"
expect 1 "$IOBENCH" pack mixed less --format shards
says "more1.avif" "5 such samples"
expect 0 "$IOBENCH" pack mixed less --format shards --on-error skip
says "5 samples were left out" "more1.avif"
if command -v tar >/dev/null; then
    mkdir members
    for i in 1 2 3; do
        cp "$cut" members/$i.jpg && echo 1 >members/$i.cls
    done
    mv members/2.jpg members/2.avif
    cp "$(find good -name '*.jpg' | head -n 1)" members/1.jpg
    cp members/1.jpg members/3.jpg
    (cd members && tar -cf ../members.tar 1.cls 1.jpg 2.cls 2.avif 3.cls 3.jpg)
    expect 1 run members.tar "" --json members.json
    says "DEGRADED: 1 sample is left out"
    tells members.json "members.tar: offset [0-9]*: 2 (cls, avif): no image of a supported kind"
fi

# ---- a file that is not a shard: excluded, like other damage found while indexing ----
expect 0 "$IOBENCH" pack good variant --format recordio --shards 2
shard=$(find variant -name '*.rec' | sort | sed -n 2p)
poke "$shard" 0 '\012\043\327\076' # RecordIO of 2015
expect 1 run variant ""
says "RecordIO of 2015"
expect 1 run variant "" --on-error skip
says "DEGRADED: " "the index omits damaged samples" "RecordIO of 2015"

# ---- infer reports damage, too ----
expect 1 "$IOBENCH" infer --network lenet --backend reference --data bad-files --batch-size 8 \
    --decode jpeg:damaged=decode
says "DEGRADED: 2 damaged images" "note: fp32, batch size 8: 2 damaged images" "record 2: "
expect 1 "$IOBENCH" infer --network lenet --backend reference --data bad-files --batch-size 8 \
    --on-error skip --json=-
says '"degraded": true' 'record 2: the JPEG is cut short'
exit 0
