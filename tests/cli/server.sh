#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Conditions for cold: a server's cache only if the server verifies it, direct reads that bypass a
# warm page cache, and eviction file by file, which leaves dentries and inodes.
# shellcheck disable=SC2034 # for cli.sh
ON_DISK=yes
. "$(dirname "$0")/cli.sh"

if [ "$(id -u)" != 0 ] || [ ! -w /proc/sys/vm/drop_caches ]; then
    skip "empties the page cache: root alone may"
fi
CACHECTL=${IOBENCH%/*}/cachectl/cachectl
expect 0 "$IOBENCH" pack synthetic:count=120,mean=40k,seed=5 set --format shards
sync
bytes=$(cat set/train* | wc -c)

run() { # STATUS OPTIONS...
    wanted_status=$1
    shift
    expect "$wanted_status" timeout -k 9 600 "$IOBENCH" run --data set --runs 1 --decode none --no-calibrate --memory 16m "$@"
}
value() { # FILE EXPRESSION of cold, of the only run
    python3 -c 'import json, sys
cold = json.load(open(sys.argv[1]))["jobs"][0]["runs"][0]["cold"]
server = cold["server"]
print(eval(sys.argv[2]))' "$@"
}

run 0 --drop-caches --json own.json
# shellcheck disable=SC2154 # expect sets it
case $out in *": valid, cold, 1 run of"*) ;; *) skip "nobody can prove caches empty here: $out" ;; esac
[ "$(value own.json 'server, cold["server_reason"], cold["metadata_dropped"]')" = \
    "(None, 'the files are on local disks or in memory', True)" ] || die "$(cat own.json)"

# ---- a command that empties a server proves nothing ----
unverified="client cold, server unverified"
run 0 --drop-caches --server-drop-cmd true --json true.json --csv true.csv
says ": valid, $unverified, 1 run of" "Cache    $unverified: at most" \
    "Server   UNVERIFIED: server cache contents unknown" "--server-check-cmd 'ssh SERVER cachectl"
[ "$(value true.json 'cold["cache_before"], server["cache_before"], server["check"], cold["server_drop"]["exit_status"]')" = \
    "('$unverified', 'unverified', None, 0.0)" ] || die "$(cat true.json)"
grep -q "\"$unverified\"" true.csv || die "not a cell of a CSV file: $(cat true.csv)"
run 1 --drop-caches=strict --server-drop-cmd true
says "not verified cold: server cache contents unknown"

# ---- a residency check does; it runs before and after the drop, and after the run ----
run 0 --drop-caches=strict --server-drop-cmd "echo drop >>calls" \
    --server-check-cmd "echo check >>calls; '$CACHECTL' status --json '$T/set'" --json good.json
says ": valid, cold, 1 run of" "Server   cold: 0 B of" "; its disks read"
[ "$(tr '\n' ' ' <calls)" = "check drop check drop check " ] || die "called in another order: $(cat calls)"
[ "$(value good.json "server['cache_before'], server['resident_bytes'], server['total_bytes'] >= $bytes, server['disk_percent'] >= 98, server['check']['exit_status']")" = "('cold', 0.0, True, True, 0.0)" ] ||
    die "$(cat good.json)"

# ---- and its output is taken literally ----
answer() { # RESIDENT DISK: for --server-check-cmd
    echo "echo '{\"resident_bytes\": $1, \"total_bytes\": $bytes, \"disk_read_bytes\": $2}'"
}
run 1 --drop-caches --server-check-cmd "$(answer $((bytes / 2)) null)"
says "INVALID: " "of $(python3 -c "print('%.2f' % ($bytes / 2**20))") MiB is in the server's memory" "Server   WARM"
run 1 --drop-caches=strict --server-check-cmd "$(answer $((bytes / 2)) null)"
run 0 --server-check-cmd "$(answer $((bytes / 2)) null)" --json warm.json # no cold cache was requested
[ "$(value warm.json 'cold["cache_before"]')" = warm ] || die "$(cat warm.json)"
run 1 --drop-caches=strict --server-check-cmd "'$CACHECTL' status --json '$CACHECTL'"
says "check the set's files"
run 1 --drop-caches=strict --server-check-cmd "yes"
says "output exceeds 32768 bytes"
# Without a drop here: the sync of it may take longer beside programs that write.
run 0 --server-check-cmd "sleep 600" --drop-timeout 1s
says "Server   UNVERIFIED: " "not done after 1 s"

# A server that knows only its disks' reads: a counter that advances during the run.
rm -f once
run 0 --drop-caches=strict --server-check-cmd "[ -e once ] && n=$bytes || n=0; : >once; echo {\\\"disk_read_bytes\\\": \$((1000 + n))}"
says ": valid, cold, 1 run of" "Server   cold: its disks read"
rm -f once
run 1 --drop-caches=strict --server-check-cmd "[ -e once ] && n=$((bytes / 2)) || n=0; : >once; echo {\\\"disk_read_bytes\\\": \$((1000 + n))}"
says "INVALID: run 1: not verified cold: " "Server   UNVERIFIED" "and its disks read 50.0% of"
rm -f once
run 1 --drop-caches --server-check-cmd "[ -e once ] && n=$((bytes / 2)) || n=0; : >once
    echo {\\\"disk_read_bytes\\\": \$((1000 + n)), \\\"resident_bytes\\\": 0, \\\"total_bytes\\\": $bytes}"
says "DEGRADED: run 1: the server's disks read only"

# ---- direct reads that bypass pages kept resident by another process's mapping ----
hold_mapped 'set/*-of-*'
run 1 --drop-caches
says "INVALID: run 1: the cache should be cold, but"
run 0 --drop-caches --direct --json direct.json
says ": valid, page cache bypassed, 1 run of" "Cache    page cache bypassed: at most" "  bypassed"
[ "$(value direct.json 'cold["cache_before"], cold["cold_residue_percent"] > 50')" = "('page cache bypassed', True)" ] ||
    die "$(cat direct.json)"
run 0 --drop-caches=strict --direct
run 1 --drop-caches=strict
says "not verified cold: " "mapped by process $HOLDER"
release_held

# ---- without privilege: data is evicted, dentries and inodes stay ----
command -v setpriv >/dev/null || { echo "no setpriv: eviction not tested"; exit 0; }
chmod 755 "$T"
mkdir -p "$T/nobody"
chown -R 65534:65534 set "$T/nobody"
as_nobody() { # STATUS OPTIONS...
    wanted_status=$1
    shift
    expect "$wanted_status" env HOME="$T/nobody" XDG_CACHE_HOME="$T/nobody" \
        setpriv --reuid 65534 --regid 65534 --clear-groups timeout -k 9 600 \
        "$IOBENCH" run --data "$T/set" --runs 1 --decode none --no-calibrate --memory 16m "$@"
}
# Not a folder that others cannot enter, as /root; setpriv itself could.
if setpriv --reuid 65534 --regid 65534 --clear-groups env "$IOBENCH" --version >/dev/null 2>&1; then
    as_nobody 0 --drop-caches --json "$T/nobody/result.json"
    says ": valid, data cold, metadata warm, 1 run of" "eviction file by file, dentries and inodes stay"
    [ "$(value nobody/result.json 'cold["cache_before"], cold["metadata_dropped"]')" = \
        "('data cold, metadata warm', False)" ] || die "$(cat nobody/result.json)"
    as_nobody 1 --drop-caches=strict
    says "not verified cold: dentries and inodes stay in memory" "cachectl(1)"
fi
echo "cold is what is proven"
