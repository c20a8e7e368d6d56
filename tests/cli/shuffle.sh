#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench shuffle: the table, JSON, pictures, refusals, and a measurement.
. "$(dirname "$0")/cli.sh"

SMALL="--records 5000 --shards 7 --classes 10 --batch-size 32"

# shellcheck disable=SC2086
expect 0 "$IOBENCH" shuffle $SMALL --partition all --ranks 1,3 --plot orders.svg
says "5,000 records in 7 shards" "partition replicated, 3 ranks" "corgipile" "A draw at random"
grep -q "</svg>" orders.svg || die "no picture"
[ "$(grep -c "next label over label" orders.svg)" -gt 100 ] || die "panels are missing"

# Exactly once over the ranks, seen from outside.
# shellcheck disable=SC2086
expect 0 "$IOBENCH" shuffle $SMALL --ranks 3 --json=all.json
for line in '"records_missing": 0,' '"draws_repeated": 0,' '"draws": 5000,'; do
    [ "$(grep -cF "$line" all.json)" = 16 ] || die "not 16 times $line"
done

# An order that is not for this partition is said to be so; the others go on.
# shellcheck disable=SC2086
expect 0 "$IOBENCH" shuffle $SMALL buffer epoch --partition elastic
says "refused: partition elastic needs an order that all ranks share" "epoch "

expect 2 "$IOBENCH" shuffle nothing
expect 2 "$IOBENCH" shuffle --partition odd
expect 2 "$IOBENCH" shuffle --ranks 0
expect 2 "$IOBENCH" shuffle --measure
expect 1 "$IOBENCH" shuffle --data ./missing
says "does not exist"

# A data set, and how fast it is read.
mkdir set && for i in 1 2 3 4 5 6 7 8; do head -c 20000 /dev/urandom >set/$i.jpg; done
expect 0 "$IOBENCH" shuffle epoch none --data set --format files --measure --batch-size 2 \
    --classes 2 --plot front.svg
says "8 records" "MiB/s"
grep -q "<circle" front.svg || die "no throughput in the picture"
