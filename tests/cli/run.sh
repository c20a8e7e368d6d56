#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Real runs on a small set: output, files, exit status.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
make_set recordio 60
set -- --data "$tmp/recordio" --no-calibrate --runs 2 -B 16

# No progress line in a pipe; data goes to stdout only.
try 0 "$@" --epochs 2
out "valid"
out "2 runs of 2 epochs"
out "First epoch"
out "Later epochs"
no_out "$(printf '\r')"
empty err

# The same samples arrive in any order.
try 0 "$@" --digest --shuffle none
grep Digest "$tmp/out" >"$tmp/digest"
out "all epochs agree"
try 0 "$@" --digest --shuffle buffer:7 --reader pread
grep Digest "$tmp/out" | cmp -s - "$tmp/digest" || fault "another digest"

# Neither indexing nor reading writes times of access.
find "$tmp/recordio" -type f -name '*.rec' -exec touch -a -d 2001-01-01 {} +
rm -f "$tmp"/recordio/.iobench*
try 0 "$@"
[ -z "$(find "$tmp/recordio" -name '*.rec' -newerat 2002-01-01)" ] || fault "the set's times of access"

# Files contain the whole result; - replaces the table.
try 0 "$@" --json "$tmp/a.json" --csv "$tmp/a.csv" --label "two words"
out "two words"
grep -q '"schema": "iobench-result"' "$tmp/a.json" || fault "no JSON"
grep -q '"label": "two words"' "$tmp/a.json" || fault "no label"
[ "$(wc -l <"$tmp/a.csv")" -eq 3 ] || fault "not one CSV row an epoch"
[ -z "$(find "$tmp" -name '*.partial')" ] || fault "a draft was left"
try 0 "$@" --json -
no_out "  Feeds "
case $(head -c 1 "$tmp/out") in "{") ;; *) fault "not JSON alone" ;; esac
empty err
try 0 "$@" --csv -
[ "$(head -n 1 "$tmp/out" | cut -d , -f 1)" = label ] || fault "not CSV alone"

# The time series with its phases, and as CSV.
try 0 "$@" --epochs 2 --calibrate --json "$tmp/a.json" --series "$tmp/series.csv"
out "  Series   read"
out "  Sources  "
for phase in index calibrate drop epoch shuffle drain; do
    grep -q "\"phase\": \"$phase\"" "$tmp/a.json" || fault "no phase $phase"
done
grep -q '^time_s,phases,read_bytes_per_s,' "$tmp/series.csv" || fault "no series"
[ "$(awk -F, 'NR == 1 { n = NF } NF != n' "$tmp/series.csv")" = "" ] || fault "uneven rows"
# The ceiling is without the trainer, its AU with it; a busy machine ends steps late (exit status 1).
tried="iobench --calibrate --trainer replay"
"$IOBENCH" "$@" --runs 1 -B 1 --calibrate --trainer replay:rate=400 --json "$tmp/a.json" >"$tmp/out" 2>"$tmp/err"
sed -n -E 's/.*"(ceiling_samples_per_s|au_calibration_percent)": ([0-9.]+).*/\1 \2/p' "$tmp/a.json" | awk '
    $1 ~ /ceiling/ && $2 > 400 || $1 ~ /au/ && $2 > 0 && $2 <= 100 { good++ }
    END { exit good != 2 }' || fault "the calibration: $(grep -E 'ceiling|calibration' "$tmp/a.json")"
# Storage idles between epochs, but not if epochs overlap and the planning thread runs in time: on a
# loaded machine that takes longer epochs.
drains() {
    try 0 "$@" --runs 1 --epochs 4 --json "$tmp/a.json"
    grep -c '"phase": "drain"' "$tmp/a.json"
}
[ "$(drains "$@")" = 4 ] || fault "not a drain an epoch"
for rate in 2M 500k 60k; do
    drained=$(drains "$@" --overlap-epochs --limit-rate $rate)
    [ "$drained" != 1 ] || break
done
[ "$drained" = 1 ] || fault "overlapping epochs were drained"
try 0 "$@" --sample-interval none --json -
out '"series": null'
out '"series_reason": "--sample-interval none was given"'

