#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files are truncated while the shuffle borrows their pages from the mmap reader: those records are
# skipped or end the run, with a reason; the program is not killed.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"

grep -qs . /proc/self/maps || skip "no /proc"

# cut_while_lent RATE: truncate files whose pages are borrowed. A shuffle of all records draws none
# before the last one is read, and the rate limit delays that. False if the run ended before the
# files could be truncated.
cut_while_lent() {
    rm -rf "$tmp/files"
    expect 0 "$IOBENCH" pack synthetic:count=200,mean=6000 "$tmp/files" -f files
    tried="iobench run -r mmap -s buffer:200 --limit-rate $1"
    "$IOBENCH" run -d "$tmp/files" -r mmap -s buffer:200 --limit-rate "$1" --on-error skip -n 1 \
        --no-calibrate --decode checksum >"$tmp/out" 2>"$tmp/err" </dev/null &
    pid=$!
    while [ "$(grep -c "$tmp/files/" /proc/$pid/maps 2>/dev/null || :)" -lt 50 ] 2>/dev/null; do
        kill -0 $pid 2>/dev/null || break
    done
    sed -n "s,.* \($tmp/files/.*\),\1,p" /proc/$pid/maps 2>/dev/null >"$tmp/mapped"
    while read -r file; do
        : >"$file"
    done <"$tmp/mapped"
    status=0
    wait $pid || status=$?
    [ "$(wc -l <"$tmp/mapped")" -ge 50 ]
}

cut_while_lent 200k || cut_while_lent 50k || cut_while_lent 10k ||
    skip "the files were never mapped long enough to cut them"
[ "$status" -eq 1 ] || fault "exit status $status"
cat "$tmp/err" >>"$tmp/out"
out "was truncated while it was mapped"
finish
