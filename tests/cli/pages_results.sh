#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made results in all that reads results: as pages.sh.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
COLUMNS=80
export COLUMNS

# ---- results: made ones ----
# result FILE HOST FROM TO RATES...: one job, whose epochs ran FROM .. TO seconds after another moment
result() {
    file=$1 host=$2 from=$3 to=$4 runs=''
    shift 4
    for rate in "$@"; do
        runs="$runs${runs:+,}{\"run\": 1, \"valid\": true, \"samples_per_s\": $rate, \"record_bytes_per_s\": ${rate}00000,
            \"read_latency\": {\"requests\": 900, \"p50_s\": 0.001, \"p99_s\": 0.00$((rate / 10 % 9 + 1)), \"max_s\": 0.02},
            \"epochs\": [{\"epoch\": 1, \"samples\": 5000, \"samples_per_s\": $rate, \"wall_s\": 4, \"wait_s\": 1, \"compute_s\": 2}]}"
    done
    cat >"$file" <<END
{"schema": "iobench-result", "schema_version": 2, "jobs": [{"label": "${LABEL-job}", "valid": ${VALID:-true},
 "headline": "valid, cold", "entries": [{"name": "Data", "text": "a <set> of $host"}],
 "session": {"id": "${SESSION:-$file}", "jobs": ${SESSION:+1}1, "turns": ${TURNS:-1}}, "started": "2026-01-02T00:00:0${to}Z",
 "degraded": $([ "${WHY-}" ] && echo true || echo false), "degraded_reason": ${WHY:-null}, "invalid_reason": null, "settings": {"reader": "$file", "runs": $#,
 "ranks": ${RANKS:-2}, "rank": $from, "epochs": 1, "shuffle": "${SHUFFLE:-epoch}", "label": "$file"${WEAK-}},
 "dataset": {"path": "/data", "format": "tar", "mean_record_bytes": 100000, "samples": ${SAMPLES:-10000},
 "record_bytes": ${BYTES:-1000000000}, "identity": "${IDENTITY:-1}", "synthetic": ${SYNTHETIC:-false}},
 "engine": {"ranks": ${USED:-1}, "nodes": 1, "decode_threads": 4${ORDER+, \"shuffle\": \"$ORDER\"}}, "place": {"host": "$host", "cpu_count": $to},
 "summary": {"complete_runs": ${COMPLETE:-1}, "samples_per_s": $1, "record_bytes_per_s": ${1}00000,
 "limit": "${LIMIT:-storage}", "cache_before": "${CACHE:-cold}", "samples": 5000, "skipped_samples": $from,
 "record_bytes": 500000000, "request_bytes": 600000000, "requests": 700${READS-}},
 "series": {"start_unix_s": 1000, "start_monotonic_s": 0, "clock_step_s": ${STEP:-0.1}, "interval_s": 1, "samples": 2,
 "late_samples": 0, "sampler_cpu_percent": 1, "absent": [], "phases": [{"phase": "index", "run": 1, "epoch": 1, "from_s": 0,
 "to_s": 9}, {"phase": "epoch", "run": 1, "epoch": 1, "from_s": $from, "to_s": $to}], "lost_phases": 0,
 "columns": ["time_s", "storage_read_bytes_per_s", "cpu_percent"${LINES+, $LINES}],
 "rows": [[1, 1e8, 50${LINES+, 2e8, 3e8, 4e8, 11, 12, 13, 1e9, 2e9, 31, 320}], [2, 3e8, 70${LINES+, 5e8, 6e8, 7e8, 14, 15, 16, 3e9, null, 38, 410}]]}, "runs": [$runs]}]}
END
}
result a.json node1 0 5 1000
LIMIT=decode CACHE=warm SYNTHETIC=true result b.json node2 1 6 1010
page 0 gather a.json b.json
page 0 gather b.json a.json -o -
result late.json node1 1 5 900
IDENTITY=2 WHY='"much was cached"' result poor.json node1 0 5 900
page 0 gather a.json late.json
page 0 gather late.json poor.json -o -
RANKS=1 result alone.json node1 0 10 900
RANKS=1 result again.json node2 1 10 900
page 0 gather alone.json again.json
WEAK=', "io_threads": 1, "decode_threads": 2' result two.json node1 0 5 900
WEAK=', "io_threads": 3, "decode_threads": 4' result four.json node2 1 5 900
page 0 gather two.json four.json
# What does not belong together, and the last that does.
refuse() { # FILE VARIABLE=VALUE...: is refused beside late.json
    name=$1
    shift
    # shellcheck disable=SC2163 # names with values
    (export "$@" && result "$name" node3 0 5 900)
    page 1 gather late.json "$name"
}
refuse valid.json VALID=false
refuse runs.json COMPLETE=2
refuse step.json STEP=-0.11
refuse set.json SAMPLES=10001
refuse bytes.json BYTES=1000000001
refuse shuffle.json SHUFFLE=none
page 1 gather a.json poor.json
result other.json node3 5 6 900
page 1 gather a.json other.json
page 1 gather a.json late.json other.json
same gather

COMPLETE=5 result five.json node1 0 5 1000 1010 1020 990 1005
COMPLETE=5 WHY='"much was cached"' SYNTHETIC=true result slow.json node2 0 6 900 930 910 890 905
VALID=false result bad.json node2 0 6 900
for pair in 1 2; do
    for rate in 0 100; do
        SESSION=pair$pair COMPLETE=6 result pair$pair-$rate.json node1 0 $pair $((1000 + rate)) $((1110 + rate)) $((1021 + rate)) \
            $((1032 + rate)) $((1009 + rate)) $((1022 + rate))
    done
done
LABEL=else result else.json node1 0 5 1000
page 1 compare five.json slow.json
page 1 compare five.json slow.json --json
page 1 compare a.json bad.json
page 0 compare pair1-0.json pair1-100.json pair2-100.json
page 0 compare pair1-0.json pair2-0.json : pair1-100.json pair2-100.json --json --alpha 0.2
page 1 compare pair1-100.json pair1-0.json --fail-if-slower 8
page 0 compare pair1-100.json pair1-0.json --fail-if-slower 9
page 1 compare pair1-0.json
page 1 compare pair1-0.json pair2-0.json :
# A slower one within the limit of what is told apart; sessions of one side, of both.
SESSION=pair3 COMPLETE=6 result like-0.json node1 0 3 1000 1000 1000 1000 1000 1000
SESSION=pair3 COMPLETE=6 result like-100.json node1 0 3 970 990 1000 980 1010 990
page 0 compare like-0.json like-100.json --fail-if-slower 0.5
SESSION=pair3 COMPLETE=6 TURNS=2 result turns.json node1 0 3 970 990 1000 980 1010 990
page 0 compare like-0.json turns.json
page 0 compare five.json : a.json b.json --json
page 1 compare five.json slow.json a.json b.json : pair1-0.json pair2-0.json like-0.json late.json
page 1 compare five.json slow.json : pair1-0.json pair2-0.json --json
same compare

page 0 size five.json --gpus 8,64 --gpu h200
page 0 size slow.json --gpus 10 --json
page 0 plot a.json -o -
page 0 plot a.json b.json -o - --title 'two runs'
same results

# ---- a page for a browser: its words and what its scripts show ----
cp "$SRCDIR/tests/golden/pages/checkpoint.json" "$SRCDIR/tests/golden/pages/net.json" .
tried="iobench report"
LABEL='' result unlabelled.json node3 1 6 1000
# Orders of a survey with --measure: names of points that lie close do not cover each other.
order() { # NAME LABELS RATE FRONT COLD
    printf '{"shuffle": "%s", "labels_per_batch": %s, "labels_per_batch_at_random": 8, "bytes_per_s": %s, "on_front": %s,
        "cold_runs": %s, "runs": 3}' "$@"
}
echo "[$(order none 1 9e8 true 3), $(order buffer:99 4 7e8 true 3), $(order block 4.1 6.9e8 false 2), $(order epoch 8 2e8 true 3),
    $(order far 9 1e8 false 3), $(order unread 5 0 false 0)]" >orders.json
