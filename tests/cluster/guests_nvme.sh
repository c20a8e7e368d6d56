#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A guest with emulated NVMe disks: one of 512-byte blocks with a partition and one of 4096-byte blocks and
# commands of at most 16 KiB, both with ext4, and one with XFS. The reader nvme, with and without polled
# queues, delivers what the reader uring does, and writes nothing. Files that it cannot map, files that
# change or move meanwhile, and file systems that are on no NVMe namespace are refused with the reason.
# shellcheck disable=SC2034 # for bed.sh
BED_NEEDS='fallocate setpriv mkfs.xfs'
# shellcheck source=tests/cluster/bed/qemu.sh
. "$(dirname "$0")/bed/qemu.sh"

truncate -s 96M small large
truncate -s 320M xfs
python3 - small <<'END'
import struct, sys
with open(sys.argv[1], "r+b") as disk:  # a partition from sector 2048 on
    disk.seek(446)
    disk.write(struct.pack("<BBBBBBBBII", 0, 0, 0, 0, 0x83, 0, 0, 0, 2048, 96 * 2048 - 2048))
    disk.seek(510)
    disk.write(b"\x55\xaa")
END
qemu_guest node1 1024M -device nvme,id=a,serial=a -drive "file=$T/small,if=none,id=small,format=raw" \
    -device nvme-ns,bus=a,drive=small -device nvme,id=b,serial=b,mdts=2 \
    -drive "file=$T/large,if=none,id=large,format=raw" \
    -device nvme-ns,bus=b,drive=large,logical_block_size=4096,physical_block_size=4096 \
    -device nvme,serial=c,drive=xfs -drive "file=$T/xfs,if=none,id=xfs,format=raw"
await node1
must node1 "modprobe -d $LINUX nvme poll_queues=1 && modprobe -d $LINUX ext4 && modprobe -d $LINUX loop"
small=/mnt/nvme0n1p1 large=/mnt/nvme1n1
for disk in nvme0n1p1 nvme1n1 nvme2n1; do
    make="mke2fs -q -t ext4"
    [ $disk != nvme2n1 ] || make="modprobe -d $LINUX xfs && mkfs.xfs -q"
    must node1 "$make /dev/$disk && mkdir -p /mnt/$disk && mount /dev/$disk /mnt/$disk"
    must node1 "$IOBENCH pack synthetic:count=160,classes=4,mean=100k,seed=5 /mnt/$disk/set --format recordio"
done

run="--decode none --no-calibrate --runs 1 --sandbox yes"
reads() { # FOLDER READER [OPTIONS]: leaves the result in out.json and prints the digest of its data
    must node1 "$IOBENCH run --data $1 --reader $2 $run --digest --json=/run/out.json ${3-}"
    on node1 "cat /run/out.json" >out.json
    value out.json jobs.0.runs.0.epochs.0.digest
}
fails() { # COMMAND TEXT: the run is INVALID and says why
    if on node1 "$1" >failed 2>&1; then die "it must fail: $1"; fi
    grep -q "^INVALID" failed || die "not INVALID: $(cat failed)"
    tr -s ' \n' '  ' <failed | grep -qF -- "$2" || die "not '$2', but $(cat failed)"
    echo "refused: $(sed -n 's/^iobench run: //p' failed)"
}

for set in $small/set $large/set /mnt/nvme2n1/set; do
    truth=$(reads "$set" uring)
    for way in "nvme" "nvme:poll=yes" "nvme --iodepth=1 --bs=64k" "nvme --io-threads=2" \
        "nvme --direct --shuffle=none --bs=8MiB"; do
        # shellcheck disable=SC2086 # a reader and options
        found=$(reads "$set" ${way%% *} "${way#"${way%% *}"}")
        [ "$found" = "$truth" ] || die "$way on $set: other bytes: $found, not $truth"
        case $(value out.json jobs.0.engine.reader_engine) in
        "NVMe passthrough to ng"*) ;;
        *) die "not by commands: $(value out.json jobs.0.engine.reader_engine)" ;;
        esac
        [ "$(value out.json jobs.0.summary.cache_before)" = "page cache bypassed" ] || die "called cached: $way"
        [ "$(value out.json jobs.0.runs.0.epochs.0.device_read_bytes)" = None ] || die "counted by the kernel: $way"
        near "bytes of $way from the disk" "$(value out.json jobs.0.series.origin.from_local_bytes)" \
            "$(value out.json jobs.0.series.origin.read_bytes)" 1
    done
