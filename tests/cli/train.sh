#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Training through the whole pipeline; an interrupted run resumes bit for bit.
. "$(dirname "$0")/cli.sh"

# Generated images of few classes; small, so a step takes milliseconds.
expect 0 "$IOBENCH" pack synthetic:count=60,classes=3,mean=6k,seed=5 set
LENET="train --network lenet --size 32 --classes 3 --data set --batch-size 20 -t 1
    --compute-threads 1 --seed 3 --lr 0.001"
train() { # OPTION...
    # shellcheck disable=SC2086 # words without blanks
    "$IOBENCH" $LENET "$@"
}

before=$(date +%s)
expect 0 train --epochs 3 --eval-data set --checkpoint whole --csv whole.csv --json whole.json
says "epoch    rate   loss   top-1  img/s   loss   top-1   top-5" "  Memory   "
[ "$(wc -l <whole.csv)" = 4 ] || die "whole.csv has not a heading and three rows"
awk -v after="$(date +%s)" -v before="$before" '/"start_unix_s": / {
    at = substr($2, 1, 13) + 0; exit !(at >= before && at <= after + 1) }' whole.json ||
    die "whole.json: the training began at another time: $(grep start_unix_s whole.json), not after $before"
grep -q '"network": "lenet"' whole.json || die "whole.json does not name the network"
for phase in index epoch shuffle evaluation checkpoint; do
    grep -q "\"phase\": \"$phase\"" whole.json || die "whole.json has no phase $phase"
done

# Reads of the evaluations have latencies of their own: each evaluation reads the same.
says "; evaluation p50"
expect 0 train --epochs 1 --eval-data set --json once.json
says "first epoch p50" "; evaluation p50"
python3 - <<'END' || die "reads of evaluations"
import json
whole, once = (json.load(open(name))["jobs"][0]["summary"]["read_latency"] for name in ("whole.json", "once.json"))
assert whole["evaluation"]["reads"] == 3 * once["evaluation"]["reads"] > 0, (whole, once)
assert whole["first_epoch"]["reads"] + whole["later_epochs"]["reads"] == whole["reads"], whole
END

# Batches that share an update train as one batch of their size; the last update of an epoch takes what is left.
for options in "10 --accumulate 2" "5 --accumulate 4" 28 "14 --accumulate 2" "7 --accumulate 4"; do
    # shellcheck disable=SC2086
    expect 0 train --epochs 3 --batch-size $options --profile shared.ini --json "shared ${options%% *}.json"
done
# Clipping takes the norm of what they share.
expect 0 train --epochs 3 --clip-norm 0.01 --json clipped.json
expect 0 train --epochs 3 --clip-norm 0.01 --batch-size 10 --accumulate 2 --json "clipped 10.json"
python3 - <<'END' || die "batches that share an update"
import json, math
docs = {name: json.load(open(name + ".json")) for name in
        ("whole", "shared 10", "shared 5", "shared 28", "shared 14", "shared 7", "clipped", "clipped 10")}
for one, other in (("whole", "shared 10"), ("whole", "shared 5"), ("shared 28", "shared 14"), ("shared 28", "shared 7"),
                   ("clipped", "clipped 10")):
    a, b = docs[one], docs[other]
    assert a["recipe"] == b["recipe"], (a["recipe"], b["recipe"])
    assert a["batch_size"] * a["accumulate"] == b["batch_size"] * b["accumulate"], (a["batch_size"], b["batch_size"])
    for x, y in zip(a["epochs"], b["epochs"]):
        assert abs(x["loss"] - y["loss"]) < 1e-5 * x["loss"] and x["rate"] == y["rate"], (x, y)
