#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A process under a CPU quota measures the quota: no storage is its limit, and no profile has a rate.
# shellcheck disable=SC2034 # of cli.sh
ON_DISK=1
. "$(dirname "$0")/cli.sh"
# shellcheck source=tests/liars/groups.sh
. "$SRCDIR/tests/liars/groups.sh"
if ! group cpu || ! quota "$GROUP" 5000; then skip "no control group with a CPU quota can be made here"; fi
expect 0 "$IOBENCH" pack synthetic:count=400,mean=20k set -f recordio

starved() { # STATUS COMMAND...: under a quota of 5% of a CPU
    wanted=$1
    shift
    # shellcheck disable=SC2016 # of the inner shell
    expect "$wanted" timeout 300 sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$GROUP" "$IOBENCH" "$@"
}

# Decoding is work for a CPU, reading alone too: nothing of it is storage.
for decode in none checksum; do
    starved 1 run --data set --decode $decode --runs 1 --epochs 60 --no-calibrate --memory 16m --bs 4k \
        --profile "$decode.ini" --json "$decode.json"
    says "DEGRADED: run 1: CPU quota: the control group was throttled" "Limit    CPU quota"
    ! grep -q '"limit": "storage"' "$decode.json" || die "storage is the limit of an epoch"
    grep -q '"limit": "cpu_quota"' "$decode.json" || die "no quota in the JSON: $(cat "$decode.json")"
    ! grep -q "^read-bytes-per-s" "$decode.ini" || die "a profile of a storage: $(cat "$decode.ini")"
done
starved 1 checkpoint written --bytes 16m --ranks 2 --writes 2 --reads 2 --chunk 1m --json checkpoint.json
says "checkpoint: DEGRADED" "CPU quota: the control group was throttled"
grep -q '"degraded": true' checkpoint.json || die "the JSON of a checkpoint does not say it"
starved 1 size --measure set --read-sizes 4k --depths 1,4 --measure-time 200ms --save measured.ini
says "DEGRADED: CPU quota" "no profile"
[ ! -e measured.ini ] || die "a profile of a storage: $(cat measured.ini)"
starved 0 verify --decode set
says "DEGRADED: CPU quota" "no faults"

# Others on the same CPU: what a storage seemed to do is in doubt. A hole is read without a device to wait for.
command -v taskset >/dev/null 2>&1 || exit 0
cpu=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)
truncate -s 8M hole
printf data | dd of=hole conv=notrunc 2>/dev/null
others=
for _ in 1 2 3 4; do
    taskset -c "$cpu" timeout 100 sh -c 'while :; do :; done' &
    others="$others $!"
done
expect 1 taskset -c "$cpu" timeout 90 "$IOBENCH" size --measure hole --read-sizes 4k --depths 1,4 --measure-time 100ms
# shellcheck disable=SC2086 # a list
kill $others
says "In doubt: CPUs were short: a thread waited for one"
