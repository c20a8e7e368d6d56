#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two network namespaces, joined by a bridge, stand for two hosts: their ranks talk by TCP.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "ip (iproute2) is not installed"
ID=$$
BRIDGE=iob$((ID % 100000))
# shellcheck disable=SC2034 # cli.sh calls it
CLEANUP=take_down
take_down() {
    for host in 1 2; do ip netns del "$BRIDGE-$host" 2>/dev/null; done
    ip link del "$BRIDGE" 2>/dev/null
}
ip link add "$BRIDGE" type bridge 2>/dev/null || skip "no bridge can be made here"
ip addr add 10.99.7.254/24 dev "$BRIDGE"
ip link set "$BRIDGE" up
for host in 1 2; do
    name=$BRIDGE-$host
    ip netns add "$name" 2>/dev/null || skip "no network namespace can be made here"
    ip link add "v$host$BRIDGE" type veth peer name eth0 netns "$name" || skip "no veth can be made here"
    ip link set "v$host$BRIDGE" master "$BRIDGE" up
    ip -n "$name" addr add 10.99.7.$host/24 dev eth0
    ip -n "$name" link set eth0 up
    ip -n "$name" link set lo up
done

# What stands for ssh: a process in the other host's network, with a host name and shared memory of
# its own.
cat >agent <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do case \$1 in -l | -p | -o) shift ;; esac; shift; done
host=\${1##*.}
shift
exec ip netns exec $BRIDGE-\$host unshare -u -m sh -c \\
    "hostname host\$host; mount -t tmpfs tmpfs /dev/shm; cd $T; exec sh -c \"\\\$*\"" sh "\$@"
END
chmod +x agent
expect 0 timeout 60 mpirun -n 2 --host 10.99.7.1,10.99.7.2 --bind-to none \
    --mca plm_rsh_agent "$T/agent" --mca btl self,tcp --mca btl_tcp_if_include 10.99.7.0/24 \
    --mca oob_tcp_if_include 10.99.7.0/24 "$RANKS" 5
says "2 ranks: weights differ by"
echo "two hosts agree"
