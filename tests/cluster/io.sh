#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/io, our readers against fio, in a guest with a kernel of its own. Both sides take turns on the same emulated
# processor and disk, so the ratios say what the kernel's paths cost them; the rates say nothing about a real machine.
#
#   tests/cluster/io.sh [KERNEL [OPTION OF bench/io...]]
# KERNEL: a folder that kernels.sh made in $IOBENCH_GUESTS (default linux)
# shellcheck disable=SC2034 # for bed.sh
BED_NEEDS=fio BED_LINUX=${1:-linux}
# shellcheck source=tests/cluster/bed/qemu.sh
. "$(dirname "$0")/bed/qemu.sh"

[ $# = 0 ] || shift
truncate -s 1280M disk.img
# 1 GiB is read into the guest's page cache, and bench/io touches twice as much memory before.
qemu_guest node1 3584M -smp 2 -drive "file=$T/disk.img,if=virtio,format=raw,cache=unsafe"
await node1
must node1 "modprobe -d $LINUX ext4 && mke2fs -q -t ext4 /dev/vda && mount /dev/vda /mnt/disk"
on node1 "uname -r; ${IOBENCH%/*}/bench/io $* /mnt/disk"
