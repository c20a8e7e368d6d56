#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `doctor --fabric` on imitated machines: each fault of a port, an interface, an NFS mount or a PCIe
# bridge is found and comes with its remedy, and a good machine has none.
# shellcheck disable=SC2154 # expect sets out
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

put() { # FILE TEXT
    mkdir -p "${1%/*}"
    printf '%s\n' "$2" >"$1"
}

# An adapter with one RoCE port and its interface, and a GPU; all is well.
machine() {
    rm -rf sys proc
    port=sys/class/infiniband/mlx5_0/ports/1
    put $port/state "4: ACTIVE"
    put $port/phys_state "5: LinkUp"
    put $port/rate "100 Gb/sec (4X EDR)"
    put $port/link_layer Ethernet
    put $port/gid_attrs/ndevs/0 eth1
    put $port/gids/0 fe80:0000:0000:0000:0e42:a1ff:fe00:0001
    put $port/gid_attrs/types/0 "IB/RoCE v1"
    put $port/gids/1 0000:0000:0000:0000:0000:ffff:c0a8:010a
    put $port/gid_attrs/types/1 "IB/RoCE v1"
    put $port/gids/2 fe80:0000:0000:0000:0e42:a1ff:fe00:0001
    put $port/gid_attrs/types/2 "RoCE v2"
    put $port/gids/3 0000:0000:0000:0000:0000:ffff:c0a8:010a
    put $port/gid_attrs/types/3 "RoCE v2"
    put $port/gids/4 0000:0000:0000:0000:0000:0000:0000:0000
    put $port/counters/port_rcv_data 123456
    put sys/class/infiniband/mlx5_0/device/vendor 0x15b3
    put sys/class/infiniband/mlx5_0/device/current_link_speed "16.0 GT/s PCIe"
    put sys/class/infiniband/mlx5_0/device/current_link_width 16
    put sys/class/infiniband/mlx5_0/device/max_link_width 16
    put sys/class/infiniband/mlx5_0/device/numa_node 1
    put sys/class/infiniband_verbs/uverbs0/ibdev mlx5_0
    put sys/class/net/eth1/mtu 9000
    put sys/class/net/eth1/type 1
    put sys/class/net/eth1/speed 100000
    put sys/class/net/eth1/operstate up
    put sys/class/net/eth1/device/vendor 0x15b3
    put sys/class/net/eth1/ecn/roce_np/enable/3 1
    put sys/module/nvidia_peermem/refcnt 1
    put proc/driver/nvidia/gpus/0000:17:00.0/information "Model: NVIDIA H100"
    put proc/self/mountinfo "36 25 0:44 / /mnt/set rw - nfs4 nas:/export/set rw,vers=4.2,proto=rdma,port=20049"
    bridge 0
}

# A PCIe bridge whose ACS control, at 0x106, is this byte.
bridge() { # CONTROL
    put sys/bus/pci/devices/0000:16:00.0/class 0x060400
    {
        head -c 256 /dev/zero
        printf '\015\000\001\000\000\000'
        # shellcheck disable=SC2059 # the byte
        printf "\\$(printf %03o "$1")\\000"
        head -c 3832 /dev/zero
    } >sys/bus/pci/devices/0000:16:00.0/config
}

# All that it says is compared at the end.
doctor() {
    expect 0 env COLUMNS=80 "$IOBENCH" doctor --fabric --proc-root proc --sysfs-root sys
    printf '%s\n' "$out" >>pages
}

# A fault: the file as it is then, the state, and words of finding and remedy.
fault() { # FILE TEXT STATE NAME WORDS...
    machine
    file=$1 text=$2 state=$3 name=$4
    shift 4
    [ -z "$file" ] || put "$file" "$text"
    doctor
    printf '%s\n' "$out" | grep -q "^  $state  *$name" || die "$name is not '$state' with $file '$text':"
    says "$@"
}

