# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Shared by the tests of the commands; sourced, never run. Each test works in its own folder, $T,
# with the freshly built program as $IOBENCH. `expect` runs a command, requires an exit status and
# keeps the output in $out.
set -u

IOBENCH=${IOBENCH:-$PWD/iobench}
# shellcheck disable=SC2034 # for the test that sources this
SRCDIR=$(cd "${srcdir:-.}" && pwd)
CONFIG=$PWD/config.h
# shellcheck disable=SC2034 # likewise
PROGRAMS=$PWD

# A test that mounts sets MOUNTS: its mounts are in a namespace of its own and end with it, however it ends.
if [ "${MOUNTS-}" ] && [ -z "${IOBENCH_OWN_MOUNTS-}" ]; then
    export IOBENCH_OWN_MOUNTS=yes
    unshare -m true 2>/dev/null && exec unshare -m --propagation private sh "$0" "$@"
    mount() { return 1; }
fi
unset IOBENCH_OWN_MOUNTS

# A test of storage sets ON_DISK: its folder is in /var/tmp or next to the build if $TMPDIR is in memory.
is_in_memory() { case $(stat -f -c %T "$1" 2>/dev/null) in tmpfs | ramfs) ;; *) return 1 ;; esac }
TMPDIR=${TMPDIR:-/tmp}
for disk in /var/tmp "$PWD"; do
    [ -z "${ON_DISK-}" ] || ! is_in_memory "$TMPDIR" || TMPDIR=$disk
done
if [ "${ON_DISK-}" ] && is_in_memory "$TMPDIR"; then
    echo "skipped: TMPDIR, /var/tmp and the build are in memory"
    exit 77
fi
T=$(mktemp -d "$TMPDIR/iobench-cli-XXXXXX")
XDG_CACHE_HOME=$T/cache
export XDG_CACHE_HOME
CLEANUP=:
trap '$CLEANUP; [ -z "${MOUNTS-}" ] || grep -o " $T/[^ ]*" /proc/self/mounts | xargs -r umount -l; rm -rf "$T"' EXIT
trap 'exit 1' INT TERM
cd "$T" || exit 1

die() {
    echo "FAILED: $*"
    [ -z "${out-}" ] || printf '%s\n' "$out"
    exit 1
}

skip() {
    echo "skipped: $*"
    exit 77
}

expect() { # STATUS COMMAND...
    wanted=$1
    shift
    out=$("$@" 2>&1) && status=0 || status=$?
    [ "$status" = "$wanted" ] || die "exit status $status, not $wanted: $*"
}

says() { # TEXT...: each must be in $out, ignoring line breaks
    wrapped=$out$(printf '%s' "$out" | tr -s ' \n' ' ')
    for text; do
        case $wrapped in
        *"$text"*) ;;
        *) die "does not say '$text':" ;;
        esac
    done
}

# Can $MPIRUN start ranks here? If so also for root, and more of them than CPUs. Open MPI leaks by design.
with_mpi() {
    MPIRUN=${MPIRUN:-mpirun}
    built_with MPI && command -v "$MPIRUN" >/dev/null && ! grep -q "fsanitize=address" "$PROGRAMS/Makefile" || return
    export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none                   # Open MPI 4
    export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none # 5
}

# shellcheck source=tests/cli/hold.sh
. "$SRCDIR/tests/cli/hold.sh"

# undropped COMMAND...: run it until meanwhile nobody has dropped the machine's page cache, as other
# tests do. The kernel counts that.
undropped() {
    for _ in $(seq 50); do
        drops=$(grep '^drop_pagecache ' /proc/vmstat || :)
        "$@"
        [ "$(grep '^drop_pagecache ' /proc/vmstat)" != "$drops" ] || return 0
    done
}

built_with() { # LMDB: true if the optional library is built in
    grep -q "^#define HAVE_$1 1" "$CONFIG"
}

# Print the digest of all (label, image) pairs of a data set; independent of order and format.
digest() {
    "$IOBENCH" run --data "$1" --runs 1 --decode checksum --no-calibrate --digest --memory 16m ${2+--format "$2"} 2>&1 |
        sed -n 's/^ *Digest *\([0-9a-f]*\).*/\1/p'
}

same_digest() { # A B [FORMAT OF B]
    a=$(digest "$1") b=$(digest "$2" ${3+"$3"})
    [ -n "$a" ] || die "no digest of $1"
    [ "$a" = "$b" ] || die "$2 holds other samples than $1 ($b, not $a)"
}

# Formats that this build can write.
formats() {
    for format in recordio shards lmdb tar files; do
        "$IOBENCH" list format | grep -q "^ *$format " || continue
        [ $format != lmdb ] || built_with LMDB || continue
        echo $format
    done
}

# again FILE COPY: the same result as of another measurement, for commands that refuse a copy.
again() {
    python3 -c 'import json, sys
document = json.load(open(sys.argv[1]))
document.pop("checksum", None)
document["jobs"][0].update(label="again", started="2026-01-02T00:00:00Z")
json.dump(document, open(sys.argv[2], "w"))' "$1" "$2"
}
