#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs of run, train and infer, and all figures of their documents that no machine changes: counts, verdicts and notes.
# UPDATE=1 rewrites tests/cli/saved/run-jobs.txt; check the difference by hand.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
command -v python3 >/dev/null || skip "no python3"
cat >figures.py <<'END'
import json, re, sys
KEPT = re.compile(r"(first_)?(samples|skipped_samples|batches|steps|record_bytes|request_bytes|requests|images|epochs?|count|draws|batch_size|loss|images)"
    r"|(in)?valid(_reason)?|complete_runs|epochs_(run|merged)|jobs?|turns|run|rank|runs_auto|shuffle|iodepth|io_threads|digest.*"
    r"|decode_threads|window_records|read_bytes_max|shuffle_slots|ranks|nodes|\w+_images|read_errors|short_reads|label|server|state|command_status"
    r"|evaluated?|evaluations?|correct.*|checkpoint|parameters|resumed.*|first_unread|unread_samples|shards|notices|reason|exit_status|network|weights|precision")
MACHINE = re.compile("CPUs|hypervisor|cache|processor|no GPU|seconds|clock|memory")
def show(place, value):
    if isinstance(value, dict):
        for key, part in value.items():
            if key == "decoded" and value.get("invalid_reason"):
                continue # how far it came
            if isinstance(part, (dict, list)) and key not in ("series", "entries", "environment", "place", "settings", "advice", "timeline") or KEPT.fullmatch(key):
                show(f"{place}.{key}" if place else key, part)
    elif isinstance(value, list):
        for i, part in enumerate(value):
            show(f"{place}[{i}]", part)
    elif value not in (0, None, "", False) and not isinstance(value, float) and (place.split(".")[-1].split("[")[0] == "notices" or KEPT.fullmatch(re.sub(r"\[\d+\]", "", place.split(".")[-1]))):
        if not MACHINE.search(str(value)):
            text = re.sub(r"within [0-9.e+]*[1-9][0-9.e+]*%", "within SOME%", str(value))
            print(f"  {re.sub('notices.*', 'notices', place)} = {re.sub('^--(runs|until).*(?=the interval)|, at which --until.*', '', text)}")
for command in open("commands"):
    number, command = command.split(" ", 1)
    print("$ iobench", command, end="")
    print("".join("! " + line for line in open(f"err{number}")), end="")
    try:
        document = json.load(open(f"r{number}.json"))
    except FileNotFoundError:
        continue
    if "traceEvents" in document:
        for event in sorted({f"  {event['name']} {event['ph']} {' '.join(event.get('args', {}))}" for event in document["traceEvents"]}):
            print(event)
    else:
        show("", document)
END
number=0
# job STATUS COMMAND ARGUMENT...: what its document says
job() {
    number=$((number + 1))
    try "$@" --json r$number.json
    shift
    echo "$number $*" >>commands && mv err err$number && : >err
}
small() { # ARGUMENT...: a run that no machine changes
    job "$@" -n 1 --no-calibrate -m 8m -t 1 -q 4 -r pread --shuffle epoch
}
"$IOBENCH" pack synthetic:count=50,mean=6000 set -f shards --shards 3 >out 2>err || die "no set: $(cat err)"
"$IOBENCH" pack synthetic:count=7,mean=6000 few -f recordio >out 2>err || die "no set: $(cat err)"
cp -R set bad && printf x | dd of="$(ls bad/*-00002-of*)" bs=1 seek=4000 conv=notrunc 2>/dev/null
small 0 run -d set -B 8 --decode checksum --digest --epochs 2
small 0 run -d set -B 7 --decode none --limit-samples 20 --ranks 3 --rank 1 --remainder pad
small 0 run -d set -B 7 --decode jpeg:size=32 --limit-samples 9 --resume-at 1:7 --epochs 3
small 0 run -d set -B 6 --decode checksum --against '--limit-samples 12 --window 1' --against '--bs 4k'
small 1 run -d bad -B 6 --decode checksum
small 1 run -d bad -B 6 --decode checksum --on-error skip
job 0 run -d set -B 6 --decode checksum --no-calibrate -m 8m -t 1 -r pread --runs auto --until 100 --until-runs 5
small 0 run -d set -B 6 --decode checksum --trace t.json
number=$((number + 1))
mv t.json r$number.json && : >err$number && echo "$number its trace" >>commands
train() { # ARGUMENT...
    job 0 train -d set -N lenet --backend reference --classes 1000 -B 4 -t 1 -m 8m --limit-samples 4 --checkpoint kept "$@"
}
train --epochs 1 --eval-data few
train --epochs 2 --resume
job 0 infer -d few -N lenet --backend reference --classes 1000 -B 4 -t 1 -m 8m --checkpoint kept
echo garbage >bad.safetensors
job 1 infer -d few -N lenet --backend reference --classes 1000 -B 4 -t 1 -m 8m --init bad.safetensors
python3 figures.py >pages || fault "no figures"
sed "s|$T/||g" pages >out
saved run-jobs.txt
finish