machine
doctor
says "RoCE, ACTIVE (LinkUp), 100 Gb/sec (4X EDR)" "x16, 252.1 Gbit/s; NUMA node 1" "RDMA 4096, of 9000 of eth1" \
    "index 3: RoCE v2, 192.168.1.10; 4 in all" "NCCL_IB_GID_INDEX=3" "ECN on; since boot 0 packets" uverbs0 \
    "bytes received and sent" "100 Gbit/s, MTU 9000" "rdma of nas:/export/set" "module nvidia-peermem is loaded" \
    "no redirection at 1 PCIe bridges"
! printf '%s\n' "$out" | grep -q '^  \(no\|warn\) ' || die "a good machine has faults:"

ib=sys/class/infiniband/mlx5_0
fault $ib/ports/1/state "1: DOWN" no "mlx5_0/1 link" "ip link set eth1 up"
fault $ib/ports/1/rate "25 Gb/sec (1X EDR)" warn "mlx5_0/1 link" "one lane instead of four"
fault $ib/device/current_link_width 4 warn "mlx5_0/1 PCIe" "x4, 63.02 Gbit/s" "can use x16"
fault $ib/device/current_link_speed "2.5 GT/s PCIe" warn "mlx5_0/1 PCIe" "32 Gbit/s" "less than the port's 100"
fault sys/class/net/eth1/mtu 1500 warn "mlx5_0/1 MTU" "RDMA 1024, of 1500 of eth1" "ip link set eth1 mtu 9000"
fault sys/class/net/eth1/mtu 4100 warn "mlx5_0/1 MTU" "RDMA 2048, of 4100 of eth1" # headers need 96
fault $ib/ports/1/gid_attrs/types/3 "IB/RoCE v1" warn "mlx5_0/1 GID" "link-local only"
fault sys/class/net/eth1/ecn/roce_np/enable/3 0 warn "mlx5_0/1 congestion" "ECN off" "echo 1"
fault $ib/ports/1/hw_counters/out_of_sequence 17 warn "mlx5_0/1 congestion" "17 packets lost" "mlnx_qos -i eth1"
fault $ib/ports/1/counters/port_rcv_data 4294967295 warn "mlx5_0/1 counters" "stopped at their maximum" perfquery
fault sys/class/infiniband_verbs/uverbs0/ibdev mlx5_7 no "mlx5_0/1 verbs" "modprobe ib_uverbs"
fault proc/self/mountinfo "36 25 0:44 / /mnt/set rw - nfs4 nas:/x rw,proto=tcp" warn "NFS at /mnt/set" "tcp of nas:/x" \
    "modprobe rpcrdma" "proto=rdma,port=20049"
fault sys/class/net/ib0/device/vendor 0x15b3 ok eth1 # without type, mtu and state: no interface

# The second of two ports.
machine
cp -r $ib sys/class/infiniband/mlx5_1
put sys/class/infiniband/mlx5_1/ports/1/state "1: DOWN"
expect 0 env COLUMNS=80 "$IOBENCH" doctor --fabric --proc-root proc --sysfs-root sys
printf '%s\n' "$out" | grep -q '^  ok *mlx5_0/1 link' || die "the first of two ports is not ok"
printf '%s\n' "$out" | grep -q '^  no *mlx5_1/1 link' || die "the second of two ports is not down"

