#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a QEMU guest, from its initial file system: the host's root under an overlay
# in memory becomes the guest's. The BED_ variables come from the kernel command line.
PATH=/bin
/bin/busybox --install -s /bin
mkdir -p /proc /lower /upper /new
mount -t proc proc /proc
while read -r module; do insmod "/modules/$module"; done </modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 root /lower
mount -t tmpfs tmpfs /upper
mkdir /upper/files /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /new
ip link set lo up
ip addr add "$BED_ADDRESS/24" dev eth0
ip link set eth0 mtu 4300 up # room for RoCE packets of 4096 bytes
for kind in proc sysfs devtmpfs cgroup2; do
    case $kind in
    proc) point=/new/proc ;;
    sysfs) point=/new/sys ;;
    devtmpfs) point=/new/dev ;;
    cgroup2) point=/new/sys/fs/cgroup ;;
    esac
    mount -t "$kind" "$kind" "$point"
done
mkdir -p /new/dev/pts /new/dev/shm
mount -t devpts devpts /new/dev/pts
for point in /dev/shm /run /mnt /var/lib/nfs; do mount -t tmpfs tmpfs /new$point; done
mkdir -p /new/mnt/disk /new/mnt/nfs /new/run/rpcbind
hostname "$BED_NAME"
# Modules that the kernel requests itself, such as soft-RoCE's checksum.
mkdir -p /sbin
printf '#!/bin/sh\nexec /bin/chroot /new /sbin/modprobe -d %s "$@"\n' "$BED_MODULES" >/sbin/modprobe
chmod +x /sbin/modprobe
export BED_MODULES BED HOME=/run TMPDIR=/run
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec chroot /new python3 "$BED/agent.py" serve
