#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench --memory-limit: under a limit of 64 MiB, the second epoch reads a set of 256 MiB from the
# device again; without the limit it does not.
. "$(dirname "$0")/cli.sh"

class=set/class
mkdir -p $class
i=0
while [ $i -lt 256 ]; do
    head -c 1048576 /dev/urandom >$class/$i.jpg
    i=$((i + 1))
done
run() {
    expect "$@" --data set --format files --decode none --no-crc --epochs 2 --runs 1 \
        --no-calibrate --shuffle epoch --reader pread --iodepth 4 --json out.json
}
second_epoch() { # MiB read from the device; empty if unknown
    python3 -c 'import json
bytes = json.load(open("out.json"))["jobs"][0]["runs"][0]["epochs"][1]["device_read_bytes"]
print("" if bytes is None else bytes >> 20)'
}

undropped run 0 "$IOBENCH"
bytes=$(second_epoch)
[ -n "$bytes" ] || skip "no counter of the device below $T"
[ "$bytes" -lt 26 ] || skip "the page cache of this machine does not hold 256 MiB"

own=$(sed -n 's/^[0-9]*:memory://p; s/^0:://p' /proc/self/cgroup | head -n 1)
groups() { # of exited processes
    find "/sys/fs/cgroup/memory$own" "/sys/fs/cgroup$own" -maxdepth 1 -name 'iobench.*' 2>/dev/null |
        sort -u | while read -r group; do
        kill -0 "${group##*.}" 2>/dev/null || [ ! -d "$group" ] || echo "$group"
    done
}
out=$("$IOBENCH" --data set --format files --memory-limit 64m --decode none --no-crc --runs 1 2>&1) ||
    case $out in
    *"cannot create a control group"* | *"control groups"* | *"counts memory here"*)
        skip "${out##*--memory-limit}"
        ;;
    *) die "the reader of choice at its depth does not fit into the limit" ;;
    esac
# A killed run leaves its group; the next run removes it.
group_of() { # PID: true if the process has a group
    [ -d "/sys/fs/cgroup/memory$own/iobench.$1" ] || [ -d "/sys/fs/cgroup$own/iobench.$1" ]
}
"$IOBENCH" --data set --format files --memory-limit 64m --limit-rate 1m --decode none --runs 1 >/dev/null 2>&1 &
killed=$!
tries=0
while ! group_of "$killed" && [ $tries -lt 1200 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
group_of "$killed" || die "no control group of a run"
kill -9 $killed
wait $killed 2>/dev/null # from here on any run of any test removes the group
run 0 "$IOBENCH" --memory-limit 64m
case $out in
*"--memory-limit 64.00 MiB has no effect"*) die "a limit below the set is said to have no effect" ;;
esac
! group_of "$killed" || die "a killed run's control group was left behind"
bytes=$(second_epoch)
[ "$bytes" -ge 230 ] || die "only $bytes of 256 MiB left the device in the second epoch"
grep -q '"memory_limit_bytes": 67108864' out.json || die "the limit is not in the result"
[ -z "$(groups)" ] || die "a control group was left behind: $(groups)"

# Jobs that do not fit are refused before the kernel would kill the program.
expect 1 "$IOBENCH" --data set --format files --memory-limit 16m --memory 64m --runs 1
says "--memory-limit 16.00 MiB" "records in flight"

expect 2 "$IOBENCH" --data set --format files --memory-limit 1m
says "--memory-limit: 1048576 is less than 8388608"

# Without permission to create a group: an error.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$T"
    expect 1 setpriv --reuid 65534 --clear-groups "$IOBENCH" --data "$T/set" --format files \
        --memory-limit 64m --runs 1
    says "cannot create a control group" "systemd-run"
fi
exit 0
