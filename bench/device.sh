#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs everything that needs a GPU, the most important first. Works from a build tree or from the folder of
# `make portable`, without network, compiler or root. Output is also added to OUT/results.txt, with the
# machine's description. A failure or hang costs only its own line.
set -u

usage() {
    cat <<'END'
usage: device.sh [PART...] [--out FOLDER] [--work FOLDER] [--seconds N]
  check       every kernel against its reference; steps against the reference; what every backend promises
  losses      FP32 and FP16, fused and not, learn as the CPU does, step by step
  sanitize    the kernels under compute-sanitizer, where it is installed: memcheck, racecheck
  learn       figures of PyTorch in FP32; all precisions learn 256 images by heart
  rates       each kernel beside a copy; images/s of ResNet-50 in FP16, by batch, and repeatable
  layers      each step of ResNet-50 in FP16: kernel, bytes, time, share of the roofline
  fusion      fused plans against their reference; images/s of ResNet-50 with fusion=no, all and auto
  precisions  images/s of ResNet-50 in the other precisions, by batch
  torch       PyTorch's, by batch, in all precisions, eager and compiled
  networks    images/s of every network
  feed        a data set of JPEGs through ResNet-50: who limits; uploads ahead or not; two jobs on one GPU
  nvjpeg      JPEGs decoded by the GPU: how near to the CPU's rows; images/s by threads, alone and with ResNet-50
  ranks       two GPUs by each exchange: the same weights as one process, and what is exposed (needs mpirun)
The default is all of them, the most important first. Parts that cannot run say why. Results go to --out
(device-results); plans, data sets and what else they need to --work (work in it), where the next call finds
them; the plans come back as plans.json, too, and what the GPU did each second as dmon.txt. After --seconds
nothing new begins, and what runs is ended; a part gets half of the time left at most, so one that hangs leaves
the rest to others: `device.sh --seconds 540` answers most in one call.
END
}

HERE=$(cd -P "${0%/*}" && pwd)
OUT=device-results
WORK=
DEADLINE=
BATCHES=${BATCHES:-256 512 1024}
TOURNAMENT=${TOURNAMENT:-64}
NETWORK=${NETWORK:-resnet50}
CLASSES=${CLASSES:-1000}
FEED_BATCH=${FEED_BATCH:-256}
ROWS=${ROWS:-224}
PYTHON=${PYTHON:-python3}
PARTS=
while [ $# -gt 0 ]; do
    case $1 in
    --out) OUT=${2:?} && shift ;;
    --work) WORK=${2:?} && shift ;;
    --seconds) DEADLINE=$(($(date +%s) + ${2:?})) && shift ;;
    check | losses | sanitize | learn | rates | layers | fusion | precisions | torch | networks | feed | nvjpeg | ranks) PARTS="$PARTS $1" ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done
mkdir -p "$OUT" && OUT=$(cd "$OUT" && pwd) || exit
mkdir -p "${WORK:=$OUT/work}" && WORK=$(cd "$WORK" && pwd) || exit
export XDG_CACHE_HOME="$WORK/cache"
mkdir -p "$XDG_CACHE_HOME" || exit
if [ -d "$HERE/lib/programs" ]; then # of make portable
    tool() { echo "$HERE/${1##*/}"; }
    mkdir -p "$WORK/source/tests" && ln -sfn "$HERE/golden" "$WORK/source/tests/golden" || exit
    srcdir=$WORK/source
else
    [ -x ./iobench ] || { echo "device.sh: run it in the build folder" >&2 && exit 2; }
    BUILD=$PWD
    tool() { echo "$BUILD/$1"; }
    srcdir=$HERE/..
    : "${IOBENCH_CUDA_MODULE:=$BUILD/iobench-cuda.so}" "${IOBENCH_NCCL_MODULE:=$BUILD/iobench-nccl.so}"
    : "${IOBENCH_NVJPEG_MODULE:=$BUILD/iobench-nvjpeg.so}"
    export IOBENCH_CUDA_MODULE IOBENCH_NCCL_MODULE IOBENCH_NVJPEG_MODULE
fi
export srcdir