assert docs["whole"]["accumulate"] == 1 and docs["whole"]["recipe"]["steps"] == 9, docs["whole"]
assert docs["shared 14"]["recipe"]["steps"] == 9, docs["shared 14"]["recipe"]
assert docs["whole"]["recipe"]["clip_norm"] is None and docs["clipped"]["recipe"]["clip_norm"] == 0.01, docs["clipped"]["recipe"]
for doc in docs.values(): # each image counts once, whatever shares an update
    epochs = doc["jobs"][0]["runs"][0]["epochs"]
    assert [epoch["samples"] for epoch in epochs] == [60, 60, 60], epochs
    recipe = doc["recipe"]
    for i, (row, epoch) in enumerate(zip(doc["epochs"], epochs)):
        done = (recipe["steps"] // 3 * (i + 1) - 1 - recipe["warmup_steps"]) / (recipe["steps"] - recipe["warmup_steps"])
        assert abs(row["rate"] - recipe["rate"] * (1 + math.cos(math.pi * done)) / 2) < 1e-9, (i, row["rate"]) # of the last step
        assert abs(row["samples_per_s"] * epoch["wall_s"] - 60) < 0.01, (row["samples_per_s"], epoch["wall_s"])
        parts = epoch["wait_s"] + epoch["compute_s"] + epoch["upload_s"] + epoch["exchange_s"] + epoch["update_s"]
        assert parts <= 1.001 * epoch["wall_s"], epoch # all of them are in the rate
last, clipped = (docs[name]["epochs"][-1]["loss"] for name in ("whole", "clipped"))
assert abs(clipped - last) > 1e-3 * last, (clipped, last)
END
grep -qx "batch=28" shared.ini || die "the profile's batch is not that of an update: $(cat shared.ini)"
expect 1 train --epochs 4 --checkpoint whole --resume --accumulate 2
says "whole/last.checkpoint: made with 20 samples per update over all ranks, not 40"

# The same seed gives the same bits, except for the time and the settings before them, and the CRC.
bits() { tail -c +1153 "$1/last.checkpoint" | head -c -4 | cksum; }
expect 0 train --epochs 3 --checkpoint again
[ "$(bits whole)" = "$(bits again)" ] || die "the same seed gave other bits"
expect 0 train --epochs 3 --checkpoint other --seed 4
[ "$(bits whole)" != "$(bits other)" ] || die "another seed gave the same bits"

# A checkpoint is replaced only on demand, and then the training is a new one.
before=$(cksum <other/last.checkpoint)
expect 1 train --epochs 3 --checkpoint other
says "a checkpoint exists" "--restart"
[ "$(cksum <other/last.checkpoint)" = "$before" ] || die "the checkpoint was changed"
expect 0 train --epochs 3 --checkpoint other --restart
[ "$(bits other)" = "$(bits whole)" ] || die "--restart continued"

# Of two trainings that save to one folder the second ends; --restart replaces checkpoints only.
before=$(cksum <other/last.checkpoint)
: >other/.iobench-lock
for how in --restart --resume; do
    # shellcheck disable=SC2086 # words without blanks
    expect 1 flock other/.iobench-lock "$IOBENCH" $LENET --epochs 4 --checkpoint other $how
    says "other/.iobench-lock: in use by another process"
done
rm other/.iobench-lock
[ "$(cksum <other/last.checkpoint)" = "$before" ] || die "a checkpoint in use was changed"
mkdir foreign
echo "my notes" >foreign/last.checkpoint
expect 1 train --epochs 1 --checkpoint foreign --restart
says "does not begin like an older output of this kind: not replaced"
[ "$(cat foreign/last.checkpoint)" = "my notes" ] || die "a foreign file was replaced"
[ ! -e foreign/.iobench-lock ] || die "a lock stays"

# A training that diverges is told, or ends where its loss is no number.
expect 0 train --epochs 3 --lr 0.05
says "the training diverged: the loss of the last epoch is" "that of guessing 1.1"
expect 1 train --epochs 3 --lr 1e6 --weight-decay 1e6
says "the loss is NaN or infinite at step " "use a lower rate"
before=$(cksum <whole/last.checkpoint)

# An evaluation is of the whole set, however little is trained on.
expect 0 train --epochs 1 --limit-samples 20 --eval-data set --export little.safetensors --json little.json
says "evaluated on the training set: its accuracy says nothing about other images"
expect 0 "$IOBENCH" infer --network lenet --size 32 --classes 3 --data set --init little.safetensors --decode-threads 1 \
    --compute-threads 1 --batch-size 60 --json infer.json
python3 - <<'END' || die "an evaluation and an inference differ"
import json
train, infer = json.load(open("little.json"))["epochs"][0], json.load(open("infer.json"))["batch_sizes"][0]
assert infer["samples"] == 60 and train["top1"] == infer["top1"] and train["top5"] == infer["top5"], (train, infer)
END
# What is reported of the data is of the training set: its order, its samples left out.
expect 0 "$IOBENCH" pack synthetic:count=20,classes=3,mean=6k,seed=6 unseen
expect 0 train --epochs 1 --eval-data unseen --json unseen.json
says "Order    shuffle epoch"
expect 0 "$IOBENCH" pack unseen unsupported -f files
for folder in unsupported/0*; do echo text >"$folder/odd.avif"; done
expect 1 train --epochs 1 --eval-data unsupported --json unsupported.json --csv unsupported.csv
says "DEGRADED: --eval-data: 3 samples are left out"
head -n 1 unsupported.csv | grep -q ',elapsed_s,cache_before,degraded,job_valid,synthetic,reason$' || die "the curve has no marks"
grep -q ',1,1,1,"--eval-data: 3 samples are left out' unsupported.csv || die "the curve drops it: $(cat unsupported.csv)"
grep -q '"unread_samples": 0' unsupported.json || die "samples of the evaluation set are counted in the training set"
grep -q "evaluated on the training set" unseen.json && die "another set is taken for the training set"
expect 1 train --epochs 4 --checkpoint whole --resume --limit-samples 20
says "made with 9 updates in 3 epochs, and this data set gives 1 per epoch"
[ "$(cksum <whole/last.checkpoint)" = "$before" ] || die "the checkpoint was changed"

# A profile for iobench size: figures of the network and of its steps, none of a storage that did not limit.
expect 0 train --epochs 3 --profile own.ini
for line in "title=lenet" "batch=20" "samples=60" "gradient-bytes=" "samples-per-s=" "decode-core-s="; do
    grep -q "^$line" own.ini || die "the profile lacks $line: $(cat own.ini)"
done
! grep -q "^read-bytes-per-s" own.ini || grep -q "Storage was the bottleneck" own.ini || die "a storage that did not limit"
expect 0 train --epochs 3 --profile own.ini --json own.json
expect 0 "$IOBENCH" size --simulate --gpus 2 --profile own.ini --json=sized.json
python3 - <<'END' || die "the profile is not what was measured: $(cat own.ini)"
import json
inputs = {k: v["value"] for k, v in json.load(open("sized.json"))["cases"][0]["inputs"].items()}
job = json.load(open("own.json"))["jobs"][0]
rates = [e["samples"] / (e["compute_s"] + e["upload_s"] + e["update_s"]) for e in job["runs"][0]["epochs"]]
assert min(rates) * 0.999 <= inputs["gpu samples-per-s"] <= max(rates) * 1.001, (rates, inputs)
assert inputs["network batch"] == 20 and inputs["data samples"] == 60, inputs
parameters = float(next(l for l in open("own.ini") if l.startswith("parameters=")).split("=")[1])
assert inputs["network gradient-bytes"] == 4 * parameters > 10000, inputs
END
expect 0 "$IOBENCH" size --simulate --gpus 2 --profile own.ini
says "iobench size: 2 x $(sed -n '/^\[gpu/,/^source/s/^title=//p' own.ini), lenet, on 1 x DGX H200"
echo "# mine" >precious
expect 2 train --epochs 1 --profile precious
[ "$(cat precious)" = "# mine" ] || die "a foreign file was replaced by a profile"

# Interrupted at any point, training resumes as if never stopped. Reads are slow, so the signal
# comes before the end: an epoch takes at least half a second, or three with the second rate.
cut_short() {
    for rate in 700k 120k; do
        epochs=8
        rm -rf cut
        # shellcheck disable=SC2086 # words without blanks
        "$IOBENCH" $LENET --batch-size 7 --accumulate 2 --epochs $epochs --limit-rate $rate --checkpoint cut >log 2>&1 &
        pid=$!
        while [ ! -e cut/last.checkpoint ] && kill -0 $pid 2>/dev/null; do sleep 0.01; done
        kill -INT $pid 2>/dev/null
        wait $pid && status=0 || status=$?
        [ "$status" != 1 ] || return 0
        [ "$status" = 0 ] || die "exit status $status when it was interrupted"
    done
    die "$epochs epochs went on in spite of SIGINT"
}
cut_short
expect 0 train --batch-size 7 --accumulate 2 --epochs "$epochs" --checkpoint cut --resume --json cut.json
! grep "another setting" cut.json || die "the same settings differ"
expect 0 train --batch-size 7 --accumulate 2 --epochs "$epochs" --checkpoint straight
[ "$(bits cut)" = "$(bits straight)" ] || die "what went on has other bits than what never stopped"
expect 1 train --batch-size 7 --accumulate 2 --epochs "$epochs" --checkpoint cut --resume
says "epochs are done"

# Training that is resumed with other settings goes on, and says what differs.
expect 0 train --epochs 3 --checkpoint whole --restart
expect 0 train --epochs 4 --lr 0.003 --momentum 0.5 --clip-norm 7 --shuffle none --decode jpeg:crop=1 --checkpoint whole \
    --resume --json differs.json
for setting in "lr 0.003, was 0.001" "momentum 0.5, was 0.875" "clip-norm 7, was 0" "epochs 4, was 3" \
    "shuffle none, was epoch" "decode jpeg:crop=1,size=32, was jpeg:size=32"; do
    says "resumed with another setting: $setting"
    grep -q "\"resumed with another setting: $setting\"" differs.json || die "differs.json does not say $setting"
done
[ "$(grep -c '"text": "resumed with another setting' differs.json)" = 6 ] || die "other settings differ: $(grep resumed differs.json)"

# So does one of another data set with as many samples.
cp -r set copy
expect 0 train --data copy --epochs 5 --checkpoint whole --resume
says "resumed with another setting: dataset.identity "

# BF16 keeps its weights in FP32: either precision continues from the checkpoint of the other.
if built_with DNNL && grep -q avx512_bf16 /proc/cpuinfo; then
    expect 0 train --epochs 1 --backend cpu:precision=bf16 --checkpoint two
    says "lenet on cpu, bf16, "
    expect 0 train --epochs 2 --backend cpu --checkpoint two --resume
    says "resumed with another setting: precision fp32, was bf16"
    says "lenet on cpu, fp32, "
    expect 0 train --epochs 3 --backend cpu:precision=bf16 --checkpoint two --resume --json two.json
    grep -q '"precision": "bf16"' two.json || die "two.json does not name the precision"
fi

expect 1 train --epochs 3 --checkpoint whole --resume --classes 4
says "3 classes"
expect 1 train --epochs 9 --checkpoint whole --resume --seed 9
says "--seed 3"
# The time to a target is that of the first evaluation that reaches it, which ends the training.
expect 0 train --epochs 5 --eval-data set --eval-every 2 --target 0.001 --json target.json
expect 0 train --epochs 2 --eval-data set --lr 0 --target 1 --json missed.json
python3 - <<'END' || die "the time to a target"
import json
doc, missed = json.load(open("target.json")), json.load(open("missed.json"))
epochs = doc["epochs"]
assert len(epochs) == 2 and epochs[0]["top1"] is None and epochs[1]["top1"] >= doc["target_top1"] == 0.001, epochs
assert doc["time_to_target_s"] == epochs[1]["elapsed_s"] > epochs[0]["elapsed_s"] > 0, doc["time_to_target_s"]
run = doc["jobs"][0]["runs"][0]["epochs"]
assert epochs[1]["elapsed_s"] > sum(epoch["wall_s"] for epoch in run), (epochs[1], run) # with the evaluation
assert len(missed["epochs"]) == 2 and missed["time_to_target_s"] is None, missed["time_to_target_s"]
END

# run times the same loop.
expect 0 "$IOBENCH" run --data set --trainer lenet:classes=3,threads=1 --decode jpeg:size=32 --runs 1 \
    --batch-size 20 --no-calibrate
says "lenet:classes=3"
expect 1 "$IOBENCH" run --data set --trainer lenet --decode none --runs 1 --no-calibrate
says "not square images"
echo "trained, cut and went on"
