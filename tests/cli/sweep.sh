#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench sweep of commands that measure; tables, files and folders of made measurements are in tests/cli/pages.sh.
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
try 0 "$@" --batch-size 8,16 --shuffle epoch,none --direct=no --runs 2 -o "$tmp/a" --json "$tmp/a.json"
out "sweep of run, 4 cells, 2 runs of each: 8 measured, 8 valid"
[ "$(kept a)" = 8 ] || fault "$(kept a) measurements are kept, not 8"
holds "$tmp/a.json" 'len(d["cells"]) == 4 and all(c["valid"] == 2 for c in d["cells"])'
holds "$tmp/a/cell-00002-run-1.json" 'd["jobs"][0]["settings"]["shuffle"] == "none" and d["jobs"][0]["label"] == "batch-size=8 shuffle=none"'
# Another data set at the same path, of as many samples and bytes, even with the same times, is not mixed with the one that was measured.
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

# ---- plans: what would run ----
try 0 "$@" --reader all --dry-run
out "--reader=pread"
[ -z "$(find . -maxdepth 1 -name "iobench-sweep-*")" ] || fault "a dry run left a folder"

try 0 completion
grep "^ *sweep) words" "$tmp/out" | grep -q -- "--shuffle=" || fault "the options of run cannot be completed"

# ---- shuffles and inference ----
try 0 sweep shuffle epoch none --records 1000 --shards 4 --classes 10 --batch-size 8,16 --runs 1 -o "$tmp/s" --json "$tmp/s.json"
holds "$tmp/s.json" '[c["randomness"] > 0.8 for c in d["cells"]] == [True, False, True, False]'
try 0 sweep infer --network lenet --size 32 --classes 10 --backend reference --data "$tmp/files" \
    --batch-size 4,8 --limit-samples 8 --memory 8m --runs 1 --warmup 0 -o "$tmp/i" --json "$tmp/i.json"
holds "$tmp/i.json" 'all(c["samples_per_s"] > 0 for c in d["cells"])'
cp -a "$tmp/files" "$tmp/files-now"
mv "$tmp/files" "$tmp/files-before"
mv "$tmp/files-now" "$tmp/files"
try 1 sweep infer --network lenet --size 32 --classes 10 --backend reference --data "$tmp/files" \
    --batch-size 4,8 --limit-samples 8 --memory 8m --runs 2 --warmup 0 -o "$tmp/i" --json "$tmp/i.json"
out "4 measured, 2 valid"

# A launcher that is not there ends the sweep, and is no failed measurement, which would be kept.
try 1 "$@" --launch "$tmp/nothere" --ranks 1 --runs 1 -o "$tmp/nowhere"
err "nothere: cannot run"
[ "$(kept nowhere)" = 0 ] || fault "kept although nothing ran: $(cat "$tmp/nowhere"/cell-*)"
finish