# Library path of NVIDIA's libraries for the programs started here: cuDNN next to PyTorch or in a toolkit, and
# the driver as in containers.
path_of() { # FOLDER...: the first with cuDNN
    for folder; do
        [ -e "$folder/libcudnn.so.9" ] && echo "$folder" && return
    done
}
toolkit=${CUDA_HOME:-/usr/local/cuda} driver=/usr/local/nvidia
wheels=$("$PYTHON" -c 'import sys; print("\n".join(p + "/nvidia/cudnn/lib" for p in sys.path if p))' 2>/dev/null)
# shellcheck disable=SC2086 # folders, one per line
cudnn=$(path_of "$toolkit/lib64" "$toolkit/lib" $wheels)
[ ! -e $driver/lib64/libcuda.so.1 ] || cudnn=${cudnn:+$cudnn:}$driver/lib64
[ -z "$cudnn" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$cudnn"
command -v nvidia-smi >/dev/null || PATH=$PATH:$driver/bin
KILL=5 # seconds after the limit, for what does not end when it is told to

# What a killed mpirun leaves would compute beside what is measured next.
end_leftovers() { # MARK
    grep -lzx "DEVICE_RUN=$1" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3 | while read -r pid; do
        kill -KILL "$pid" 2>/dev/null && echo "ended what was left: process $pid"
    done
}

# run SECONDS COMMAND...: report the command, how it ended, and how long it took.
run() {
    limit=$1
    shift
    begun=$(date +%s) status=0
    echo "== $*"
    if [ -n "$DEADLINE" ]; then
        [ $((begun + KILL)) -lt "$DEADLINE" ] || { echo "-- skipped: no time is left" && return; }
        [ $((begun + KILL)) -lt "$part_end" ] || { echo "-- skipped: $part has used half of the time" && return; }
        [ "$limit" -le $((part_end - begun - KILL)) ] || limit=$((part_end - begun - KILL))
    fi
    mark=$begun-$(od -A n -N 8 -t x8 /dev/urandom | tr -d " ")
    timeout -k $KILL "$limit" env "DEVICE_RUN=$mark" "$@" 2>&1 || status=$?
    case $status in
    0) end=ok ;;
    77) end="skipped: see above" ;;
    124 | 137) end="FAILED: not done after $limit s" && end_leftovers "$mark" ;;
    *) end="FAILED: exit status $status" ;;
    esac
    echo "-- $end, $(($(date +%s) - begun)) s"
}

# steps SECONDS BACKEND ARGUMENT...: time steps of a network; on failure, retry without a CUDA graph.
steps() {
    longest=$1 backend=$2
    shift 2
    run "$longest" "$(tool bench/device_steps)" "$backend" "$@"
    case $status in
    0 | 77 | 124 | 137) ;;
    *) run "$longest" "$(tool bench/device_steps)" "$backend,graph=no" "$@" ;;
    esac
}

# brief COMMAND...: a question, answered at once unless a driver hangs.
brief() {
    left=20
    [ -z "$DEADLINE" ] || left=$((DEADLINE - $(date +%s) - KILL))
    [ "$left" -gt 0 ] && timeout -k $KILL $((left < 20 ? left : 20)) "$@" 2>&1
}

machine() {
    date -u '+%Y-%m-%d %H:%M UTC'
    uname -sr
    echo "$(nproc) CPUs, $(sed -n 's/^MemTotal: *//p' /proc/meminfo) of memory"
    "$(tool iobench)" --version
    brief nvidia-smi --query-gpu=index,name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv
    echo "$backends"
}

# Images/s of the fastest published run of ResNet-50 on one such GPU.
goal() {
    case $gpu in
    *H200*) echo 7950 ;;
    *H100*) echo 7449 ;;
    *) echo 0 ;;
    esac
}

# At once: they ask what is right, not how fast, and compute little.
check() {
    count=0
    for test in tests/cuda/test_device_kernels tests/cuda/test_device_magnitudes tests/cuda/test_device_optimise \
        tests/cuda/test_device_resize tests/cuda/test_device_fused tests/cuda/test_device_trial tests/cuda/test_cuda \
        tests/unit/test_backend tests/unit/test_quantise; do
        count=$((count + 1))
        run 200 "$(tool $test)" >"$WORK/check$count.txt" 2>&1 &
    done
    wait
    cat "$WORK"/check[1-9].txt
}

losses() {
    run 240 "$(tool bench/device_steps)" --side "${SIDE:-224}" --loss "${STEPS:-20}" "$NETWORK" "${BATCH:-256}" "${REFERENCE:-cpu}" \
        cuda:fp32,tournament=1 "cuda:fp16,fusion=no,tournament=$TOURNAMENT" "cuda:fp16,tournament=$TOURNAMENT"
}