done
reads "$small/set" nvme --drop-caches=strict >/dev/null
[ "$(value out.json jobs.0.summary.cache_before)" = cold ] || die "not cold after dropping"

echo "== nothing is written"
must node1 "mount -o remount,ro $small && sync"
sha256sum small >before
reads "$small/set" nvme:poll=yes >/dev/null
must node1 sync
sha256sum small | cmp - before || die "the disk has changed"
must node1 "mount -o remount,rw $small"

echo "== files"
bad="$IOBENCH run --data $small/bad --reader nvme $run"
copy="mkdir -p $small/bad && cp $small/set/train.* $small/bad"
fails "$copy && fallocate -p -o 4210688 -l 8192 $small/bad/train.rec && $bad" "train.rec: it has holes"
fails "$copy && chattr +j $small/bad/train.rec && $bad" "written to the journal first"
must node1 "rm -r $small/bad"
fails "$copy && fallocate -z -o 4210688 -l 8192 $small/bad/train.rec && $bad" "allocated and never written"

# Runs that last at least eight seconds; what changes the file waits until the disk is open.
slow="$IOBENCH run --data $small/bad --reader nvme $run"
meanwhile() { # OPTIONS COMMAND TEXT
    fails "$copy; rm -f /run/status; ($slow $1; echo \$? >/run/status) &
        until [ -e /run/status ] || ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q /dev/ng0n1; do sleep 0.1; done
        $2; wait; exit \$(cat /run/status)" "$3"
}
meanwhile "--limit-rate 2MB/s" "echo >>$small/bad/train.rec" "the file changed"

# Swap its blocks with those of another file: neither size nor time change.
cat >move.py <<'END'
import fcntl, os, struct, sys
here = os.open(sys.argv[1], os.O_RDWR)
there = os.open(sys.argv[1] + ".donor", os.O_RDWR | os.O_CREAT)
size, block = os.fstat(here).st_size, os.statvfs(sys.argv[1]).f_bsize
os.posix_fallocate(there, 0, size)
EXT4_IOC_MOVE_EXT = 0xc028660f
fcntl.ioctl(here, EXT4_IOC_MOVE_EXT, bytearray(struct.pack("IIQQQQ", 0, there, 0, 0, -(-size // block), 0)))
END
move="python3 $T/move.py $small/bad/train.rec"
meanwhile "--limit-rate 2MB/s" "sleep 2; $move" "moved it on the disk"
# The trainer is still busy when all was read.
meanwhile "-B 8 --prefetch 2 --trainer replay:rate=20" "sleep 4; $move" "on the disk while it was read"

echo "== places"
must node1 "cp -r $small/set /run/set"
fails "$IOBENCH run --data /run/set --reader nvme $run" "not on one block device"
must node1 "truncate -s 40M $large/loop && mke2fs -q -t ext4 $large/loop && mkdir /mnt/loop &&
    mount -o loop $large/loop /mnt/loop && cp -r $small/set /mnt/loop/set"
fails "$IOBENCH run --data /mnt/loop/set --reader nvme $run" "on loop0, not on an NVMe namespace"
run_as="setpriv --reuid 65534 --clear-groups $IOBENCH run --data $small/set --reader nvme --decode none --runs 1"
fails "$run_as" "/dev/ng0n1: no permission to open it"
fails "chmod 666 /dev/ng0n1; $run_as" "before Linux 6.2 the kernel lets only root send commands"
must node1 "umount /mnt/loop $small $large /mnt/nvme2n1; rmmod nvme; modprobe -d $LINUX nvme && sleep 1 &&
    mount /dev/nvme0n1p1 $small"
fails "$IOBENCH run --data $small/set --reader nvme:poll=yes $run" "ng0n1 has no polled queues"
