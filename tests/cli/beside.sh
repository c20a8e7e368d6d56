#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two concurrent jobs: four complete results, simultaneous starts, and derived figures.
# shellcheck disable=SC2154,SC2034,SC2016 # tmp and tried are those of streams.sh; $ is of jq
. "$(dirname "$0")/streams.sh"
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
make_set recordio 60
make_set shards 60
set -- run --data "$tmp/recordio" --no-calibrate --decode none -B 16 --runs 2 --label one

try 0 "$@" --limit-rate 200KiB/s --beside "--data '$tmp/shards' --limit-rate 300KiB/s --label 'the other'" \
    --json "$tmp/a.json"
out "one, alone: valid"
out "the other, beside the other: valid"
out "Side by side: 2 rounds"
no_out "both read the same files"
# holds FILTER TEXT
holds() { jq -e "$1" "$tmp/a.json" >/dev/null || fault "$2: $(jq -c .beside "$tmp/a.json")"; }
holds '.jobs | length == 4 and all(.valid and (.runs | length) == 2)' "not four whole results"
holds '[.jobs[].label] == ["one, alone", "the other, alone", "one, beside the other", "the other, beside the other"]' "labels"
# Limited rates do not suffer, so both jobs together take as long as the slower one alone.
holds '.beside.jobs | length == 2 and all(.slow_down > 0)' "slow-downs"
holds '.beside as $b | .jobs as $j | [range(2) as $r | [$j[2, 3].runs[$r].epochs[0].wall_s] | max] | add / 2
    | . > 0.999 * $b.at_once_s and . < 1.001 * $b.at_once_s' "at_once_s is not the later end"
holds '.beside as $b | .jobs as $j | [$j[0, 1].runs[].epochs[0].wall_s] | add / 2
    | . > 0.999 * $b.in_turn_s and . < 1.001 * $b.in_turn_s' "in_turn_s is not the sum"
# They start together: the two spans of a round overlap, and no other spans do.
holds '[.jobs[] | [.series.start_monotonic_s as $z | .series.phases[] | select(.phase == "epoch")
    | [$z + .from_s, $z + .to_s]]] as $e
    | all(range(2); ([$e[2][.][0], $e[3][.][0]] | max) < ([$e[2][.][1], $e[3][.][1]] | min))' "not at once"
holds '[.jobs[] | [.series.start_monotonic_s as $z | .series.phases[] | select(.phase == "epoch")
    | [$z + .from_s, $z + .to_s]]] as $e
    | all($e[0][]; . as $a | all(($e[1] + $e[2] + $e[3])[]; .[0] >= $a[1] - 0.001 or .[1] <= $a[0] + 0.001))' "a job alone was not alone"

# Shared files are reported; only one JSON on standard output; a failure of one ends both.
try 0 "$@" --runs 1 --beside "--label two"
out "both read the same files"
ln -s recordio "$tmp/other-name"
try 0 "$@" --runs 1 --beside "--data '$tmp/other-name' --label two"
out "both read the same files"
try 0 "$@" --runs 1 --beside "--label two" --json -
no_out "Side by side"

# Interrupted, all five processes end.
"$IOBENCH" "$@" --limit-rate 100k --beside "--batch-size 8" >"$tmp/log" 2>&1 &
pid=$!
while [ "$(pgrep -cP $pid)" -lt 4 ] && kill -0 $pid 2>/dev/null; do :; done
children=$(pgrep -P $pid)
kill -TERM $pid
wait $pid && fault "it was not interrupted"
for child in $children; do
    tries=600 # its helper ends a little later
    while kill -0 "$child" 2>/dev/null && [ $tries -gt 0 ]; do
        tries=$((tries - 1))
        sleep 0.1
    done
    [ $tries -gt 0 ] || fault "process $child goes on"
done
finish
