#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Short runs with as many threads as there are, for `make tsan`: each reader below several I/O threads, decoders, overlapping
# epochs, the sampler, a trace; a training with evaluation; an interrupt. A race ends a program with status 66.
. "$(dirname "$0")/cli.sh"
expect 0 "$IOBENCH" pack synthetic:count=48,classes=3,mean=4000 set -f recordio --shards 2
set -- --data set --runs 1 --no-calibrate -B 16 --epochs 2 --decode-threads 3 --sample-interval 10ms
for reader in uring pread mmap; do
    "$IOBENCH" list reader | grep -q "^ *$reader " || continue
    expect 0 "$IOBENCH" run "$@" --reader $reader --overlap-epochs --shuffle buffer:20 --io-threads 2 --trace trace.json
    expect 0 "$IOBENCH" run "$@" --reader $reader --window 1 --decode none --no-crc
done
expect 0 "$IOBENCH" train --network lenet --size 32 --classes 3 --backend reference --data set --eval-data set \
    -B 16 --decode-threads 2 --epochs 1 --checkpoint weights
"$IOBENCH" run --data set --runs 1 --no-calibrate --epochs 1000000 >interrupted 2>&1 &
# Its handler is there once it reads.
for _ in $(seq 600); do
    grep -qs '^Name:.*loader' /proc/"$!"/task/*/status && break
    sleep 0.1
done
kill -INT $!
wait $! && status=0 || status=$?
[ "$status" = 1 ] || die "exit status $status after an interrupt: $(cat interrupted)"
