#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory in a control group whose parent has the limit, as under Slurm or systemd: a job that does
# not fit is refused with both figures, one that fits runs, and nothing is killed.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"

if grep -qs '^[0-9]*:[^:]*memory[,:]' /proc/self/cgroup; then
    own=$(sed -n 's/^[0-9]*:[^:]*memory[^:]*://p' /proc/self/cgroup)
    parent=/sys/fs/cgroup/memory$own/iobench-test.$$ limit=memory.limit_in_bytes
else
    own=$(sed -n 's/^0:://p' /proc/self/cgroup)
    parent=/sys/fs/cgroup$own/iobench-test.$$ limit=memory.max
fi
leave() {
    # shellcheck disable=SC2317 # cli.sh runs it
    rmdir "$parent/step" "$parent" 2>/dev/null
}
mkdir "$parent" 2>/dev/null || skip "no control group can be made in ${parent%/*}"
CLEANUP=leave
if [ $limit = memory.max ]; then
    echo +memory 2>/dev/null >"${parent%/*}/cgroup.subtree_control" || :
fi
{ echo 314572800 >"$parent/$limit"; } 2>/dev/null || skip "no memory limit can be set in $parent"
echo 0 2>/dev/null >"$parent/memory.swap.max" || :
mkdir "$parent/step"

# inside STATUS ARGUMENTS...
inside() {
    wanted=$1
    shift
    tried="in 300 MiB: iobench $*"
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$parent/step" "$IOBENCH" "$@" \
        >"$tmp/out" 2>"$tmp/err" </dev/null
    status=$?
    [ "$status" -eq "$wanted" ] || fault "exit status $status, not $wanted"
}

make_set recordio 500
set=$tmp/recordio
inside 0 run -d "$set" --iodepth 256 --decode none -n 1 --no-calibrate
out "300.00 MiB for its control group"
inside 0 run -d "$set" -m 100m -B 32 --dry-run
out "of memory"
# 300 MiB less what is in use: nothing, if the kernel's statistics of what can be given back are older than that.
ALLOWED="its control group allows "
for dry in --dry-run --no-dry-run; do
    inside 1 run -d "$set" -m 12g $dry --decode none
    err "this needs 12."
    err "$ALLOWED"
    err "--memory"
done
inside 1 run -d "$set" -B 65536 --prefetch 1024
err "$ALLOWED"
tried="iobench doctor"
inside 0 doctor
out "by its control group"
inside 1 train -d "$set" --network resnet50 -B 512
err "may be used here: give a smaller --batch-size"
finish
