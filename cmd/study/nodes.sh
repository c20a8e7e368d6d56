#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# nodes.sh COUNT RATE EXPORT: the nodes of `iobench study --emulate-nodes`, node1 to nodeCOUNT: network
# namespaces joined by a bridge, with links of RATE bytes/s each way (0: unlimited). iobench runs it in
# a network and a mount namespace of its own, so it changes nothing outside. It leaves in /run/netns
# the nodes, `hosts`, a host file for mpirun, and `agent`, which mpirun starts in place of ssh. EXPORT: a
# folder that an NFS server at the bridge exports as it is named here (""; none), until iobench ends.
set -eu
count=$1 rate=$2 export=$3
net=198.18.0 # a range for benchmarks (RFC 2544)

refuse() {
    echo "$*" >&2
    exit 1
}
for program in ip mount mpirun unshare; do
    command -v $program >/dev/null || refuse "needs the program $program"
done
{ mpirun --version; ompi_info --version; } 2>/dev/null | grep -q 'Open MPI[) v]*[45]\.' || refuse "needs mpirun of Open MPI 4 or 5"

mount --make-rprivate /
mkdir -p /run/netns
mount -t tmpfs nodes /run/netns
ip link set lo up
ip link add nodes type bridge
ip addr add $net.254/24 dev nodes
ip link set nodes up
number=1
while [ $number -le "$count" ]; do
    node=node$number
    ip netns add $node
    ip link add link$number type veth peer name eth0 netns $node
    ip link set link$number master nodes up
    ip -n $node addr add $net.$number/24 dev eth0
    ip -n $node link set eth0 up
    ip -n $node link set lo up
    if [ "$rate" != 0 ]; then
        tc qdisc add dev link$number root tbf rate "${rate}bps" burst 1mb latency 100ms
        ip netns exec $node tc qdisc add dev eth0 root tbf rate "${rate}bps" burst 1mb latency 100ms
    fi
    echo "$net.$number slots=1" >>/run/netns/hosts
    number=$((number + 1))
done

# A node has a host name and shared memory of its own.
cat >/run/netns/agent <<'END'
while [ "${1#-}" != "$1" ]; do case $1 in -l | -p | -o) shift ;; esac; shift; done
node=node${1##*.}
shift
exec ip netns exec "$node" unshare --uts --mount sh -c \
    'echo "$0" >/proc/sys/kernel/hostname; mount -t tmpfs memory /dev/shm; exec sh -c "$*"' "$node" "$@"
END

[ -n "$export" ] || exit 0
PATH=$PATH:/usr/sbin:/sbin
for program in ganesha.nfsd rpcbind; do
    command -v $program >/dev/null || refuse "--file-server needs the program $program (packages nfs-ganesha-vfs and rpcbind)"
done
mkdir -p /run/netns/nfs/v4recov /run/netns/nfs/v4old /run/rpcbind
mount -t tmpfs rpcbind /run/rpcbind
cat >/run/netns/nfs/conf <<END
NFS_CORE_PARAM { Protocols = 3,4; Enable_NLM = false; Enable_RQUOTA = false; MNT_Port = 12048; }
NFSV4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = /run/netns/nfs; Only_Numeric_Owners = true; }
EXPORT_DEFAULTS { Access_Type = RO; Squash = No_Root_Squash; SecType = sys; Protocols = 3,4; Transports = TCP; }
EXPORT { Export_Id = 7; Path = "$export"; Pseudo = "$export"; FSAL { Name = VFS; } }
END
cd /
rpcbind -w -f >/dev/null 2>&1 &
servers=$!
ganesha.nfsd -F -f /run/netns/nfs/conf -L /run/netns/nfs/log -p /run/netns/nfs/pid -N NIV_EVENT >/dev/null 2>&1 &
servers="$servers $!"
setsid sh -c "while kill -0 $PPID; do sleep 0.5; done; kill -9 $servers" >/dev/null 2>&1 &
for _ in $(seq 400); do
    ! ss -ltn | grep -q ':2049 ' || exit 0
    sleep 0.25
done
refuse "--file-server: the server does not start: $(tail -n 1 /run/netns/nfs/log)"
