#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench net between GPUs, by NCCL and by copies: the host stands in for the devices, and our own
# library for NCCL.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/../cluster/cluster.sh"

IOBENCH_NET_NCCL_MODULE=$PROGRAMS/tests/cuda/emulated_net_nccl.so
IOBENCH_NET_P2P_MODULE=$PROGRAMS/tests/cuda/emulated_net_p2p.so
export IOBENCH_NET_NCCL_MODULE IOBENCH_NET_P2P_MODULE

net() { # STATUS RANKS TRANSPORT OPTION...
    wanted_status=$1 ranks=$2 transport=$3
    shift 3
    expect "$wanted_status" mpi "$ranks" "$IOBENCH" net --transport "$transport" --repeats 2 --repeat-time 1ms \
        --from 8 --to 32k --factor 4096 --pair-size 4k "$@"
}

net 0 3 nccl
says "NCCL 2." "(emulated)" "received and verified, nothing damaged" "All pairs" "all_to_all"
net 0 3 p2p --no-collectives
says "copies between GPUs" "received and verified, nothing damaged" "All pairs"

# ---- what the device holds is what is verified ----
for transport in nccl p2p; do
    net 1 2 $transport --no-collectives --damage 2
    says "arrived damaged at byte"
done
net 1 2 nccl --no-messages --pairs none --damage 2
says "a sum over all ranks is wrong at byte 0"

net 2 2 p2p
says "p2p has no collectives: give --no-collectives"
