#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The cachectl program on real files: tables, JSON, exit codes.
CACHECTL=$PWD/cachectl/cachectl
. "$(dirname "$0")/cli.sh"
set -e

FOLDER=$(mktemp -d "${TMPDIR:-/var/tmp}/iobench-cachectl-XXXXXX") # on a disk
# shellcheck disable=SC2034 # cli.sh runs it
CLEANUP="rm -rf $FOLDER"

# status N COMMAND...: must exit with N; output in $FOLDER/out.
status() {
    expected=$1 found=0
    shift
    "$@" >"$FOLDER/out" 2>&1 </dev/null || found=$?
    [ "$found" = "$expected" ] || {
        cat "$FOLDER/out"
        die "$*: exit status $found, not $expected"
    }
}

says() {
    grep -q -- "$1" "$FOLDER/out" || {
        cat "$FOLDER/out"
        die "does not say '$1'"
    }
}

mkdir -p "$FOLDER/set/below" "$FOLDER/hollow"
dd if=/dev/zero of="$FOLDER/set/a" bs=4096 count=64 2>/dev/null
dd if=/dev/zero of="$FOLDER/set/below/b with blank" bs=4096 count=32 2>/dev/null
: >"$FOLDER/set/empty"

status 0 "$CACHECTL" --help
says 'Usage: cachectl'
status 2 "$CACHECTL"
status 2 "$CACHECTL" frobnicate
says 'unknown command frobnicate'
status 2 "$CACHECTL" status
status 2 "$CACHECTL" status --nonsense /
status 2 "$CACHECTL" --timeout=soon status /
status 1 "$CACHECTL" evict "$FOLDER/hollow" # an unmounted file system must not pass as cold
says 'no files'

"$CACHECTL" warm "$FOLDER/set" >/dev/null
"$CACHECTL" status --json "$FOLDER/set" | grep -q '"unverified_files": 0' || {
    echo "skipped: the page cache does not show here"
    exit 77
}
warmed() {
    "$CACHECTL" warm "$FOLDER/set" >/dev/null
    status 0 "$CACHECTL" status "$FOLDER/set"
}
undropped warmed
says 'warm .*(3 files)'
says '384.00 KiB .*100.00%'
if "$CACHECTL" evict "$FOLDER/set" >"$FOLDER/out" 2>&1; then
    says 'cold'
    status 0 "$CACHECTL" status --files "$FOLDER/set"
    says 'b with blank'
    says 'cold *total (3 files)'
    status 0 "$CACHECTL" status --json "$FOLDER/set/a"
    says '"state": "cold"'
    says '"resident_bytes": 0'
    undropped status 0 "$CACHECTL" warm "$FOLDER/set/a"
    says 'warm'
else
    grep -q tmpfs "$FOLDER/out" || die "not cold after evict: $(cat "$FOLDER/out")"
fi
status 1 "$CACHECTL" status "$FOLDER/none"
says 'No such file'
ln -s "$FOLDER/nowhere" "$FOLDER/set/dangling"
status 1 "$CACHECTL" status "$FOLDER/set"
says dangling
status 1 "$CACHECTL" evict --json "$FOLDER/set/a" "$FOLDER/none"
[ -c /dev/full ] || exit 0
if "$CACHECTL" status "$FOLDER/set/a" >/dev/full 2>"$FOLDER/out"; then
    die "a full disk behind its output is no failure"
fi
says "standard output: No space left on device"
says 'standard output'
