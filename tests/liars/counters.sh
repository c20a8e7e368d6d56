#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lying clocks and counters of the machine.
# shellcheck disable=SC2086,SC2034,SC2154 # words without blanks; what cli.sh shares
# shellcheck source=tests/liars/liars.sh
. "$(dirname "$0")/liars.sh"
expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k set -f shards --shards 2
FAULTS=$(dirname "$IOBENCH")/tests/fault/faults.so
READ="--data set --decode none --reader pread --bs 32k --limit-rate 32MiB"

# clock WORD FALSEHOOD
clock() {
    lie "$2"
    can_lie || return 0
    LIE=$1 run 1 $READ
    caught "INVALID: run 1: epoch 1: the clock"
}

# No figure is of the time of day, but gather relates machines by it.
day_that_is_set() {
    lie "the time of day is set an hour forward in an epoch"
    can_lie || return 0
    rm -f day.json
    LIE=day-ahead run 0 $READ --json day.json
    [ -n "$missed" ] || ! holds "$(number wall_s day.json) >= 60" || missed="an epoch of $(number wall_s day.json) s"
    out=$("$IOBENCH" gather day.json day.json 2>&1) && missed=${missed:-gathered}
    caught "the time of day was set by 3600.0" "the time of day was set by 3599.9"
}

day_that_jumps() {
    lie "the time of day is set while --start-at waits"
    can_lie || return 0
    LIE=day-jumps run 1 $READ --start-at "@$(($(date +%s) + 20))"
    caught "s too late: choose a later time"
}

# The byte witness is wrong; the disk's counters are correct.
counter() { # STATUS WORD FALSEHOOD WORDS...
    lie "$3"
    can_lie && is_root || return 0
    LIE=$2 run "$1" $READ --drop-caches=strict
    shift 3
    caught "$@"
}

# If other processes read from the disk too, its counters cannot prove that it delivered less.
twice() {
    lie "the process' counter counts twice"
    can_lie && is_root || return 0
    LIE=io-double run 1 $READ --drop-caches=strict
    case $(flat) in *"% of the bytes delivered; excess: "*) missed= ;; esac
    caught "by the disks' own counters: " "or a wrong counter"
}

# Other processes read from the disk too, so its counter may be larger and is not the one reported.
# The drop also evicts the program itself.
disk_twice() {
    lie "the disk's counter counts twice"
    can_lie && is_root || return 0
    LIE=disk-double run 0 $READ --drop-caches=strict --json twice.json
    bytes=$(number first_epoch_device_read_bytes twice.json)
    files=$(cat set/train-* | wc -c)
    confirmed "$bytes bytes left storage by /proc/self/io, of $files in the files" \
        holds "$bytes >= $files * 0.98 && $bytes < $files + 33554432"
}

sleeps_that_overrun() {
    lie "the steps of a GPU that is replayed end late"
    can_lie || return 0
    LIE=sleep-late run 1 --data set --decode none --batch-size 16 --trainer replay:rate=1000
    caught "DEGRADED: run 1: replayed steps took"
}

slow_reads() {
    lie "each read takes 20 ms longer than the kernel needs"
    can_lie || return 0
    LIE=read-slow run 0 --data set --decode none --reader pread --bs 32k --json slow.json
    confirmed "p50 of the reads is $(number p50_s slow.json) s, of the 0.02 that were added" \
        holds "$(number p50_s slow.json) >= 0.02"
}

refused_ring() {
    lie "threads read where io_uring was asked for"
    can_lie || return 0
    if ! built_with URING || [ ! -e "$FAULTS" ]; then cannot "built without io_uring" && return 0; fi
    out=$(LD_PRELOAD=$FAULTS FAULT_CLASS=uring FAULT_AT=1 FAULT_ERRNO=1 "$IOBENCH" run --runs 1 \
        --no-calibrate --memory 16m --data set --decode none --reader uring 2>&1)
    status=$?
    [ $status != 0 ] || missed="exit status 0"
    caught "io_uring is refused" "refused"
}

clock clock-ahead "the clock steps 3 s forward in an epoch"
clock clock-back "the clock steps 3 s back in an epoch"
clock clock-slow "the clock passes at half its speed"
day_that_is_set
day_that_jumps
sleeps_that_overrun
slow_reads
counter 1 io-stuck "the process' counter of bytes from storage sticks" "only 0.0% of the bytes left storage"
twice
# Others may read from the disk, too: then nothing is verified by it.
counter any io-back "the process' counter goes back" "sectors read from the devices, by any process"
counter any io-none "the process' counter is not there" "sectors read from the devices, by any process"
counter 1 disk-stuck "the disk's counter sticks" "only 0.0% of the bytes left storage"
counter 1 io-stuck,disk-stuck "both counters stick" "only 0.0% of the bytes left storage"
disk_twice
refused_ring
finish
