#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench pack: every source and target format; the samples stay the same.
. "$(dirname "$0")/cli.sh"

# ---- through all formats, one after the other ----
expect 0 "$IOBENCH" pack synthetic:count=60,classes=7,mean=8k made --shards 3
says "shards, 3 shards" "60 samples" "synthetic, seed 1, 7 classes"
[ "$(ls made)" = "$(printf 'train-0000%d-of-00003\n' 0 1 2)" ] || die "other shards: $(ls made)"
[ ! -e made/.iobench-unfinished ] || die "the manifest is left"
before=made
for format in $(formats) shards; do
    expect 0 "$IOBENCH" pack "$before" "to-$format-$before" --format "$format"
    says "60 samples"
    same_digest made "to-$format-$before"
    before=to-$format-$before
done
expect 0 "$IOBENCH" pack synthetic:count=60,classes=7,mean=8k again --shards 3 -t 1
cmp made/train-00001-of-00003 again/train-00001-of-00003 || die "threads change the bytes"

# ---- below folders that do not exist yet ----
for format in files recordio; do
    expect 0 "$IOBENCH" pack made "new/below-$format/set" --format "$format"
done
[ -z "$(find new/below-files/set -type d -empty)" ] || die "an empty class folder, which torchvision refuses"

# ---- another order ----
expect 0 "$IOBENCH" pack made shuffled --shuffle=5 --shards 3
same_digest made shuffled
cmp -s made/train-00000-of-00003 shuffled/train-00000-of-00003 && die "--shuffle did nothing"
expect 0 "$IOBENCH" pack made few --limit 7
says "7 samples"

# ---- smaller images, as JPEGs ----
expect 0 "$IOBENCH" pack made small --side 32 --quality 80
says "60 samples" "60 images of" "JPEGs of quality 80, 32 pixels on the shorter side"
expect 0 "$IOBENCH" verify small --decode
expect 0 "$IOBENCH" pack small smaller --side 32
says "0 images of 0 B are now"
same_digest small smaller
expect 0 "$IOBENCH" pack small copied --quality 80
says "--quality 80 changed nothing: no image was encoded; with --side those that are larger are"
same_digest small copied
expect 0 "$IOBENCH" pack small copied.64 --side 64 --quality 80
says "--quality 80 changed nothing: no image was encoded"
mkdir digits
printf '\0\0\010\003\0\0\0\002\0\0\0\002\0\0\0\0024689abcd' >digits/a-images-idx3-ubyte
printf '\0\0\010\001\0\0\0\00201' >digits/a-labels-idx1-ubyte
for source in "small --side 16" digits "$SRCDIR/tests/golden/lmdb/datum_raw.mdb"; do
    # shellcheck disable=SC2086 # a source and its options
    expect 0 "$IOBENCH" pack $source encoded --quality 80
    # shellcheck disable=SC2154 # expect sets it
    case $out in *"changed nothing"*) die "$source: images were encoded" ;; esac
    rm -r encoded
done

# ---- as pixels, which every target keeps ----
expect 0 "$IOBENCH" pack small pixels --raw --format files
says "60 images of" "are now pixels (PPM)"
[ "$(find pixels -name '*.ppm' | wc -l)" = 60 ] || die "pixels do not have their extension"
expect 0 "$IOBENCH" pack pixels pixels.tar --raw --format tar
says "0 images of 0 B are now"
same_digest pixels pixels.tar
expect 0 "$IOBENCH" inspect pixels.tar
says "60 raw"
expect 0 "$IOBENCH" pack small pixels.dry --raw --dry-run
says "nothing was changed"

# ---- images in folders, in archives, in archives in an archive ----
pictures=$SRCDIR/tests/fixtures/images
set -- "$pictures"/*.jpg
if [ -e "$1" ]; then
    mkdir -p tree/train/cat tree/train/ant
    cp "$@" tree/train/cat/
    cp "$1" tree/train/ant/other.JPEG
    expect 0 "$IOBENCH" pack tree/train from-folder
    says "1 damaged image was copied as it is: " "cut short"
    expect 1 "$IOBENCH" pack tree/train pixels-of-folder --raw
    says "cut short"
    expect 0 "$IOBENCH" pack tree/train pixels-of-folder --raw --on-error skip
    says "11 samples" "1 sample was left out"
    expect 1 "$IOBENCH" inspect from-folder # truncated.jpg is one of them
    says "labels     0 .. 1" "1 of 12 sampled records" # ant is 0
fi

# ---- IDX files: small ones are packed in tests/cli/saved/refusals-files.txt ----
if [ -d /usr/share/datasets/fashion-mnist ]; then
    expect 0 "$IOBENCH" pack /usr/share/datasets/fashion-mnist fashion --shards 2
    says "70,000 samples"
    expect 0 "$IOBENCH" verify fashion
    says "70,000 records" "no fault"
fi

# ---- refusals, without side effects ----
expect 1 sh -c "ulimit -f 20; '$IOBENCH' pack synthetic:count=50,mean=6000 limited"
says "File too large" "the limit of 'ulimit -f'"

# ---- damaged samples ----
cp -r made hurt
printf 'X' | dd of=hurt/train-00001-of-00003 bs=1 seek=2000 conv=notrunc 2>/dev/null
expect 1 "$IOBENCH" pack hurt mended
says "hurt/train-00001-of-00003: offset 0:"
expect 0 "$IOBENCH" pack hurt mended --on-error skip
says "59 samples" "1 sample was left out: hurt/train-00001"
expect 0 "$IOBENCH" pack made records -f recordio
offset=$("$IOBENCH" inspect records | sed -n 's/^record 2 .* at \([0-9]*\):.*/\1/p')
printf 'XXXX' | dd of=records/train.rec bs=1 seek="$offset" conv=notrunc 2>/dev/null
expect 1 "$IOBENCH" pack records --from recordio:idx=no unframed
says "train.rec: offset $offset: "
expect 0 "$IOBENCH" pack records unframed --on-error skip
says "59 samples" "records/train.rec: offset $offset: "
exit 0
