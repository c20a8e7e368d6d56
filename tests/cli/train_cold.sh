#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# train reads data like 'iobench run': the same options, cache verification and report, including
# unverified parts.
# shellcheck disable=SC2034 # for cli.sh
ON_DISK=yes
. "$(dirname "$0")/cli.sh"

# ---- one set of options: those that train lacks exist in another form or do not apply ----
options() { # COMMAND
    "$IOBENCH" "$1" --help | sed -n 's/^ *\(-.,\)\{0,1\} *--\(\[no-\]\)\{0,1\}\([a-z-]*\).*/\3/p' | sort -u
}
options run >run.options
options train >train.options
missing=$(comm -23 run.options train.options | tr '\n' ' ')
[ "$missing" = \
    "against beside calibrate digest dry-run order-seed overlap-epochs paired rank ranks require-rate require-samples-per-s resume-at runs start-at trace trainer turns until until-runs until-time workload " ] ||
    die "options of run that train has not: $missing"

expect 0 "$IOBENCH" pack synthetic:count=60,classes=3,mean=30k,seed=5 set
LENET="--data set --batch-size 20 -t 1 --epochs 2 --seed 3 --memory 16m"
TRAIN="train --network lenet --size 32 --classes 3 --compute-threads 1 --lr 0.001 $LENET"

# ---- options once limited to run work in train, too ----
# shellcheck disable=SC2086 # words without blanks
{
    expect 0 "$IOBENCH" $TRAIN --limit-rate 2m --json slow.json
    expect 1 "$IOBENCH" $TRAIN --memory-limit 12m
    # shellcheck disable=SC2154 # expect sets it
    case $out in
    *"control group"* | *"counts memory here"*) echo "no --memory-limit here: ${out##*--memory-limit}" ;;
    *)
        says "--memory-limit 12.00 MiB: lenet takes"
        expect 1 "$IOBENCH" $TRAIN --memory-limit 256m --memory 200m
        says "--memory-limit 256.00 MiB: the network takes" "batches take"
        ;;
    esac
    expect 0 "$IOBENCH" $TRAIN --as horovod-tensorflow --shuffle none --epochs 1
    says "shuffle none" "Reader   preadv2 on 10 threads; depth 10," "reads up to 256.00 KiB"
}
value() { # FILE EXPRESSION of job
    python3 -c 'import json, sys
job = json.load(open(sys.argv[1]))["jobs"][0]
print(eval(sys.argv[2]))' "$@"
}
[ "$(value slow.json 'job["summary"]["record_bytes_per_s"] <= 1.5 * 2**21')" = True ] ||
    die "--limit-rate 2m: $(value slow.json 'job["summary"]["record_bytes_per_s"]') bytes a second"
# In an epoch that reached --limit-rate storage is not the bottleneck; a machine may be slower than
# the limit.
[ "$(value slow.json 'all(epoch["limit"] not in ("storage", "page_cache") or
    epoch["record_bytes_per_s"] < 0.9 * 2**21 for epoch in job["runs"][0]["epochs"])')" = True ] ||
    die "2 MiB/s is not the limit: $(value slow.json 'job["runs"][0]["epochs"]')"

# Compressed shards use the only suitable reader, as in run.
expect 0 "$IOBENCH" pack synthetic:count=20,classes=3,mean=10k compressed --format shards
gzip compressed/train*
expect 0 "$IOBENCH" train --network lenet --size 32 --classes 3 --data compressed --batch-size 10
says "compressed streams"
# So does the order: one that goes back in a shard is impossible, unless a window holds all of it.
expect 0 "$IOBENCH" run --data compressed --runs 1 --no-calibrate --window 1 --decode none --batch-size 10 --json zip.json
says "Order    shuffle tfdata," "tfdata shuffles"
[ "$(value zip.json 'job["engine"]["shuffle"], job["settings"]["shuffle"]')" = "('tfdata', 'auto')" ] ||
    die "shuffle: $(value zip.json 'job["engine"]')"
