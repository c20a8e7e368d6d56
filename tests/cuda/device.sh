#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/device.sh goes through all parts and exits with 0 when nothing can run: here no time is left. With an
# emulated device it compares losses and times steps, until its clock says that no time is left. The clock and the
# limits are the test's own: nothing here depends on how fast the machine is.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

results=$T/results
mkdir stopped running

# A clock that stands, and one on which each look takes 45 s.
cat >stopped/date <<'END'
#!/bin/sh
[ "$1" = +%s ] && echo 1000 || exec /bin/date "$@"
END
cat >running/date <<END
#!/bin/sh
[ "\$1" = +%s ] || exec /bin/date "\$@"
echo x >>"$T/looks"
echo \$((1000 + 45 * \$(wc -l <"$T/looks")))
END
# Limits are noted, and do not pass. That of what hangs has passed once it hangs, which timeout is told by its alarm.
cat >stopped/timeout <<END
#!/bin/sh
[ "\$1 \$2" = "-k 5" ] || exit 1
echo "\$3" >>"$T/limits"
shift 3
case \$4 in */device_torch.py) ;; *) exec "\$@" ;; esac
/usr/bin/timeout -k 5 3600 "\$@" &
while [ ! -s "$T/left" ]; do sleep 0.05; done
kill -ALRM \$!
wait \$!
END
cp stopped/timeout running
cat >device <<END
#!/bin/sh
exec sh "$SRCDIR/bench/device.sh" "\$@" --out "$results" --work "$T/scratch"
END
chmod +x stopped/* running/* device
device=$T/device PATH=$T/stopped:$PATH
cd "${IOBENCH%/*}" || exit

expect 0 "$device" --seconds 0
says "==== check" "==== fusion" "==== ranks" "-- skipped: no time is left"
for part in check losses sanitize learn rates layers fusion precisions torch networks feed nvjpeg ranks; do
    grep -q "^==== $part" "$results/results.txt" || die "nothing is kept of $part"
done
[ "$(find "$results" -type f | wc -l)" -le 2 ] || die "more than results are there: $(ls "$results")"
expect 0 env PYTHON=false "$device" torch
says "skipped: false has no PyTorch"
expect 0 env CUDA_VISIBLE_DEVICES= "$device" layers feed
says "skipped: the cuda backend cannot run here"
expect 2 sh "$SRCDIR/bench/device.sh" everything

# What is not done in time is ended with all that it has started, also elsewhere, and nothing waits for that.
cat >"$T/python" <<END
#!/bin/sh
[ "\$1" != -c ] || exit 0
setsid sh -c 'trap "" TERM; echo \$\$ >"$T/left"; sleep 600' &
exec sleep 600
END
chmod +x "$T/python"
rm -f "$T/limits"
expect 1 env PYTHON="$T/python" "$device" torch --seconds 8
says "FAILED: not done after 3 s" "ended what was left: process $(cat "$T/left")"
[ "$(tail -n 1 "$T/limits")" = 3 ] || die "torch may take: $(cat "$T/limits")"

rehearse() { # PART...
    env PATH="$T/running:$PATH" IOBENCH_CUDA_MODULE="$PWD/tests/cuda/emulated.so" REFERENCE=reference NETWORK=lenet SIDE=16 \
        BATCH=2 STEPS=2 BATCHES="2 3" RATE_SECONDS=0 TOURNAMENT=1 \
        "$device" "$@" --seconds 540
}
rm -f "$T/limits"
expect 0 rehearse losses rates
says "cuda:fp16,tournament=1: 0." "lenet on cuda:fp16,tournament=1, batch 2" "-- skipped: no time is left"
limit=$(grep -vx 20 "$T/limits" | head -n 1) # others ask for the device
[ "$limit" = 130 ] || die "the first part may take: $limit s"
printf '%s\n' "$out" | grep -q "batch 3" && die "a step was timed after the end"
rm "$T/looks"
expect 0 rehearse layers
says "lenet, cuda, fp16, training" "measure us" device_optimise
expect 0 env IOBENCH_CUDA_MODULE="$PWD/tests/cuda/emulated.so" IOBENCH_NVJPEG_MODULE="$PWD/tests/cuda/emulated_nvjpeg.so" \
    DECODE_IMAGES=3 DECODE_THREADS=1 DECODE_MORE=,memory=8MiB RATE_SECONDS=0 IMAGES=8 NETWORK=none \
    "$device" nvjpeg --seconds 300
says "nvjpeg:engine=hardware,size=224,memory=8MiB  1 threads: 6 of 6 rows are those of jpeg:scale=none,size=224; 0 left to the CPU" \
    "nvjpeg:engine=gpu,size=224,memory=8MiB  1 threads: 6 of 6"
# What fails is told: here a layer without an engine.
expect 1 env IOBENCH_EMULATED_REFUSED=50 NETWORK=lenet BATCHES=2 RATE_SECONDS=0 TOURNAMENT=1 \
    IOBENCH_CUDA_MODULE="$PWD/tests/cuda/emulated.so" \
    "$device" rates --seconds 300
says "FAILED: cuDNN has no engine" "-- FAILED: exit status 1"