sanitize() {
    sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
    [ -x "$sanitizer" ] || { echo "skipped: compute-sanitizer is not installed" && return; }
    for kind in memcheck racecheck; do
        set -- "$sanitizer" --target-processes all --tool $kind --error-exitcode 1
        run 230 "$@" "$(tool tests/cuda/test_device_kernels)"
        run 50 "$@" "$(tool tests/cuda/test_device_magnitudes)"
        run 50 "$@" "$(tool tests/cuda/test_device_optimise)"
    done
}

learn() {
    run 200 "$(tool tests/unit/test_trainer_golden)"
    for precision in fp32 tf32 fp16 bf16; do
        run 90 env IOBENCH_CUDA=cuda:$precision,plans=none,tournament=1 "$(tool tests/unit/test_overfit)"
    done
}

rates() {
    run 120 "$(tool bench/device_kernels)" 256
    for batch in $BATCHES; do
        steps 95 "cuda:fp16,tournament=$TOURNAMENT" "$NETWORK" "$batch" "${RATE_SECONDS:-5}" "$(goal)"
    done
    steps 95 "cuda:fp16,deterministic=yes,tournament=$TOURNAMENT" "$NETWORK" "${BATCHES%% *}" "${RATE_SECONDS:-5}" "$(goal)"
}

no_gpu() {
    echo "$backends" | grep -A 2 '^  cuda ' | grep -q -- '-> unavailable' &&
        echo "skipped: the cuda backend cannot run here"
}

# Without a known GPU there is no roofline.
layers() {
    no_gpu && return
    case $gpu in
    *H200*) set -- --gpu h200 ;;
    *H100*) set -- --gpu h100 ;;
    *A100*) set -- --gpu a100 ;;
    esac
    run 120 "$(tool iobench)" plan "$NETWORK" --backend "cuda:fp16,tournament=$TOURNAMENT" --batch-size "${BATCH:-256}" \
        --measure=20 "$@"
}

fusion() {
    run 200 env IOBENCH_SHOW=1 "$(tool tests/cuda/test_device_fused)"
    for fusion in no all auto; do
        steps 120 "cuda:fp16,fusion=$fusion,tournament=$TOURNAMENT,plans=$WORK/plans-$fusion.json" "$NETWORK" "${BATCH:-256}" \
            "${RATE_SECONDS:-5}" "$(goal)"
    done
}

precisions() {
    for precision in bf16 tf32 fp32; do
        for batch in $BATCHES; do
            steps 80 "cuda:$precision,tournament=$TOURNAMENT" "$NETWORK" "$batch" "${RATE_SECONDS:-3}"
        done
    done
}

# FP16 first, which is compared; a case takes seconds, a compiled one about a minute.
torch() {
    brief "$PYTHON" -c 'import torch' >"$WORK/torch.txt" || { echo "skipped: $PYTHON has no PyTorch" && return; }
    left=580
    [ -z "$DEADLINE" ] || left=$((part_end - $(date +%s)))
    run 590 "$PYTHON" "$HERE/device_torch.py" --batches "$(echo "$BATCHES" | tr ' ' ,)" \
        --seconds $((left > 120 ? left - 60 : left / 2))
}

networks() {
    for network in ${NETWORKS:-$("$(tool iobench)" list networks | sed -n 's/^  \([a-z][a-z0-9_-]*\) .*/\1/p')}; do
        steps 40 cuda:fp16,tournament=1 "$network" "${BATCH:-64}" "${RATE_SECONDS:-2}"
    done
}

# Storage and decoding alone, then with the GPU: if they are faster than the GPU, it never waits for a batch,
# "Limit" names it, and "Step" shows no wait and no upload.
feed() {
    no_gpu && return
    program=$(tool iobench) set=$WORK/set
    [ -d "$set" ] || run 120 "$program" pack "synthetic:count=${IMAGES:-8192},classes=$CLASSES,mean=110k" "$set" --shards 8
    set -- --data "$set" --batch-size "$FEED_BATCH"
    run 60 "$program" "$@" --epochs 2 --runs 1
    run 150 "$program" "$@" --epochs 3 --runs 1 --trainer "$NETWORK" --decode "jpeg:size=$ROWS"
    set -- train --network "$NETWORK" --lr 0.01 "$@"
    for ahead in 0 2; do
        run 100 "$program" "$@" --epochs 2 --backend "cuda:ahead=$ahead,tournament=$TOURNAMENT"
    done
    for job in 1 2; do
        run 140 "$program" "$@" --batch-size $(((FEED_BATCH + 3) / 4)) --epochs 1 -t 4 --backend "cuda:tournament=$TOURNAMENT" >"$WORK/job$job.txt" &
    done
    wait
    cat "$WORK/job1.txt" "$WORK/job2.txt"
}

