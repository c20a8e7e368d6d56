#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A Slurm of its own, with this machine as its node: srun starts one job by PMIx (Open MPI) or PMI-2 (MPICH), the
# wrong --mpi is explained, and a killed rank is named although srun goes on without it. Only with IOBENCH_LONG=1.
# shellcheck disable=SC2154 # expect sets out
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

[ -n "${IOBENCH_LONG-}" ] || skip "starts a Slurm: set IOBENCH_LONG=1"
[ "$(id -u)" = 0 ] || skip "Slurm needs root"
for program in slurmctld slurmd munged srun; do
    command -v $program >/dev/null || skip "$program is not installed (package slurm-wlm)"
done
if is_open_mpi; then type=pmix name="srun, PMIx"; else type=pmi2 name="PMI"; fi

# shellcheck disable=SC2034 # cli.sh calls it
CLEANUP=take_down
take_down() {
    for pid in ${daemons-}; do kill "$pid" 2>/dev/null; done
    for pid in ${daemons-}; do wait "$pid" 2>/dev/null; done
}
start() { # LOG COMMAND...: in the background, ended with this test
    log=$1
    shift
    "$@" >"$log" 2>&1 &
    daemons="${daemons-} $!"
}
until_true() { # COMMAND...
    tries=0
    until "$@" >/dev/null 2>&1; do
        for pid in $daemons; do
            kill -0 "$pid" 2>/dev/null || skip "Slurm does not run here: $(tail -n 3 ./*.log)"
        done
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || die "never true: $*: $(tail -n 5 ./*.log)"
        sleep 0.1
    done
}
ports=$(python3 -c 'import socket
holders = [socket.socket() for _ in range(2)]
for holder in holders: holder.bind(("127.0.0.1", 0))
print(*(holder.getsockname()[1] for holder in holders))')
cat >slurm.conf <<END
ClusterName=iobench
SlurmctldHost=localhost
SlurmctldPort=${ports% *}
SlurmdPort=${ports#* }
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$T/munge.socket
CredType=cred/munge
StateSaveLocation=$T/state
SlurmdSpoolDir=$T/spool
SlurmctldPidFile=$T/slurmctld.pid
SlurmdPidFile=$T/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
NodeName=here NodeHostname=$(uname -n) NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
export SLURM_CONF="$T/slurm.conf"
srun --mpi=list 2>&1 | grep -q "\b$type\b" || skip "this Slurm has no $type"
mkdir state spool
head -c 1024 /dev/urandom >munge.key
chmod 400 munge.key
start munged.log munged --foreground --force --socket "$T/munge.socket" --key-file "$T/munge.key" \
    --pid-file "$T/munge.pid" --log-file "$T/munge.log" --seed-file "$T/munge.seed"
until_true [ -S munge.socket ]
start slurmctld.log slurmctld -D
start slurmd.log slurmd -D -N here
is_idle() { [ "$(sinfo -h -o %T)" = idle ]; }
until_true is_idle

expect 0 srun -n 3 --mpi=$type "$IOBENCH" doctor --launch
says "$name" "3 ranks on 1 node"
expect 0 srun -n 2 --mpi=$type "$IOBENCH" net --to 8 --repeats 2 --repeat-time 1ms
says "valid, 2 ranks on 1 node"
expect 1 srun -n 2 --mpi=none "$IOBENCH" doctor --launch
says "2 processes, each of them alone" "srun --mpi=list"
[ "$(printf '%s\n' "$out" | grep -c '^Launch')" = 1 ] || die "not one rank spoke:"

# Killed: srun names the task, or where it goes on without it, the rank that waits for it does.
srun -n 2 --mpi=$type --kill-on-bad-exit=0 "$IOBENCH" net --repeats 10000 --repeat-time 100ms --rank-timeout 2s >log 2>&1 &
job=$!
until_true grep -q "measuring 2 ranks" log
for pid in $(pgrep -x iobench); do
    { tr '\0' '\n' <"/proc/$pid/environ"; } >environ 2>/dev/null || continue
    ! { grep -q '^SLURM_PROCID=1$' environ && grep -qx "SLURM_CONF=$SLURM_CONF" environ; } || kill -KILL "$pid"
done
wait $job && die "succeeded without a rank: $(cat log)"
grep -q "task 1: Killed\|rank 1 on $(uname -n)" log || die "nobody names rank 1: $(cat log)"
echo "srun starts one job by $type"
