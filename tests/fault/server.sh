# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# An NFS server for tests, which source this file: nfs-ganesha in its own network namespace exports
# $tmp/export, as NFS 3 under that path and as NFS 4 under /export. Skips if that is impossible.
#   start, stop: start or kill the server, as if its machine lost power
#   sent BYTES: returns when the server has sent BYTES more, so a client is reading
#   fault TEXT: fail, showing $tmp/out
# Sets tmp (removed at the end), address, server (process id, empty when stopped).
skip() {
    echo "skipped: $1"
    exit 77
}
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip "needs root"
command -v ganesha.nfsd >/dev/null || skip "nfs-ganesha is not installed"
command -v rpcbind >/dev/null || skip "rpcbind is not installed"
"${IOBENCH:-./iobench}" list reader | grep -q '^ *nfs ' || skip "built without libnfs"
ns=iobnfs$$
ip netns add $ns 2>/dev/null || skip "no network namespaces here"

net=10.$((200 + $$ % 50)).$(($$ / 50 % 250))
# shellcheck disable=SC2034 # for the test that sources this
address=$net.2
tmp=$(mktemp -d)
server=
holder=
stop() {
    [ -z "$server" ] || kill -9 "$server"
    [ -z "$server" ] || wait "$server" 2>/dev/null
    server=
}
sent() {
    counter=/sys/class/net/ib0-$$/statistics/rx_bytes
    goal=$(($(cat $counter) + $1))
    for _ in $(seq 4000); do
        [ "$(cat $counter)" -lt $goal ] || return 0
        sleep 0.03
    done
}
clean() {
    stop
    [ ! -s "$tmp/rpcbind.pid" ] || kill "$(cat "$tmp/rpcbind.pid")"
    [ -z "$holder" ] || kill "$holder"
    ip link del ib0-$$ 2>/dev/null
    ip netns del $ns
    rm -rf "$tmp"
}
trap clean EXIT
fault() {
    echo "FAULT: $1"
    tail -n 5 "$tmp/log"
    cat "$tmp/out"
    exit 1
}

mkdir -p "$tmp/export" "$tmp/recovery/v4recov" "$tmp/recovery/v4old"
ip link add ib0-$$ type veth peer name ib1-$$ netns $ns || skip "no virtual network here"
ip addr add $net.1/24 dev ib0-$$
ip link set ib0-$$ up
ip -n $ns addr add $net.2/24 dev ib1-$$
ip -n $ns link set ib1-$$ up
ip -n $ns link set lo up
cat >"$tmp/conf" <<CONF
NFS_CORE_PARAM { Protocols = 3,4; Enable_NLM = false; Enable_RQUOTA = false; MNT_Port = 12048; }
NFSV4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = $tmp/recovery; Only_Numeric_Owners = true; }
EXPORT_DEFAULTS { Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 3,4; Transports = TCP; }
EXPORT { Export_Id = 7; Attr_Expiration_Time = 0; Path = $tmp/export; Pseudo = /export; FSAL { Name = VFS; } }
CONF
# /run is private: rpcbind needs a socket there.
ip netns exec $ns unshare -m sh -c "mount -t tmpfs none /run; mkdir /run/rpcbind
    rpcbind -w -f & echo \$! >$tmp/rpcbind.pid; exec sleep 1000" &
holder=$!
listens() { # PORT: wait up to 120 s for a listener
    for _ in $(seq 480); do
        ip netns exec $ns ss -ltn | grep -q ":$1 " && return
        sleep 0.25
    done
    return 1
}
start() {
    nsenter -t $holder -m -n ganesha.nfsd -F -f "$tmp/conf" -L "$tmp/log" -p "$tmp/ganesha.pid" \
        -N NIV_EVENT &
    server=$!
    listens 2049 || fault "the server does not start"
}
listens 111 || skip "rpcbind does not start"
start
