# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Shared by the tests with several ranks; sourced, never run.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

RANKS=$(dirname "$IOBENCH")/tests/cluster/ranks
MPIRUN=${MPIRUN:-mpirun} # of the MPI of this build, such as mpirun.mpich
command -v "$MPIRUN" >/dev/null || skip "$MPIRUN is not installed"
[ -x "$RANKS" ] || skip "built without MPI"
grep -q "fsanitize=address" "$(dirname "$IOBENCH")/Makefile" && skip "Open MPI leaks by design"
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
is_open_mpi() { "$MPIRUN" --version | grep -q "Open MPI"; }

# More ranks than CPUs, no special hardware.
mpi() { # COUNT COMMAND...
    count=$1
    shift
    if is_open_mpi; then
        set -- --oversubscribe --bind-to none --mca btl self,vader,tcp "$@"
    fi
    "$MPIRUN" -n "$count" "$@"
}

# Make a bridge for network namespaces that stand for hosts, and set its name, BRIDGE, and its subnet, NET.x,
# from the benchmark range (RFC 2544), less what iobench itself takes for emulated nodes. The name is the
# claim: other tests may run, or have been killed.
claim_bridge() {
    subnet=$(($$ % 498 + 2))
    for _ in $(seq 498); do
        # shellcheck disable=SC2034 # NET is for the test
        BRIDGE=iob$subnet NET=198.$((18 + subnet % 2)).$((subnet / 2))
        ip link add "$BRIDGE" type bridge 2>/dev/null && return
        ip link show "$BRIDGE" >/dev/null 2>&1 || break
        subnet=$(((subnet - 1) % 498 + 2))
    done
    skip "no bridge can be made here"
}

# Print the last rank of a background job: its launcher may start it indirectly.
last_rank() { # PROCESS
    rank=$(ps -eo pid=,ppid=,comm= | awk -v job="$1" '
        { parent[$1] = $2; if ($3 == "iobench") ranks[++count] = $1 }
        END { for (i = 1; i <= count; i++) {
                  for (p = ranks[i]; p in parent && p != job; p = parent[p]);
                  if (p == job) found = ranks[i]
              }
              print found }')
    [ -n "$rank" ] || die "no rank was found below $MPIRUN: $(cat log)"
    echo "$rank"
}
