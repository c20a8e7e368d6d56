#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Twenty concurrent packs of one target, in different formats: if one reports success, the set is
# complete; the others name the first, and no foreign file is changed.
. "$(dirname "$0")/stress.sh"

PACKS=20
SOURCE=synthetic:count=40,classes=5,mean=4k,seed=3
expect 0 "$IOBENCH" pack $SOURCE whole
undisturbed=$(digest whole)
[ -n "$undisturbed" ] || die "no digest"
mkdir -p race/set.partial race/store
echo thesis >race/set.partial/thesis
ln -s store race/.iobench-draft-0
echo kept >race/store/kept

all=$(formats)
format_of() { # NUMBER
    # shellcheck disable=SC2086 # words
    set -- $(($1 % $(echo $all | wc -w) + 1)) $all
    shift "$1"
    echo "$1"
}

# one NUMBER: a pack, with its status and output in files
one() {
    number=$1 format=$(format_of "$1")
    "$IOBENCH" pack $SOURCE race/set --format "$format" >"log.$number" 2>&1 && code=0 || code=$?
    echo "$code" >"status.$number"
}

count=$(rounds 3 200)
won=0 lost=0 round=0
while [ $round -lt "$count" ]; do
    round=$((round + 1))
    rm -rf race/set
    rm -f status.* log.*
    pids=
    for number in $(seq $PACKS); do
        one $((number + round)) &
        pids="$pids $!"
    done
    # shellcheck disable=SC2086 # a list
    wait $pids
    winners=$(grep -lx 0 status.* | wc -l)
    won=$((won + winners)) lost=$((lost + PACKS - winners))
    for file in status.*; do
        [ "$(cat "$file")" != 0 ] || continue
        log=log.${file#*.}
        [ "$(cat "$file")" = 1 ] || die "round $round: exit status $(cat "$file"): $(cat "$log")"
        grep -qE 'in use by |is not empty' "$log" || die "round $round: refused without a cause: $(cat "$log")"
    done
    [ "$winners" -ge 1 ] || die "round $round: nobody succeeded: $(cat log.*)"
    [ "$winners" = 1 ] || die "round $round: $winners packs made one set"
    left=$(find race -name '.*' ! -name .iobench-set ! -name .iobench-draft-0)
    [ -z "$left" ] || die "round $round: left behind: $left"
    expect 0 "$IOBENCH" verify race/set
    says "40 records" "no fault"
    [ "$(digest race/set)" = "$undisturbed" ] || die "round $round: other samples than a single pack's"
    [ "$(cat race/set.partial/thesis race/store/kept)" = "$(printf 'thesis\nkept')" ] || die "round $round: foreign files are gone"
done
echo "$count rounds of $PACKS packs: $won succeeded, $lost were refused, every set was whole"
