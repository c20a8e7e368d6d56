#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An uneven partition keeps no rank waiting: every shuffle, every partition.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

for count in 2 3 5; do
    expect 0 mpi $count "$(dirname "$RANKS")/steps"
    says "$count ranks took the same steps"
done

# And through the whole pipeline, training a network.
expect 0 "$IOBENCH" pack synthetic:count=23,classes=3,mean=4k,seed=5 odd --shards 7
cat >odd.ini <<END
[global]
data=odd
runs=1
batch-size=2
decode-threads=1
memory=16m
calibrate=no
sample-interval=none
trainer=network:lenet,classes=3,threads=1,rate=0.0001
decode=jpeg:size=32
END
for partition in disjoint sticky shards replicated; do
    printf '[%s]\nshuffle=buffer:records=8\npartition=%s\n' $partition $partition >>odd.ini
done
expect 0 mpi 5 "$IOBENCH" run odd.ini
# shellcheck disable=SC2154 # expect sets it
[ "$(printf '%s\n' "$out" | grep -c ': valid, ')" = 4 ] || die "not every job was valid"
# The rate of an epoch is that of all ranks over the time of all, while training as in the result.
expect 0 mpi 3 "$IOBENCH" train --network lenet --size 32 --classes 3 --data odd --batch-size 2 --epochs 2 -t 1 \
    --compute-threads 1 --lr 0.0001 --memory 16m --sample-interval none --json trained.json
python3 - <<'END' || die "another rate"
import json
result = json.load(open("trained.json"))
for row, epoch in zip(result["epochs"], result["jobs"][0]["runs"][0]["epochs"], strict=True):
    assert abs(row["samples_per_s"] / epoch["samples_per_s"] - 1) < 1e-6, (row, epoch)
END
echo "no rank waits for steps that others do not take"
