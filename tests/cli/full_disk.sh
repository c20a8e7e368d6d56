#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A full disk: refused with figures in advance, reported with file and offset during a run.
# shellcheck disable=SC2034 # for cli.sh
MOUNTS=yes
. "$(dirname "$0")/cli.sh"

mkdir small
mount -t tmpfs -o size=4m tmpfs small 2>/dev/null || skip "a small file system cannot be mounted here"

expect 1 "$IOBENCH" pack synthetic:count=500,mean=100k small/set
says "needs about" "only 4.00 MiB free"
[ -z "$(ls small)" ] || die "something was written: $(ls -a small)"

# Nothing fits, not even a lock: the file is named.
mount -o remount,size=64k small
cat /dev/zero >small/rest 2>/dev/null
expect 1 "$IOBENCH" checkpoint small --bytes 64m
says "small/.iobench-lock: offset 0: cannot write: No space left on device"
[ "$(ls -A small)" = rest ] || die "something is left: $(ls -A small)"
rm small/rest
mount -o remount,size=4m small

# Small images take more space as files than estimated: the disk fills midway.
mkdir idx
{
    printf '\0\0\010\003\0\0\007\320\0\0\0\010\0\0\0\010'
    head -c 128000 /dev/urandom
} >idx/a-images-idx3-ubyte
{
    printf '\0\0\010\001\0\0\007\320'
    head -c 2000 /dev/zero
} >idx/a-labels-idx1-ubyte
expect 1 "$IOBENCH" pack idx small/set --format files
says "No space left on device" "small/set"
[ -z "$(ls -A small)" ] || die "what could not be finished is left: $(find small)"
mount -o remount,size=40m small
expect 0 "$IOBENCH" pack idx small/set --format files
says "2,000 samples"
expect 0 "$IOBENCH" verify small/set
expect 0 "$IOBENCH" pack idx other
same_digest other small/set

# Without --data a set is generated in the cache, as large as the space allows: one of two
# concurrent runs generates it while the other waits; after an interruption the next run completes
# it.
rm -rf small/set
mount -o remount,size=460m small
XDG_CACHE_HOME=$T/small/cache
set=$XDG_CACHE_HOME/iobench/synthetic-shards
bare="$IOBENCH run --runs 1 --decode none --no-calibrate"
until_there() { # COMMAND...: wait until it succeeds, 120 s at most
    for _ in $(seq 2400); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.05
    done
    die "in vain: $*"
}
# shellcheck disable=SC2317 # until_there calls it
roomy() {
    [ "$(df --output=avail small | tail -n 1)" -gt 450000 ]
}
$bare >first 2>&1 &
first=$!
until_there grep -q "^by $first%" "$set/.iobench-unfinished"
kill -STOP $first
$bare >second 2>&1 &
second=$!
until_there grep -q "waiting: .*process $first" second
kill -CONT $first
wait $first || die "the one that makes it: $(cat first)"
wait $second || die "the one that waits: $(cat second)"
rm -rf "$set"
until_there roomy # the kernel closes the files of an io_uring some time after its process
$bare >first 2>&1 &
first=$!
until_there grep -q "^by $first%" "$set/.iobench-unfinished"
kill -KILL $first
wait $first
# shellcheck disable=SC2086 # words
expect 0 $bare
expect 0 "$IOBENCH" verify "$set"
rm -rf "$set"
until_there roomy
mkdir "$set"
echo mine >"$set/thesis"
# shellcheck disable=SC2086
expect 1 $bare
says "$set" "thesis"
[ "$(cat "$set/thesis")" = mine ] || die "a file of the user is gone"
XDG_CACHE_HOME=$T/cache

# Unreadable and unwritable paths, for a user other than root.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    as="setpriv --reuid 65534 --regid 65534 --clear-groups"
    chmod 755 "$T"
    if $as "$IOBENCH" --version >/dev/null 2>&1; then
        mkdir closed open
        chmod 700 closed
        chmod 777 open
        # shellcheck disable=SC2086 # words
        expect 1 $as "$IOBENCH" pack synthetic:count=5,mean=8k closed/set
        says "closed" "Permission denied"
        chmod 700 other
        # shellcheck disable=SC2086
        expect 1 $as "$IOBENCH" pack other open/set
        says "other" "Permission denied"
        # shellcheck disable=SC2086
        expect 1 $as "$IOBENCH" verify other
        says "Permission denied"
        chmod 755 other
        # shellcheck disable=SC2086
        expect 2 $as "$IOBENCH" verify other "--json=$T/kept.json"
        says "$T: cannot make a file in this folder: Permission denied"
        # shellcheck disable=SC2086
        expect 1 env XDG_CACHE_HOME="$T/closed/cache" $as "$IOBENCH" run --runs 1
        says "closed/cache: cannot make the folder: Permission denied; use --data, or set XDG_CACHE_HOME"
    fi
fi
exit 0
