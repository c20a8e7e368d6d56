#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plug-ins that lie: readers, shuffles, trainers and formats of tests/liars/plugins.c.
# shellcheck disable=SC2086,SC2034,SC2154 # words without blanks; what cli.sh shares
# shellcheck source=tests/liars/liars.sh
. "$(dirname "$0")/liars.sh"
expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k set -f shards --shards 2
READ="--data set --decode checksum --reader pread --bs 16k --digest"
digest_of() { printf '%s\n' "$out" | sed -n 's/^ *Digest *\([0-9a-f]*\) .*/\1/p'; }
run 0 $READ
whole=$(digest_of)
IOBENCH=$(dirname "$IOBENCH")/tests/liars/liar
[ -x "$IOBENCH" ] || skip "tests/liars/liar is not built"
expect 0 "$IOBENCH" list reader
says "early"

# plug_in STATUS FALSEHOOD OPTIONS WORDS...
plug_in() {
    lie "$2"
    run $1 $READ $3
    shift 3
    caught "$@"
}

# other FALSEHOOD OPTIONS: the digest is not that of the set.
other() {
    lie "$1"
    run 0 $READ $2
    confirmed "its digest, $(digest_of | cut -c 1-8)..., is not that of the honest one, $(echo "$whole" | cut -c 1-8)..." \
        [ "$(digest_of)" != "$whole" ]
}

run 0 $READ --shuffle none # honest plug-ins in the same program
[ "$(digest_of)" = "$whole" ] || die "another digest without a lie"
plug_in 1 "a reader says that all is read, and reads nothing" "--reader early" "INVALID: run 1: "
plug_in 1 "a reader never gives back what it read" "--reader mute --io-timeout 1s" "INVALID: run 1: "
plug_in 134 "a reader calls a read done that brought too few bytes" "--reader brief" \
    "request->needed"
plug_in 1 "a record is delivered twice, and another one never" "--shuffle twice" \
    "bytes of all records"
plug_in 1 "a last batch is left out" "--shuffle brief" "290 samples delivered or skipped by all ranks"
plug_in 1 "a GPU that says it computed for longer than it did" \
    "--trainer boast:rate=3000 --batch-size 32" "the trainer's parts add up to"
other "a sample gets the label of another class" "--format mislabel"
other "each image lacks its last byte" "--format clip"
finish
