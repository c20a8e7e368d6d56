#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench sweep: cells, tables, files; killed and resumed; foreign folders; ranks.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
make_set recordio 60
"$IOBENCH" pack synthetic:count=60,mean=6000,classes=10 "$tmp/files" -f files >"$tmp/out" 2>&1 || die "no data set: $(cat "$tmp/out")"
set -- sweep --data "$tmp/recordio" --no-calibrate --decode none --memory 16m --sample-interval none

kept() { find "$tmp/$1" -name 'cell-*.json' | wc -l; }
# json FILE EXPRESSION: its value, d being the document.
json() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }
holds() { # FILE EXPRESSION
    [ "$(json "$1" "$2")" = True ] || fault "$1: not $2: $(json "$1" "d" | cut -c1-2000)"
}

# ---- every combination once per round, in random order, and the resulting figures ----
try 0 "$@" --batch-size 8,16 --shuffle epoch,none --direct=no --runs 2 -o "$tmp/a" \
    --json "$tmp/a.json" --csv "$tmp/a.csv"
out "sweep of run, 4 cells, 2 runs of each: 8 measured, 8 valid"
out "Main effects"
err "8 of 8"
[ "$(kept a)" = 8 ] || fault "$(kept a) measurements are kept, not 8"
holds "$tmp/a.json" 'len(d["cells"]) == 4 and all(c["valid"] == 2 for c in d["cells"])'
holds "$tmp/a.json" '[e["pairs"] for e in d["effects"]] == [4, 4]'
holds "$tmp/a.json" 'sorted(c["options"]["batch-size"] + c["options"]["shuffle"] for c in d["cells"]) == ["16epoch", "16none", "8epoch", "8none"]'
holds "$tmp/a.json" 'd["cells"][0]["samples_per_s_low95"] <= d["cells"][0]["samples_per_s"] and d["left_out_reason"] is None'
holds "$tmp/a/cell-00002-run-1.json" 'd["jobs"][0]["settings"]["shuffle"] == "none" and d["jobs"][0]["label"] == "batch-size=8 shuffle=none"'
[ "$(wc -l <"$tmp/a.csv")" = 9 ] || fault "not a row per measurement: $(cat "$tmp/a.csv")"
python3 - "$tmp/a.json" "$tmp/a" >"$tmp/err" 2>&1 <<'END' || fault "pairs of other caches"
import json, sys
sweep = json.load(open(sys.argv[1]))
def cache(cell, run): return json.load(open("%s/cell-%05d-run-%d.json" % (sys.argv[2], cell["cell"], run)))["jobs"][0]["summary"]["cache_before"]
for effect in sweep["effects"]:
    others = 0
    for cell in sweep["cells"]:
        if cell["options"][effect["option"]] == effect["value"]:
            first = next(c for c in sweep["cells"] if c["options"] == {**cell["options"], effect["option"]: effect["against"]})
            others += sum(cache(cell, run) != cache(first, run) for run in (1, 2))
    assert effect["pairs_of_other_caches"] == others, (effect, others)
