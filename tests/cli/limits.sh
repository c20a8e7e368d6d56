#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Input that is too expensive or empty is refused with a reason, or skipped and counted.
. "$(dirname "$0")/cli.sh"

# ---- limits of the process: named with the option that raises them ----
expect 0 "$IOBENCH" pack synthetic:count=12,classes=3,mean=4k few
# One descriptor besides the streams: enough to load the program, never for a folder and a name in it. What a
# caller left open is closed: how many that are decides about any larger number.
expect 1 sh -c "exec 3>&-; ulimit -n 4; exec '$IOBENCH' --data few --runs 1"
says "Too many open files (for the limit of 'ulimit -n')"
rm -r few

# ---- an empty record: found while indexing, in any format ----
expect 0 "$IOBENCH" pack synthetic:count=12,classes=3,mean=4k set -f files
first=$(find set/00001 -name '*.jpg' | sort | head -n 1)
: >"$first"
expect 1 "$IOBENCH" --data set --epochs 1 --runs 1
says "$first: offset 0: a record of 0 bytes: empty"
expect 1 "$IOBENCH" --data set --epochs 1 --runs 1 --on-error skip
says "DEGRADED: 1 record was skipped" "the index omits damaged samples"
expect 1 "$IOBENCH" verify set
says "$first: offset 0: a record of 0 bytes" "1 fault"
expect 0 "$IOBENCH" pack set without -f shards --on-error skip
says "1 sample was left out"