# On the CPU, a fast DCT and repeated chroma cost rows down to 37 dB; below 32 something is wrong.
nvjpeg() {
    no_gpu && return
    program=$(tool iobench) set=$WORK/set
    for engine in hardware gpu; do
        run 60 "$(tool bench/device_decode)" --images "${DECODE_IMAGES:-512}" --seconds "${RATE_SECONDS:-2}" \
            --threads "${DECODE_THREADS:-16}" --least 32 "jpeg:scale=none,size=$ROWS" "nvjpeg:engine=$engine,size=$ROWS${DECODE_MORE-}"
    done
    [ -d "$set" ] || run 120 "$program" pack "synthetic:count=${IMAGES:-8192},classes=$CLASSES,mean=110k" "$set" --shards 8
    for threads in 2 4 8; do
        run 60 "$program" --data "$set" --batch-size "$FEED_BATCH" --epochs 3 --runs 1 --trainer "$NETWORK" --decode "nvjpeg:engine=auto,size=$ROWS${DECODE_MORE-}" \
            --decode-threads $threads
    done
}

ranks() {
    command -v mpirun >/dev/null || { echo "skipped: mpirun is not installed" && return; }
    [ -x "$(tool tests/cluster/ranks)" ] || { echo "skipped: only from a build folder" && return; }
    count=$(brief nvidia-smi -L | grep -c '^GPU') || :
    [ "${count:-0}" -gt 1 ] || { echo "skipped: one GPU, or none" && return; }
    for exchange in nccl mpi p2p:tree p2p:ring; do
        run 60 mpirun --oversubscribe -n 2 "$(tool tests/cluster/ranks)" 3 $exchange cuda:fp32,tournament=1 "${STEPS:-20}"
    done
    # Forward and backward, what the exchange exposes, and the update: columns compute_s, exchange_s, update_s.
    data=$WORK/images
    [ -d "$data" ] || run 60 "$(tool iobench)" pack "synthetic:count=${IMAGES:-4096},classes=$CLASSES,mean=20k" "$data"
    for exchange in nccl mpi p2p:tree p2p:ring; do
        run 90 mpirun --oversubscribe -n 2 "$(tool iobench)" train --network "$NETWORK" --data "$data" \
            --batch-size $(((FEED_BATCH + 1) / 2)) --epochs 2 --exchange $exchange --backend "cuda:fp16,tournament=1" --csv "$WORK/$exchange.csv"
        [ ! -e "$WORK/$exchange.csv" ] || cat "$WORK/$exchange.csv"
    done
}

gpu=$(brief nvidia-smi --query-gpu=name --format=csv,noheader)
backends=$(brief "$(tool iobench)" list backend)
begun_at=$( (wc -l <"$OUT/results.txt") 2>/dev/null || echo 0)
dmon=
if command -v nvidia-smi >/dev/null; then
    nvidia-smi dmon -s pucm -o T >"$OUT/dmon.txt" 2>&1 &
    dmon=$!
fi
# Not by tee: a process that does not end would hold its pipe open, and the script would wait for it.
told=$begun_at
tell() { # what is new in the results
    lines=$(wc -l <"$OUT/results.txt")
    tail -n +$((told + 1)) "$OUT/results.txt" | head -n $((lines - told))
    told=$lines
}
machine >>"$OUT/results.txt" 2>&1
tell
# shellcheck disable=SC2086 # names
set -- ${PARTS:-check losses rates layers torch feed nvjpeg fusion precisions networks learn sanitize ranks}
for part; do
    shift
    if [ -n "$DEADLINE" ]; then
        now=$(date +%s)
        part_end=$DEADLINE
        [ $# = 0 ] || part_end=$((now + (DEADLINE - now) / 2))
    fi
    (echo "==== $part" && $part) >>"$OUT/results.txt" 2>&1
    tell
    cp "$XDG_CACHE_HOME/iobench/cudnn-plans.json" "$OUT/plans.json" 2>/dev/null || :
done
[ -z "$dmon" ] || kill "$dmon" 2>/dev/null
! tail -n +$((begun_at + 1)) "$OUT/results.txt" | grep -q -- '^-- FAILED'
