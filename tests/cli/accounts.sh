#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks figures of real runs against independent witnesses, or bounds from them.
. "$(dirname "$0")/cli.sh"

# Next to the build, on a real disk: /tmp may be a tmpfs.
W=$(mktemp -d "$OLDPWD/test_accounts.XXXXXX") || exit 1
# shellcheck disable=SC2034 # cli.sh runs it
CLEANUP="rm -rf $W"

number() { # KEY: in the last result
    sed -n "s/.*\"$1\": *\([0-9.e+-]*\),*$/\1/p" result.json | head -n 1
}

of_epoch() { # KEY
    sed -n "/\"epochs\": \[/,\$ s/.*\"$1\": *\([0-9.e-]*\),*\$/\1/p" result.json | head -n 1
}

holds() { # EXPRESSION WHAT
    awk "BEGIN { exit !($1) }" || die "$2: $1"
}

run() {
    "$IOBENCH" run --data "$W/set" --runs 1 --decode none --no-calibrate --json result.json "$@" \
        >table 2>&1 || grep -q DEGRADED table || die "$(cat table)"
    ! grep "a bug of iobench" table || die "figures contradict each other"
}

expect 0 "$IOBENCH" pack synthetic:count=200,mean=6k "$W/set" -f recordio
bytes=$(find "$W/set" -name '*.rec' -exec cat {} + | wc -c)

# Each read's latency is counted with the epoch that needs it, also in a run that begins later.
run --resume-at 1:0 --epochs 3 --bs 64k
python3 - <<'END' || die "reads by epoch"
import json
job = json.load(open("result.json"))["jobs"][0]
requests = [epoch["requests"] for epoch in job["runs"][0]["epochs"]]
for latency in job["runs"][0]["read_latency"], job["summary"]["read_latency"]:
    assert latency["first_epoch"]["reads"] == requests[0] > 1, (latency, requests)
    assert latency["later_epochs"]["reads"] == sum(requests[1:]) > 0, (latency, requests)
END
grep -q 'first epoch p50 .*p99' table || die "$(cat table)"

# All bytes of the files and all packed records are delivered.
run
holds "$(number samples) == 200" "samples"
run --limit-samples 50
run --shuffle none
epoch_bytes=$(of_epoch record_bytes)
holds "$epoch_bytes <= $bytes && $epoch_bytes > 0.99 * $bytes" "bytes delivered of $bytes"

# For direct reads the kernel charges the requested bytes, which are whole sectors of scattered
# records, and occasionally reads of the program itself.
for try in 1 2 3 4 5; do
    run --direct --window 1 --reader pread
    left=$(of_epoch device_read_bytes) requested=$(of_epoch request_bytes)
    [ "${left:-0}" -gt 0 ] || break
    holds "$requested > 1.05 * $bytes" "whole sectors were requested"
    holds "$left > 0.98 * $requested" "left storage, of $requested"
    [ "$((left * 100))" -gt "$((requested * 102))" ] || break
    try=
done
[ -n "$try" ] || die "$left bytes left storage for $requested requested, five times"

# A rate limit is an upper bound on any machine, and the trainer waits for it.
run --limit-rate 400KB/s --bs 16k
wall=$(of_epoch wall_s) waited=$(of_epoch wait_s)
holds "$wall > 0.85 * $bytes / 400000" "$bytes bytes at 400 KB/s take that long"
holds "$waited > 0.7 * $wall && $waited <= $wall" "the trainer's wait"
