#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Alternating jobs in one session: runs, order, comparison, refusals.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
make_set recordio 60
set -- run --data "$tmp/recordio" --no-calibrate --decode none -B 16

# field FILE KEY: all values of KEY, in file order.
field() { sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$1"; }

# A 5% lower rate is detected: ratio, interval, p corrected for two comparisons.
try 0 "$@" --runs 5 --limit-rate 4MiB/s --against "--limit-rate '0.2 MiB/s'" --against '--seed 2' \
    --json "$tmp/a.json" --order-seed 7
out "as given: valid"
out "B: --limit-rate '0.2 MiB/s'; A: as given"
out "5 pairs of alternating runs"
out "corrected for 2 comparisons (Holm)"
grep -q "^  Throughput .* worse" "$tmp/out" || fault "a twentieth of the rate is not found"
[ "$(grep -c '"session"' "$tmp/a.json")" = 3 ] || fault "not three jobs"
[ "$(field "$tmp/a.json" id | sort -u | wc -l)" = 1 ] || fault "not one session"
[ "$(field "$tmp/a.json" basis | sort -u)" = pairs ] || fault "no pairs"
[ "$(field "$tmp/a.json" turn | sort -n | tr '\n' ' ')" = "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 " ] ||
    fault "not each turn once"
# Each round has one run per job, and rounds differ in order.
field "$tmp/a.json" turn | awk '{ round = (NR - 1) % 5; if (int($1 / 3) != round) exit 1;
    order[round] = order[round] $1 % 3 } END { for (i in order) seen[order[i]] = 1
    for (i in seen) n++; exit n < 2 }' || fault "rounds are not drawn: $(field "$tmp/a.json" turn)"
turns=$(field "$tmp/a.json" turn)
# compare reports the same as the run.
sed -n '/^  Throughput/p' "$tmp/out" >"$tmp/said"
try 0 compare "$tmp/a.json"
grep '^  Throughput' "$tmp/out" | diff "$tmp/said" - || fault "compare says something else"
try 0 compare "$tmp/a.json" --json
for key in pairs a_runs b_runs a_valid b_valid a_median b_median comparisons_together; do
    field "$tmp/out" $key >"$tmp/fields"
    field "$tmp/a.json" $key | diff - "$tmp/fields" || fault "compare says something else of $key"
done
# The same seed gives the same order; without a seed it differs.
try 0 "$@" --runs 5 --against '--seed 3' --against '--seed 2' --json "$tmp/b.json" --order-seed 7
[ "$(field "$tmp/b.json" turn)" = "$turns" ] || fault "--order-seed does not repeat the turns"
[ "$(field "$tmp/b.json" order_seed | sort -u)" = 7 ] || fault "the order seed is not told"

# A pair of several turns: every second round reverses the order of the previous one.
try 0 "$@" --runs 2 --turns 4 --against '--seed 2' \
    --json "$tmp/a.json"
out "2 pairs, each the interquartile mean of 4 alternating runs"
[ "$(field "$tmp/a.json" turn | wc -l)" = 16 ] || fault "not 2 pairs of 4 turns of 2"
field "$tmp/a.json" turn | head -8 | awk 'NR % 2 { place = $1 % 2; next }
    $1 % 2 == place { exit 1 }' || fault "the order is not reversed: $(field "$tmp/a.json" turn)"
sed -n '/^  Throughput/p' "$tmp/out" >"$tmp/said"
try 0 compare "$tmp/a.json"
grep '^  Throughput' "$tmp/out" | diff "$tmp/said" - || fault "compare says something else"
no_out "runs of different sizes"
# Different amounts of work are reported.
try 0 "$@" --runs 1 --against '--limit-samples 20'
out "runs of different sizes are compared: 20 samples in a run, against 60"

# Each run has its own caches, and a memory limit applies to its job only.
try 0 "$@" --runs 1 --against "--label 'two words' --batch-size 8"
out "two words: valid"
out "batches of 8"
out "One pair is not enough"

# Sections of a job file.
printf '[global]\ndata=%s\nruns=2\ncalibrate=no\ndecode=none\npaired\n[one]\n[two]\nseed=4\n' \
    "$tmp/recordio" >"$tmp/jobs.ini"
try 0 run "$tmp/jobs.ini" --json -
out '"basis": "pairs"'
out '"label": "two"'
try 0 run "$tmp/jobs.ini" --no-paired --json -
no_out '"basis"'

# Runs continue until the interval is narrow enough or a limit is reached, and the output says
# which. ended TEXT: by the limit of 8 runs, or with that text, depending on load.
ended() {
    grep -q "$1" "$tmp/out" || out "was NOT reached"
}
try 0 "$@" --runs auto --until 100% --until-runs 8 --json "$tmp/a.json"
ended "the interval is within"
[ "$(field "$tmp/a.json" turn | wc -l)" -ge 5 ] || fault "less than the least number of runs"
grep -q '"until_reached": true' "$tmp/a.json" || out "was NOT reached"
try 0 "$@" --runs auto --until 0.1% --until-runs 6 --until-time none --json "$tmp/a.json"
[ "$(field "$tmp/a.json" turn | wc -l)" -le 6 ] || fault "more runs than asked for"
grep -q '"until_reached": true' "$tmp/a.json" || out "--until 0.1% was NOT reached"
try 0 "$@" --runs auto --until 0.1% --until-time 1ms
out "after 1 runs"
try 0 "$@" --runs auto --until 100% --until-runs 8 --against '--seed 2'
ended "the interval of the ratio is within"

# A failing rival ends the session without a comparison.
try 1 "$@" --runs 2 --against '--data /dev/null'
no_out "5 pairs"
finish
