#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# False claims of cold caches, and bytes that did not leave storage.
# shellcheck disable=SC2086,SC2034,SC2154 # words without blanks; what cli.sh shares
MOUNTS=yes
# shellcheck source=tests/liars/liars.sh
. "$(dirname "$0")/liars.sh"
expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k set -f shards --shards 2
DIRECT="--data set --decode none --direct --memory 64m"
READ="--data set --decode none --reader pread --bs 32k"

warm_run() {
    lie "nothing was dropped, all comes from memory"
    warm "valid, warm" run 0 $READ
    caught "valid, warm"
}

drop_that_does_nothing() {
    lie "dropping caches does nothing"
    can_lie && is_root || return 0
    LIE=drop-nothing warm INVALID run 1 $READ --drop-caches
    caught "the cache should be cold, but"
}

blind_probe() {
    lie "dropping does nothing, and the kernel says that nothing is in memory"
    can_lie && is_root || return 0
    LIE=drop-nothing,cache-blind warm INVALID run 1 $READ --drop-caches=strict
    caught "INVALID"
}

# run, until it is found out: other tests drop what the reader has brought.
run_often() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        missed=
        run "$@"
        [ -n "$missed" ] || break
    done
}

# Another process keeps reading the set: before the run's residency check, or after it.
read_meanwhile() {
    lie "another process reads the set during the run"
    is_root || return 0
    while :; do cat set/*; done >/dev/null &
    reader=$!
    run_often 1 $READ --drop-caches=strict --limit-rate 3MiB
    caught "of the bytes left storage although the cache was cold: another process" \
        "not cold" "not verified cold" "the cache should be cold"
    lie "another process reads the set during the run, which is not strict"
    run_often 1 $READ --drop-caches --limit-rate 3MiB
    stop $reader
    caught "DEGRADED: run 1: only" "the cache should be cold, but"
}

# hold FILE...: another process maps all pages of the files, so a drop cannot evict them.
hold() {
    command -v python3 >/dev/null || { cannot "python3 is not installed" && return 1; }
    rm -f mapped
    python3 -c '
import mmap, os, sys
maps = [mmap.mmap(os.open(f, os.O_RDONLY), 0, prot=mmap.PROT_READ) for f in sys.argv[1:]]
sum(m[i] for m in maps for i in range(0, len(m), 4096))
print("mapped", flush=True)
sys.stdin.read()' "$@" <>fifo >mapped &
    holder=$!
    while [ ! -s mapped ] && kill -0 $holder; do sleep 0.05; done
}

# The disk's count is all there is, and most of it is of others.
others_read() {
    lie "the bytes of a strict run come from any process, which read many times as much"
    can_lie && is_root || return 0
    head -c 64M /dev/urandom >other
    while :; do dd if=other of=/dev/null bs=1M iflag=direct 2>/dev/null || sleep 1; done &
    reader=$!
    LIE=io-none run 1 $READ --drop-caches=strict --limit-rate 3MiB
    stop $reader
    caught "so others read, too"
}

# again WORDS COMMAND...: until the words appear, as other tests drop the machine's caches.
again() {
    awaited=$1
    shift
    for _ in 1 2 3 4 5; do
        missed=
        "$@"
        case $(flat) in *"$awaited"*) break ;; esac
    done
}

# shellcheck disable=SC2317 # again() runs it
sparse_warm() {
    head -c 8M sparse-lmdb/data.mdb >/dev/null
    run 0 --data sparse-lmdb --decode none
}
sparse_lmdb() {
    lie "an LMDB of 1 TiB with little in it: its values are in memory, not 0.1% of the file"
    built_with LMDB || { cannot "built without LMDB" && return 0; }
    expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k sparse-lmdb -f lmdb
    truncate -s 1T sparse-lmdb/data.mdb || { cannot "no file of 1 TiB here" && return 0; }
    again "valid, warm" sparse_warm
    caught "valid, warm"
}

# shellcheck disable=SC2317 # again() runs it
small_warm() {
    "${IOBENCH%/*}/cachectl/cachectl" evict large >/dev/null
    run 0 --data large --decode none --shuffle none --limit-samples 1
}
small_part() {
    lie "the small part of a large set that a run reads is in memory (to tell its format), not 0.1% of the set"
    expect 0 "$IOBENCH" pack synthetic:count=3000,mean=8k large -f shards --shards 1
    sync
    run 0 --data large --decode none # makes the index
    again "valid, warm" small_warm
    caught "valid, warm"
}

held_map() {
    lie "a process holds the pages of the set mapped"
    is_root && hold set/train-* || return 0
    run 1 $READ --drop-caches
    stop $holder
    caught "python3"
}

direct_past_pages() {
    lie "pages that stay in memory make a direct run warm, though all its bytes came from the device"
    is_root && hold set/train-* || return 0
    run 0 $DIRECT --drop-caches
    stop $holder
    caught "valid, page cache bypassed"
}

# A server's drop command, and a server's residency check.
server() { # STATUS FALSEHOOD OPTION WORDS
    lie "$2"
    is_root || return 0
    run $1 $READ --drop-caches$STRICT ${3%% *} "${3#* }"
    caught "$4"
}
said() { # RESIDENT DISK
    echo "--server-check-cmd echo '{\"resident_bytes\": $1, \"total_bytes\": $files, \"disk_read_bytes\": $2}'"
}
servers() {
    files=$(cat set/train-* | wc -c) STRICT=
    server 0 "a server's caches are dropped by: true" "--server-drop-cmd true" \
        "valid, client cold, server unverified"
    server 1 "a server was told to drop its caches, and did not" "$(said $files null)" \
        "is in the server's memory"
    server 1 "a server says that it is cold, and its disks read nothing in the run" "$(said 0 1000)" \
        "the server's disks read only"
    STRICT='=strict'
    server 1 "a server looks at other files" "--server-check-cmd '${IOBENCH%/*}/cachectl/cachectl' status --json '$IOBENCH.none'" \
        "not verified cold"
}

without_root() {
    lie "an eviction without root is like a full drop"
    is_root || return 0
    command -v setpriv >/dev/null || { cannot "setpriv is not installed" && return 0; }
    chmod 755 "$T"
    chown -R 65534 set
    out=$(env HOME="$T" XDG_CACHE_HOME="$T" setpriv --reuid 65534 --clear-groups \
        "$IOBENCH" run --runs 1 --no-calibrate --memory 16m $READ --drop-caches 2>&1)
    status=$?
    caught "valid, data cold, metadata warm"
}

in_memory() {
    lie "the set lies in memory (tmpfs)"
    mkdir memory
    mount -t tmpfs -o size=64m tmpfs memory 2>/dev/null || { cannot "nothing can be mounted" && return 0; }
    cp set/train-* memory
    run 1 --data memory --decode none --drop-caches
    caught "INVALID"
    lie "the same, and statfs says that it is a disk's file system"
    can_lie && LIE=statfs-disk run 1 --data memory --decode none --drop-caches && caught "INVALID"
    lie "every file system is a disk's, /proc too: what takes the order to drop is not the kernel's"
    can_lie && LIE=statfs-disk run 0 $READ --drop-caches && caught "data cold, metadata warm"
    umount memory
}

loop_device() {
    lie "a loop device whose file is in the cache below"
    mkdir mnt
    truncate -s 24M image
    { mkfs.ext4 -q image && mount -o loop image mnt; } 2>/dev/null ||
        { cannot "there is no loop device" && return 0; }
    cp set/train-* mnt
    sync
    hold image || return 0
    run 1 --data mnt --decode none --drop-caches=strict
    stop $holder
    caught "loop device on"
}

file_mount() {
    lie "a file of the set is a mount of its own, of a loop device whose file is in the cache below"
    mountpoint -q mnt || { cannot "there is no loop device" && return 0; }
    mkdir single
    cp set/train-* single
    tried="iobench run --data single"
    # shellcheck disable=SC2016 # of the inner shell
    hold image && out=$(unshare -m sh -c 'mount --bind mnt/train-00001-of-00002 single/train-00001-of-00002 && exec "$@"' sh \
        "$IOBENCH" run --runs 1 --no-calibrate --memory 16m --data single --decode none --drop-caches=strict 2>&1)
    status=$?
    stop $holder
    caught "loop device on"
}

loop_direct() {
    lie "a loop device with direct I/O makes a run warm if its file is in the cache, which it bypasses"
    is_root || return 0
    mkdir direct
    truncate -s 24M image-direct
    { mkfs.ext4 -q image-direct && loop=$(losetup -f --show --direct-io=on image-direct) &&
        [ "$(losetup -nO DIO "$loop" | tr -d ' ')" = 1 ] && mount "$loop" direct; } 2>/dev/null ||
        { cannot "there is no loop device with direct I/O" && return 0; }
    losetup -d "$loop" # once it is unmounted
    cp set/train-* direct
    sync
    hold image-direct || return 0
    run any --data direct --decode none --drop-caches
    stop $holder
    # Other tests may read this disk meanwhile; they do not make its pages those of a cache.
    case $(flat) in *"loop device on"*) missed="taken for cached" ;; esac
    caught "valid, cold" "DEGRADED: run 1" "valid, unverified"
}

# The word goes to a file that only has the name.
false_drop() {
    lie "the file /proc/sys/vm/drop_caches is not the kernel's"
    is_root || return 0
    : >control
    unshare -m sh -c 'mount --make-rprivate / && mount --bind control /proc/sys/vm/drop_caches' 2>/dev/null ||
        { cannot "nothing can be mounted" && return 0; }
    tried="iobench run $READ --drop-caches"
    out=$(unshare -m sh -c 'mount --make-rprivate / && mount --bind control /proc/sys/vm/drop_caches && exec "$@"' sh \
        "$IOBENCH" run --runs 1 --no-calibrate --memory 16m $READ --drop-caches 2>&1)
    status=$?
    caught "data cold, metadata warm"
    lie "the same, to doctor"
    tried="iobench doctor"
    out=$(unshare -m sh -c 'mount --make-rprivate / && mount --bind control /proc/sys/vm/drop_caches && exec "$@"' sh \
        "$IOBENCH" doctor 2>&1)
    status=$? missed=
    case $out in *"this user can drop all caches"*) missed="doctor believes it" ;; esac
    caught "drop caches"
}

holes() {
    lie "a file with holes: zeros that lie on no device"
    is_root || return 0
    mkdir sparse
    head -c 4000000 /dev/urandom >sparse/a.jpg
    truncate -s 12000000 sparse/a.jpg
    run 1 --data sparse --format files --decode none --memory 128m --drop-caches
    caught "DEGRADED: run 1: only"
}

# shellcheck disable=SC2317 # cli.sh runs it
cleanup() { umount -l memory mnt direct 2>/dev/null; }
CLEANUP=cleanup
mkfifo fifo
warm_run
drop_that_does_nothing
blind_probe
read_meanwhile
others_read
sparse_lmdb
small_part
held_map
in_memory
loop_device
file_mount
loop_direct
false_drop
holes
direct_past_pages
servers
without_root
finish
