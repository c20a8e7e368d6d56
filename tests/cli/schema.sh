#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Documents fit docs/schema/iobench.schema.json, a wrong one does not, and the examples of docs/json.md work.
# shellcheck disable=SC2154,SC2034,SC2016 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
python3 -c 'import jsonschema' 2>/dev/null || skip "no python3-jsonschema"
make_set recordio 240
cd "$tmp" || die "no folder"
set -- --data recordio --decode none --memory 8MiB

try 0 run "$@" --runs 3 --against '--iodepth 4' --json result.json
try 0 run "$@" --epochs 2 --sample-interval none --json short.json
try 0 ramp "$@" -B 2 --from 0.5 --to 0.5 --duration 0.2s --trainer replay:rate=1000 --json ramp.json
try 0 size --gpus 8 --gpu h200 --simulate --json=size.json
try 0 sweep "$@" --iodepth 1,2 --runs 1 -o cells --json sweep.json
try 0 infer --data recordio --memory 8MiB --network lenet --size 32 --classes 1000 --backend reference -B 16 --json infer.json
try 0 train "$@" --decode jpeg --network lenet --size 32 --classes 1000 --backend reference --epochs 1 -B 16 --json train.json
# Of a set in memory, nothing leaves storage.
if memory=$(mktemp -d /dev/shm/iobench-cli-XXXXXX 2>/dev/null); then
    CLEANUP="rm -rf $memory"
    cp -r recordio "$memory"
    try 0 run --data "$memory/recordio" --decode none --memory 8MiB --runs 1 --json memory.json
fi

cat >check.py <<'END_OF_CHECK'
import copy, glob, json, sys, warnings
warnings.simplefilter("ignore")
import jsonschema

schema = json.load(open(sys.argv[1]))
validator = jsonschema.Draft202012Validator(schema)
validator.check_schema(schema)
for path in sorted(glob.glob("*.json") + glob.glob("cells/*.json")):
    for error in list(validator.iter_errors(json.load(open(path))))[:5]:
        print(f"{path}: {error.json_path}: {error.message[:200]}")

# What it must refuse.
def refused(name, change):
    document = copy.deepcopy(good)
    change(document)
    if validator.is_valid(document):
        print(f"accepted: {name}")

good = json.load(open("result.json"))
refused("no schema", lambda d: d.pop("schema"))
refused("another version", lambda d: d.update(schema_version=3))
refused("a broken checksum", lambda d: d.update(checksum="0"))
refused("a job without a summary", lambda d: d["jobs"][0].pop("summary"))
refused("a rate as text", lambda d: d["jobs"][1]["runs"][0].update(samples_per_s="4"))
refused("an epoch without a time", lambda d: d["jobs"][0]["runs"][0]["epochs"][0].pop("wall_s"))
refused("a new key with a unit that is no number", lambda d: d["jobs"][0]["engine"].update(new_bytes="1 KiB"))
refused("a reason that is no text", lambda d: d["jobs"][0].update(invalid_reason=3))
END_OF_CHECK
tried="check.py"
python3 check.py "$SRCDIR/docs/schema/iobench.schema.json" >out 2>err || fault "it failed"
empty out

# The examples of the page, on this result.
sed -n 's/^    jq /jq /p' "$SRCDIR/docs/json.md" >examples
grep -q . examples || die "no example"
while read -r tried; do
    command -v jq >/dev/null || break
    sh -c "$tried" >out 2>err </dev/null || fault "it failed"
    grep -q '[0-9]' out || fault "no figure"
done <examples
sed -n '/^```python/,/^```$/p' "$SRCDIR/docs/json.md" | grep -v '^```' >example.py
tried="the example in Python"
if python3 -c 'import pandas' 2>/dev/null; then
    python3 example.py >out 2>err || fault "it failed"
    grep -q '[0-9]' out || fault "no figure"
fi
finish
