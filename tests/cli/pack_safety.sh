#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pack never removes files that it did not create, two packs of one target never break it, and every
# command refuses an incomplete data set.
# shellcheck disable=SC2154 # out and status are those of cli.sh
. "$(dirname "$0")/cli.sh"

SOURCE=synthetic:count=60,classes=3,mean=4k
MANY=synthetic:count=100000,classes=5,mean=100k # nothing waits for it to finish

kept() { # PATH...: must exist, with their text
    for path; do
        [ "$(cat "$path" 2>/dev/null)" = "mine: $path" ] || die "lost: $path"
    done
}

mine() { # PATH...: create files of the user
    for path; do
        mkdir -p "$(dirname "$path")"
        echo "mine: $path" >"$path"
    done
}

until_there() { # COMMAND...: wait until it succeeds, 120 s at most
    for _ in $(seq 2400); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.05
    done
    die "in vain: $*"
}

# ---- draft names of earlier versions belong to the user ----
for format in $(formats); do
    mine "a-$format/set.partial/thesis" "home/picture"
    for name in data.mdb train.rec train-00000-of-00001 train-000000.tar; do
        mkdir -p "b-$format"
        [ -e "b-$format/$name.partial" ] || ln -s ../home "b-$format/$name.partial"
    done
    expect 0 "$IOBENCH" pack $SOURCE "a-$format/set" -f "$format"
    kept "a-$format/set.partial/thesis"
    ln -s ../home "c-$format.partial"
    expect 0 "$IOBENCH" pack $SOURCE "c-$format" -f "$format"
    expect 1 "$IOBENCH" pack $SOURCE "b-$format" -f "$format"
    says "b-$format" "not empty" "remove"
    kept home/picture
    [ -L "b-$format/train.rec.partial" ] || die "a link of the user is gone"
done

# ---- a folder that is not empty is refused, and nothing in it is changed ----
for format in $(formats); do
    set=old-$format
    expect 0 "$IOBENCH" pack $SOURCE "$set" -f "$format"
    [ -f "$set/.iobench-set" ] || die "no manifest in $set"
    "$IOBENCH" run --data "$set" --runs 1 --decode none --no-calibrate --epochs 1 >/dev/null 2>&1 ||
        die "cannot read $set" # leaves an index
    cp -rp "$set" before
    for option in "" --dry-run; do
        # shellcheck disable=SC2086 # none or one word
        expect 1 "$IOBENCH" pack $SOURCE "$set" -f "$format" $option
        says "$set: is not empty" "remove it yourself or choose another folder"
    done
    rm "$set/.iobench-set" before/.iobench-set # of another tool or an earlier version
    expect 1 "$IOBENCH" pack $SOURCE "$set" -f "$format"
    says "$set: is not empty"
    diff -r "$set" before || die "$set is changed"
    rm -r before
done
for entry in empty link file .hidden; do
    mkdir -p "with-$entry" photos
    case $entry in
    empty) mkdir with-empty/mine ;;
    link) ln -s ../photos with-link/00000 ;;
    *) mine "with-$entry/$entry" ;;
    esac
    expect 1 "$IOBENCH" pack $SOURCE "with-$entry" -f files
    says "with-$entry: is not empty"
done
kept with-file/file with-.hidden/.hidden
[ -z "$(ls photos)" ] || die "written through a link"
mkdir nothing
expect 0 "$IOBENCH" pack $SOURCE nothing
expect 0 "$IOBENCH" verify nothing

# A manifest that is a link, is writable by others, or lists what is outside the folder.
echo x >outside
mkdir evil
expect 0 "$IOBENCH" pack $SOURCE whole -f tar
cp -p whole/.iobench-set good
ln -s ../good evil/.iobench-unfinished
expect 1 "$IOBENCH" pack $SOURCE evil -f tar
rm evil/.iobench-unfinished
cp good evil/.iobench-unfinished
chmod 666 evil/.iobench-unfinished
expect 1 "$IOBENCH" pack $SOURCE evil -f tar
says "world-writable"
chmod 644 evil/.iobench-unfinished
{
    echo "shard 0"
    stat -c 'file %s %Y000000000 ../outside' outside
    stat -c 'file %s %Y000000000 /etc/passwd' /etc/passwd
    echo "done 0"
} >>evil/.iobench-unfinished
"$IOBENCH" pack $SOURCE evil -f tar >/dev/null 2>&1
[ "$(cat outside)" = x ] || die "lost"

# shellcheck disable=SC2317 # until_there runs it
has_draft() {
    set -- "$1"/.iobench-draft-*
    [ -d "$1" ]
}

# ---- two packs of one target: the second names the first, and changes nothing ----
for format in $(formats); do
    set=two-$format
    "$IOBENCH" pack $MANY "$set" -f "$format" >log 2>&1 &
    pid=$!
    until_there grep -q "^by $pid%" "$set/.iobench-unfinished"
    until_there has_draft "$set"
    kill -STOP $pid
    for source in $SOURCE $MANY; do
        expect 1 "$IOBENCH" pack "$source" "$set" -f "$format"
        says "$set" "process $pid"
    done
    [ -f "$set/.iobench-unfinished" ] || die "the second one removed the mark"
    # No command accepts it as a data set.
    for command in verify inspect "run --data" "train --network alexnet --data" \
        "shuffle --data" "infer --network alexnet --data"; do
        # shellcheck disable=SC2086 # words
        expect 1 "$IOBENCH" $command "$set"
        says "$set" "not complete" "iobench pack $MANY $set -f $format"
    done
    expect 1 "$IOBENCH" verify "$(echo "$set"/.iobench-draft-*)"
    says "$set" "not complete"
    expect 1 "$IOBENCH" pack "$set" "copy-$format"
    says "$set" "not complete"
    [ ! -e "copy-$format" ] || die "a half set was copied"
    kill -CONT $pid
    kill -TERM $pid
    wait $pid
    [ $? -eq 1 ] || die "SIGTERM: not exit status 1"
    [ ! -e "$set" ] || [ -f "$set/.iobench-unfinished" ] || die "SIGTERM leaves: $(find "$set")"
done
# A race: of concurrent packs of one target at least one succeeds, and the set is complete.
rounds=3
[ -z "${IOBENCH_LONG-}" ] || rounds=200
for round in $(seq $rounds); do
    rm -rf race
    format=$(formats | sed -n "$((round % $(formats | wc -l) + 1))p")
    pids=
    for _ in $(seq 20); do
        "$IOBENCH" pack $SOURCE race -f "$format" -t 2 >/dev/null 2>&1 &
        pids="$pids $!"
    done
    good=0
    for pid in $pids; do
        wait "$pid" && good=$((good + 1))
    done
    [ $good -eq 1 ] || die "$good of 20 packs of one target end well as $format"
    expect 0 "$IOBENCH" verify race
    says "60 records"
    [ -z "$(find race -name '.iobench-unfinished' -o -name '.iobench-draft*')" ] || die "leftovers"
done

expect 0 env OMPI_COMM_WORLD_SIZE=1 SLURM_NTASKS=4 "$IOBENCH" pack $SOURCE ranks # one process is a launch of none
expect 0 "$IOBENCH" pack $SOURCE images --format files
mkdir here
(cd here && expect 0 "$IOBENCH" pack synthetic:count=2 . --format files) || exit
expect 0 "$IOBENCH" pack images images-new --format files
exit 0
