#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two network namespaces, joined by a bridge, stand for two hosts: their ranks talk by TCP.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

is_open_mpi || skip "these hosts are reached by options of Open MPI's launcher"
make_hosts 2

# Replacement for ssh: a process in the other host's network, with its own host name and shared
# memory; the second host's clock has a different uptime.
unshare -T --monotonic 5000 true 2>/dev/null && later="-T --monotonic 5000"
cat >agent <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do case \$1 in -l | -p | -o) shift ;; esac; shift; done
host=\${1##*.}
shift
[ \$host = 2 ] && clock="${later-}"
exec ip netns exec $BRIDGE-\$host unshare -u -m \${clock-} sh -c \\
    "hostname host\$host; mount -t tmpfs tmpfs /dev/shm; [ \$host = 1 ] || [ ! -d $T/strict ] ||
     { mount -t tmpfs tmpfs $T/strict && cp $T/set/* $T/strict; }
     cd $T; exec sh -c \"\\\$*\"" sh "\$@"
END
chmod +x agent
hosts() { # COUNT COMMAND...: ranks on host1 first
    count=$1
    shift
    timeout 600 "$MPIRUN" -n "$count" --host "$NET.1:$(((count + 1) / 2)),$NET.2:$((count / 2))" --bind-to none \
        --mca plm_rsh_agent "$T/agent" --mca btl self,vader,tcp --mca btl_tcp_if_include "$NET.0/24" \
        --mca oob_tcp_if_include "$NET.0/24" "$@"
}
expect 0 hosts 3 "$RANKS" 5 auto auto 4 # two on the first host
says "3 ranks: tiny differs by" "3 ranks: lenet differs by"

# One chart of both hosts, on one clock.
expect 0 "$IOBENCH" pack synthetic:count=256,classes=3,mean=6k,seed=5 set
expect 0 hosts 4 "$IOBENCH" train --network lenet --size 32 --classes 3 --data set --batch-size 4 --accumulate 2 \
    --decode-threads 1 --compute-threads 1 --lr 0.001 --memory 16m --epochs 2 --json both.json \
    --series both.csv --sample-interval 10ms
says "4 on 2 nodes" "host1" "host2" "Clocks"
[ "$(grep -c '"clock_uncertainty_s"' both.json)" = 2 ] || die "both.json does not know of two clocks"
awk -F, '
    function off(value, wanted) { return value < wanted - 1 || value > wanted + 1 }
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    { seconds = $1 - before; before = $1
      all += seconds * $column["trained_samples_per_s"]
      for (host = 1; host <= 2; host++)
          trained[host] += seconds * $column["host" host ":trained_samples_per_s"]
      expected += seconds * $column["expected_gradient_bytes_per_s"]
      sent += seconds * $column["fabric_send_bytes_per_s"] }
    END {
        printf "trained %.3f = %.3f + %.3f; gradients expected %d, sent %d\n", all, trained[1], trained[2],
            expected, sent
        if (off(trained[1], 256) || off(trained[2], 256) || off(all, 512)) exit 1
        if (sent < 0.9 * expected || sent > 1.3 * expected) exit 2
    }' both.csv >sums || die "the hosts do not add up: $(cat sums)"

# What the link counts is what the formula says, for each step: longer runs send that much more.
train_on() { # RANKS EPOCHS [OPTION...]: sets sent, the bytes of host1
    count=$1 epochs=$2
    shift 2
    sent=$(cat "/sys/class/net/v1$BRIDGE/statistics/rx_bytes")
    expect 0 hosts "$count" "$IOBENCH" train --network lenet --size 32 --classes 3 --data set "$@" --decode-threads 1 \
        --compute-threads 1 --lr 0.001 --memory 16m --epochs "$epochs" --buckets 1 --sample-interval none --profile trained.ini
    sent=$(($(cat "/sys/class/net/v1$BRIDGE/statistics/rx_bytes") - sent))
}
for count in 2 4; do
    batch="--batch-size 8"
    [ $count = 2 ] || batch="--batch-size 4 --accumulate 2" # exchanged once an update
    # shellcheck disable=SC2086 # words without blanks
    train_on $count 1 $batch
    once=$sent
    # shellcheck disable=SC2086
    train_on $count 3 $batch
    echo "$count $(sed -n 's/^gradient-bytes=//p' trained.ini) $((sent - once))" | awk '{
        steps = 2 * 256 / 8 / $1
        wanted = $2 * steps # 2 (N - 1) / N on 2 nodes, however many ranks each has
        printf "%d ranks: %d bytes of gradients sent, %d by formula\n", $1, $3, wanted
        exit !($3 > 0.98 * wanted && $3 < 1.04 * wanted) }' >>sums || die "gradients: $(tail -n 1 sums)"
done

for file in both.json both.csv; do
    expect 0 "$IOBENCH" plot -o chart.svg $file
    for title in host1 host2 "all nodes" "Fabric of host2"; do
        grep -q ">$title<" chart.svg || die "$file: no $title in its chart"
    done
done

# Each node's own disks: the figures of one.
expect 0 hosts 4 "$IOBENCH" size --measure set --read-sizes 4k --depths 3 --measure-time 10ms --save own.ini
says "the mean of 2 nodes"
grep -q '^scope=node' own.ini || die "a local disk serves the whole job"
grep -q '^curve-4096=6:' own.ini || die "not what two ranks of a node have in flight: $(grep curve own.ini)"

# A study on emulated nodes: each rank has a host of its own, with its link, and nothing is left.
command -v jq >/dev/null && {
    cat >nodes.ini <<'END'
[study]
title=Nodes
found=Nothing.
source=me
[data set]
pack=pack synthetic:count=64,classes=3,mean=6k {target} --format recordio
[run {each} nodes]
each=1 2
ranks={each}
command=train --network lenet --size 32 --classes 3 --data {set} --batch-size 8 --epochs 1 --decode-threads 1 --compute-threads 1
[table]
column=nodes: job.engine.nodes
column=sent: job.series.origin.fabric_send_bytes
column=images/s: job.runs[0].epochs[0].samples_per_s
all=speed_up(rows, "nodes", "images/s", 0)
[says]
first=list(of(rows, "{nodes} send {if sent > 100000 then "much" else "little"}"))
END
    expect 0 "$IOBENCH" study ./nodes.ini -o nodes --emulate-nodes --link-rate 100MB/s
    says "1 send little and 2 send much" "speed-up" "efficiency"
    [ "$(jq -r '.jobs[0].place.host' nodes/1-nodes.json)" = node1 ] || die "one rank is not on node1"
    [ "$(jq -c '[.. | .host? | strings] | unique' nodes/2-nodes.json)" = '["node1","node2"]' ] ||
        die "two ranks are not on two nodes: $(jq -c '[.. | .host? | strings]' nodes/2-nodes.json)"
    # Over NFS, what a node receives beyond what it sends is what its rank reads; the server ends with the study.
    if command -v ganesha.nfsd >/dev/null && command -v rpcbind >/dev/null && "$IOBENCH" list reader | grep -q '^ *nfs '; then
        sed -i 's/^column=sent.*/&\ncolumn=excess: job.series.origin.fabric_excess_bytes\ncolumn=read: job.series.origin.read_bytes/' nodes.ini
        expect 0 "$IOBENCH" study ./nodes.ini -o nfs --sets sets --emulate-nodes --file-server --json=nfs.json
        [ "$(jq '[.rows[] | .read > 300000 and (.excess / .read - 1 | fabs) < 0.02] | all' nfs.json)" = true ] ||
            die "not what was read: $(jq -c '.rows[] | [.read, .excess]' nfs.json)"
        # A run of one process reads from the server too, if it alone is due.
        sed 's/^\[table\]/[run alone]\ncommand=run --data {set} --runs 1 --no-calibrate --decode none\n&/' nodes.ini >alone.ini
        expect 0 "$IOBENCH" study ./alone.ini -o nfs --sets sets --emulate-nodes --file-server
        rm nfs/alone.json
        expect 0 "$IOBENCH" study ./alone.ini -o nfs --sets sets --emulate-nodes --file-server
        jq -e '.jobs[0].valid' nfs/alone.json >/dev/null || die "no server for a run that alone is due"
        for _ in $(seq 240); do
            pgrep -f "ganesha.nfsd -F -f /run/netns/nfs/conf" >/dev/null || break
            sleep 0.25
        done
        ! pgrep -f "ganesha.nfsd -F -f /run/netns/nfs/conf" >/dev/null || die "the NFS server is left"
    fi
    # Other tests add and remove links of their own meanwhile.
    ! ip -o link | grep -qE ' (nodes|link[0-9]+)[@:]' || die "emulated nodes are left: $(ip link)"
    ! ip netns list | grep -qE '^node[0-9]' || die "emulated nodes are left: $(ip netns list)"
    command -v setpriv >/dev/null && chmod 755 . && {
        expect 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$IOBENCH" study "$T/nodes.ini" -o "$T/no" --emulate-nodes
        says "needs root"
    }
}

# Beds of guests stop waiting for one that has died.
if command -v python3 >/dev/null; then
    true &
    dead=$!
    wait $dead
    expect 255 timeout 120 ip netns exec "$BRIDGE-1" python3 "$SRCDIR/tests/cluster/bed/agent.py" wait "$NET.1" 600 $dead
    says "has ended"
fi

# Strict: names the host whose caches cannot be dropped.
mkdir strict && cp set/* strict
expect 1 hosts 2 "$IOBENCH" run --data strict --runs 1 --memory 16m --decode checksum \
    --calibrate=no --drop-caches=strict
says "rank 1 on host2: "
cat sums
echo "two hosts agree"
