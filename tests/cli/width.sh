#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tables fit 80 columns in a pipe, and the width of a terminal. Characters are counted, not bytes.
. "$(dirname "$0")/cli.sh"

unset COLUMNS
widest() { # LIMIT: no line of `table` is wider
    python3 - "$1" <<'END' || die "$table: wider than $1 columns"
import re, sys
lines = re.sub(r"\x1b\[[0-9;]*m", "", open("table", encoding="utf-8").read()).splitlines()
wide = [line for line in lines if len(line.rstrip("\r")) > int(sys.argv[1])]
print("\n".join(wide))
sys.exit(1 if wide or not lines else 0)
END
}

shown() { # COMMAND...: its table must fit; a busy machine may degrade the result
    table="iobench $*"
    "$IOBENCH" "$@" >table 2>errors || [ $? = 1 ] || die "$table: $(cat errors)"
    widest 80
}

expect 0 "$IOBENCH" pack "synthetic:count=64,classes=4,mean=4k,seed=1" set --shards 2 --format recordio
for trainer in none replay:h200; do
    shown run --data set --epochs 2 --runs 2 --batch-size 8 --digest --trainer "$trainer" --json "${trainer%%:*}.json"
done
shown run --data set --dry-run
"$IOBENCH" run --data set --epochs 2 --label "$(printf '%.0sé ' $(seq 100))" --drop-caches --direct >table 2>&1
table="a long label" && widest 80
shown train --data set --eval-data set --network tiny --size 16 --epochs 1 --batch-size 16 --json trained.json
shown infer --data set --network tiny --size 16 --batch-size 1,64 --warmup 1
shown shuffle --ranks 1,8 --partition all --records 5000
shown shuffle mxnet buffer:10000 webdataset:buffer=100 --data set --measure --runs 1 --batch-size 8
backends=reference
! built_with DNNL || backends="$backends cpu"
for backend in $backends; do
    "$IOBENCH" list backend | grep -A1 "^  $backend " | grep -q unavailable && continue
    shown plan tiny --backend "$backend" --gpu h100
done
shown compare none.json replay.json
again none.json again.json
shown compare none.json : replay.json again.json
shown monitor --interval 20ms --count 2 .
"$IOBENCH" monitor --interval 20ms . -- true 2>table || die "monitor: $(cat table)"
table="iobench monitor -- true" && widest 80
shown size --gpus 100000
shown size replay.json
shown list
shown doctor .
# Examples are not wrapped, so they can be copied.
"$IOBENCH" --help=all | grep -vE '^  (iobench|mpirun|srun) ' >table
table="iobench --help=all" && widest 80

# A wider terminal shows more, a narrower one shows less.
if [ "$(COLUMNS=100 "$IOBENCH" plan tiny --backend reference | wc -l)" = \
    "$(COLUMNS=300 "$IOBENCH" plan tiny --backend reference | wc -l)" ]; then
    die "a wide terminal has no wider table"
fi
COLUMNS=60 "$IOBENCH" doctor . >table || die "doctor"
table="doctor at 60" && widest 60
script -qec true /dev/null >/dev/null 2>&1 </dev/null || exit 0 # no script, or no pseudo-terminals
script -qec "stty cols 60; '$IOBENCH' doctor ." /dev/null >table </dev/null || die "doctor in a terminal: $(cat table)"
table="doctor in a terminal" && widest 60
