#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/device.sh keeps the time that it is given. First by a clock of our own, on which everything that it starts
# hangs until it is killed; each part is there nevertheless, or a line that says why not, and few files. With
# IOBENCH_LONG=1 then all parts for real, on emulated devices, with small sizes, in the nine minutes of a call.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

parts="check losses sanitize learn rates layers fusion precisions torch networks feed nvjpeg ranks"
results=$T/results programs=$T/programs
mkdir programs clock
IOBENCH_CUDA_MODULE=${IOBENCH%/*}/tests/cuda/emulated.so
IOBENCH_NCCL_MODULE=${IOBENCH%/*}/tests/cuda/emulated_nccl.so
IOBENCH_NVJPEG_MODULE=${IOBENCH%/*}/tests/cuda/emulated_nvjpeg.so
export IOBENCH_CUDA_MODULE IOBENCH_NCCL_MODULE IOBENCH_NVJPEG_MODULE

program() { # FOLDER/NAME: its text on standard input
    cat >"$1" && chmod +x "$1"
}
program programs/nvidia-smi <<'END'
#!/bin/sh
case $1 in
-L) printf 'GPU 0: emulated\nGPU 1: emulated\n' ;;
dmon) exec sleep 1000 ;;
*) echo emulated ;;
esac
END
program clock/date <<END
#!/bin/sh
[ "\$1" = +%s ] || exec /bin/date "\$@"
cat "$T/now"
END
# It takes all its time, and five seconds more until it is killed; several may run at once. Of a command the mark says
# when it began.
program clock/timeout <<END
#!/bin/sh
[ "\$1 \$2" = "-k 5" ] || exit 1
exec 9>"$T/lock"
flock 9
now=\$(cat "$T/now")
case "\$5" in
DEVICE_RUN=*) begun=\${5#DEVICE_RUN=} begun=\${begun%%-*} ;;
*) begun=\$now ;;
esac
end=\$((begun + \$3 + 5))
[ "\$3" -le 0 ] || [ "\$end" -le "\$now" ] || { echo "\$end" >"$T/now.new" && mv "$T/now.new" "$T/now"; }
echo "\$3 \$*" >>"$T/started"
exit 137
END

check_parts() {
    for part in $parts; do
        tail -n +"$(grep -n "^==== $part\$" "$results/results.txt" | head -n 1 | sed 's/:.*//')" "$results/results.txt" |
            sed -n 2p | grep -Eq '^== |^skipped: ' || die "nothing is said of $part: $(cat "$results/results.txt")"
    done
    [ "$(find "$results" -type f | wc -l)" -le 8 ] || die "too many files: $(ls "$results")"
}

cd "${IOBENCH%/*}" || exit
echo 1000 >"$T/now"
expect 1 env PATH="$T/clock:$programs:$PATH" PYTHON=python3 \
    sh "$SRCDIR/bench/device.sh" --out "$results" --work "$T/scratch" --seconds 540
now=$(cat "$T/now")
case $now in
153? | 1540) ;;
*) die "it ended after $((now - 1000)) s: $(cat "$T/started")" ;;
esac
check_parts
says "FAILED: not done after" "has used half of the time"

[ "${IOBENCH_LONG:-0}" != 0 ] || exit 0
rm -r "$results"
unset IOBENCH_LONG # a call has none
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
begun=$(date +%s)
env PATH="$programs:$PATH" PYTHON=false REFERENCE=reference NETWORK=lenet NETWORKS="lenet tiny" SIDE=28 BATCH=2 STEPS=2 \
    ROWS=28 BATCHES="2 3" RATE_SECONDS=0 TOURNAMENT=1 FEED_BATCH=2 IMAGES=8 CLASSES=10 DECODE_IMAGES=3 DECODE_THREADS=1 \
    DECODE_MORE=,memory=8MiB sh "$SRCDIR/bench/device.sh" --out "$results" --work "$T/scratch" --seconds 540 >/dev/null 2>&1
took=$(($(date +%s) - begun))
out=$(cat "$results/results.txt")
[ $took -lt 600 ] || die "it took $took s" # more than a call may
check_parts
wrong=$(grep -- '^-- FAILED' "$results/results.txt" | grep -v 'not done after')
[ -z "$wrong" ] || die "$wrong"
for part in losses rates layers feed nvjpeg fusion precisions networks; do
    sed -n "/^==== $part\$/,/^==== /p" "$results/results.txt" | grep -q '^-- ok' || die "nothing of $part was done"
done
echo "$took s of 540"
