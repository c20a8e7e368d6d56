#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Modified results, and unrelated results.
# shellcheck disable=SC2086,SC2034,SC2154 # words without blanks; what cli.sh shares
# shellcheck source=tests/liars/liars.sh
. "$(dirname "$0")/liars.sh"
expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k set -f shards --shards 2
expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k,seed=2 other -f shards --shards 2
cp -r other hurt
printf 'X' | dd of=hurt/train-00001-of-00002 bs=1 seek=5000 conv=notrunc 2>/dev/null
RUN="--runs 5 --decode none"
run 0 $RUN --data set --json a.json
run 0 $RUN --data set --json b.json
run 0 $RUN --data set --json pread.json --reader pread --batch-size 7
run 0 $RUN --data other --json other.json
run 1 --data hurt --json invalid.json

compare() { # STATUS A B
    tried="iobench compare $2 $3"
    out=$("$IOBENCH" compare "$2" "$3" 2>&1)
    status=$?
    [ "$status" = "$1" ] || missed="exit status $status, not $1"
}

lie "a figure of a result is edited by hand"
sed 's/\("samples_per_s": \)\([0-9]\)/\19\2/' a.json >faster.json
cmp -s a.json faster.json && missed="nothing was edited"
compare 1 a.json faster.json
caught "faster.json: checksum mismatch: changed since iobench wrote it"

lie "an INVALID result is made valid by hand"
sed 's/"valid": false/"valid": true/' invalid.json >made_valid.json
compare 1 a.json made_valid.json
caught "made_valid.json: checksum mismatch: changed since iobench wrote it"

lie "storage is sized from a figure that was edited"
out=$("$IOBENCH" size faster.json --gpus 8 2>&1)
caught "faster.json: checksum mismatch: changed since iobench wrote it"

lie "a key of a result is there twice"
sed '0,/"valid": true,/s//"valid": true, "valid": true,/' a.json >twice.json
compare 1 a.json twice.json
caught "duplicate object key"

lie "a result that is INVALID is compared"
compare 1 a.json invalid.json
caught "B is INVALID: run 1: "

lie "a result that is DEGRADED is compared"
run 1 --data hurt --on-error skip --json degraded.json
compare 1 a.json degraded.json
caught "B is DEGRADED: "

lie "two results of different sets are compared"
compare 0 a.json other.json
caught 'dataset.path: "set" -> "other"'

lie "a set is replaced by a copy with its times between two results"
cp -a set copy && mv set former && mv copy set
run 0 $RUN --data set --json replaced.json
compare 0 a.json replaced.json
caught "The data set was replaced or written between the results"

lie "a set is replaced between two calls of a sweep"
out=$("$IOBENCH" sweep --data set --decode none --batch-size 8,16 --runs 1 -o swept 2>&1) || missed="the first call fails"
cp -a set copy && mv set later && mv copy set
out=$("$IOBENCH" sweep --data set --decode none --batch-size 8,16 --runs 2 -o swept 2>&1) && missed="exit status 0"
caught "the files of the data set are not those of another measurement"

lie "two results with other settings are compared"
compare 0 a.json pread.json
caught 'settings.reader: "auto" -> "pread"'

lie "runs of one session are compared as if they were independent"
compare 0 a.json b.json
caught "Only one session on a side: the difference cannot be separated from changes on the machine in between"

lie "a result of another program is compared"
echo '{"fio version": "fio-3.33", "jobs": [{}]}' >fio.json
compare 1 a.json fio.json
caught "not an iobench result"
finish
