#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A data set on a loop device: its backing file must be cold, too.
. "$(dirname "$0")/cli.sh"

command -v mkfs.ext4 >/dev/null || skip "mkfs.ext4 is not installed"
mkdir memory mnt
mount -t tmpfs -o size=64m tmpfs memory 2>/dev/null || skip "nothing can be mounted here"
# shellcheck disable=SC2317 # cli.sh runs it
cleanup() {
    umount "$T/mnt" 2>/dev/null
    umount "$T/memory"
}
# shellcheck disable=SC2034
CLEANUP=cleanup
truncate -s 48M memory/image
mkfs.ext4 -q memory/image
mount -o loop memory/image mnt 2>/dev/null || skip "there is no loop device here"

expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k mnt/set -f shards
sync
expect 1 "$IOBENCH" run --data mnt/set --drop-caches=strict --decode none --runs 1 --no-calibrate
says "not verified cold: loop device on" "memory/image" "can never be cold"
expect 1 "$IOBENCH" run --data mnt/set --drop-caches --decode none --runs 1 --no-calibrate
says "INVALID" "loop device on"