echo "[$(order unread 5 0 false 0)]" >unread.json
LINES='"read_bytes_per_s", "net_receive_bytes_per_s", "net_transmit_bytes_per_s", "cpu_user_percent", "cpu_system_percent",
    "cpu_io_wait_percent", "page_cache_bytes", "dirty_bytes", "gpu_utilization_percent", "gpu_power_watts"' \
    READS=', "read_latency": {"p50_s": 0.001, "p99_s": 0.002, "first_epoch": {"p50_s": 0.001, "p90_s": 0.002, "p99_s": 0.003},
    "later_epochs": {"p50_s": 0.004, "p99_s": 0.005, "p99_9_s": 0.008}, "evaluation": {"p50_s": 0.006,
    "quantiles": [[0, 0.001], [0.5, 0.006], [0.9, 0], [0.99, 0.007], [1, 0.02]]}}' \
    result latencies.json node3 1 6 1000
for ranks in 1 2 4; do
    READS=', "read_latency": {"p50_s": 0.00'$ranks'}' USED=$ranks result strong$ranks.json node3 0 5 $((1000 * ranks - 10 * ranks * ranks))
    USED=$ranks WEAK=', "limit_samples_per_rank": 7' SHUFFLE=none result weak$ranks.json node3 0 5 $((900 * ranks))
    SHUFFLE=auto ORDER=order$((ranks / 3)) USED=$ranks result auto$ranks.json node3 0 5 $((800 * ranks)) # order1 of 4 ranks
done
inferred() { # PRECISION BATCH RATE
    printf '{"precision": "%s", "batch_size": %s, "samples_per_s": %s, "network_samples_per_s": %s.5, "latency": {"p50_ms": 1%s, "p99_ms": 3%s}}' \
        "$1" "$2" "$3" "$3" "$2" "$2"
}
printf '{"schema": "iobench-infer", "schema_version": 2, "started": "2026-01-02T00:00:00Z", "network": "lenet", "batch_sizes": [%s, %s, %s, %s]}' \
    "$(inferred fp32 1 100)" "$(inferred fp32 8 200)" "$(inferred bf16 1 300)" "$(inferred bf16 8 0)" >inferred.json
for files in "five.json slow.json unlabelled.json checkpoint.json net.json" "latencies.json inferred.json" "a.json late.json" "orders.json" "unread.json" \
    "weak4.json strong4.json strong1.json weak1.json strong2.json weak2.json" "auto1.json auto2.json auto4.json"; do
    # shellcheck disable=SC2086,SC2123 # a list; no other program
    (PATH=/nothing && "$IOBENCH" report $files -o - --title "a <title>" >report.html 2>err) || fault "report $files"
    { echo "\$ iobench report $files" && sed 's/^/! /' err && grep -E '^<(title|section|figure|h3)' report.html | sed 's/;base64,[^"]*//' &&
        sed -n 's/.*svg+xml;base64,\([^"]*\).*/\1/p' report.html | base64 -d &&
        sed -n 's|.* id="data">\(.*\)</script>.*|\1|p' report.html | sed 's/,"/,\n"/g' && echo; } >>pages
done
same report
finish
