#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/device.sh goes through all parts and exits with 0 when nothing can run: here no time is left.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

results=$PWD/results
cd "${IOBENCH%/*}" || exit
expect 0 sh "$SRCDIR/bench/device.sh" --out "$results" --work "$results/../scratch" --seconds 0
says "==== check" "==== fusion" "==== ranks" "-- skipped: no time is left"
for part in check sanitize learn rates fusion precisions torch networks feed ranks; do
    [ -s "$results/$part.txt" ] || die "nothing is kept of $part"
done
[ "$(find "$results" -type f | wc -l)" = 10 ] || die "more than results are there: $(ls "$results")"
expect 0 env PYTHON=false sh "$SRCDIR/bench/device.sh" torch --out "$results" --work "$results/../scratch"
says "skipped: false has no PyTorch"
expect 2 sh "$SRCDIR/bench/device.sh" everything
