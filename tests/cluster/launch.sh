#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `doctor --launch` says which job was started, and why processes that were started together do not
# find each other.
# shellcheck disable=SC2154 # expect sets out
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

expect 0 mpi 3 "$IOBENCH" doctor --launch
says "3 ranks on 1 node" "node $(uname -n)" "3 ranks, CPUs "
[ "$(printf '%s\n' "$out" | grep -c '^Launch')" = 1 ] || die "not one rank spoke:"
if is_open_mpi; then
    transport=btl_ # it chose one
    case $out in *"Open MPI v5"*) transport="not reported by this MPI" ;; esac
    says "Open MPI's mpirun" "Open MPI v" "$transport"
    other_size=PMI_SIZE other_rank=PMI_RANK other_local=MPI_LOCALRANKID
else
    says "MPICH"
    other_size=OMPI_COMM_WORLD_SIZE other_rank=OMPI_COMM_WORLD_RANK other_local=OMPI_COMM_WORLD_LOCAL_RANK
fi

# All on one CPU, though there are more: a binding that leaves ranks waiting for each other.
cpu=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
expect 0 mpi 2 taskset -c "$cpu" "$IOBENCH" doctor --launch
says "2 ranks, CPUs $cpu, shared by all" "fewer CPUs (1) than ranks"

# Another MPI's launcher: each process is a job of its own. Only the one that leads prints.
expect 1 env $other_size=4 $other_rank=0 "$IOBENCH" doctor --launch
says "4 processes, each of them alone: $other_size=4" "two MPIs are mixed; this program's is"
expect 1 env $other_size=4 $other_rank=1 "$IOBENCH" doctor --launch
[ -z "$out" ] || die "two processes spoke:"

# srun with an interface that this MPI does not know.
SLURM_STEP_NUM_TASKS=4 expect 1 "$IOBENCH" doctor --launch
says "srun" "SLURM_STEP_NUM_TASKS=4" "srun --mpi=list"
SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 expect 1 "$IOBENCH" doctor --launch
[ -z "$out" ] || die "two processes spoke:"

# A job says the same, once; and one process of each other host that it is lost, too.
expect 1 env $other_size=4 $other_rank=0 "$IOBENCH" net
says "$other_size=4: these processes were started together but cannot find each other"
expect 1 env $other_size=4 $other_rank=1 "$IOBENCH" net
[ "$out" = "iobench net: $other_size=4, but this process is alone: see the message of process 0" ] || die "two processes spoke:"
expect 1 env $other_size=4 $other_rank=2 $other_local=0 "$IOBENCH" net
[ "$out" = "iobench net: $other_size=4, but this process is alone: see the message of process 0" ] || die "two processes spoke:"
expect 1 env $other_size=4 $other_rank=1 $other_local=1 "$IOBENCH" net
[ -z "$out" ] || die "two processes of a host spoke:"

# Those that say nothing do not fail before the one that speaks has spoken: a launcher would end it.
{
    env $other_size=4 $other_rank=1 $other_local=1 "$IOBENCH" net >/dev/null 2>&1
    echo silent >>ended
} &
{
    env $other_size=4 $other_rank=0 "$IOBENCH" net >/dev/null 2>&1
    echo speaking >>ended
} &
wait
[ "$(head -n 1 ended)" = speaking ] || die "a process that says nothing ended first:"

# What a host lacks is said once for the host, since others may have it.
if [ -e "$PROGRAMS/iobench-mpi.so" ]; then
    "$IOBENCH" pack synthetic:count=20 set >/dev/null || die "no set"
    for command in "run --data set" net "train --data set" "checkpoint folder" "ramp --data set --batch-size 1"; do
        # shellcheck disable=SC2086 # words
        set -- env IOBENCH_MPI_MODULE=/nowhere/mpi.so "$IOBENCH" $command
        out=$(mpi 3 "$@" 2>&1) && die "joined without a module: $*"
        [ "$(printf '%s\n' "$out" | grep -c '^iobench ')" = 1 ] || die "not said once:"
        says "/nowhere/mpi.so"
        out=$(env $other_size=4 $other_rank=2 $other_local=0 "$@" 2>&1) && die "joined without a module: $*"
        says "iobench ${command%% *}: on $(uname -n): " "/nowhere/mpi.so"
        out=$(env $other_size=4 $other_rank=3 $other_local=1 "$@" 2>&1) && die "joined without a module: $*"
        [ -z "$out" ] || die "two processes of a host spoke:"
    done
fi

expect 0 "$IOBENCH" doctor --launch
says "no launcher" "mpirun -n 4" "1 rank on 1 node"
expect 2 "$IOBENCH" doctor --launch .
says "--launch looks at the job only"
echo "what is wrong with a launch is said"
