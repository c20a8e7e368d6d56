#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two guests with soft-RoCE: the infiniband probe counts the bytes that verbs moved, headers
# included; iobench net moves its messages through it, the longest in parts; a data set on NFS over RDMA is
# counted in full, by NFS and by the port.
# shellcheck source=tests/cluster/bed/qemu.sh
. "$(dirname "$0")/bed/qemu.sh"
command -v ib_write_bw >/dev/null || skip "ib_write_bw (perftest) is not installed"

qemu_guest server 1024M
qemu_guest node1 1024M
await server node1
for guest in server node1; do must $guest ". $BED/guest.sh; make_rxe"; done
server=$(address_of server)

# A RoCE v2 packet: Ethernet 14, IPv4 20, UDP 8, BTH 12, then data, then ICRC 4. The first packet of
# an RDMA WRITE also has RETH 16. (Interfaces do not count the frame's checksum of 4 bytes.)
PACKET=58
RETH=16

port() { on node1 "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/$1"; }

# Few bytes in flight and long time-outs limit retransmissions, which count as packets.
size=65536 count=128
for mtu in 1024 4096; do
    echo "== ib_write_bw, packets of $mtu bytes"
    verbs="ib_write_bw -d rxe0 -x 1 -m $mtu -s $size -n $count -t 2 -Q 1 -u 20"
    must server "$verbs >/run/verbs 2>&1 &"
    sleep 3
    sent=$(port sent_pkts)
    must node1 "$IOBENCH monitor --probes=infiniband,net --interval=500ms --json=/run/lines . -- $verbs $server"
    sent=$(($(port sent_pkts) - sent))
    on node1 "cat /run/lines" >lines
    packets=$((count * size / mtu))
    again=$((sent - packets))
    echo "rxe sent $packets packets and $again again"
    near "bytes sent by the port" "$(counted lines infiniband_transmit_bytes_per_s)" \
        $((count * size + packets * PACKET + count * RETH + again * (mtu + PACKET))) 1
done

# Of 16 MiB: soft-RoCE carries 8 MiB in one message.
for op in write read send; do
    echo "== iobench net, verbs:op=$op"
    received=$(port rcvd_pkts)
    mpirun_in "server node1" 1 "$IOBENCH net --transport verbs:device=rxe0,op=$op,qps=2,timeout=20 --from 8 --to 16MiB \
        --factor 2048 --repeats 2 --repeat-time 1ms --pairs none --rank-timeout 5m --json /run/net.json"
    grep -q "RDMA $op from rxe0 port 1" "$T/must" || die "not by RDMA $op: $(cat "$T/must")"
    on server "cat /run/net.json" >net.json
    verified=$(value net.json verified_bytes | cut -d . -f 1)
    received=$((($(port rcvd_pkts) - received) * 4096))
    at_most "bytes verified by both ranks, of twice those that this port could receive" "$verified" $((2 * received))
done

echo "== NFS over RDMA"
must server "mkdir /mnt/set; $IOBENCH pack synthetic:count=160,classes=4,mean=100k,seed=5 /mnt/set/set"
export_folder server /mnt/set
must node1 "modprobe -d $LINUX rpcrdma; . $BED/guest.sh; mount_nfs $server /mnt/nfs proto=rdma,port=20049"
must node1 "$IOBENCH run --data /mnt/nfs/set --dry-run"
file_bytes=$(on server "cat /mnt/set/set/* | wc -c")
must node1 "$IOBENCH monitor --interval=500ms --json=/run/lines /mnt/nfs -- \
    $IOBENCH run --data /mnt/nfs/set --decode none --no-calibrate --runs 1 --epochs 2 --memory 32m \
    --drop-caches --json /run/run.json"
on node1 "cat /run/lines" >lines
on node1 "cat /run/run.json" >run.json
on node1 "grep -A 12 'mounted on /mnt/nfs ' /proc/self/mountstats" >mountstats
grep -q "xprt:.*rdma" mountstats || die "not mounted by RDMA: $(cat mountstats)"
near "epoch 1, bytes from the server" "$(value run.json jobs.0.runs.0.epochs.0.device_read_bytes)" "$file_bytes" 1
near "epoch 2, bytes from the server" "$(value run.json jobs.0.runs.0.epochs.1.device_read_bytes)" 0 0
near "bytes received by the port" "$(counted lines infiniband_receive_bytes_per_s)" \
    $((file_bytes + file_bytes * PACKET / 4096)) 1
