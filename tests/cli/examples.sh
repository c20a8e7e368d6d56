#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each file of docs/examples/ does what it says, and none is left out here.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
EXAMPLES=$SRCDIR/docs/examples
CC=${CC:-cc}
skipped=

for file in "$EXAMPLES"/*.*; do
    name=${file##*/}
    grep -q "($name)" "$EXAMPLES/README.md" || [ "$name" = README.md ] || [ "$name" = local.mk ] || die "not in README.md: $name"
done

expect 0 "$IOBENCH" pack synthetic:count=60,mean=6000 set -f recordio
expect 0 "$IOBENCH" run --data set --no-calibrate --runs 2 --epochs 2 -B 16 --against "--window 1" --json result.json

if command -v python3 >/dev/null; then
    expect 0 python3 "$EXAMPLES/result.py" result.json
    says "as given: valid" "run 2 epoch 2: 60 samples in" "95% interval"
    echo '{"schema": "iobench-size", "schema_version": 2}' >other.json
    expect 1 python3 "$EXAMPLES/result.py" other.json
    says "not a result"
    # What 0.2 wrote is what is written now with the old words, numbered from 0; each node has a series, too.
    python3 -c 'import json
was = json.load(open("result.json"))
was.pop("checksum")
for job in was["jobs"]:
    job["series"]["nodes"] = [{**job["series"], "host": name} for name in "ab"]
print(json.dumps(was, indent=1))' >was.json
    sed 's/"session"/"sitting"/; s/"io_threads/"loaders/; s/"decode_threads": \(.*,\)$/"threads": \1/; s/"rank_timeout_s"/"silence_s"/
         s/ceiling_samples/floor_samples/; s/_sessions"/_sittings"/; s/"sessions"/"sittings"/; s/"schema_version": 2/"schema_version": 1/' \
        was.json | python3 -c 'import json, sys
old = json.load(sys.stdin)
for job in old["jobs"]:
    job["engine"]["decode_threads"] = job["engine"].pop("threads", None) or job["engine"].get("decode_threads")
    phases = [phase for series in [job["series"], *job["series"]["nodes"]] for phase in series["phases"]]
    for run in job["runs"] + phases:
        run["run"] -= 1
    for phase in phases:
        phase["epoch"] -= 1
json.dump(old, sys.stdout)' >old.json
    expect 1 "$IOBENCH" compare old.json
    says "old.json: schema version 1, this program reads 2 (docs/from-0.2.md)"
    expect 0 python3 "$EXAMPLES/from_0_2.py" old.json
    printf '%s\n' "$out" >new.json
    expect 0 python3 -c 'import json
new, was = (json.load(open(name)) for name in ("new.json", "was.json"))
assert new == was, [key for key in was["jobs"][0] if was["jobs"][0][key] != new["jobs"][0].get(key)]'
    expect 0 "$IOBENCH" compare new.json
    expect 1 python3 "$EXAMPLES/from_0_2.py" new.json
    says "not a document of schema 1"
else
    skipped="$skipped python3"
fi

if command -v jq >/dev/null; then
    expect 0 jq -r -f "$EXAMPLES/result.jq" result.json
    [ "$(printf '%s\n' "$out" | wc -l)" = 9 ] || die "not a heading and a row for each of 8 epochs: $out"
    says '1,1,1,60,'
else
    skipped="$skipped jq"
fi

if command -v "${CC%% *}" >/dev/null; then
    # shellcheck disable=SC2086 # CC has words
    expect 0 $CC -std=c11 -pedantic-errors -Wall -Wextra -O1 -I"$SRCDIR" "$EXAMPLES/jpeg.c" "$SRCDIR"/decode/baseline/*.c -o jpeg
    ./jpeg <"$SRCDIR/tests/fixtures/images/yuv420.jpg" >yuv420.ppm || die "no PPM"
    head -n 1 yuv420.ppm | grep -q '^P6 [0-9]* [0-9]* 255$' || die "not a PPM"
    expect 1 ./jpeg <"$SRCDIR/tests/fixtures/images/cmyk.jpg"
    says "for libjpeg-turbo"
else
    skipped="$skipped ${CC%% *}"
fi

expect 0 "$PROGRAMS/docs/examples/iobench" help slow
says "reads that are late" "time that each read takes more"
expect 0 "$PROGRAMS/docs/examples/iobench" run --data set --no-calibrate --runs 1 -B 16 --reader slow:late=20ms --json slow.json
says "reads that are 20.0 ms late"
! command -v jq >/dev/null || [ "$(jq '.jobs[0].summary.read_latency.mean_s >= 0.02' slow.json)" = true ] || die "not late"
[ -z "$skipped" ] || skip "all passed but what needs$skipped"
