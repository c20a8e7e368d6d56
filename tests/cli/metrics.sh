#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/metrics.md defines exactly the figures of real results.
. "$(dirname "$0")/cli.sh"
CHECK=$OLDPWD/tests/cli/metrics_check CACHECTL=$OLDPWD/cachectl/cachectl
PAGE=$SRCDIR/docs/metrics.md
LENET="--network lenet --size 32 --classes 3 --data set --batch-size 20 --decode-threads 1 --compute-threads 1"

# Exit status 1: on a machine without a free CPU steps end late.
result() { # FILE COMMAND...
    file=$1
    shift
    out=$("$@" --json="$file" 2>&1) || [ $? -eq 1 ] || die "$*"
    [ -s "$file" ] || die "no result: $*"
}

expect 0 "$IOBENCH" pack synthetic:count=60,classes=3,mean=6k,seed=5 set -f recordio
result run.json "$IOBENCH" run --data set --runs 6 --epochs 2 --batch-size 16 --trainer replay:rate=50000
result jpeg.json "$IOBENCH" run --data set --drop-caches --server-drop-cmd true \
    --server-check-cmd "'$CACHECTL' status --json '$T/set'" --digest --decode jpeg --entry-points
# shellcheck disable=SC2086 # words without blanks
{
    result train.json "$IOBENCH" train $LENET --eval-data set --epochs 1 --target 0.001
    result infer.json "$IOBENCH" infer $LENET --precision fp32,int8 --calibrate-images 20
}
result shuffle.json "$IOBENCH" shuffle epoch --data set --measure --runs 1 --batch-size 4
result against.json "$IOBENCH" run --data set --runs 3 --epochs 2 --against "--decode none" --no-calibrate
result workload.json "$IOBENCH" run --data set --runs 1 --epochs 1 --no-calibrate --workload retinanet-b200 --format auto
result ramp.json "$IOBENCH" ramp --data set --batch-size 4 --decode none --trainer replay:rate=20000 --from 1 --to 1 --runs 1 \
    --limit 1000%
python3 "$SRCDIR/tests/cli/net_document.py" >slow.json # has a slow link
set -- net=slow.json run=workload.json ramp=ramp.json run=against.json run=run.json run=jpeg.json train=train.json infer=infer.json shuffle=shuffle.json

# Figures of several ranks are not required without a launcher, or with one that leaks.
if with_mpi; then
    result ranks.json "$MPIRUN" -n 2 "$IOBENCH" run --data set --runs 1 --no-calibrate
    before=$(date -u +%FT%TZ)
    result net.json "$MPIRUN" -n 2 "$IOBENCH" net --to 64 --repeats 2 --repeat-time 1us --sample-interval 5ms
    after=$(date -u +%FT%TZ)
    expect 0 "$CHECK" "$PAGE" "$SRCDIR" "$@" run=ranks.json net=net.json
    # A result of a fabric names its machine as that of storage does.
    python3 - <<END || die "place of net"
import json
net, run = json.load(open("net.json")), json.load(open("ranks.json"))["jobs"][0]
assert all(net["place"][key] == run["place"][key] for key in ("host", "kernel", "cpu", "cpu_count")), net["place"]
assert net["place"].keys() <= run["place"].keys(), net["place"]
assert '$before' <= net["started"] <= '$after', ('$before', net["started"], '$after')
END
else
    "$CHECK" "$PAGE" "$SRCDIR" "$@" >differences
    out=$(grep -v 'defines \(ranks\|ranks_compared\|straggler\|nodes\)\.' differences)
    [ -z "$out" ] || die "docs/metrics.md is not what the program writes"
fi

# The check finds a missing figure, a stale one, and one defined twice.
grep -v 'samples. / .wall_s. | mono | .pipeline/result/result.c' "$PAGE" >page
expect 1 "$CHECK" page "$SRCDIR" "$@"
says "does not define samples_per_s of epochs"
tr "'" '\140' <<'END' >page.more
## 'epochs'
| 'never' | x | - | 'NEWS' | 'NEWS' |
| 'wall_s' | x | - | 'NEWS' | 'none' |
END
cat "$PAGE" page.more >page
expect 1 "$CHECK" page "$SRCDIR" "$@"
says "defines epochs.never, which no result has" "epochs.wall_s has two definitions" "there is no file"
