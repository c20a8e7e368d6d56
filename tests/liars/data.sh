#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Data that differs from the set: damaged, replaced, omitted, delivered twice.
# shellcheck disable=SC2086,SC2034,SC2154,SC2317 # words without blanks; what cli.sh shares
# shellcheck source=tests/liars/liars.sh
. "$(dirname "$0")/liars.sh"
RING=$(dirname "$IOBENCH")/tests/liars/ring.so
expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k set -f shards --shards 2
READ="--data set --decode checksum --reader pread:threads=1 --bs 16k"
digest_of() { printf '%s\n' "$out" | sed -n 's/^ *Digest *\([0-9a-f]*\) .*/\1/p'; }
run 0 $READ --digest
whole=$(digest_of)

# bytes STATUS WORD FALSEHOOD WORDS: a read returns bytes that differ from the file.
bytes() {
    lie "$3"
    can_lie || return 0
    LIE=$2 run $1 $READ
    caught "$4"
}

damaged_file() {
    lie "a bit of a record is wrong on the disk"
    cp -r set hurt
    printf 'X' | dd of=hurt/train-00001-of-00002 bs=1 seek=5000 conv=notrunc 2>/dev/null
    run 1 --data hurt
    caught "INVALID: run 1: "
    lie "a damaged record is skipped"
    run 1 --data hurt --on-error skip
    caught "DEGRADED: 1 record was skipped"
}

# during WHAT...: starts a slow run, runs WHAT on a file, and waits for the end.
during() {
    cp -rp set moving
    "$IOBENCH" run --runs 1 --no-calibrate --memory 16m --decode none --data moving --epochs 1000 \
        --reader pread --limit-rate 16MiB --bs 32k >log 2>&1 &
    job=$!
    until grep -qs '^rchar: [0-9]\{8\}' "/proc/$job/io" || ! kill -0 $job; do sleep 0.05; done
    "$@"
    status=0
    wait $job || status=$?
    out=$(cat log)
    tried="iobench run, and $*"
    [ $status = 1 ] || missed="exit status $status, not 1"
    rm -r moving
}
replaced() { cp set/train-00000-of-00002 moving/new && mv moving/new moving/train-00000-of-00002; }
written() { printf 'X' | dd of=moving/train-00000-of-00002 bs=1 seek=5000 conv=notrunc 2>/dev/null; }

moving_files() {
    lie "a file is replaced during the run by one of the same size and bytes"
    during replaced
    caught "was written to or replaced since it was indexed"
    lie "a file is cut during the run"
    during truncate -s 1000000 moving/train-00000-of-00002
    caught "the file changed: it had" "the file ends inside a record"
    lie "a file is written to during the run"
    during written
    caught "was written to or replaced since it was indexed" "the CRC of the record is wrong"
}

# One flipped bit without changing the index's checksums, and an index as new as the data.
cut_sets() {
    lie "a shard is cut between two records"
    expect 0 "$IOBENCH" pack synthetic:count=60,mean=20k cut -f recordio
    tried="truncate cut/train.rec; iobench run"
    truncate -s "$(tail -n 1 cut/train.idx | cut -f 2)" cut/train.rec
    rm -f cut/.iobench-index
    run 1 --data cut --decode checksum
    caught "the file ends here, its .idx lists 1 more record: truncated"
    lie "a tar that ends without its end"
    expect 0 "$IOBENCH" pack synthetic:count=60,mean=20k tar -f tar --shards 1
    truncate -s -10240 tar/*.tar
    rm -f tar/.iobench-index
    run 1 --data tar --decode checksum
    caught "an entry goes past the end of the archive: truncated"
}

images() {
    lie "an image is cut short"
    expect 0 "$IOBENCH" pack synthetic:count=20,mean=20k images -f files
    image=$(find images -name '*.jpg' | head -n 1)
    truncate -s 5000 "$image"
    run 1 --data images
    caught "INVALID: run 1: "
    lie "an image is cut short, and decoded as far as it goes"
    run 1 --data images --decode jpeg:damaged=decode
    caught "DEGRADED"
    lie "images of a kind that is not read are left out"
    expect 0 "$IOBENCH" pack synthetic:count=20,mean=20k unread -f files
    image=$(find unread -name '*.jpg' | head -n 1)
    mv "$image" "${image%.jpg}.avif"
    rm -f unread/.iobench-index
    run 1 --data unread
    caught "DEGRADED: 1 sample is left out"
}

index_that_lies() {
    lie "an index beside the data that lists other places than the data have"
    cp -rp set indexed
    printf 'X' | dd of=indexed/.iobench-index bs=1 seek=4200 conv=notrunc 2>/dev/null
    run 0 --data indexed --decode checksum --digest
    confirmed "made again: digest $(digest_of | cut -c 1-8)..., as of the honest set" [ "$(digest_of)" = "$whole" ]
}

manifest_that_lies() {
    lie "a manifest that lists fewer files than there are"
    cp -rp set listed
    sed -i '/shard 1/,/done 1/d' listed/.iobench-set
    rm listed/.iobench-index
    run 0 --data listed --decode checksum --digest
    confirmed "counted in the files: 300 samples, digest as of the honest set" [ "$(digest_of)" = "$whole" ]
    lie "a manifest of a set of which a file is missing"
    cp -rp set missing
    rm missing/train-00001-of-00002
    run 1 --data missing --decode checksum
    caught "train-00001-of-00002"
}

ring_that_skips() {
    lie "io_uring turns a read that failed into one that is done"
    [ -e "$RING" ] || { cannot "built without io_uring" && return 0; }
    can_lie || return 0
    out=$(LD_PRELOAD=$RING "$IOBENCH" run --runs 1 --no-calibrate --memory 16m --data set --bs 16k \
        --decode checksum --reader uring 2>&1)
    status=$?
    case $out in *io_uring*) ;; *) cannot "io_uring is refused" && return 0 ;; esac
    [ $status = 1 ] || missed="exit status $status, not 1"
    caught "INVALID: run 1: "
}

units() {
    lie "KB are taken for KiB, MB for MiB"
    run 0 $READ --json units.json --limit-rate 20MB
    bytes=$(number record_bytes units.json) wall=$(number wall_s units.json)
    rate=$(number record_bytes_per_s units.json)
    mib=$(flat | sed -n 's/.* Median [0-9.,]* one run \([0-9.,]*\) .*/\1/p' | tr -d ,)
    mb=$(flat | sed -n 's/.* Median [0-9.,]* one run [0-9.,]* \([0-9.,]*\) .*/\1/p' | tr -d ,)
    files=$(cat set/train-* | wc -c)
    confirmed "$mib MiB/s, $mb MB/s: $files bytes of the files in $wall s" \
        holds "$bytes == $files && ($rate - $files / $wall)^2 < 1 &&
            ($mib - $rate / 1048576)^2 < 0.01 && ($mb - $rate / 1000000)^2 < 0.01"
    lie "a limit of 20 MB/s is taken for 20 MiB/s"
    confirmed "$mb MB/s" holds "$mb <= 20.5"
}

bytes 1 read-zeros "a read brings zeros" "INVALID: run 1: "
bytes 1 read-flip "a read brings one wrong bit" "INVALID: run 1: "
bytes 1 read-long "a read says that it brought all and brought half" "INVALID: run 1: "
damaged_file
moving_files
cut_sets
images
index_that_lies
manifest_that_lies
ring_that_skips
units
finish
