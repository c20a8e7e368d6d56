#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The nfs reader against nfs-ganesha in a network namespace of its own: right bytes by NFS 3 and
# 4; a server that stops for a while is waited for, one that stays away ends in a sentence.
skip() {
    echo "skipped: $1"
    exit 77
}
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip "needs root"
command -v ganesha.nfsd >/dev/null || skip "nfs-ganesha is not installed"
command -v rpcbind >/dev/null || skip "rpcbind is not installed"
./iobench list reader | grep -q '^ *nfs ' || skip "built without libnfs"
ip netns add iobnfs$$ 2>/dev/null || skip "no network namespaces here"

ns=iobnfs$$
net=10.$((200 + $$ % 50)).$(($$ / 50 % 250))
tmp=$(mktemp -d)
server=
stop() {
    [ -z "$server" ] || kill -9 "$server"
    [ -z "$server" ] || wait "$server" 2>/dev/null
    server=
}
clean() {
    stop
    [ ! -s "$tmp/rpcbind.pid" ] || kill "$(cat "$tmp/rpcbind.pid")"
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

mkdir -p "$tmp/export/set" "$tmp/recovery/v4recov" "$tmp/recovery/v4old"
for i in 0 1 2; do
    head -c $((3000000 + i * 12345)) /dev/urandom >"$tmp/export/set/$i"
done
ip link add ib0-$$ type veth peer name ib1-$$ netns $ns || skip "no virtual network here"
ip addr add $net.1/24 dev ib0-$$
ip link set ib0-$$ up
ip -n $ns addr add $net.2/24 dev ib1-$$
ip -n $ns link set ib1-$$ up
ip -n $ns link set lo up
cat >"$tmp/conf" <<CONF
NFS_CORE_PARAM { Protocols = 3,4; Enable_NLM = false; Enable_RQUOTA = false; MNT_Port = 12048; }
NFSV4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = $tmp/recovery; Only_Numeric_Owners = true; }
EXPORT_DEFAULTS { Access_Type = RO; Squash = No_Root_Squash; SecType = sys; Protocols = 3,4; Transports = TCP; }
EXPORT { Export_Id = 7; Path = $tmp/export; Pseudo = /export; FSAL { Name = VFS; } }
CONF
# Its /run is private: rpcbind wants a socket there.
ip netns exec $ns unshare -m sh -c "mount -t tmpfs none /run; mkdir /run/rpcbind
    rpcbind -w -f & echo \$! >$tmp/rpcbind.pid; exec sleep 1000" &
holder=$!
trap 'kill $holder; clean' EXIT
start() {
    nsenter -t $holder -m -n ganesha.nfsd -F -f "$tmp/conf" -L "$tmp/log" -p "$tmp/ganesha.pid" \
        -N NIV_EVENT &
    server=$!
    for _ in $(seq 60); do
        ip netns exec $ns ss -ltn | grep -q ':2049 ' && return
        sleep 0.25
    done
    fault "the server does not start"
}
sleep 1
start

url=nfs://$net.2$tmp/export/set
tests/fault/nfs_reads "$url" "$tmp/export/set" 3 1 5000 >"$tmp/out" 2>&1 || fault "NFS 3"
grep -q 'reads [1-9][0-9]* errors 0' "$tmp/out" || fault "NFS 3 failed"
tests/fault/nfs_reads "nfs://$net.2/export/set" "$tmp/export/set" 3 1 5000 nfs:2,version=4 \
    >"$tmp/out" 2>&1 || fault "NFS 4"
grep -q 'reads [1-9][0-9]* errors 0' "$tmp/out" || fault "NFS 4 failed"

# Away for a second: nobody sees an error.
(sleep 1; kill -9 $server; sleep 1; echo gone) &
breaker=$!
tests/fault/nfs_reads "$url" "$tmp/export/set" 3 8 20000 >"$tmp/out" 2>&1 &
reader=$!
wait $breaker
server=
start
wait $reader || fault "bytes were wrong after the server came back"
grep -q 'reads [1-9][0-9]* errors 0' "$tmp/out" || fault "an outage of a second was not survived"
cat "$tmp/out"

# Away for good.
(sleep 1; kill -9 $server) &
tests/fault/nfs_reads "$url" "$tmp/export/set" 3 4 700 >"$tmp/out" 2>&1 || fault "outage"
grep -q 'errors [1-9].*no answer for 0.7 s' "$tmp/out" || fault "no sentence about the outage"
server=
tests/fault/nfs_reads "$url" "$tmp/export/set" 3 1 1000 >"$tmp/out" 2>&1 && fault "opened without a server"
grep -q 'cannot be reached' "$tmp/out" || fault "no sentence about a server that is away"
echo ok
