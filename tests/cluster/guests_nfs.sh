#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A kernel NFS server and kernel NFS clients: reported bytes match the counts of the client's
# kernel, the server's kernel and the wire between them; cold means cold on the server too; cached
# data is not fetched again, data that does not fit is. monitor reports the same, live and around a
# command.
# shellcheck source=tests/cluster/bed/uml.sh
. "$(dirname "$0")/bed/uml.sh"

truncate -s 320M disk.img
mke2fs -q -F -t ext4 disk.img
uml_guest server 768M "$T/disk.img"
uml_guest node1 512M
uml_guest node2 160M # does not hold the set
await server node1 node2
must server "mount /dev/ubda /mnt/disk; $IOBENCH pack synthetic:count=1000,classes=10,mean=100k,seed=5 /mnt/disk/set"
export_folder server /mnt/disk
for node in node1 node2; do
    must $node ". $BED/guest.sh; mount_nfs $(address_of server) /mnt/nfs"
done
file_bytes=$(on server "cat /mnt/disk/set/* | wc -c")

server_disk() { on server "awk '{ print \$3 * 512 }' /sys/block/ubda/stat"; }
fetched() { # NAME: bytes the server sent to a node's applications, from the kernel
    on "$1" "awk '/^device .* \/mnt\/nfs / { on = 1 } on && \$1 == \"bytes:\" { print \$6; exit }' /proc/self/mountstats"
}
served() { on server "awk '\$1 == \"io\" { print \$2 }' /proc/net/rpc/nfsd"; } # bytes of READs by the server's count
wire() { # NAME: bytes sent to a node, counted by the bridge port outside the guests
    ip -s link show dev "guest$(($(address_of "$1" | cut -d . -f 4)))" | awk 'on { print $1; exit } $1 == "TX:" { on = 1 }'
}

# run NODE JSON OPTION...: two epochs
run() {
    node=$1 json=$2
    shift 2
    disk=$(server_disk) before=$(fetched "$node") nfsd=$(served) wire=$(wire "$node")
    must "$node" "$IOBENCH run --data /mnt/nfs/set --decode none --no-calibrate --runs 1 --epochs 2 --memory 32m $* --json /run/run.json"
    on "$node" "cat /run/run.json" >"$json"
    disk=$(($(server_disk) - disk)) before=$(($(fetched "$node") - before))
    nfsd=$(($(served) - nfsd)) wire=$(($(wire "$node") - wire))
}
epoch() { value "$1" "jobs.0.runs.0.epochs.$2.device_read_bytes"; }

must node1 "$IOBENCH run --data /mnt/nfs/set --dry-run" # builds the index, once

echo "== the server drops too"
run node1 cold.json "--drop-caches=strict --server-drop-cmd \"$(forget_command server)\" \
    --server-check-cmd \"$(check_command server /mnt/disk/set)\""
[ "$(value cold.json jobs.0.summary.cache_before)" = cold ] || die "the run was not cold"
[ "$(value cold.json jobs.0.runs.0.cold.server.cache_before)" = cold ] || die "the server was not cold"
near "the server's disk, as it tells itself" "$(value cold.json jobs.0.runs.0.cold.server.disk_read_bytes)" "$file_bytes" 3
near "resident pages, percent" "$(value cold.json jobs.0.summary.cold_residue_percent)" 0 0
near "epoch 1, bytes from the server" "$(epoch cold.json 0)" "$file_bytes" 1
near "epoch 2, bytes from the server" "$(epoch cold.json 1)" 0 0
near "the client kernel's own count over both" "$before" "$file_bytes" 1
near "the server kernel's own count over both" "$nfsd" "$file_bytes" 1
# The server sends packets of up to 64 KB, so headers are few; this test's commands use the same
# wire.
near "the wire, outside of the guests" "$wire" "$file_bytes" 2
near "the server's disk" "$disk" "$file_bytes" 2

echo "== the client alone drops"
must node1 "! $IOBENCH run --data /mnt/nfs/set --runs 1 --no-calibrate --drop-caches=strict >/run/out 2>&1 &&
    grep -q 'not verified cold: nfs4\\{0,1\\} at /mnt/nfs' /run/out"
run node1 client.json --drop-caches
[ "$(value client.json jobs.0.summary.cache_before)" = "client cold, server unverified" ] || die "called cold"
near "epoch 1, bytes from the server" "$(epoch client.json 0)" "$file_bytes" 1
at_most "the server's disk" "$disk" $((file_bytes / 100))

echo "== nobody drops"
run node1 warm.json
near "epoch 1, bytes from the server" "$(epoch warm.json 0)" 0 0

echo "== a node that cannot hold the set"
run node2 small.json --drop-caches
near "epoch 1, bytes from the server" "$(epoch small.json 0)" "$file_bytes" 5
again=$(epoch small.json 1)
at_most "a quarter of the set" $((file_bytes / 4)) "$again"
near "the client kernel's own count over both" "$before" "$(($(epoch small.json 0) + again))" 1

echo "== monitor, around a program that knows nothing of it"
forget node1
wire=$(wire node1) nfsd=$(served)
must node1 "cat /sys/class/net/vec0/statistics/rx_bytes >/run/net
    $IOBENCH monitor --json=/run/lines --interval=200ms --sample-interval=50ms /mnt/nfs -- sh -c 'cat /mnt/nfs/set/* >/dev/null; exit 3' 2>/run/summary
    [ \$? = 3 ] || exit 1
    echo \$((\$(cat /sys/class/net/vec0/statistics/rx_bytes) - \$(cat /run/net))) >/run/net"
wire=$(($(wire node1) - wire)) nfsd=$(($(served) - nfsd))
on node1 "cat /run/lines" >lines
on node1 "cat /run/summary" >summary
received=$(on node1 "cat /run/net")
near "NFS, rate times time" "$(counted lines nfs_read_bytes_per_s)" "$file_bytes" 1
near "NFS, MB in the summary" "$(awk '/nfs_read_bytes_per_s/ { print $5 }' summary)" \
    "$(awk -v bytes="$file_bytes" 'BEGIN { print bytes / 1e6 }')" 1
near "the server kernel's own count" "$nfsd" "$file_bytes" 1
near "the interface, rate times time" "$(counted lines net_receive_bytes_per_s)" "$received" 2
near "the interface against the bridge's port outside" "$received" "$wire" 2

echo "== monitor, live, while another program reads"
forget node1
must node1 "$IOBENCH monitor --interval=500ms /mnt/nfs >/run/table 2>/run/said & watching=\$!
    lines() { grep -c '^ *[0-9]' /run/table; }
    until_more() { until [ \$(lines) -gt \$1 ]; do kill -0 \$watching || exit 1; sleep 0.1; done; }
    until_more 0; cat /mnt/nfs/set/* >/dev/null; until_more \$((\$(lines) + 1)); kill \$watching; wait \$watching"
on node1 "cat /run/table" | tee table | cut -c 1-80
seen=$(awk '$1 == "time" { for (i = NF; i; i--) if ($i == "nfs") at = i } $1 + 0 { sum += $at * ($1 - last); last = $1 }
    END { print sum }' table)
# Lines are as far apart as their times say, give or take milliseconds that the table does not show.
near "NFS, MB of all lines" "$seen" "$(awk -v bytes="$file_bytes" 'BEGIN { print bytes / 1e6 }')" 10
