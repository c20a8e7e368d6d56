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
    expect 1 "$IOBENCH" pack $SOURCE "b-$format" -f "$format" --force
    says "b-$format" "not empty" "remove"
    kept home/picture
    [ -L "b-$format/train.rec.partial" ] || die "a link of the user is gone"
done

# ---- --force removes only files that the set's manifest proves to be its own ----
for format in $(formats); do
    set=force-$format
    expect 0 "$IOBENCH" pack $SOURCE "$set" -f "$format"
    [ -f "$set/.iobench-set" ] || die "no manifest in $set"
    "$IOBENCH" run --data "$set" --runs 1 --decode none --no-calibrate --epochs 1 >/dev/null 2>&1 ||
        die "cannot read $set" # leaves an index
    expect 1 "$IOBENCH" pack $SOURCE "$set" -f "$format"
    says "not empty" "--force"
    mine "$set/notes.txt"
    expect 1 "$IOBENCH" pack $SOURCE "$set" -f "$format" --force
    says "notes.txt"
    kept "$set/notes.txt"
    expect 0 "$IOBENCH" verify "$set"
    rm "$set/notes.txt"
    # A changed file of pack's, a second name, a link, an empty folder.
    victim=$(find "$set" -type f -not -name '.iobench*' | sort | head -n 1)
    cp -p "$victim" copy
    echo more >>"$victim"
    expect 1 "$IOBENCH" pack $SOURCE "$set" -f "$format" --force
    says "${victim##*/}"
    cp -p copy "$victim"
    ln "$victim" second
    expect 1 "$IOBENCH" pack $SOURCE "$set" -f "$format" --force
    says "${victim##*/}"
    rm second
    mv "$victim" original
    ln -s ../original "$victim"
    expect 1 "$IOBENCH" pack $SOURCE "$set" -f "$format" --force
    says "${victim##*/}"
    rm "$victim"
    mv original "$victim"
    mkdir "$set/mine"
    expect 1 "$IOBENCH" pack $SOURCE "$set" -f "$format" --force
    says "$set/mine"
    rmdir "$set/mine"
    # First the list of files to remove, without changes; then their removal.
    find "$set" -type f | sort >before
    expect 0 "$IOBENCH" pack synthetic:count=20,mean=4k,seed=2 "$set" -f recordio --force --dry-run
    says "20 samples" "would be removed" "$victim" "nothing was changed"
    find "$set" -type f | sort | cmp - before || die "--dry-run changed $set"
    expect 0 "$IOBENCH" pack synthetic:count=20,mean=4k,seed=2 "$set" -f recordio --force
    [ "$(ls "$set")" = "$(printf 'train.idx\ntrain.rec')" ] || die "left over: $(ls "$set")"
    expect 0 "$IOBENCH" verify "$set"
    says "20 records"
done

# A class folder that is a link: its target stays.
mine photos/00000000.jpg
expect 0 "$IOBENCH" pack $SOURCE linked -f files
rm -r linked/00001
ln -s ../photos linked/00001
expect 1 "$IOBENCH" pack $SOURCE linked -f files --force
says "linked/00001"
kept photos/00000000.jpg
[ -e linked/00000 ] || die "something was removed before the check"

# A set without a manifest, from another tool or an earlier version.
expect 0 "$IOBENCH" pack $SOURCE foreign -f tar
rm foreign/.iobench-set
expect 1 "$IOBENCH" pack $SOURCE foreign -f tar --force
says "no manifest" "remove it yourself"
# A manifest that is a link, is writable by others, or points outside the folder.
echo x >outside
expect 0 "$IOBENCH" pack $SOURCE evil -f tar
cp evil/.iobench-set good
rm evil/.iobench-set
ln -s ../good evil/.iobench-set
expect 1 "$IOBENCH" pack $SOURCE evil -f tar --force
rm evil/.iobench-set
cp good evil/.iobench-set
chmod 666 evil/.iobench-set
expect 1 "$IOBENCH" pack $SOURCE evil -f tar --force
says "world-writable"
chmod 644 evil/.iobench-set
{
    echo "shard 0"
    stat -c 'file %s %Y000000000 ../outside' outside
    stat -c 'file %s %Y000000000 /etc/passwd' /etc/passwd
    echo "done 0"
} >>evil/.iobench-set
expect 1 "$IOBENCH" pack $SOURCE evil -f tar --force
{ [ -e outside ] && [ -e evil/train-000000.tar ]; } || die "lost"

# ---- the old set is complete until the new one is ----
expect 0 "$IOBENCH" pack $SOURCE swap
"$IOBENCH" pack $MANY swap --force >log 2>&1 &
pid=$!
until_there test -f swap/.iobench-unfinished
expect 0 "$IOBENCH" verify swap
says "60 records"
kill -KILL $pid
wait $pid 2>/dev/null
expect 0 "$IOBENCH" verify swap
expect 1 "$IOBENCH" pack $SOURCE swap
says "--force"
expect 0 "$IOBENCH" pack synthetic:count=20,mean=4k swap --force
expect 0 "$IOBENCH" verify swap
says "20 records"

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
    for force in "" --force; do
        # shellcheck disable=SC2086 # none or one word
        expect 1 "$IOBENCH" pack $SOURCE "$set" -f "$format" $force
        says "$set" "process $pid"
        expect 1 "$IOBENCH" pack $MANY "$set" -f "$format" $force
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
        "$IOBENCH" pack $SOURCE race -f "$format" --threads 2 >/dev/null 2>&1 &
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

# ---- under mpirun: refused by each rank, before any change ----
for variable in OMPI_COMM_WORLD_SIZE PMI_SIZE SLURM_STEP_NUM_TASKS; do
    expect 1 env $variable=2 "$IOBENCH" pack $SOURCE ranks
    says "one process" "without mpirun"
    [ ! -e ranks ] || die "something was made"
done
expect 0 env OMPI_COMM_WORLD_SIZE=1 SLURM_NTASKS=4 "$IOBENCH" pack $SOURCE ranks

# ---- the source must not be within the replaced target ----
expect 1 "$IOBENCH" pack ranks/train-00000-of-00001 ranks --force
says "is inside"

# ---- nor the target within a folder of images, which would then have each twice ----
expect 0 "$IOBENCH" pack $SOURCE images --format files
ln -s images link
for target in images/new images/a/new link/new ./images/../images/new; do
    expect 1 "$IOBENCH" pack images $target --format files
    says "twice"
done
for path in images/new images/a; do
    [ ! -e $path ] || die "$path was made in the source"
done
# Of any format it would be one class more, and those after it would have other numbers.
for target in images/tfrecord link/a/tfrecord; do
    expect 1 "$IOBENCH" pack images $target
    says "would be one more"
    [ ! -e $target ] || die "$target was made in the source"
done
mkdir here
(cd here && expect 0 "$IOBENCH" pack synthetic:count=2 . --format files) || exit
expect 0 "$IOBENCH" pack images images-new --format files
exit 0
