#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench net --beside: gradients and reads of two hosts (network namespaces), alone and both at once. Ports count what
# the formula says of gradients; received - sent is what an NFS server sent, or nothing where files are local.
# shellcheck disable=SC2154 # ns is that of server.sh
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

is_open_mpi || skip "these hosts are reached by options of Open MPI's launcher"
command -v python3 >/dev/null || skip "no python3"
only="--no-messages --no-collectives --pairs none"

# What is wrong is told once, before anything is measured.
for reads in "--data nowhere" "--dat set" "--data set --json x" "--decode jpeg" "--data set --format none"; do
    # shellcheck disable=SC2086 # words
    expect 2 mpi 2 "$IOBENCH" net $only --beside "$reads"
    [ "$(printf '%s\n' "$out" | grep -c "iobench net: --beside '$reads'")" = 1 ] || die "not told once:"
done
# shellcheck disable=SC2086 # words
expect 2 mpi 2 "$IOBENCH" net $only --sandbox yes --beside "--data set"
says "--sandbox yes forbids what --beside reads"
expect 0 "$IOBENCH" pack synthetic:count=400,classes=3,mean=20k,seed=5 set
# A set that only one host has: the rank without it is named.
# shellcheck disable=SC2086 # words
set -- "$IOBENCH" net $only --network lenet --rounds 1 --beside
expect 1 mpi_pair "$@" "--data set" -- "$@" "--data nowhere"
says "rank 1 on" "nowhere does not exist"
# shellcheck disable=SC2086 # words
expect 1 mpi 2 "$IOBENCH" net $only --damage 2 --rounds 1 --exchange-time 10ms --network lenet --step-time 1ms \
    --beside "--data set --calibrate=no --memory 16m"
says "a sum over all ranks is wrong at byte 0"
# Reads that are degraded make the figures doubtful, in every form.
cp -r set broken
printf x | dd of="$(find broken -name 'train-*' ! -name '*.idx' | head -n 1)" bs=1 seek=30000 conv=notrunc status=none
# shellcheck disable=SC2086 # words
expect 1 mpi 2 "$IOBENCH" net $only --exchange-time 10ms --rounds 1 --network lenet --step-time 1s --json degraded.json \
    --beside "--data broken --decode checksum --on-error skip --calibrate=no --memory 16m"
says "DEGRADED the reads" "Doubt" "steps only" "; cache "
python3 - <<'END' || die "the JSON drops it: $(cat degraded.json)"
import json
net = json.load(open("degraded.json"))
assert net["degraded"] and net["degraded_reason"].startswith("the reads"), net["degraded_reason"]
beside = net["beside"]
assert "steps only" in beside["doubt"] and beside["storage"] and beside["reads"]["cache_before"], beside
END
make_hosts 2

# beside OPTIONS: reads of this set, beside the gradients of LeNet.
beside() {
    # shellcheck disable=SC2086 # words
    expect 0 on_hosts "$IOBENCH" net $only --transport tcp --network lenet --step-time 10ms --exchange-time 300ms --rounds 2 \
        --json net.json --sample-interval 20ms --beside "run --decode checksum --memory 16m -t 1 --calibrate=no $1"
    says "Gradients and reads: 2 rounds of each alone and both at once" "lenet in FP32" "all-reduced by 2 ranks" \
        "step, ms" "reads, samples/s" "received" "sent"
}
cat >check.py <<'END'
import json, sys
net = json.load(open("net.json"))
beside, (low, high) = net["beside"], map(float, sys.argv[1:])
gradients, stages = beside["gradients"], {stage["name"]: stage for stage in beside["stages"]}
assert list(stages) == ["exchange", "reads", "both"] and beside["rounds"] == 2, beside
assert gradients["buckets"] == 3 and gradients["compute_s"] == 0.01 and gradients["bytes"] > 1e6, gradients
assert gradients["alone_step_s"] >= 0.01 and 0 <= gradients["alone_late_percent"] < 100, gradients
# What is not computing is late: the last bucket cannot be added up in no time.
assert 0 < gradients["alone_late_percent"] < 100 and gradients["alone_step_s"] > 0.01, gradients
# Every sample once in each round, by both ranks together.
for name in "reads", "both":
    assert stages[name]["samples"] == 800, stages[name]
    assert stages[name]["request_bytes"] >= stages[name]["record_bytes"] > 800 * 10000, stages[name]
assert stages["exchange"]["samples"] == 0 and stages["reads"]["steps"] == 0, stages
for name in "exchange", "both":
    stage = stages[name]
    assert stage["steps"] >= 2, stage
    # Of a ring of two: each rank sends its gradients once.
    formula = 2 * stage["steps"] * gradients["bytes"]
    assert abs(stage["expected_gradient_bytes"] / formula - 1) < 1e-6, stage
assert net["verified_bytes"] == 2 * 2 * 2 * gradients["bytes"], net["verified_bytes"] # 2 rounds of 2 stages on 2 ranks
extra = {name: stage["excess_bytes"] / max(stage["request_bytes"], 1) for name, stage in stages.items()}
print({name: (stage["sent_bytes"] / max(stage["expected_gradient_bytes"], 1), extra[name]) for name, stage in stages.items()})
# Headers and acknowledgements; the control plane is not counted in the formula.
assert 1 < stages["exchange"]["sent_bytes"] / stages["exchange"]["expected_gradient_bytes"] < 1.15, stages
assert low < extra["reads"] < high and low < extra["both"] < high, extra
phases = [(phase["phase"], phase["epoch"]) for phase in net["series"]["phases"]]
assert sorted(phases) == sorted((name, number) for name in stages for number in (1, 2)), phases
END
beside "--data $T/set"
says "the reads did not come over these ports"
python3 check.py -0.2 0.2 || die "local files: $out"
expect 0 "$IOBENCH" report -o net.html net.json
grep -q '"excess_bytes"' net.html || die "the page lacks the stages"

# A rank whose reads fail is named, with the cause.
# shellcheck disable=SC2086 # words
expect 1 on_hosts "$IOBENCH" net $only --network lenet --rounds 1 --exchange-time 10ms --beside "--data $T/broken --calibrate=no --memory 16m"
says "on host" "offset"

# The same over the network.
for program in ganesha.nfsd rpcbind; do
    PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null || { echo "no NFS server: $program"; exit 0; }
done
"$IOBENCH" list reader | grep -q '^ *nfs ' || { echo "no NFS server: built without libnfs"; exit 0; }
cd "$PROGRAMS" || exit
# shellcheck source=tests/fault/server.sh
. "$SRCDIR/tests/fault/server.sh"
trap 'clean; $CLEANUP; rm -rf "$T"' EXIT
cd "$T" || exit
ip link add "s$BRIDGE" type veth peer name eth1 netns "$ns" && ip link set "s$BRIDGE" master "$BRIDGE" up
ip -n "$ns" addr add "$NET.200/24" dev eth1
ip -n "$ns" link set eth1 up
cp -r set "$tmp/export/set"
beside "--data nfs://$NET.200$tmp/export/set"
says "received - sent is" "of what was asked to read alone"
python3 check.py 0.98 1.1 || die "from an NFS server: $out"
