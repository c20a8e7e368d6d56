#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks move data by MPI, and each of its calls that fails is named.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

expect 0 mpi 2 "$(dirname "$IOBENCH")/tests/cluster/alive" fails