# Links without a signal, or disabled; addresses that pass no router, or none; counters elsewhere, or not readable.
machine
put $ib/ports/1/state "1: DOWN"
put $ib/ports/1/phys_state "2: Polling"
rm $ib/ports/1/gids/[23]
rm -r $ib/ports/1/counters
put $ib/ports/1/hw_counters/rx_bytes 5
put $ib/ports/1/hw_counters/rp_cnp_handled 11
put $ib/ports/1/hw_counters/packet_seq_err 3
put $ib/ports/1/hw_counters/local_ack_timeout_err 4
doctor
put $ib/ports/1/link_layer InfiniBand
put $ib/ports/1/phys_state "3: Disabled"
put $ib/ports/1/lid 0x5
put $ib/ports/1/sm_lid 0x1
doctor
machine
rm -r $ib/ports/1/gids $ib/ports/1/counters/port_rcv_data sys/class/net/eth1/ecn
mkdir $ib/ports/1/counters/port_rcv_data
put sys/module/rpcrdma/refcnt 1
put proc/self/mountinfo "36 25 0:44 / /mnt/set rw - nfs4 nas:/x rw,proto=tcp,timeo=600"
put sys/class/net/eth1/speed 9999
put sys/class/net/eth1/mtu 1500
put sys/class/net/eth2/device/vendor 0x15b3
put sys/class/net/eth2/type 1
put sys/class/net/eth2/operstate up
put sys/class/net/eth2/mtu 1400
# Three bridges: one that hides, one whose ACS is its second capability and redirects completions alone; and no bridge.
put sys/bus/pci/devices/0000:16:00.1/class 0x060401
head -c 64 /dev/zero >sys/bus/pci/devices/0000:16:00.1/config
doctor
put sys/bus/pci/devices/0000:16:00.2/class 0x060400
{ head -c 256 /dev/zero && printf '\001\000\001\024' && head -c 60 /dev/zero && printf '\015\000\001\000\000\000\010\000' &&
    head -c 3768 /dev/zero; } >sys/bus/pci/devices/0000:16:00.2/config
put sys/bus/pci/devices/0000:16:00.3/class 0x020000
doctor

# InfiniBand: a link without a subnet manager; IPoIB with small packets.
machine
put $ib/ports/1/link_layer InfiniBand
put $ib/ports/1/state "2: INIT"
put $ib/ports/1/lid 0x0
put $ib/ports/1/sm_lid 0x0
for file in "device/vendor 0x15b3" "type 32" "operstate up" "mtu 2044" "mode datagram"; do
    put "sys/class/net/ib0/${file% *}" "${file#* }"
done
doctor
says "InfiniBand, INIT (LinkUp)" "start opensm" "no mlx5_0/1 subnet LID 0x0, subnet manager at LID 0x0" "datagram, MTU 2044" "echo connected" \
    "set by the subnet manager, not in sysfs" "ibv_devinfo -d mlx5_0 -i 1 shows active_mtu"

# Missing parts: peer memory, counters, the driver, all of it.
machine
rm -r sys/module $ib/ports/1/counters
rm -r sys/class/net/eth1
doctor
says "modprobe nvidia-peermem" "none, as in a container" "iobench monitor --sysfs-root DIR"
put proc/sys/kernel/osrelease 6.1.0
put proc/driver/nvidia/version "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54"
doctor
says "by dma-buf"
machine
bridge 29
doctor
says "1 of 1 PCIe bridges redirect, the first is 0000:16:00.0" "setpci -s 0000:16:00.0 ECAP_ACS+6.w=0"
rm -r $ib
put sys/bus/pci/devices/0000:3b:00.0/class 0x020000
put sys/bus/pci/devices/0000:3b:00.0/vendor 0x15b3
doctor
says "adapter 0000:3b:00.0 has no RDMA port" "modprobe mlx5_ib"
rm -r sys proc
doctor
says "no InfiniBand or RoCE port" "rdma link add rxe0 type rxe"

# Software RDMA has no rate and no lanes; its interface counts for it.
machine
rm -r $ib/device $ib/ports/1/counters
put $ib/parent eth1
put $ib/ports/1/rate "2.5 Gb/sec (1X SDR)"
put sys/class/net/eth1/statistics/rx_bytes 5
doctor
says "software RDMA over eth1, ACTIVE" "those of eth1, with all its other traffic"
[ "${UPDATE:-0}" = 0 ] || cp pages "$SRCDIR/tests/cli/saved/doctor.txt"
diff -u "$SRCDIR/tests/cli/saved/doctor.txt" pages || die "the pages differ from tests/cli/saved/doctor.txt"

