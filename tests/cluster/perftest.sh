#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench net over verbs against perftest, in turns, between two QEMU guests with soft-RoCE: bandwidth of
# ib_write_bw, ib_read_bw and ib_send_bw, latency of ib_send_lat. A claim is the median of the ratios.
#
#   cd build && sudo srcdir=.. ../tests/cluster/perftest.sh [ROUNDS [OP...]]
# shellcheck source=tests/cluster/bed/qemu.sh
. "$(dirname "$0")/bed/qemu.sh"
command -v ib_write_bw >/dev/null || skip "ib_write_bw (perftest) is not installed"
ROUNDS=${1:-5}
[ $# -eq 0 ] || shift
OPS=${*:-write read send}

qemu_guest server 1024M
qemu_guest node1 1024M
await server node1
for guest in server node1; do must $guest ". $BED/guest.sh; make_rxe"; done
SERVER=$(address_of server)

# Emulated processors are so slow that sampling counters beside would take a good part of one; and they may stall
# for seconds, so that acknowledgements take long.
perftest() { # PROGRAM SIZE COLUMN: a column of its table
    perftest_command="$1 -d rxe0 -x 1 -s $2 -n ${4:-400} -u 20 -F ${5-}"
    must server "$perftest_command >/run/perftest 2>&1 &"
    must server "for i in \$(seq 600); do ss -tln | grep -q :18515 && exit; sleep 0.1; done; exit 1"
    must node1 "$perftest_command $SERVER"
    awk -v column="$3" -v size="$2" '$1 == size { print $column }' "$T/must"
}

net() { # SIZE KEY OP: a figure of iobench net
    mpirun_in "node1 server" 1 "$IOBENCH net --transport verbs:device=rxe0,timeout=20,op=$3 --from $1 --to $1 \
        --pairs none --no-collectives --repeats 5 --repeat-time 500ms --rank-timeout 5m --sample-interval none --json /run/net.json"
    on node1 "cat /run/net.json" >net.json
    value net.json "messages.sizes.0.$2"
}

claim() { # NAME FILE: with a line "OURS THEIRS" for each round
    awk '{ print $1 / $2 }' "$2" | sort -n | awk -v name="$1" '{ ratio[NR] = $1 } END {
        median = NR % 2 ? ratio[(NR + 1) / 2] : (ratio[NR / 2] + ratio[NR / 2 + 1]) / 2
        off = 100 * (median > 1 ? median - 1 : 1 - median)
        printf "claim %s ratio %.3f (%.3f .. %.3f), %.1f %% off goal <=5 %s\n", name, median, ratio[1], ratio[NR],
            off, off <= 5 ? "ok" : "short" }'
}

round=0
while [ $round -lt "$ROUNDS" ]; do
    round=$((round + 1))
    for op in $OPS; do
        for size in 65536 1048576; do
            theirs=$(perftest "ib_${op}_bw" "$size" 4 $((104857600 / size)))
            ours=$(net "$size" forth_bytes_per_s "$op")
            [ "$op" != read ] || ours=$(value net.json messages.sizes.0.back_bytes_per_s)
            echo "round $round: $op of $size bytes: $ours and $theirs MiB/s"
            awk -v a="$ours" -v b="$theirs" 'BEGIN { print a, b * 1048576 }' >>"$op-$size"
        done
    done
    theirs=$(perftest ib_send_lat 8 6 1000)
    ours=$(net 8 latency_s send)
    echo "round $round: latency: $ours s and $theirs us"
    awk -v a="$ours" -v b="$theirs" 'BEGIN { print a * 1000000, b }' >>latency
done
for op in $OPS; do
    for size in 65536 1048576; do
        claim "net verbs $op $size" "$op-$size"
    done
done
claim "net verbs latency 8" latency
