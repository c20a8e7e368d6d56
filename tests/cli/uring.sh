#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# If io_uring is refused: --reader uring fails with the reason, the default reads with threads and
# reports that in table and JSON, and doctor shows the failed test.
. "$(dirname "$0")/cli.sh"

# shellcheck disable=SC2154 # PROGRAMS is of cli.sh
built_with URING || skip "built without liburing"
expect 0 "$IOBENCH" pack synthetic:count=60,mean=6000 set -f recordio
run="run -d set --decode none --runs 1 --no-calibrate --json out.json"
# shellcheck disable=SC2086 # words
"$IOBENCH" $run --reader uring >/dev/null 2>&1 || skip "io_uring is refused here already"

# refused NAME ERRNO STATUS ARGUMENTS...
refused() {
    call=$1 code=$2 status=$3
    shift 3
    expect "$status" "$PROGRAMS/tests/cli/refuse" "$call" "$code" "$IOBENCH" "$@"
}
"$PROGRAMS/tests/cli/refuse" io_uring_setup 1 true 2>/dev/null ||
    skip "no filters of system calls here"

expect 0 "$IOBENCH" doctor
says "io_uring" "opened a ring and read a file: io_uring"
for offer in files buffers; do
    # shellcheck disable=SC2154 # expect sets out
    printf '%s\n' "$out" | grep -q "^  ok  *uring $offer  *registered" || die "uring $offer is not offered:"
done
polled=warn
! cat /sys/block/*/queue/io_poll 2>/dev/null | grep -q 1 || polled=ok
printf '%s\n' "$out" | grep -q "^  $polled  *uring polling" || die "uring polling is not $polled:"
says "uring passthrough" "GPU storage"
expect 0 "$IOBENCH" doctor set
says "auto is uring: io_uring," "passthrough"
refused io_uring_setup 1 0 doctor set
says "auto is uring: preadv2" "threads read instead"
# A checkpoint whose ring breaks ends with the reason (EPERM, EIO, ENOMEM), and nothing is left.
for code in 1 5 12; do
    refused io_uring_enter $code 1 checkpoint broken --writer uring --bytes 4m --chunk 64k --writes 1 --reads 0
    says "io_uring_enter:"
    [ -z "$(ls broken)" ] || die "left behind: $(ls -A broken)"
done
refused io_uring_register 1 0 doctor
for offer in files buffers workers; do
    printf '%s\n' "$out" | grep -q "^  warn  *uring $offer  *missing: Operation not permitted" ||
        die "uring $offer is not missing:"
done
says "allow io_uring_register" "Linux 5.15"
expect 0 "$IOBENCH" list reader
case $out in *"io_uring is refused"*) die "list refuses a ring that is not refused:" ;; esac
for code in 1 38; do
    refused io_uring_setup "$code" 0 list reader
    says "-> unavailable here: io_uring is refused here ("
    refused io_uring_setup "$code" 0 list reader --json=readers.json
    python3 -c 'import json
readers = {one["name"]: one for one in json.load(open("readers.json"))["reader"]}
assert "io_uring is refused here" in readers["uring"]["usable_reason"] and not readers["uring"]["usable"]
assert readers["pread"]["usable"]' || die "not in the JSON of list: $(cat readers.json)"
    # shellcheck disable=SC2086 # words
    refused io_uring_setup "$code" 1 $run --reader uring
    says "io_uring is refused here" "--reader auto"
    # shellcheck disable=SC2086 # words
    refused io_uring_setup "$code" 0 $run
    says "preadv2 on" "(no io_uring)" "Note     io_uring is refused here"
    grep -q '"reader_engine": "preadv2 on .*(no io_uring)"' out.json || die "not in the JSON"
    grep -q '"io_uring is refused here' out.json || die "no notice in the JSON"
    refused io_uring_setup "$code" 0 checkpoint dir --bytes 1m --writes 1 --reads 1
    says "pwrite, one at a time (writer uring is refused here: " "preadv2 on"
    refused io_uring_setup "$code" 1 checkpoint dir --bytes 1m --writes 1 --reads 1 --writer uring
    says "--writer uring: refused here"
    [ -z "$(ls -A dir)" ] || die "left behind: $(ls -A dir)"
    refused io_uring_setup "$code" 0 doctor
    says "no    io_uring" "is refused here"
    ! printf '%s\n' "$out" | grep -q "uring files" || die "a ring that is refused offers something:"
done
refused io_uring_enter 1 0 doctor
says "no    io_uring" "io_uring_enter: Operation not permitted"
