#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench shuffle: the table, JSON, charts, refusals, and a measurement.
. "$(dirname "$0")/cli.sh"

SMALL="--records 5000 --shards 7 --classes 10 --batch-size 32"

# shellcheck disable=SC2086
expect 0 "$IOBENCH" shuffle $SMALL --partition all --ranks 1,3 --plot orders.svg
says "5,000 records in 7 shards" "partition replicated, 3 ranks" "corgipile" "Random draw"
[ "$(grep -c ">epoch, " orders.svg)" = 10 ] || die "panels are missing"

# Each sample exactly once over all ranks, checked independently.
# shellcheck disable=SC2086
expect 0 "$IOBENCH" shuffle $SMALL --ranks 3 --json=all.json
for line in '"records_missing": 0,' '"draws_repeated": 0,' '"draws": 5000,'; do
    [ "$(grep -cF "$line" all.json)" = 16 ] || die "not 16 times $line"
done

expect 1 "$IOBENCH" shuffle none --records 100000000000 # more than any machine's memory
says "100000000000 records over 2 epochs takes 2.00 TiB" "ulimit -v" "fewer --records"

# Without labels in paths, records are assumed sorted, unless --labels read.
mkdir plain && for i in 1 2 3 4 5 6 7 8; do head -c 20000 /dev/urandom >plain/$i.jpg; done
expect 0 "$IOBENCH" shuffle none --data plain --format files --classes 2 --batch-size 2
says "8 records" "2 classes, assumed sorted"
expect 1 "$IOBENCH" shuffle none --data plain --format files --labels read
says "has no label"

# Labels come from the samples: from paths, and from records shuffled when packed.
mkdir set && for class in a b c d; do
    mkdir set/$class && for i in 1 2 3 4; do head -c 2000 /dev/urandom >set/$class/$i.jpg; done
done
labels_per_batch() { # DATA
    "$IOBENCH" shuffle none --data "$1" --batch-size 4 --json | sed -n 's/.*"labels_per_batch": \([0-9.]*\),/\1/p'
}
expect 0 "$IOBENCH" shuffle none --data set --batch-size 4 --json
says '"labels_from": "paths"' '"classes": 4' '"labels_per_batch": 1.0'
expect 0 "$IOBENCH" pack set sorted -f recordio
expect 0 "$IOBENCH" pack set shuffled -f recordio --shuffle
[ "$(labels_per_batch sorted)" = 1.0 ] || die "sorted: $(labels_per_batch sorted) labels a batch"
[ "$(labels_per_batch shuffled)" != 1.0 ] || die "shuffled, and still a label a batch"
expect 0 "$IOBENCH" shuffle none --data shuffled --batch-size 4 --labels sorted --classes 4 --json
says '"labels_from": "sorted"' '"labels_per_batch": 1.0'

# Throughput: rounds, each run cold or marked unverified; a table, a chart, files.
expect 0 "$IOBENCH" shuffle epoch none buffer:4 --data set --measure --runs 2 --batch-size 4 --json=front.json
says "labels read" "median of 2 rounds" "Pareto front"
[ "$(grep -c '"runs": 2,' front.json)" = 3 ] || die "not every order was read twice"
# A run that is degraded is not verified, wherever its bytes came from.
expect 0 "$IOBENCH" pack set odd -f files
echo text >"$(find odd -mindepth 1 -type d ! -name '.*' | head -n 1)/odd.avif"
expect 0 "$IOBENCH" shuffle none --data odd --measure --runs 1 --batch-size 4 --json=odd.json
says "unverified: DEGRADED: 1 sample is left out"
grep -q '"unverified_reason": "DEGRADED: 1 sample' odd.json || die "the JSON drops it: $(cat odd.json)"
grep -q '"cold_runs": 0' odd.json || die "it counts as cold"
# In memory nothing is ever cold.
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ]; then
    warm=$(mktemp -d /dev/shm/iobench-cli-XXXXXX) || die "/dev/shm"
    # shellcheck disable=SC2034 # cli.sh runs it
    CLEANUP="rm -r $warm"
    cp -r set/. "$warm"
    expect 0 "$IOBENCH" shuffle none --data "$warm" --measure --runs 1 --batch-size 4
    says "unverified: "
fi

# A shuffle that needs too much memory is skipped, with a note.
expect 0 "$IOBENCH" shuffle none buffer:16 --data set --measure --runs 1 --batch-size 4 --memory 16k
says "not read: shuffle buffer:16 holds"

# ---- worked by hand: labels 000111222333, shards 000011112222, batches 0001 1122 2333 ----
expect 0 "$IOBENCH" shuffle none --records 12 --shards 3 --classes 4 --batch-size 4 --sample-size 4096
says "12 records in 3 shards, 48.00 KiB; 4 classes" "none 2.0 1.0 0.7273 1.00 0 0 16.0 1.00 4.00 KiB" \
    "Random draw: 2.7 labels and 2.4 shards per batch" "probability 0.2500"
"$IOBENCH" shuffle none --records 12 --shards 3 --classes 4 --batch-size 4 --sample-size 4096 --json=hand.json || die "no JSON"
python3 - <<'CHECK' || die "other figures than by hand"
import json, math
row, = json.load(open("hand.json"))
for key, value in {
    "labels_per_batch": 2, "labels_per_batch_at_random": 4 * (1 - 0.75 ** 4), "shards_per_batch": 1,
    "shards_per_batch_at_random": 3 * (1 - (2 / 3) ** 4), "same_label_probability": 8 / 11,
    "same_label_probability_at_random": 0.25, "rank_retention": 1, "read_amplification": 1, "reads_per_epoch": 3,
    "seeks_per_epoch": 3, "bytes_per_read": 16384, "distance_between_reads_bytes": 0, "window_records": 12,
    "read_bytes_max": 1 << 20, "records_missing": 0, "draws_repeated": 0, "draws": 12, "draws_of_poorest_rank": 12,
    "draws_of_richest_rank": 12, "buffer_bytes": 4096, "slots": 1,
}.items():
    assert math.isclose(row[key], value, rel_tol=1e-9), (key, row[key], value)
CHECK
