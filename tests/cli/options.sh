#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Command lines that are accepted; refused ones are in refusals.sh.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"

try 0 --version
out "iobench "
empty err
try 0 --help
out "Commands (default: run):"
out "--drop-caches"
empty err
try 0 -h
out "Commands ("
try 0 --help=all
out "--server-drop-cmd"
out "gpus=N"
for command in run pack verify inspect list doctor compare size completion help; do
    try 0 help $command
    out "Usage: iobench $command"
    empty err
    try 0 $command --help
    out "Usage: iobench $command"
done
# Every plug-in has a page.
names=$(for family in format reader shuffle decoder backend trainer probe source; do
    "$IOBENCH" list $family --json | sed -n 's/^      "name": "\([^"]*\)".*/\1/p'
done)
[ -n "$names" ] || die "no plug-in listed"
for name in $names; do
    try 0 help "$name"
    out "Usage: iobench"
    empty err
done
for name in compare size completion; do
    try 0 help $name
    saved help-$name.txt
done
try 0 help --man
out ".TH IOBENCH 1"
try 0 completion
out "complete -F _iobench iobench"
if command -v bash >/dev/null; then
    bash -n "$tmp/out" || fault "bash does not understand it"
fi
try 0 list
out "  replay      takes as long per batch as a GPU would"
try 0 list reader
no_out "replay"
try 0 list --json
out '"usable": true'

# Lists of numbers take the units of other numbers.
try 0 size --gpus 8,1k
out "1024 x "

# Job files of other programs: the nearest job of ours, which works.
make_set recordio 40
printf '[global]\nioengine=libaio\nrw=read ; sequential\nbs=128k\n[a]\nfilename=%s\niodepth=7\nnumjobs=2\n' \
    "$tmp/recordio" >"$tmp/x.fio"
try 2 "$tmp/x.fio"
err "x.fio: a job file of fio; the nearest job of iobench is on standard output"
cp "$tmp/out" "$tmp/ours.ini"
try 0 run "$tmp/ours.ini" --no-drop-caches --dry-run
out "depth 7"
out "shuffle none"
out "decode none"
printf 'model:\n  name: unet3d\ndataset:\n  data_folder: "%s"\nreader:\n  batch_size: 3\n  read_threads: 2\n' \
    "$tmp/recordio" >"$tmp/unet3d.yaml"
try 2 run "$tmp/unet3d.yaml"
err "a configuration of DLIO"
cp "$tmp/out" "$tmp/ours.ini"
try 0 run "$tmp/ours.ini" --no-drop-caches --format recordio --dry-run
out "batches of 3"

# A data set as the operand, by each way to write it; a job file stays one.
try 0 "$tmp/recordio" --dry-run
out "40 samples"
try 0 run --dry-run "$tmp/recordio/"*00000*.rec
(cd "$tmp" && "$IOBENCH" recordio --dry-run >"$tmp/out" 2>"$tmp/err") || fault "a folder by a bare name"

# A scheme without a client is not taken for a local folder.
(cd "$tmp" && "$IOBENCH" pack synthetic:count=1 s3://bucket/set >"$tmp/out" 2>"$tmp/err") && fault "packed to S3"
[ ! -e "$tmp/s3:" ] || fault "a folder s3: was made"

# Without a data set a dry run reports which one would be generated, and generates nothing.
try 0 --dry-run
out "would be generated in $XDG_CACHE_HOME/iobench/synthetic-shards"
[ ! -e "$XDG_CACHE_HOME/iobench/synthetic-shards" ] || fault "it was made"

# All spellings of an option are equivalent.
for way in "--seed=77" "--seed 77"; do
    # shellcheck disable=SC2086 # two words
    try 0 run --data "$tmp/recordio" --dry-run $way -B8 -q 4 -t=1
    out "seed 77"
    out "batches of 8"
    out "depth 4"
    out "on 1 thread"
done
for way in "-t 3 --io-threads 2" "--decode-threads=3 --io-threads=2"; do
    # shellcheck disable=SC2086 # words
    try 0 run --data "$tmp/recordio" --runs 1 --no-calibrate --sample-interval none --json - $way
    out '"decode_threads": 3'
    out '"io_threads": 2'
done
try 0 --data "$tmp/recordio" --dry-run --iodepth auto --no-crc --on-error skip
out "depth auto"
finish
