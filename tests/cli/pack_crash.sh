#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No state left by a crash of pack is a valid data set, and the same command completes it. The
# states are built by hand, so nothing here depends on the timing of signals.
# shellcheck disable=SC2154 # out and status are those of cli.sh
. "$(dirname "$0")/cli.sh"

SOURCE=synthetic:count=60,classes=3,mean=4k
OTHER=synthetic:count=40,classes=3,mean=4k,seed=9

shards_of() { # FORMAT: the option for three shards, if the format has shards
    case $1 in
    lmdb | files) ;;
    *) echo "--shards 3" ;;
    esac
}

refused() { # SET: by every command that reads it
    for command in verify inspect "run --data"; do
        # shellcheck disable=SC2086 # words
        expect 1 "$IOBENCH" $command "$1"
        says "$1" "not complete"
    done
}

completes() { # SET FORMAT [TEXT]: pack prints TEXT, and the set equals a new one
    # shellcheck disable=SC2046 # words
    expect 0 "$IOBENCH" pack $SOURCE "$1" -f "$2" $(shards_of "$2")
    says "${3-of images}"
    expect 0 "$IOBENCH" verify "$1"
    says "60 records"
    [ "$(find "$1" -name '.*')" = "$1/.iobench-set" ] || die "leftovers: $(ls -a "$1")"
    for file in $(cd "new-$2" && find . -type f -not -name '.*'); do
        [ "$2" = lmdb ] || cmp "new-$2/$file" "$1/$file" || die "$file is another"
    done
    [ "$(cd "$1" && find . -not -name '.*' | sort)" = "$(cd "new-$2" && find . -not -name '.*' | sort)" ] ||
        die "other names: $(find "$1")"
}

for format in $(formats); do
    # shellcheck disable=SC2046 # words
    expect 0 "$IOBENCH" pack $SOURCE "new-$format" -f "$format" $(shards_of "$format")

    # Everything is renamed except the manifest.
    cp -rp "new-$format" "a-$format"
    mv "a-$format/.iobench-set" "a-$format/.iobench-unfinished"
    refused "a-$format"
    completes "a-$format" "$format" "finished before"

    # Some files are still in the hidden folder; all of them are; a shard's file is lost.
    suffix=$(sed -n '1s/.*draft \([0-9a-z]*\),.*/\1/p' "new-$format/.iobench-set")
    awk '/^shard/ {shard = $2} /^(file|folder)/ {sub("/.*", "", $NF); print shard, $NF}' \
        "new-$format/.iobench-set" | uniq >names
    for left in first all lost; do
        set=b-$format-$left
        cp -rp "new-$format" "$set"
        mv "$set/.iobench-set" "$set/.iobench-unfinished"
        while read -r shard name; do
            mkdir -p "$set/.iobench-draft-$suffix/$shard"
            mv "$set/$name" "$set/.iobench-draft-$suffix/$shard/"
            [ $left != lost ] || rm -r "$set/.iobench-draft-$suffix/$shard/$name"
            [ $left = all ] || break
        done <names
        refused "$set"
        completes "$set" "$format"
    done

    # Half a shard in the hidden folder, half a line in the manifest, a stale lock.
    set=c-$format
    mkdir -p "$set/.iobench-draft-$suffix/0"
    sed '/^shard/,$d' "new-$format/.iobench-set" >"$set/.iobench-unfinished"
    printf 'shard 0\nfile 12 34 ab' >>"$set/.iobench-unfinished"
    echo half >"$set/.iobench-draft-$suffix/0/train.rec"
    echo "iobench lock: process 1 on elsewhere" >"$set/.iobench-lock"
    refused "$set"
    completes "$set" "$format"

    # Only the start of the manifest's first line exists.
    mkdir "d-$format"
    printf 'iobench set 2, pl' >"d-$format/.iobench-unfinished"
    refused "d-$format"
    completes "d-$format" "$format"

    # An earlier version, which replaced sets, was packing this one into another or had begun to remove that: both stay.
    for manifest in .iobench-set .iobench-replaced; do
        set=e-$format$manifest
        expect 0 "$IOBENCH" pack $OTHER "$set" -f "$format"
        [ -e "$set/$manifest" ] || mv "$set/.iobench-set" "$set/$manifest"
        cp -p "new-$format/.iobench-set" "$set/.iobench-unfinished"
        cp -rp "$set" before
        # shellcheck disable=SC2046 # words
        expect 1 "$IOBENCH" pack $SOURCE "$set" -f "$format" $(shards_of "$format")
        says "$set: is not empty" "remove it yourself"
        diff -r "$set" before || die "$set is changed"
        rm -r before
    done
done

expect 0 "$IOBENCH" pack $SOURCE f -f recordio
# A hidden folder of another user, or a link, is not written to.
if [ "$(id -u)" = 0 ]; then
    mkdir -p g victim
    sed '/^shard/,$d' f/.iobench-set >g/.iobench-unfinished
    draft=g/.iobench-draft-$(sed -n '1s/.*draft \([0-9a-z]*\),.*/\1/p' f/.iobench-set)
    mkdir "$draft"
    chown 65534 "$draft"
    expect 1 "$IOBENCH" pack $SOURCE g -f recordio
    says "$draft" "another user"
    rmdir "$draft"
    ln -s ../victim "$draft"
    expect 1 "$IOBENCH" pack $SOURCE g -f recordio
    says "$draft"
    [ -z "$(ls victim)" ] || die "written through a link"
    # The manifest of another user proves nothing.
    mkdir h
    cp f/.iobench-set h/.iobench-unfinished
    chown 65534 h/.iobench-unfinished
    expect 1 "$IOBENCH" pack $SOURCE h -f recordio
    says "h/.iobench-unfinished"
fi
exit 0
