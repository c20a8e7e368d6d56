#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cachectl, with each call of a kind failing in turn: it ends with 1 and a reason, or says what it says without a failure.
# shellcheck disable=SC2154 # T is that of cli.sh
faults=$PWD/tests/fault/faults.so
. "$(dirname "$0")/../cli/cli.sh"
[ -e "$faults" ] || skip "faults.so is not built"
if nm -D "$PROGRAMS/cachectl/cachectl" 2>/dev/null | grep -q '__asan_init\|__tsan_init\|__ubsan_handle'; then
    skip "a sanitizer has its own memory functions"
fi
mkdir -p set/below
dd if=/dev/zero of=set/a bs=4096 count=4 2>/dev/null
echo b >set/below/b
ln -s ../a set/below/link

# What is in memory may change meanwhile; whether all files were looked at does not.
shown() { sed -e 's/"\(resident_bytes\|resident_percent\|disk_read_bytes\|dirty_bytes\)": .*/"\1"/; s/"state": "\(warm\|cold\)"/"state"/' \
    -e '/"reason":/d; s/,$//' "$1" | sort; } # without memory fts(3) does not sort
crashes=0
# each COMMAND CLASS ERRNO
each() {
    LD_PRELOAD=$faults FAULT_REPORT=$T/count "$PROGRAMS/cachectl/cachectl" "$1" --json --files set >whole 2>/dev/null
    shown whole >wanted
    most=$(sed -n "s/^$2 //p" count)
    [ "$most" -gt 0 ] || die "$1 makes no call of the kind $2"
    at=1
    while [ $at -le "$most" ]; do
        LD_PRELOAD=$faults FAULT_CLASS=$2 FAULT_AT=$at FAULT_ERRNO=$3 "$PROGRAMS/cachectl/cachectl" "$1" --json --files set >out 2>err
        status=$?
        case $status in
        0) shown out | cmp -s - wanted || die "$1: $2 $at: $(cat out)" ;;
        1) grep -q '^cachectl: ..' err || grep -q '"reason": ".' out || die "$1: $2 $at: no reason: $(cat out err)" ;;
        139) if [ "$2" != alloc ] || [ $((crashes += 1)) -gt 1 ]; then die "$1: $2 $at: crashed"; fi ;; # fts_open() of glibc
        *) die "$1: $2 $at: exit status $status: $(cat err)" ;;
        esac
        at=$((at + 1))
    done
}
each status alloc 12
each status open 13
each status stat 5
each warm read 5
echo ok
