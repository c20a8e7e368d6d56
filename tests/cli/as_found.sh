#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Data as people have it: samples and labels come out right, or what is lost is said.
. "$(dirname "$0")/cli.sh"
command -v python3 >/dev/null || skip "no python3"

expect 0 "$IOBENCH" pack synthetic:count=12,classes=3,mean=4000 plain -f files
[ -d plain/00002 ] || die "other classes: $(find plain)"
expect 0 "$IOBENCH" pack plain records -f shards --shards 2
python3 "$SRCDIR/tests/cli/as_found.py" plain || die "the sets cannot be made"

# opens SET SAMPLES [LABELS]: every command reads as many samples, with these labels, and no fault. Keeps
# what inspect and run say.
opens() {
    set=$1 samples=$2
    [ $# -lt 3 ] || labels=$3
    expect 0 "$IOBENCH" inspect "$set"
    all=$out
    says "records    $samples," "labels     $labels"
    expect 0 "$IOBENCH" verify "$set"
    says "$samples records" "no faults"
    expect 0 "$IOBENCH" run --data "$set" -n 1 --no-calibrate --batch-size 2 --memory 16m --json run.json
    all="$all $out"
    expect 0 grep -q "\"samples\": $samples," run.json
    out=$all
}

# Archives are read by libarchive.
is_read() {
    case $1 in *.tar.gz | *.zip) built_with ARCHIVE ;; esac
}

# packs SET SAMPLES [OPTION]...: so does a copy in every format.
packs() {
    from=$1 samples=$2
    shift 2
    is_read "$from" || return 0
    for format in $(formats); do
        rm -rf copy
        expect 0 "$IOBENCH" pack "$from" copy -f "$format" "$@"
        expect 0 "$IOBENCH" inspect copy
        says "records    $samples,"
        [ "$labels" = none ] || [ "$format" = files ] || says "labels     $labels"
    done
}

# refuses SET WORDS...: pack does, and loses nothing.
refuses() {
    from=$1
    shift
    is_read "$from" || return 0
    expect 1 "$IOBENCH" pack "$from" copy.no -f shards
    says "$@"
    [ ! -e copy.no ] || die "$from: something was packed"
}

# ---- labels ----
labels="0 .. 2, 3 different"
opens tar/numbers 12
packs tar/numbers 12
packs tar/numbers.tar.gz 12
packs tar/numbers/a.tar 12
opens tar/json 12
packs tar/json 12
packs tar/json.tar.gz 12
opens tar/text-number 12
packs tar/text-number 12
opens tar/blank 12 none
packs tar/blank 12
for set in tar/words tar/json-words; do
    opens "$set" 12 none
    says "12 labels are not class numbers" "label 'cat' is not a class number"
    refuses "$set" "label 'cat' is not a class number" "--odd-labels none"
    refuses "$set".tar.gz "label 'cat' is not a class number" "--odd-labels none"
    packs "$set" 12 --odd-labels none
    packs "$set".tar.gz 12 --odd-labels none
done

# ---- what is in a sample of a tar ----
labels="0 .. 2, 3 different"
for set in tar/masks tar/masks/a.tar; do
    opens "$set" 12
    packs "$set" 12
done
packs tar/masks.tar.gz 12
images() { # SET: of what pack makes of it
    rm -rf copy
    expect 0 "$IOBENCH" pack "$1" copy -f files
    find copy -name '*.jpg' -exec cksum {} + | cut -d ' ' -f 1,2 | sort
}
wanted=$(images plain)
for set in tar/masks tar/masks.tar.gz; do
    is_read "$set" || continue
    [ "$(images "$set")" = "$wanted" ] || die "$set: not the plain image of each sample"
done
opens tar/views 12
says "samples with several images, of which the first is used: 12; the first: tar/views/a.tar: offset 0: s00 (left.jpg, right.jpg, cls)"
refuses tar/views "several images (12 such samples in all)" "s00 (left.jpg, right.jpg, cls)" "tar:image=EXTENSION"
refuses tar/views/a.tar "several images"
refuses tar/views.tar.gz "s00: several images" "tar:image=EXTENSION"
packs tar/views 12 --from tar:image=right.jpg
packs tar/views 12 --on-error skip
expect 1 "$IOBENCH" inspect tar/links
says "samples that are left out: 2; the first: tar/links/a.tar: offset " ": s01.jpg: a hard link"
expect 1 "$IOBENCH" verify tar/links
says "s01.jpg: a hard link" "s02.cls: a symbolic link" "2 faults"
expect 1 "$IOBENCH" run --data tar/links -n 1 --no-calibrate
says "DEGRADED: 2 samples are left out"
refuses tar/links "s01.jpg: a hard link" "2 such samples"
refuses tar/links.tar.gz "s01.jpg: a link or special file" "2 such in all"
for set in tar/json-last tar/json-first tar/cls-first; do
    expect 1 "$IOBENCH" run --data "$set" -n 1 --no-calibrate
    says "DEGRADED: 12 samples are left out" "s00 (" "tar --sort=name"
    refuses "$set" "tar --sort=name" "12 such samples"
    refuses "$set".tar.gz "s00: a label apart from its image"
