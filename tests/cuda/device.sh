#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/device.sh goes through all parts and exits with 0 when nothing can run: here no time is left. With an
# emulated device it compares losses and times steps, until its clock says that no time is left.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

results=$PWD/results
cd "${IOBENCH%/*}" || exit
expect 0 sh "$SRCDIR/bench/device.sh" --out "$results" --work "$results/../scratch" --seconds 0
says "==== check" "==== fusion" "==== ranks" "-- skipped: no time is left"
for part in check losses sanitize learn rates layers fusion precisions torch networks feed nvjpeg ranks; do
    grep -q "^==== $part" "$results/results.txt" || die "nothing is kept of $part"
done
[ "$(find "$results" -type f | wc -l)" -le 2 ] || die "more than results are there: $(ls "$results")"
expect 0 env PYTHON=false sh "$SRCDIR/bench/device.sh" torch --out "$results" --work "$results/../scratch"
says "skipped: false has no PyTorch"
expect 0 env CUDA_VISIBLE_DEVICES= sh "$SRCDIR/bench/device.sh" layers feed --out "$results" --work "$results/../scratch"
says "skipped: the cuda backend cannot run here"
expect 2 sh "$SRCDIR/bench/device.sh" everything

# What is not done in time is ended with all that it has started, also elsewhere, and nothing waits for that.
cat >"$results/../python" <<END
#!/bin/sh
[ "\$1" != -c ] || exit 0
setsid sh -c 'trap "" TERM; echo \$\$ >>"$results/../left"; sleep 600' &
exec sleep 600
END
chmod +x "$results/../python"
expect 1 timeout 120 env PYTHON="$results/../python" \
    sh "$SRCDIR/bench/device.sh" torch --out "$results" --work "$results/../scratch" --seconds 8
says "FAILED: not done after" "ended what was left: process $(cat "$results/../left")"

# A clock on which each look takes 45 s.
mkdir "$results/../bin"
cat >"$results/../bin/date" <<END
#!/bin/sh
[ "\$1" = +%s ] || exec /bin/date "\$@"
echo x >>"$results/../looks"
echo \$((1000 + 45 * \$(wc -l <"$results/../looks")))
END
cat >"$results/../bin/timeout" <<END
#!/bin/sh
echo "\$3" >>"$results/../limits"
exec /usr/bin/timeout "\$@"
END
chmod +x "$results/../bin/date" "$results/../bin/timeout"
rehearse() { # PART...
    env PATH="$results/../bin:$PATH" IOBENCH_CUDA_MODULE="$PWD/tests/cuda/emulated.so" REFERENCE=reference NETWORK=lenet SIDE=28 \
        BATCH=2 STEPS=2 BATCHES="2 3" RATE_SECONDS=0 TOURNAMENT=1 \
        sh "$SRCDIR/bench/device.sh" "$@" --out "$results" --work "$results/../scratch" --seconds 540
}
expect 0 rehearse losses rates
says "fusion=all,tournament=1: 0." "lenet on cuda:fp16,fusion=all,tournament=1, batch 2" "-- skipped: no time is left"
limit=$(grep -vx 20 "$results/../limits" | head -n 1) # others ask for the device
[ "$limit" = 130 ] || die "the first part may take: $limit s"
printf '%s\n' "$out" | grep -q "batch 3" && die "a step was timed after the end"
rm "$results/../looks"
expect 0 rehearse layers
says "lenet, cuda, fp16, training" "measure us" device_optimise
expect 0 env IOBENCH_CUDA_MODULE="$PWD/tests/cuda/emulated.so" IOBENCH_NVJPEG_MODULE="$PWD/tests/cuda/emulated_nvjpeg.so" \
    DECODE_IMAGES=3 DECODE_THREADS=1 DECODE_MORE=,memory=8MiB RATE_SECONDS=0 IMAGES=8 NETWORK=none \
    sh "$SRCDIR/bench/device.sh" nvjpeg --out "$results" --work "$results/../scratch" --seconds 300
says "nvjpeg:engine=hardware,size=224,memory=8MiB: 3 of 3 rows are those of jpeg:scale=none,size=224; 0 left to the CPU" \
    "nvjpeg:engine=gpu,size=224,memory=8MiB: 3 of 3"
# What fails is told: here a layer without an engine.
rm "$results/../looks"
expect 1 env IOBENCH_EMULATED_REFUSED=50 NETWORK=lenet BATCHES=2 RATE_SECONDS=0 TOURNAMENT=1 \
    IOBENCH_CUDA_MODULE="$PWD/tests/cuda/emulated.so" \
    sh "$SRCDIR/bench/device.sh" rates --out "$results" --work "$results/../scratch" --seconds 300
says "FAILED: cuDNN has no engine" "-- FAILED: exit status 1"
