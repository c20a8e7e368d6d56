#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench sweep over ranks: strong and weak scaling under MPI.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
with_mpi || skip "no MPI"
make_set recordio 60
set -- sweep --data "$tmp/recordio" --no-calibrate --decode none --decode-threads 1 --memory 16m \
    --sample-interval none --runs 2 --ranks 1,2 --launch "$MPIRUN -n {ranks}"

samples() { # FILE: of the job
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["jobs"][0]["summary"]["samples"])' "$1"
}

try 0 "$@" --limit-samples 41 --seed 1,2 --scaling strong -o "$tmp/strong" --json "$tmp/strong.json"
out "Strong scaling, seed=1; shares"
out "Strong scaling, seed=2; shares"
out "speed-up efficiency"
out "8 measured, 8 valid"
for cell in 1 2 3 4; do
    [ "$(samples "$tmp/strong/cell-0000$cell-run-1.json")" = 41 ] || fault "strong scaling changes the job's samples"
done
# As root, and with more ranks than cores, Open MPI needs to be told: by sweep itself.
(
    unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
    set -- "$@" --ranks "$(($(nproc) + 1))" --runs 1 -o "$tmp/crowd"
    try 0 "$@"
    out "1 measured, 1 valid"
    finish
) || fault "more ranks than cores, or root"
grep -q '"kind": "strong"' "$tmp/strong.json" || fault "the JSON does not say which scaling"
# Each key of the JSON is documented in docs/sweep.md.
python3 - "$tmp/strong.json" "$SRCDIR/docs/sweep.md" <<'END' || fault "docs/sweep.md does not describe the JSON"
import json, re, sys
page = open(sys.argv[2]).read()
def keys(value):
    if isinstance(value, list):
        return {key for member in value for key in keys(member)}
    if not isinstance(value, dict):
        return set()
    return {key for key in value} | {key for name, member in value.items() if name not in ("options", "shares") for key in keys(member)}
found = {re.sub("_(low95|high95|min|max)$", "", key) for key in keys(json.load(open(sys.argv[1])))}
missing = [key for key in sorted(found) if "`%s`" % key not in page and key not in ("schema_version", "iobench_version")]
print(*missing)
sys.exit(bool(missing) or len(found) < 30)
END
try 0 "$@" --limit-samples-per-rank 20 --scaling strong,weak -o "$tmp/weak"
out "Strong scaling; shares"
out "Weak scaling; shares"
[ "$(samples "$tmp/weak/cell-00002-run-1.json")" = 20 ] || fault "weak scaling: not 20 samples on one rank"
[ "$(samples "$tmp/weak/cell-00004-run-1.json")" = 40 ] || fault "weak scaling: not 40 samples on two ranks"
finish
