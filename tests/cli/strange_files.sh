#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A special file in place of a regular one: an immediate error that names its type; nothing blocks,
# no link is followed, no user data is lost.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"

# unblocked STATUS|fails TEXT ARGUMENTS...: like try, and it must not hang; TEXT must be in the output.
unblocked() {
    wanted=$1 text=$2
    shift 2
    tried="iobench $*"
    watched "$IOBENCH" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    status=$?
    [ "$status" -ne 124 ] || fault "it hangs"
    case $wanted:$status in
    fails:1 | fails:2 | "$status:$status") ;;
    *) fault "exit status $status, not $wanted" ;;
    esac
    grep -qF -e "$text" "$tmp/out" "$tmp/err" || fault "'$text' is not in its messages"
}

# become KIND PATH: a FIFO, a link to itself, a socket or a device.
kinds="fifo loop"
command -v python3 >/dev/null && kinds="$kinds socket"
[ "$(id -u)" != 0 ] || ! mknod "$tmp/probe" c 1 3 2>/dev/null || kinds="$kinds device"
become() {
    rm -f "$2"
    case $1 in
    fifo) mkfifo "$2" ;;
    loop) ln -s "$(basename "$2")" "$2" ;;
    socket) (cd "$(dirname "$2")" && python3 -c '
import socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$(basename "$2")") ;;
    device) mknod "$2" c 1 5 ;;
    esac
}
said() {
    case $1 in
    fifo) echo "a FIFO" ;;
    loop) echo "symbolic links" ;;
    socket) echo "a socket" ;;
    device) echo "a device" ;;
    esac
}

set_of() {
    rm -rf "${tmp:?}/$1"
    cp -a "$tmp/kept/$1" "$tmp/$1"
}
written="recordio shards tar"
! built_with LMDB || written="$written lmdb"
for format in $written; do
    try 0 pack synthetic:count=40,mean=6000 "$tmp/kept/$format" -f "$format"
done

# A shard of each format; for run, the shard existed when the index was written.
for kind in $kinds; do
    formats=$written
    [ "$kind" = fifo ] || [ -n "${IOBENCH_LONG:-}" ] || formats=recordio
    for format in $formats; do
        for command in run inspect verify pack; do
            set_of "$format"
            shard=$(find "$tmp/$format" -type f ! -name '.*' ! -name '*.idx' | sort | head -n 1)
            become "$kind" "$shard"
            case $command in
            run) set -- --data "$tmp/$format" -f "$format" -n 1 --no-calibrate ;;
            pack) set -- pack "$tmp/$format" "$tmp/new" --from "$format" -f files ;;
            *) set -- "$command" "$tmp/$format" -f "$format" ;;
            esac
            unblocked 1 "$(said "$kind")" "$@"
            rm -rf "$tmp/new"
        done
    done
    # The whole data set.
    become "$kind" "$tmp/it.rec"
    for command in "--data=$tmp/it.rec" "inspect $tmp/it.rec" "verify $tmp/it.rec" \
        "pack $tmp/it.rec $tmp/new" "plot $tmp/it.rec" \
        "compare $tmp/it.rec $tmp/it.rec"; do
        # shellcheck disable=SC2086 # words
        unblocked fails "$(said "$kind")" $command
    done
    become "$kind" "$tmp/job.ini"
    unblocked 2 "$(said "$kind")" "$tmp/job.ini"
done

# The index next to the data is optional: without it, or with a strange one, everything still works.
for kind in $kinds; do
    set_of recordio
    become "$kind" "$tmp/recordio/.iobench-index"
    unblocked 0 "" --data "$tmp/recordio" -n 1 --no-calibrate
    set_of recordio
    index=$(find "$tmp/recordio" -name '*.idx' | head -n 1)
    [ -z "$index" ] || become "$kind" "$index"
    unblocked 0 "" --data "$tmp/recordio" -n 1 --no-calibrate
done

# Results: only a regular file is replaced, never anything else.
set_of recordio
set -- --data "$tmp/recordio" -n 1 --no-calibrate
echo precious >"$tmp/precious"
ln -s precious "$tmp/link.json"
unblocked 2 "a symbolic link" "$@" --json "$tmp/link.json"
[ "$(cat "$tmp/precious")" = precious ] || fault "written through a link"
ln -s precious "$tmp/r.json.partial"
unblocked 0 "" "$@" --json "$tmp/r.json"
[ "$(cat "$tmp/precious")" = precious ] || fault "written through a planted draft"
[ -L "$tmp/r.json.partial" ] || fault "the user's own r.json.partial is gone"
grep -q '"schema"' "$tmp/r.json" || fault "no result"
rm "$tmp/r.json.partial"
echo mine >"$tmp/r.json.partial"
unblocked 0 "" "$@" --json "$tmp/r.json"
[ "$(cat "$tmp/r.json.partial")" = mine ] || fault "the user's own r.json.partial is lost"

# Streams are written in place; earlier contents of the file stay.
echo before >"$tmp/appended"
"$IOBENCH" "$@" --json /dev/stdout >>"$tmp/appended" 2>"$tmp/err" || fault "to /dev/stdout"
head -n 1 "$tmp/appended" | grep -qx before || fault "/dev/stdout was cut"
grep -q '"schema"' "$tmp/appended" || fault "nothing on /dev/stdout"
mkfifo "$tmp/pipe"
cat "$tmp/pipe" >"$tmp/read" &
reader=$!
unblocked 0 "" "$@" --json "$tmp/pipe"
wait $reader
grep -q '"schema"' "$tmp/read" || fault "nothing in the pipe"
unblocked 1 "no process reads it" "$@" --json "$tmp/pipe"

# Several runs with one result file: each replaces it atomically.
for round in 1 2 3 4 5; do
    for run in 1 2 3; do
        "$IOBENCH" "$@" --json "$tmp/shared.json" >"$tmp/out.$run" 2>&1 &
        eval "run$run=\$!"
    done
    for run in 1 2 3; do
        eval "pid=\$run$run"
        wait "$pid" || { cat "$tmp/out.$run"; fault "round $round: run $run of one --json failed"; }
    done
    grep -q '"schema"' "$tmp/shared.json" || fault "no whole result"
done
[ -z "$(find "$tmp" -name '.*.partial')" ] || fault "a draft was left"

finish
