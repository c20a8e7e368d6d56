#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench net over verbs: on an emulated adapter that refuses what a real one would, and on a real one,
# soft-RoCE too, if this machine has any.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"
built_with VERBS || skip "built without libibverbs"
ABSENT=$("$IOBENCH" list transport | grep -A 1 "^  verbs " | grep -c unavailable)
IOBENCH_VERBS_MODULE=$(dirname "$IOBENCH")/tests/cluster/emulated_verbs.so
export IOBENCH_VERBS_MODULE

net() { # STATUS RANKS TRANSPORT OPTION...
    wanted_status=$1 ranks=$2 transport=$3
    shift 3
    expect "$wanted_status" mpi "$ranks" "$IOBENCH" net --transport "$transport" --repeats 2 --repeat-time 1ms "$@"
}

# ---- sizes around the limits: inline (55), copied (1 KiB), in one part (16 KiB); collectives by rings ----
for op in write read send; do
    net 0 3 verbs:op=$op,qps=2 --from 8 --to 128k --factor 16 --pair-size 4k
    says "RDMA $op from emulated0 port 2 (RoCE v2 192.0.2.7, GID 2)" "2 queue pairs per pair" "inline up to 55 bytes" \
        "received and verified, nothing damaged" "all_to_all"
done
net 0 2 verbs:inline=0 --from 8 --to 1032 --factor 129 --pairs none
says "inline up to 0 bytes" "received and verified"

# ---- more messages than an adapter holds small ones back for ----
net 0 2 verbs --from 1k --to 1k --pairs none --no-collectives --repeats 20
says "received and verified"

# ---- a damaged byte ----
net 1 2 verbs --to 8 --pairs none --no-collectives --damage 2
says "arrived damaged at byte"

# ---- which device, port and address ----
net 1 2 verbs:emulated0+none0
says "rank 1 on" "device none0: No such device"
net 1 2 verbs:device=emulated0,port=1
says "device emulated0: no active port"
net 1 2 verbs:gid=3
says "emulated0 port 2 has no GID 3"
net 1 2 verbs:gid=first
says "gid=first: expected an index"

# ---- where the library is missing, the program runs ----
IOBENCH_VERBS_MODULE=/nowhere.so
expect 0 "$IOBENCH" list transport
says "/nowhere.so"
unset IOBENCH_VERBS_MODULE

# ---- the real one ----
[ "$ABSENT" = 0 ] || {
    echo "on the emulated adapter only: this machine has no RDMA device"
    exit 0
}
for op in write read send; do
    net 0 2 verbs:op=$op --from 8 --to 16M --factor 1024
    says "RDMA $op from" "received and verified"
done
