#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench run --resume-at and --as.
. "$(dirname "$0")/cli.sh"

expect 0 "$IOBENCH" pack synthetic:count=60,classes=7,mean=8k set --format recordio
run() { # STATUS OPTIONS...
    wanted_status=$1
    shift
    expect "$wanted_status" "$IOBENCH" --data set --batch-size 10 --runs 1 --no-calibrate "$@"
}

lower_half() {
    sed -n 's/.*"digest": "[0-9a-f]\{17\}\([0-9a-f]\{15\}\)".*/\1/p' "$1"
}

requested() { # bytes requested from storage
    sed -n 's/.*"request_bytes": \([0-9]*\).*/\1/p' "$1" | head -n 1
}

# ---- every shuffle resumes where it stopped: the first part and the rest make the whole ----
for shuffle in none epoch buffer:16 corgipile py1e; do
    run 0 --shuffle $shuffle --decode checksum --digest --json whole.json
    run 0 --shuffle $shuffle --decode checksum --digest --json first.json --limit-samples 40
    run 0 --shuffle $shuffle --decode checksum --digest --json rest.json --resume-at 0:40
    # The lower half of the digest is an exclusive or over all samples; 60 bits suffice.
    [ $((0x$(lower_half first.json) ^ 0x$(lower_half rest.json))) = $((0x$(lower_half whole.json))) ] ||
        die "$shuffle: the two parts are not the whole"
    expect 0 grep -c '"samples": 20,' rest.json
    # A third of the samples remains; earlier ones are not read.
    [ $((2 * $(requested rest.json))) -le "$(requested whole.json)" ] ||
        die "$shuffle: the rest asked for $(requested rest.json) of $(requested whole.json) bytes"
done
run 0 --resume-at 3:0 --epochs 2
run 2 --resume-at 0:7
says "start of a batch"
run 2 --resume-at 5
says "EPOCH:SAMPLE"
run 1 --resume-at 0:600
says "sample 600 is past the end"

# ---- presets; the command line overrides them ----
run 0 --as mxnet --dry-run
says "shuffle mxnet" "pread:threads=1"
run 0 --as mxnet --shuffle none --dry-run
says "shuffle none" "pread:threads=1"
run 2 --as theano
says "horovod-tensorflow"
