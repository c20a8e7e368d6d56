#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare and size on results, all that they print, and the exit status of gates.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
COLUMNS=80
export COLUMNS

# result FILE VALID RATES...: write a result with runs of these rates; SESSION: the id of a session
# of two alternating jobs.
result() {
    file=$1 valid=$2 runs=
    shift 2
    for rate in "$@"; do
        runs="$runs${runs:+,}{\"samples_per_s\": $rate, \"record_bytes_per_s\": ${rate}00000,
            \"read_latency\": {\"p99_s\": 0.002}, \"epochs\": []}"
    done
    cat >"$tmp/$file" <<EOF
{"schema": "iobench-result", "schema_version": 2, "jobs": [{"label": "set", "valid": $valid,
 "session": {"id": "${SESSION:-$file}", "jobs": ${SESSION:+1}1}, "started": "2026-01-02T00:00:0${AT:-0}Z",
 "degraded": ${DEGRADED:-false}, "degraded_reason": ${WHY:-null},
 "invalid_reason": "it was interrupted", "settings": {"reader": "$file", "runs": 5},
 "dataset": {"mean_record_bytes": 100000}, "summary": {"samples_per_s": $1, "limit": "storage",
 "cache_before": "${CACHE:-cold}", "record_bytes": 1000, "request_bytes": 1500}, "runs": [$runs]}]}
EOF
}
result slow true 1000 1010 1020 1030 1040
result fast true 1100 1110 1120 1130 1140
result few true 1100 1110
result broken false 1100 1110 1120 1130 1140

# One session each, regardless of the number of runs: no p, and a conservative gate.
page 0 compare slow fast
page 0 compare slow fast --fail-if-slower 5
page 1 compare fast slow --fail-if-slower 5
page 0 compare fast slow --fail-if-slower 50%
page 0 compare fast slow
page 1 compare few slow --fail-if-slower 5
page 1 compare slow broken
# A degraded result may have had its bytes from memory: it wins nothing without a word.
DEGRADED=true WHY='"run 1: only 0.0% of the bytes left storage"' result tainted true 1100 1110 1120 1130 1140
DEGRADED=true result skipped true 1100 1110 1120 1130 1140
DEGRADED='' WHY=''
page 1 compare slow tainted
page 1 compare skipped slow
page 0 size tainted --gpus 8
page 0 size broken --gpus 8 --gpu h200 --json
# Nor does a warm one, and a side may be of both kinds.
CACHE=warm result warm true 1100 1110 1120 1130 1140
CACHE=''
page 0 compare slow warm
page 0 compare slow : warm fast
page 0 size warm --gpus 8 --gpu h200 --json
page 0 compare slow warm --json
page 1 compare slow broken --json
page 0 compare slow fast --json="$tmp/c.json"

# A job that is missing passes no gate.
sed 's/"label": "set"/"label": "other"/' fast >alone
{
    printf '{"schema": "iobench-result", "schema_version": 2, "jobs": ['
    for file in slow alone; do
        tr '\n' ' ' <$file | sed 's/^.*"jobs": \[{"label"/{"label"/; s/\]} *$//'
        [ $file = alone ] || printf ', '
    done
    printf ']}'
} >both
page 0 compare both fast
page 1 compare both fast --fail-if-slower 5

# Files that were replaced at the path are told, by no means those of another host or path.
reads() { # FILE NAME HOST PATH IDENTITY: FILE as NAME, with these
    sed "s|\"dataset\": {|\"place\": {\"host\": \"$3\"}, &\"path\": \"$4\", \"identity\": \"$5\", |" "$tmp/$1" >"$tmp/$2"
}
reads slow first here /set 01
reads fast again here /set 01
reads fast replaced here /set 02
reads fast elsewhere there /set 02
reads fast moved here /old 02
page 0 compare first again --json
page 0 compare first replaced --json
page 0 compare first replaced
page 0 compare first again : fast
page 0 compare first : again replaced
# A known difference stays a warning beside a result in which that fact is unknown.
page 0 compare first replaced : elsewhere
for file in elsewhere moved fast; do
    page 0 compare first $file --json
done

# Alternating runs of one session: pairs.
SESSION=same
result before true 1000 1010 990 1005 1020
result after true 950 965 930 960 962
result equal true 1001 1008 992 1004 1021
SESSION=
page 0 compare before after equal
page 1 compare before after --fail-if-slower 4
page 0 compare before equal --fail-if-slower 0

# Several sessions each: one value per session.
for i in 1 2 3 4; do
    AT=$i result "a$i" true "100$i" "100$i" "101$i"
    AT=$i result "b$i" true "110$i" "110$i" "111$i"
done
page 0 compare a1 a2 a3 a4 : b1 b2 b3 b4
page 0 compare a1 a2 : b3 b4
# A copy would count as another session.
cp "$tmp/a1" "$tmp/copy"
for files in "a1 a1" "a1 copy : b1" "a1 a2 : b1 b2 copy"; do
    # shellcheck disable=SC2086 # words
    page 1 compare $files
done
# A node of 1,000 samples/s feeds four GPUs of 500 samples/s at 50% utilisation.
page 0 size slow --rate 500 --busy 50
# A rate that is partly that of memory is no storage's.
sed 's/"epochs": \[\]/"epochs": [{"limit": "storage"}, {"limit": "page_cache"}]/' slow >mixed
page 0 size mixed --gpus 8
page 0 size slow --gpus 8
# Each of four nodes got a quarter of the rate, so four times as many are needed.
sed 's/"dataset":/"engine": {"nodes": 4}, &/' slow >four
page 0 size four --gpus 8 --gpu v100
page 1 size /dev/null
same compare-gates
finish