expect 0 "$IOBENCH" doctor --fabric --proc-root proc --sysfs-root sys --json=fabric.json
python3 -c 'import json; rows = json.load(open("fabric.json"))
assert any(row["name"] == "mlx5_0/1 GID" and row["state"] == "ok" for row in rows), rows' || die "fabric.json"
echo "each fault of a fabric is found, with its remedy"

# This machine and its storage, where what is true is known from elsewhere; of a user with few rights, too.
mkdir bin empty
put bin/mpirun '#!/bin/sh'
chmod +x bin/mpirun
expect 0 "$IOBENCH" pack synthetic:count=9,mean=4k set -f tar
limits() { # FILES STATUS COMMAND...: with at most so many open files
    files=$1 status=$2
    shift 2
    # shellcheck disable=SC2016 # of the other shell
    expect "$status" sh -c 'ulimit -n "$0" && exec "$@"' "$files" "$@"
}
limits 4095 0 env "PATH=$PWD/bin:$PATH" "$IOBENCH" doctor set empty
says "kernel $(uname -sr)" "open files limit 4095 data sets of many shards will reopen files" "MPI mpirun found" \
    "usable, load" "ok bytes read /proc/self/io is readable" "ok verify cold via" " available, by " \
    "set ok access readable ok format tar (tar shards of WebDataset)" "file system $(df --output=fstype . | tail -n 1) at " \
    "reader auto is " "verify cold by " "empty ok access readable warn format empty: " \
    "create a data set in any format with" "warn reader not tested: no file found" \
    "warn verify cold not tested: no file found"
! built_with URING || says "ok passthrough not tested: no file found"
! printf '%s\n' "$out" | grep "cannot create a file" || die "a file of the set was not opened with O_DIRECT"
clock=/sys/devices/system/clocksource/clocksource0/current_clocksource
[ ! -r $clock ] || says "clock $(cat $clock)"
[ -e /proc/driver/nvidia ] || says "no GPUs none found not required: --trainer replay:h200 simulates one"
limits 4096 1 env PATH=/nothing "$IOBENCH" doctor missing set/missing
says "ok open files limit 4096" "no MPI no mpirun not required on one node; start ranks by hand with --ranks N --rank I" \
    "missing no access No such file or directory this user cannot measure anything below it set/missing no access"
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ]; then
    expect 0 "$IOBENCH" doctor /dev/shm
    says "warn file system tmpfs at /dev/shm (" ") memory, not storage: never cold warn devices tmpfs" "ok read-ahead unknown: not in"
fi
online=$(getconf _NPROCESSORS_ONLN)
if [ "$online" -gt 1 ] && taskset -c 0 true 2>/dev/null; then
    expect 0 taskset -c 0 "$IOBENCH" doctor
    says "warn CPUs 1 of $online usable, load"
fi
if setpriv --reuid 65534 --clear-groups sh -c "cd / && $IOBENCH --version" >/dev/null 2>&1; then
    expect 0 sh -c "ulimit -l 64 && cd / && exec setpriv --reuid 65534 --clear-groups $IOBENCH doctor"
    says "warn pinned memory limit 64.00 KiB buffers cannot be registered with the kernel, which costs CPU time" \
        "warn drop caches only file by file (posix_fadvise) dentries and inodes stay cached"
fi

# Without /proc a run works all the same, and doctor names the cause of what does not.
# LeakSanitizer needs it.
if ! grep -q "fsanitize=address" "$(dirname "$CONFIG")/Makefile" && unshare -m umount -l /proc 2>/dev/null; then
    without_proc="umount -l /proc && exec $IOBENCH"
    expect 0 unshare -m sh -c "$without_proc run --data set --runs 1 --decode none"
    expect 0 unshare -m sh -c "$without_proc doctor"
    says "without /proc" "mount -t proc"
fi