done
for command in inspect "run --data" verify; do
    # shellcheck disable=SC2086 # it has words
    expect 1 "$IOBENCH" $command tar/sounds
    says "no tar record in it; instead: tar/sounds/a.tar: offset 0: s00 (wav, json): no image" "tar:image=EXTENSION" \
        "--decode=none"
done
expect 0 "$IOBENCH" run --data tar/sounds -f tar:image=wav --decode none -n 1 --no-calibrate
says "12 samples"

# ---- folders ----
opens folder 12
says "folders without images, which get no class number: 1; the first: folder/__MACOSX"
packs folder 12
packs folder.zip 12

# ---- TFRecord ----
for set in records-*; do
    opens "$set" 12
    packs "$set" 12
done
opens records-empty 12
says "empty shards: 1; the first: records-empty/train-00002-of-00003"
mkdir records-empty-gzip
for shard in records-empty/train-*; do
    if [ -s "$shard" ]; then gzip <"$shard"; fi >"records-empty-gzip/$(basename "$shard")"
done
opens records-empty-gzip 12
packs records-empty-gzip 12
opens records-index 12
says "files of other tools beside shards, which are not read: 2; the first: records-index/train-00000-of-00002.index"
for set in other/texts other/sequence other/nothing; do
    expect 1 "$IOBENCH" run --data "$set" -n 1 --no-calibrate
    says "--decode=none"
    expect 1 "$IOBENCH" verify "$set"
    says "if they hold no images, --decode=none checks framing and checksums alone"
    expect 0 "$IOBENCH" verify --decode=none "$set"
    says "no faults in framing and checksums"
    expect 0 "$IOBENCH" run --data "$set" --decode none -n 1 --no-calibrate
    says "4 samples"
    printf 'x' | dd of="$set"/train-00000-of-00001 bs=1 seek=20 conv=notrunc 2>log || die "$(cat log)"
    expect 1 "$IOBENCH" run --data "$set" --decode none -n 1 --no-calibrate
    says "the CRC of the record is wrong"
    expect 1 "$IOBENCH" verify --decode=none "$set"
    says "the CRC of the record is wrong" "1 fault"
done
expect 1 "$IOBENCH" inspect other/sequence
says "SequenceExample, whose lists are not read, has no feature image/encoded or image but: frames;"
expect 1 "$IOBENCH" run --data other/key -n 1 --no-calibrate
says "no feature image/encoded or image but: image_raw, label; choose one with image=KEY"
expect 0 "$IOBENCH" run --data other/key -f shards:image=image_raw -n 1 --no-calibrate

# ---- samples without an image ----
for set in empty/record.rec empty/train-00000-of-00001; do
    opens "$set" 4 "0 .. 0, 1 different"
    says "1 sample has no image, the first: $set: offset "
    refuses "$set" "no image in it; --on-error skip"
    packs "$set" 3 --on-error skip
done
expect 1 "$IOBENCH" run --data empty/most -n 1 --no-calibrate --batch-size 2
says "DEGRADED: run 1: 3 of 4 samples have no image"
expect 0 "$IOBENCH" run --data empty/most -n 1 --no-calibrate --batch-size 2 --decode none
says ": valid"

# ---- LMDB with keys that are no images ----
if built_with LMDB; then
    expect 0 "$IOBENCH" pack plain many -f lmdb
    for reader in auto pread lmdb; do
        expect 0 "$IOBENCH" run --data many -f 'lmdb:keys=0000000[3-6]*' -n 1 --no-calibrate --reader $reader --json run.json
        expect 0 grep -q '"samples": 4,' run.json
    done
    labels="0 .. "
    packs many 4 --from 'lmdb:keys=0000000[3-6]*'
    expect 1 "$IOBENCH" run --data many -f 'lmdb:keys=none' -n 1 --no-calibrate
    mkdir renamed
    cp many/data.mdb renamed/other.mdb
    expect 1 "$IOBENCH" verify renamed
    says "other.mdb looks like lmdb: name that file"
    expect 0 "$IOBENCH" verify renamed/other.mdb
fi

# ---- paths that open nothing ----
mkdir -p roots list names
cp -r tar/numbers roots/train
cp -r records roots/val
cp -r folder roots/test
echo '{"image": "a.jpg"}' >list/train.jsonl
cp tar/numbers/a.tar names/part-0.shard
says_of() { # PATH WORDS...: every command that opens it
    path=$1
    shift
    for command in inspect verify "run --data" "shuffle --data"; do
        # shellcheck disable=SC2086 # it has words
        out=$("$IOBENCH" $command "$path" 2>&1) && die "$command opens $path"
        says "$@"
    done
}
says_of roots "data sets are below it: name one of test (files), train (tar), val (shards)"
says_of list "train.jsonl lists samples: name the folder that holds them"
says_of list/train.jsonl "lists samples"
says_of names "part-0.shard looks like tar: --format tar:match=*.shard"
says_of 'tar/numbers/a-{0..9}.tar' "it is a pattern: name the folder tar/numbers/, and its shards by --format NAME:match='a-*.tar'"
expect 0 "$IOBENCH" inspect names --format 'tar:match=*.shard'
echo ok
