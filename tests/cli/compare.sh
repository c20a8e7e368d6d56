#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare and size on saved results: the same text, and the exit status of gates.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"

# result FILE VALID RATES...: runs of those rates.
result() {
    file=$1 valid=$2 runs=
    shift 2
    for rate in "$@"; do
        runs="$runs${runs:+,}{\"samples_per_s\": $rate, \"record_bytes_per_s\": ${rate}00000,
            \"read_latency\": {\"p99_s\": 0.002}, \"epochs\": []}"
    done
    cat >"$tmp/$file" <<EOF
{"schema": "iobench-result", "schema_version": 1, "jobs": [{"label": "set", "valid": $valid,
 "invalid_reason": "it was interrupted", "settings": {"reader": "$file", "runs": 5},
 "dataset": {"mean_record_bytes": 100000}, "summary": {"samples_per_s": $1, "limit": "storage",
 "cache_before": "cold", "record_bytes": 1000, "request_bytes": 1500}, "runs": [$runs]}]}
EOF
}
result slow true 1000 1010 1020 1030 1040
result fast true 1100 1110 1120 1130 1140
result few true 1100 1110
result broken false 1100 1110 1120 1130 1140

try 0 compare slow fast
saved compare.txt
try 0 compare slow fast --fail-if-slower 5
try 1 compare fast slow --fail-if-slower 5
err "slower"
try 0 compare fast slow --fail-if-slower 50
try 0 compare fast slow
try 1 compare few slow --fail-if-slower 5
out "too few runs"
try 1 compare slow broken
out "B is INVALID: it was interrupted"
try 0 compare slow fast --json
out '"significant": true'
try 0 compare slow fast --json="$tmp/c.json"
empty out
try 0 size --gpus 64 --gpu h200
saved size.txt
try 0 size slow --gpus 8
saved size-result.txt
try 0 size slow --rate 500 --busy 90 --json
out '"needs_samples_per_s": 3600'
# Of four nodes each got a quarter, so it takes four times as many.
sed 's/"dataset":/"engine": {"nodes": 4}, &/' slow >four
try 0 size four --gpus 8 --gpu v100
out "250 samples/s of 97.66 KiB to each of 4 nodes at once"
out "44.7           0.18"
try 2 size --gpu b200
err "no figure for 'b200'"
empty out
try 1 size /dev/null
err "/dev/null"
finish
