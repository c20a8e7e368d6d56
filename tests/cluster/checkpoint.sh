#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writing a checkpoint may take longer than --rank-timeout on a slow disk: the ranks wait, and rank
# 0 reports the reason; if rank 0 becomes unresponsive meanwhile, the job still ends. The slow disk
# is a frozen file system (fsfreeze): to a process both look the same.
# shellcheck disable=SC2034 # for cli.sh
MOUNTS=yes
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

[ "$(id -u)" = 0 ] || skip "making a file system slow takes root"
for tool in mkfs.ext4 fsfreeze; do
    command -v $tool >/dev/null || skip "$tool is not installed"
done
truncate -s 16M disk.image
mkfs.ext4 -q -F disk.image || die "no file system"
mkdir disk
mount -o loop disk.image disk 2>mount.log || skip "no loop device here: $(cat mount.log)"
job=
# shellcheck disable=SC2317 # called at the end
release() {
    fsfreeze -u disk 2>/dev/null
    [ -z "$job" ] || pkill -KILL -P "$job"
}
# shellcheck disable=SC2034 # called by cli.sh
CLEANUP=release

expect 0 "$IOBENCH" pack synthetic:count=16,classes=3,mean=6k,seed=5 set
train() {
    rm -f log disk/last.checkpoint*
    mpi 2 "$IOBENCH" train --network lenet --size 32 --classes 3 --data set --batch-size 8 \
        --decode-threads 1 --compute-threads 1 --lr 0.001 --memory 16m --epochs 100000 \
        --checkpoint disk --rank-timeout 3s >log 2>&1 &
    job=$!
    wait_for "[ -e disk/last.checkpoint ]"
    fsfreeze -f disk || die "the file system cannot be frozen"
}
wait_for() { # CONDITION: wait until true while the job runs
    while ! eval "$1"; do
        kill -0 $job 2>/dev/null || die "the job ended before $1: $(cat log)"
        sleep 0.05
    done
}
# shellcheck disable=SC2317 # called by wait_for
is_newer() { [ "$(stat -c %Y.%i disk/last.checkpoint)" != "$before" ]; }

first_rank() {
    ps -eo pid=,ppid=,comm= | awk -v job="$job" '
        { parent[$1] = $2; if ($3 == "iobench") ranks[++count] = $1 }
        END { for (i = count; i >= 1; i--) {
                  for (p = ranks[i]; p in parent && p != job; p = parent[p]);
                  if (p == job) found = ranks[i]
              }
              print found }'
}

# Slow: reported, and waited for beyond --rank-timeout; the job continues.
train
wait_for "grep -q 'iobench: the checkpoint disk/last.checkpoint is being written, [0-9]* s so far' log"
before=$(stat -c %Y.%i disk/last.checkpoint)
fsfreeze -u disk
wait_for is_newer
kill -INT "$(first_rank)"
wait $job && die "an interrupted job succeeded"
! grep -q "is unresponsive" log || die "a rank that writes was taken for dead: $(cat log)"

# Unresponsive: rank 0 is stopped while it writes.
train
victim=$(first_rank)
[ -n "$victim" ] || die "no rank 0"
# Its main thread and the writing thread.
wait_for "ls /proc/$victim/task/*/comm | xargs cat | grep -qx alone"
kill -STOP "$victim"
wait_for "grep -q 'rank 1 on $(uname -n) waited [0-9]* s: another rank is unresponsive' log"
fsfreeze -u disk
wait $job && die "a job without its rank 0 succeeded"
job=
echo "a slow checkpoint was waited for, a rank 0 that was gone was not"
