#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Many epochs use no more memory or descriptors than few, and the result stays small: 1,600 epochs
# against 6,400 (128,000 steps), with IOBENCH_LONG=1 against 10^7 steps.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"

many=${IOBENCH_LONG:+500000}
many=${many:-6400}
expect 0 "$IOBENCH" pack synthetic:count=200,mean=4000 "$tmp/set" -f recordio

# soak READER EPOCHS: 20 steps each. Sets $peak to the peak resident KiB. Descriptors are checked
# whenever possible: a leak of one per epoch shows.
soak() {
    tried="iobench run -r $1 -e $2"
    python3 - "$tmp/peak" "$IOBENCH" run -d "$tmp/set" -r "$1" --decode none -B 10 -t 1 -n 1 -e "$2" \
        --no-calibrate --sample-interval none --json "$tmp/out.json" \
        >"$tmp/out" 2>"$tmp/err" <<'P' || fault "it failed"
import ctypes, os, resource, subprocess, sys, time
# The kernel may give it huge pages at any time, or none: they would count as growth of 2 MiB each.
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE, inherited
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL)
descriptors = 0
while child.poll() is None:
    try:
        descriptors = max(descriptors, len(os.listdir(f"/proc/{child.pid}/fd")))
    except OSError:
        pass
    time.sleep(0.05)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
open(sys.argv[1], "w").write(f"{peak} {descriptors}\n")
sys.exit(child.returncode)
P
    read -r peak descriptors <"$tmp/peak"
    bytes=$(wc -c <"$tmp/out.json")
    echo "$tried: $peak KiB, $descriptors descriptors, JSON of $bytes bytes"
    [ "$descriptors" -lt 200 ] || fault "$descriptors descriptors"
    [ "$bytes" -lt 4000000 ] || fault "a result of $bytes bytes"
    [ "$(wc -l <"$tmp/out")" -lt 120 ] || fault "a table of $(wc -l <"$tmp/out") lines"
}

for reader in null auto; do
    soak $reader 1600
    few=$peak
    soak $reader "$many"
    [ "$peak" -lt $((few + 4096)) ] || fault "$few KiB with 1600 epochs, $peak KiB with $many"
done
finish
