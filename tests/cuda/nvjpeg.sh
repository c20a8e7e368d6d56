#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The nvjpeg decoder in the whole program, on an emulated device with libjpeg-turbo in place of nvJPEG
# (tests/cuda/mock_nvjpeg.c): it fills the same rows as the jpeg decoder, with one decode thread and with
# several, and tells what it leaves to the CPU.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

build=$(dirname "$IOBENCH")
IOBENCH_NVJPEG_MODULE=$build/tests/cuda/emulated_nvjpeg.so
IOBENCH_CUDA_MODULE=$build/tests/cuda/emulated.so
export IOBENCH_CUDA_MODULE IOBENCH_NVJPEG_MODULE

(cd "$build" && tests/cuda/test_nvjpeg) >unit.out 2>&1 || die "$(cat unit.out)"

expect 0 "$IOBENCH" list decoder
says "nvjpeg" "NVIDIA GPU"
expect 0 "$IOBENCH" pack synthetic:count=90,classes=3,mean=6k,seed=5 set
losses() { # DECODER THREADS
    expect 0 "$IOBENCH" train --network lenet --size 16 --classes 3 --data set --batch-size 20 -t "$2" --lr 0.001 \
        --memory 16m --epochs 2 --prefetch 2 --backend cuda:fp32,plans=none --decode "$1" --json -
    printf '%s\n' "$out" | grep '"loss":'
}
losses jpeg:scale=none 2 >cpu
losses nvjpeg:memory=8MiB 1 >one
losses nvjpeg:memory=8MiB,images=7 3 >three
[ -s cpu ] || die "no losses: $out"
cmp cpu one || die "one thread gives other rows: $(cat cpu one)"
cmp cpu three || die "three threads give other rows: $(cat cpu three)"

# Images left to the CPU are told, and damaged ones have the verdict of the jpeg decoder.
run() { # STATUS DECODER OPTIONS...
    status=$1 decoder=$2
    shift 2
    expect "$status" "$IOBENCH" run --data set --decode "$decoder" -t 3 --epochs 2 --batch-size 25 --no-calibrate \
        --json run.json "$@"
}
run 0 nvjpeg:size=32,memory=8MiB
says "nvjpeg:size=32,memory=8MiB (JPEG engines of emulated) on 3 threads"
grep -q '"decoder_engine": "JPEG engines of emulated"' run.json || die "the engine is not in the JSON"
grep -q '"cpu_images": 0' run.json || die "images are left to the CPU: $(grep cpu_images run.json)"
IOBENCH_EMULATED_NVJPEG=no-engines run 0 nvjpeg:size=32,memory=8MiB
says "(multiprocessors of emulated)"
IOBENCH_EMULATED_NVJPEG=skips run 0 nvjpeg:size=32,memory=8MiB
says "left to the CPU"
grep -q '"failed_images": 0' run.json || die "images failed: $(grep failed_images run.json)"
IOBENCH_EMULATED_NVJPEG=fails run 0 nvjpeg:size=32,memory=8MiB
says "left to the CPU" "nvJPEG refused a batch of" "(execution failed)"
expect 0 "$IOBENCH" show set --decode nvjpeg:memory=8MiB -B 3
printf '%s\n' "$out" >shown
expect 0 "$IOBENCH" show set --decode jpeg:scale=none -B 3
printf '%s\n' "$out" >asked
cmp shown asked || die "other boxes are shown"

# Pinned memory, an eighth of the option, is in the budget of the job.
needed() { # MEMORY
    expect 0 "$IOBENCH" run --data set --decode "nvjpeg:memory=$1" -t 3 --dry-run
    printf '%s\n' "$out" | tr -s ' \n' ' ' | sed -n 's/.* \([0-9]*\)\.[0-9]* MiB in total.*/\1/p'
}
[ $(($(needed 264MiB) - $(needed 8MiB))) = $((3 * 32)) ] || die "pinned memory is not counted"

# What is missing is named.
expect 1 env IOBENCH_EMULATED_NVJPEG=no-engines "$IOBENCH" run --data set --decode nvjpeg:engine=hardware
says "has no JPEG engines" "engine=gpu"
expect 2 "$IOBENCH" run --data set --decode nvjpeg:images=65
says "images"
mkdir elsewhere
cp "$IOBENCH_NVJPEG_MODULE" elsewhere/
expect 2 env LD_LIBRARY_PATH= IOBENCH_NVJPEG_MODULE="$PWD/elsewhere/emulated_nvjpeg.so" "$IOBENCH" run --data set \
    --decode nvjpeg --sandbox=no
says "libnvjpeg.so.13 or libnvjpeg.so.12 is not found"
