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
