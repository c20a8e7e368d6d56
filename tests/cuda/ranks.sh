#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks whose gradients lie on devices learn what one process learns alone: added up by NCCL on the
# devices' stream, and by MPI on copies in the host's memory. The host stands in for the devices.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/../cluster/cluster.sh"

IOBENCH_CUDA_MODULE=$(dirname "$IOBENCH")/tests/cuda/emulated.so
IOBENCH_NCCL_MODULE=$(dirname "$IOBENCH")/tests/cuda/emulated_nccl.so
export IOBENCH_CUDA_MODULE IOBENCH_NCCL_MODULE

pairs="nccl mpi" # of two ranks; a tree and a ring of two are one shape, that of three below are not
steps=2          # the second uses what the first has learned
[ "${IOBENCH_LONG:-0}" = 0 ] || pairs="$pairs p2p:tree p2p:ring" steps=4
for exchange in $pairs; do
    expect 0 mpi 2 "$RANKS" 3 "$exchange" cuda:fp32,plans=none $steps
    says "2 ranks: tiny differs by" "2 ranks: lenet differs by"
done
for shape in tree ring; do # an odd number of them
    expect 0 mpi 3 "$RANKS" 3 p2p:$shape cuda:fp32,plans=none $steps
    says "3 ranks: tiny differs by" "3 ranks: lenet differs by"
done

# ---- sums, number by number ----
sums() { # RANKS WIRE BYTES
    expect 0 mpi "$1" "$RANKS" 3 "nccl:wire=$2" - sums
    says "$1 ranks: nccl:wire=$2: 0 of 40064 sums are wrong; $3 bytes sent"
}
sums 2 fp32 80128
sums 2 fp16 40064
sums 3 fp16 53418
expect 1 mpi_pair "$RANKS" 3 nccl:wire=fp32 - sums -- "$RANKS" 3 nccl:wire=fp16 - sums
says "or send different types"
# In FP16 too weights are learnt, if not the same ones.
expect 0 mpi 2 "$RANKS" 3 nccl:wire=fp16 cuda:fp32,plans=none 2
says "2 ranks: tiny differs by"

# ---- the program: both exchanges learn the same; gradients on the host are none of NCCL's ----
expect 0 "$IOBENCH" pack synthetic:count=32,classes=3,mean=6k,seed=5 set
train() { # STATUS EXCHANGE BACKEND
    wanted_status=$1 exchange=$2 backend=$3
    shift 3
    expect "$wanted_status" mpi 2 "$IOBENCH" train --network lenet --size 16 --classes 3 --data set \
        --batch-size 8 --decode-threads 1 --compute-threads 1 --lr 0.001 --memory 16m --epochs 1 \
        --exchange "$exchange" --backend "$backend" "$@"
}
train 0 nccl cuda:fp32,plans=none --json nccl.json
train 0 mpi cuda:fp32,plans=none --json mpi.json
train 0 p2p cuda:fp32,plans=none --json p2p.json
for name in nccl mpi p2p; do
    sed -n 's/.*"loss": \([0-9.]*\).*/\1/p' $name.json | head -n 1 >$name.loss
    [ -s $name.loss ] || die "no loss in $name.json"
done
[ "$(cat nccl.loss mpi.loss p2p.loss | sort -u | wc -l)" = 1 ] ||
    die "the exchanges disagree: $(cat nccl.loss mpi.loss p2p.loss)"
# Gradients of two batches are added up on the device, and exchanged at once.
for exchange in nccl mpi p2p; do
    train 0 "$exchange" cuda:fp32,plans=none --batch-size 4 --accumulate 2 --epochs 2 --json halves.json
    train 0 "$exchange" cuda:fp32,plans=none --epochs 2 --json whole.json
    python3 - <<'END' || die "$exchange: two batches are not as one of twice the size"
import json
whole, halves = (json.load(open(name))["epochs"] for name in ("whole.json", "halves.json"))
for a, b in zip(whole, halves):
    assert abs(a["loss"] - b["loss"]) < 1e-5 * a["loss"] and a["rate"] == b["rate"], (a, b)
END
done
# NCCL's limit on multiprocessors: as given; 16 if it overlaps with compute; none at the end.
limited() { # STATUS LIMIT EXCHANGE [OPTION...]
    IOBENCH_MOCK_CTAS=$2
    export IOBENCH_MOCK_CTAS
    train "$1" "$3" cuda:fp32,plans=none "$4" "$5"
    unset IOBENCH_MOCK_CTAS
}
limited 0 3 nccl:ctas=3 --buckets 2
limited 0 3 nccl:ctas=3 --buckets 1
limited 0 16 nccl --buckets 2
limited 0 none nccl --buckets 1
limited 1 16 nccl:ctas=3 --buckets 2
says "exchange nccl: join the other ranks"
# Memory that NCCL does not register is copied: told, as is every fall-back.
for mode in fails nothing; do
    IOBENCH_MOCK_REGISTER=$mode
    export IOBENCH_MOCK_REGISTER
    train 0 nccl cuda:fp32,plans=none
    unset IOBENCH_MOCK_REGISTER
    says "NCCL copies the gradients of 2 of 2 ranks"
done
# Gradients lie in NCCL's memory, whatever their type, and elsewhere if there is none: told.
lies() { # MODE EXCHANGE [MODULE]
    IOBENCH_MOCK_MEMORY=$1 saved=$IOBENCH_NCCL_MODULE
    IOBENCH_NCCL_MODULE=${3:-$saved}
    export IOBENCH_MOCK_MEMORY IOBENCH_NCCL_MODULE
    train 0 "$2" cuda:fp32,plans=none --json lies.json
    unset IOBENCH_MOCK_MEMORY
    IOBENCH_NCCL_MODULE=$saved
}
for exchange in nccl nccl:wire=fp16; do
    lies wanted "$exchange"
    printf '%s\n' "$out" | grep -q "may have to copy" && die "NCCL's memory is not NCCL's"
    lies none "$exchange"
    says "memory that" "may have to copy: ncclMemAlloc: an error of the stand-in"
    lies any "$exchange" "$(dirname "$IOBENCH")/tests/cuda/emulated_nccl_old.so"
    says "may have to copy: NCCL 2." "has no ncclMemAlloc: needs 2.19"
done
[ "$(sed -n 's/.*"loss": \([0-9.]*\).*/\1/p' lies.json | head -n 1 | cut -c1-4)" = "$(cut -c1-4 nccl.loss)" ] ||
    die "an old NCCL learns something else"
# The type on the wire is told, and the same on all ranks.
train 0 nccl:wire=fp16 cuda:fp32,plans=none --json fp16.json
says "gradients sent as fp16 by nccl"
grep -q '"wire": "fp16"' fp16.json || die "fp16.json does not name the type on the wire"
grep -q '"exchange": "nccl"' fp16.json || die "fp16.json does not name the exchange"
grep -q '"wire": "fp32"' mpi.json || die "mpi.json does not name the type on the wire"
train 1 nccl:ctas=65 cuda:fp32,plans=none
train 1 nccl reference
says "exchange nccl sums on GPUs"
train 1 p2p reference
says "exchange p2p copies between GPUs"
train 1 p2p:star cuda:fp32,plans=none
says "ring"
