# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What the tests with several ranks share; sourced, never run.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

RANKS=$(dirname "$IOBENCH")/tests/cluster/ranks
command -v mpirun >/dev/null || skip "mpirun is not installed"
[ -x "$RANKS" ] || skip "built without MPI"
grep -q "fsanitize=address" "$(dirname "$IOBENCH")/Makefile" && skip "Open MPI leaks by design"
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# More ranks than CPUs, no special hardware.
mpi() { # COUNT COMMAND...
    count=$1
    shift
    mpirun -n "$count" --oversubscribe --bind-to none --mca btl self,vader,tcp "$@"
}