END
# Complete: nothing is measured again. More runs continue the sweep.
stamps() { find "$tmp/a" -name "*.json" -printf "%p %i %T@\n" | sort; }
stamps >"$tmp/before"
try 0 "$@" --batch-size 8,16 --shuffle epoch,none --direct=no --runs 2 -o "$tmp/a"
err "8 of 8 measurements are there already"
stamps | cmp -s - "$tmp/before" || fault "a complete sweep was measured again"
try 0 "$@" --batch-size 8,16 --shuffle epoch,none --direct=no --runs 3 -o "$tmp/a"
[ "$(kept a)" = 12 ] || fault "$(kept a) measurements are kept, not 12"
# Another data set at the same path is not mixed with the one that was measured.
cp -r "$tmp/recordio" "$tmp/replaced"
try 0 "$@" --data "$tmp/replaced" --batch-size 8,16 --runs 1 -o "$tmp/r"
rm -r "$tmp/replaced"
"$IOBENCH" pack synthetic:count=50,mean=6000 "$tmp/replaced" -f recordio --shards 2 >"$tmp/out" 2>&1 || die "no other set"
try 1 "$@" --data "$tmp/replaced" --batch-size 8,16 --runs 2 -o "$tmp/r" --json "$tmp/r.json"
out "4 measured, 2 valid"
out "batch-size=16: the data set has 50 samples of"
out "and had 60 of"
holds "$tmp/r.json" '[e["pairs"] for e in d["effects"]] == [1]'
# Nor is one of as many samples and bytes, even with the same times.
cp -a "$tmp/recordio" "$tmp/equal"
try 0 "$@" --data "$tmp/equal" --batch-size 8,16 --runs 1 -o "$tmp/e"
rm -r "$tmp/equal"
cp -a "$tmp/recordio" "$tmp/equal"
try 1 "$@" --data "$tmp/equal" --batch-size 8,16 --runs 2 -o "$tmp/e" --json "$tmp/e.json"
err "iobench sweep: what is measured of it now is not valid: the files of the data set are not those of another"
out "4 measured, 2 valid"
out "batch-size=16: the files of the data set are not those of another measurement"
holds "$tmp/e.json" '[e["pairs"] for e in d["effects"]] == [1]'
# Nor are orders of another set.
rm -r "$tmp/equal"
cp -a "$tmp/recordio" "$tmp/equal"
try 0 sweep shuffle epoch,none --data "$tmp/equal" --classes 10 --labels sorted --runs 1 -o "$tmp/o"
rm -r "$tmp/equal"
cp -a "$tmp/recordio" "$tmp/equal"
try 1 sweep shuffle epoch,none --data "$tmp/equal" --classes 10 --labels sorted --runs 2 -o "$tmp/o"
out "4 measured, 2 valid"
out "order=none: the files of the data set are not those of another measurement"
# A folder of another sweep, or a foreign one.
try 1 "$@" --batch-size 8,32 --shuffle epoch,none --direct=no --runs 2 -o "$tmp/a"
err "holds another sweep"
echo thesis >"$tmp/recordio/.thesis.partial"
try 1 "$@" --batch-size 8,16 -o "$tmp/recordio"
err "holds other files"
[ -e "$tmp/recordio/.thesis.partial" ] || fault "a refused sweep removed a draft of another program"
rm "$tmp/recordio/.thesis.partial"
[ "$(kept a)" = 12 ] || fault "a refused sweep changed the folder"

# ---- a failed cell shows why, and enters no figure; --retry measures it again ----
try 1 "$@" --data "$tmp/{format},$tmp/recordio" --format files,recordio --runs 1 -o "$tmp/f" --json "$tmp/f.json"
out "Not valid, and in no figure"
out "data=$tmp/recordio format=files: "
no_out "Try 'iobench"
holds "$tmp/f.json" '[c["valid"] for c in d["cells"]] == [1, 1, 0, 1]'
holds "$tmp/f.json" 'sum(e["pairs"] for e in d["effects"]) == 2'
try 1 "$@" --data "$tmp/{format},$tmp/recordio" --format files,recordio --runs 1 -o "$tmp/f"
err "4 of 4 measurements are there already"
try 1 "$@" --data "$tmp/{format},$tmp/recordio" --format files,recordio --runs 1 -o "$tmp/f" --retry
err "3 of 4 measurements are there already"

# ---- plans: what would run ----
try 0 "$@" --trainer none,replay:h200,gpus=8 --batch-size 32:128:x2 --dry-run
[ "$(wc -l <"$tmp/out")" = 6 ] || fault "not 6 cells"
out "--trainer=replay:h200,gpus=8 --batch-size=128"
try 0 "$@" --reader all --dry-run
out "--reader=pread"
try 0 sweep shuffle epoch,buffer:20 --records 1000 --shards 4 --dry-run
out "shuffle --records=1000"
out "-- buffer:20"
[ -z "$(find . -maxdepth 1 -name "iobench-sweep-*")" ] || fault "a dry run left a folder"

try 0 completion
grep "^ *sweep) words" "$tmp/out" | grep -q -- "--shuffle=" || fault "the options of run cannot be completed"

