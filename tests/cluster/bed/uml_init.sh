#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a user-mode Linux guest. The kernel gives it the BED_ variables.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /mnt
mkdir -p /dev/shm /dev/pts
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /mnt/disk /mnt/nfs /run/rpcbind
hostname "$BED_NAME"
ip link set lo up
ip addr add "$BED_ADDRESS/24" dev vec0
ip link set vec0 mtu 1500 up
export BED_MODULES BED
exec python3 "$BED/agent.py" serve