# What a killed run left of its draft goes with the next result of that name.
echo '{' >"$tmp/.drafted.json.0123abcd.partial"
try 0 "$@" --runs 1 --json "$tmp/drafted.json"
[ ! -e "$tmp/.drafted.json.0123abcd.partial" ] || fault "the draft of a killed run stays for ever"

# An unwritable result is a failure.
if [ -w /dev/full ]; then
    tried="iobench >/dev/full"
    "$IOBENCH" "$@" >/dev/full 2>"$tmp/err"
    [ $? -eq 1 ] || fault "the exit status is not 1"
    err "standard output: No space left on device"
    # ... and its reason is that of the first write, whatever else was looked for after it.
    "$IOBENCH" "$@" --json new.json >/dev/full 2>"$tmp/err"
    err "standard output: No space left on device"
    try 1 "$@" --json /dev/full
    err "/dev/full"
fi

# More overlapping epochs than the loader can be ahead.
try 0 "$@" --decode none --runs 1 --epochs 40 --overlap-epochs --batch-size 10

# Decoders that run epochs ahead of a slow trainer: each epoch has its own samples and digest.
# On a machine without a free processor the replayed steps are late, which is DEGRADED and exit 1.
"$IOBENCH" "$@" --runs 1 --epochs 4 --overlap-epochs --batch-size 10 --prefetch 30 --digest \
    --trainer replay:rate=400 --json "$tmp/a.json" >"$tmp/out" 2>"$tmp/err"
[ $? -eq 0 ] || out "DEGRADED: run 1: replayed steps"
own=$(sed -n 's/.*"digest": "\([0-9a-f]*\)".*/\1/p' "$tmp/a.json" | sort -u)
[ "$(echo "$own" | wc -l)" = 1 ] || fault "epochs of the same samples have other digests: $own"
[ "$(grep -c "\"digest\": \"$own\"" "$tmp/a.json")" = 4 ] || fault "not a digest an epoch"
# The digest covers labels and images, with any decoder; without bytes there is none.
for decode in none checksum jpeg; do
    try 0 "$@" --runs 1 --decode $decode --digest
    out "Digest   $own"
done
try 1 "$@" --runs 1 --reader null --digest
err "reader null delivers no bytes"

# With a replayed GPU, AU is meaningful and both definitions are explained.
"$IOBENCH" "$@" --trainer replay:rate=2000 >"$tmp/out" 2>"$tmp/err"
[ $? -eq 0 ] || out "DEGRADED: run"
out "% (compute over compute and wait), "
out "% as MLPerf Storage"

# A damaged record: stop reports the place and fails, in the files too; skip counts it in the
# headline, the JSON and the exit status.
"$IOBENCH" pack synthetic:count=60,mean=6000 "$tmp/hurt" -f shards --shards 2 >/dev/null 2>&1
shard=$(find "$tmp/hurt" -name '*-00001-of-*')
printf 'XXXX' | dd of="$shard" bs=1 seek=5000 conv=notrunc 2>/dev/null
set -- --data "$tmp/hurt" --no-calibrate --runs 1
try 1 "$@" --json "$tmp/hurt.json"
err "$shard: "
err "train-00001-of-00002: offset 4076: record 31: "
out "INVALID"
grep -q '"valid": false' "$tmp/hurt.json" || fault "the JSON does not say that it is invalid"
try 1 "$@" --on-error skip --json "$tmp/hurt.json"
out "DEGRADED: 1 record was skipped"
grep -q '"degraded": true' "$tmp/hurt.json" || fault "the JSON does not say that it is degraded"
try 1 "$@" --decode none
err "$shard: "
try 0 "$@" --no-crc --decode none

# A failed job does not stop the next one.
printf '[a]\ndata=%s\n[b]\ndata=%s\n' "$tmp/hurt" "$tmp/recordio" >"$tmp/jobs.ini"
try 1 "$tmp/jobs.ini" --no-calibrate --runs 1
out ": b: valid"

finish