# ---- shuffles and inference ----
try 0 sweep shuffle epoch none --records 1000 --shards 4 --classes 10 --batch-size 8,16 --runs 1 -o "$tmp/s" --json "$tmp/s.json"
holds "$tmp/s.json" '[c["randomness"] > 0.8 for c in d["cells"]] == [True, False, True, False]'
try 0 sweep infer --network lenet --size 32 --classes 10 --backend reference --data "$tmp/files" \
    --batch-size 4,8 --limit-samples 8 --memory 8m --runs 1 --warmup 0 -o "$tmp/i" --json "$tmp/i.json"
holds "$tmp/i.json" 'all(c["samples_per_s"] > 0 for c in d["cells"])'
python3 - "$tmp/i" "$tmp/i.json" >"$tmp/err" 2>&1 <<'END' || fault "where the bytes of an inference came from"
import glob, json, sys
for path in glob.glob(sys.argv[1] + "/cell-*.json"):
    percent = json.load(open(path))["batch_sizes"][0]["storage_percent"]
    word = None if percent is None else "all from storage" if percent >= 98 else "all in memory" if percent <= 2 else "partly in memory"
    cell = json.load(open(sys.argv[2]))["cells"][int(path.split("cell-")[1][:5]) - 1]
    assert cell["cache_before"] == word, (path, percent, cell["cache_before"])
END
cp -a "$tmp/files" "$tmp/files-now"
mv "$tmp/files" "$tmp/files-before"
mv "$tmp/files-now" "$tmp/files"
try 1 sweep infer --network lenet --size 32 --classes 10 --backend reference --data "$tmp/files" \
    --batch-size 4,8 --limit-samples 8 --memory 8m --runs 2 --warmup 0 -o "$tmp/i" --json "$tmp/i.json"
out "4 measured, 2 valid"

# ---- a launcher gets each cell's ranks and nodes; strong and weak scaling in one sweep ----
mkdir "$tmp/bin"
# shellcheck disable=SC2016 # its own parameters
printf '#!/bin/sh\necho "$1 $2 $3 $4 $*" >>"%s/launched"\nshift 4\nexec "$@"\n' "$tmp" >"$tmp/bin/srun"
chmod +x "$tmp/bin/srun"
both() { # OPTIONS...
    PATH=$tmp/bin:$PATH try 0 sweep --data "$tmp/recordio" --no-calibrate --decode none --memory 16m \
        --sample-interval none --nodes 1,2 --ranks 2,4 --launch 'srun -N {nodes} -n {ranks}' --limit-samples 40 \
        --limit-samples-per-rank 10 --scaling strong,weak --runs 1 "$@"
}
both -o "$tmp/n" --json "$tmp/n.json"
for cell in '-N 1 -n 2' '-N 1 -n 4' '-N 2 -n 2' '-N 2 -n 4'; do
    [ "$(grep -c -- "^$cell .*--limit-samples=40" "$tmp/launched")" = 1 ] || fault "no strong cell was started with $cell"
    [ "$(grep -c -- "^$cell .*--limit-samples-per-rank=10" "$tmp/launched")" = 1 ] || fault "no weak cell with $cell"
done
! grep -- '--limit-samples=.*--limit-samples-per-rank\|--scaling' "$tmp/launched" || fault "a cell has both limits"
out "Strong scaling, nodes=1; shares of the time of a rank"
out "Weak scaling, nodes=2; shares of the time of a rank"
holds "$tmp/n.json" 'd["scaling"]["kind"] == "strong,weak" and d["scaling"]["over"] == "ranks"'
holds "$tmp/n.json" 'all(s["kind"] == c["options"]["scaling"] for s, c in zip(d["scaling"]["cells"], d["cells"]))'
holds "$tmp/n.json" 'all(abs(s["efficiency_percent"] - (100 if c["options"]["ranks"] == "2" else 50) * s["speed_up"]) < 0.01 for s, c in zip(d["scaling"]["cells"], d["cells"]))'

# A launcher that is not there ends the sweep, and is no failed measurement, which would be kept.
try 1 "$@" --launch "$tmp/nothere" --ranks 1 --runs 1 -o "$tmp/nowhere"
err "nothere: cannot run"
[ "$(kept nowhere)" = 0 ] || fault "kept although nothing ran: $(cat "$tmp/nowhere"/cell-*)"
finish