expect 1 "$IOBENCH" run --data compressed --runs 1 --no-calibrate --window 1 --decode none --shuffle epoch
says "use --shuffle auto"
expect 0 "$IOBENCH" show compressed

# ---- cold, and verified as by run ----
[ "$(id -u)" = 0 ] || skip "the rest empties the page cache: root alone may"
# shellcheck disable=SC2086 # words without blanks
expect 0 "$IOBENCH" $TRAIN --drop-caches --json train.json
case $out in *UNVERIFIED* | *"in-memory file system (tmpfs)"*) skip "nobody can prove caches empty here: $out" ;; esac
says ": valid, cold, 1 run of 2 epochs" "Cache    cold: at most 0.00% of" "Limit    " "AU       "
# shellcheck disable=SC2086 # words without blanks
expect 0 "$IOBENCH" run --trainer lenet:classes=3,threads=1,rate=0.001 --decode jpeg:size=32 $LENET \
    --runs 1 --no-calibrate --drop-caches --json run.json
python3 - <<'END' || die "train and run disagree"
import json
train, run = (json.load(open(name))["jobs"][0] for name in ("train.json", "run.json"))

def keys(value, path=""):
    if isinstance(value, dict):
        return {key for name, member in value.items() for key in keys(member, path + "." + name)}
    # which notices there are depends on the machine's load
    return {path} if not isinstance(value, list) or not value or path == ".notices" else keys(value[0], path + "[]")

def differ(of):
    return {key for key in of if not key.startswith((".series", ".place", ".session"))}

assert differ(keys(train)) == differ(keys(run)), differ(keys(train)) ^ differ(keys(run))
for key in ("samples", "record_bytes", "first_epoch_record_bytes", "skipped_samples"):
    assert train["summary"][key] == run["summary"][key], key
assert train["dataset"] == run["dataset"]
for key in ("cache_before", "method", "dropped", "cold_residue_percent", "total_bytes"):
    assert train["runs"][0]["cold"][key] == run["runs"][0]["cold"][key], key
assert train["runs"][0]["cold"]["cache_before"] == "cold"
assert train["runs"][0]["cold"]["cold_residue_percent"] == 0
for mine, other in zip(train["runs"][0]["epochs"], run["runs"][0]["epochs"], strict=True):
    for key in ("epoch", "samples", "batches", "record_bytes"):
        assert mine[key] == other[key], key
END
again train.json again.json
expect 0 "$IOBENCH" compare train.json again.json
says "  AU      "

# ---- a resumed training's clock does not run while caches are dropped ----
# shellcheck disable=SC2086 # words without blanks
{
    expect 0 "$IOBENCH" $TRAIN --checkpoint point --epochs 1 --json before.json
    expect 0 "$IOBENCH" $TRAIN --checkpoint point --resume --drop-caches --server-drop-cmd 'sleep 0.2' --json after.json
}
python3 - <<'END' || die "time to accuracy counts the drop"
import json
before, after = (json.load(open(name)) for name in ("before.json", "after.json"))
phases = {row["phase"]: row for row in after["jobs"][0]["series"]["phases"]}
took = after["epochs"][-1]["elapsed_s"] - before["epochs"][-1]["elapsed_s"]
most = phases["checkpoint"]["from_s"] - phases["drop"]["to_s"]
assert 0 < took < most + 1e-6, (took, most)
END

# ---- pages kept resident by another process's mapping are reported ----
hold_mapped 'set/*-of-*'
# shellcheck disable=SC2086 # words without blanks
{
    expect 1 "$IOBENCH" $TRAIN --drop-caches --json held.json
    says "INVALID: the cache should be cold, but" "of it was resident" "Cache    warm"
    expect 1 "$IOBENCH" $TRAIN --drop-caches=strict
    says "not verified cold"
}
release_held
[ "$(value held.json 'job["valid"], job["summary"]["cache_before"]')" = "(False, 'warm')" ] ||
    die "held.json calls pages that stayed cold"
echo "a training from a cold set says so, one from a warm set too"
