# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# QEMU guests, with an emulated processor: ten times slower than user-mode Linux, but with Debian's
# own kernel and all its drivers: soft-RoCE, NFS over RDMA, throttled disks. They see this machine's
# files read-only; their writes go to an overlay in memory.
# shellcheck source=tests/cluster/bed/bed.sh
. "$(dirname "$0")/bed/bed.sh"

LINUX=$IOBENCH_GUESTS/${BED_LINUX:-linux}
[ -d "$LINUX" ] || skip "no kernel in $LINUX; './bootstrap cluster' fetches it"
for bed_tool in qemu-system-x86_64 cpio busybox; do
    command -v $bed_tool >/dev/null || skip "$bed_tool is not installed; './bootstrap cluster' does it"
done
KERNEL=$(basename "$LINUX"/lib/modules/*)

# An initial file system with just enough to mount the shared one.
qemu_initrd() {
    mkdir -p "$T/initrd/bin" "$T/initrd/modules"
    cp "$(command -v busybox)" "$T/initrd/bin/busybox"
    ln -s busybox "$T/initrd/bin/sh"
    cp "$BED/qemu_init.sh" "$T/initrd/init"
    for bed_module in virtio_pci virtio_net virtio_blk 9pnet_virtio 9p overlay; do
        modprobe -d "$LINUX" -S "$KERNEL" --show-depends $bed_module
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$T/modules"
    while read -r bed_module; do
        cp "$bed_module" "$T/initrd/modules/" && basename "$bed_module"
    done <"$T/modules" >"$T/initrd/modules/order"
    (cd "$T/initrd" && find . | cpio --quiet -o -H newc >"$T/initrd.cpio")
}
qemu_initrd

qemu_guest() { # NAME MEMORY [OPTION OF QEMU...]
    bed_name=$1 bed_memory=$2
    shift 2
    bed_address=$(address_of "$bed_name")
    bed_interface=$(bed_tap "${bed_address##*.}")
    qemu-system-x86_64 -accel tcg,thread=multi -M q35 -cpu max -m "$bed_memory" -nographic \
        -no-reboot -nodefaults -serial stdio -kernel "$LINUX/boot/vmlinuz-$KERNEL" \
        -initrd "$T/initrd.cpio" -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check \
            random.trust_cpu=on BED_NAME=$bed_name BED_ADDRESS=$bed_address BED_MODULES=$LINUX BED=$BED" \
        -netdev "tap,id=n0,ifname=$bed_interface,script=no,downscript=no" \
        -device "virtio-net-pci,netdev=n0,romfile=,mac=$(printf '52:54:00:00:00:%02x' "${bed_address##*.}")" \
        -virtfs "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap" \
        "$@" >"$T/$bed_name.console" 2>&1 </dev/null &
    started "$bed_name" $!
}
