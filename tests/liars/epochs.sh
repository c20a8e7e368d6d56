#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Figures that belong to another epoch, step or set, or to none.
# shellcheck disable=SC2086,SC2034,SC2154,SC2317 # words without blanks; what cli.sh shares
# shellcheck source=tests/liars/liars.sh
. "$(dirname "$0")/liars.sh"
expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k set -f shards --shards 2
digest_of() { printf '%s\n' "$out" | sed -n 's/^ *Digest *\([0-9a-f]*\) .*/\1/p'; }
run 0 --data set --decode checksum --digest
whole=$(digest_of)

# Stalls of the stages against the time available to their threads, per epoch.
waits_fit() { # FILE THREADS
    awk -v threads="$2" '
        /"wall_s":/ { sub(/,/, "", $2); wall = $2 }
        /"loader_for_(storage|memory)_s":/ { sub(/,/, "", $2); loader += $2 }
        /"decode_for_(records|batch)_s":/ { sub(/,/, "", $2); decoders += $2 }
        /"decode_busy_s":/ {
            epochs++
            if (loader > wall * 1.000001 || decoders > threads * wall * 1.000001) bad++
            loader = decoders = 0
        }
        END { exit !epochs || bad }' "$1"
}

# A slow trainer lets reading run epochs ahead. Without a free CPU it is late, and DEGRADED.
next_epoch() {
    lie "an epoch's samples are counted in the next one"
    run any --data set --decode checksum --digest --epochs 4 --overlap-epochs --batch-size 30 --prefetch 10 \
        -t 2 --trainer replay:rate=3000 --json epochs.json
    digests=$(sed -n 's/.*"digest": "\([0-9a-f]*\)".*/\1/p' epochs.json | sort -u)
    confirmed "4 epochs of 300 samples, each with the digest of the set" \
        [ "$(grep -c '^ *"samples": 300,' epochs.json) $digests" = "5 $whole" ]
    lie "an epoch's waits are booked to the next one"
    confirmed "no stage waited longer than its threads had time" waits_fit epochs.json 2
}

# Three steps of 100 ms, or more on a busy machine, on batches that storage brings in 100 ms each. Whatever the
# steps took, AU is at least that of the longest first one, which left 100 ms to each of the others.
first_step() {
    lie "AU counts the first step of an epoch"
    for _ in 1 2 3 4 5; do # until the two differ
        run any --data set --decode none --epochs 1 --batch-size 100 --bs 32k --limit-rate 20MB \
            --trainer replay:rate=1000 --json au.json
        au=$(number mlperf_au_percent au.json) wall=$(number wall_s au.json)
        first=$(number first_batch_s au.json) compute=$(number compute_s au.json)
        least="(100 * 0.2 / ($wall - $first - ($compute - 0.2)))" counted="(100 * $compute / $wall)"
        ! holds "$least > $counted + 0.1" || break
    done
    holds "$least > $counted + 0.1" || { cannot "no processor is free" && return 0; }
    confirmed "$au%, no less than 2 of 3 steps over the time without the first one" holds "$au > $least - 0.1 && $au <= 100"
}

other_bytes() {
    lie "a set of which one bit of one image is another has the same digest"
    cp -r set flipped
    printf 'X' | dd of=flipped/train-00001-of-00002 bs=1 seek=9000 conv=notrunc 2>/dev/null
    for decode in none checksum; do
        run 0 --data flipped --no-crc --decode $decode --digest
        [ "$(digest_of)" != "$whole" ] || missed="decode $decode: the same digest"
    done
    confirmed "another digest: $(digest_of | cut -c 1-8)..., not $(echo "$whole" | cut -c 1-8)..." true
}

nothing_read() {
    lie "the figure is that of the program, which reads nothing"
    run 0 --data set --reader null --decode none
    caught "the program itself: nothing was read, decoded or trained, this is its ceiling"
}

limits() {
    lie "storage is the limit, though all comes from the page cache"
    warm "the page cache, not storage" run 0 --data set --decode none --reader pread --bs 32k --epochs 20
    caught "the page cache, not storage" "from the page cache"
    lie "storage is the limit, though --limit-rate is"
    # So long that a busy machine, which ends it late, keeps within a tenth of that rate.
    run 0 --data set --decode none --reader pread --bs 32k --limit-rate 1MiB --limit-samples 150
    caught "Limit --limit-rate: 1.00 MiB/s allowed"
}

# If the machine itself reads no faster than the throttle, there is no burst: retry. If only one run
# of five does so, it differs from the others.
burst() {
    lie "a throttle lets each run begin with a burst"
    can_lie && is_root || return 0
    for _ in 1 2 3 4 5; do
        missed=
        LIE=read-burst run 0 --data set --decode none --reader pread:threads=1 --bs 16k --batch-size 8 \
            --drop-caches --runs 5
        case $(flat) in *"with burst credit"*) break ;; esac
    done
    caught "faster than the rest, as from a throttled device with burst credit" "the runs differ by" \
        "others had the CPUs"
}

interrupted() {
    lie "a run that was interrupted"
    "$IOBENCH" run --runs 1 --no-calibrate --data set --decode none --reader pread --epochs 1000 --limit-rate 16MiB \
        >log 2>&1 &
    job=$!
    until grep -qs '^rchar: [0-9]\{8\}' "/proc/$job/io" || ! kill -0 $job; do sleep 0.05; done
    kill -TERM $job
    wait $job
    status=$?
    out=$(cat log)
    [ $status != 0 ] || missed="exit status 0"
    caught "INVALID"
}

too_short() {
    lie "a run of milliseconds"
    run 0 --data set --decode none --limit-samples 10 # on a busy machine, too
    caught "too short to trust"
}

first_cold() {
    lie "the first of three runs is cold, the others are warm"
    is_root || return 0
    "$(dirname "$IOBENCH")/cachectl/cachectl" drop set >/dev/null 2>&1 ||
        { cannot "nothing can be dropped" && return 0; }
    run 0 --runs 3 --data set --decode none --reader pread --bs 32k
    caught "valid, warm, 3 runs"
}

next_epoch
first_step
other_bytes
nothing_read
limits
burst
interrupted
too_short
first_cold
finish
