#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Many epochs: memory and descriptors stay flat, and the result stays small. 20,000 steps; with
# IOBENCH_LONG=1 10^7 of them.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"

steps=${IOBENCH_LONG:+10000000}
steps=${steps:-20000}
pause=${IOBENCH_LONG:+20}
pause=${pause:-0.1}
expect 0 "$IOBENCH" pack synthetic:count=200,mean=4000 "$tmp/set" -f recordio
[ -d /proc/self/fd ] || skip "no /proc"

# look PID: "KiB descriptors"
look() {
    echo "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status") $(find "/proc/$1/fd" | wc -l)"
}

# soak READER: 20 steps an epoch. What the program holds after a quarter of the looks, it holds to the
# end; the time series, which fills memory of its own first, is off.
soak() {
    tried="iobench run -r $1, $steps steps"
    "$IOBENCH" run -d "$tmp/set" -r "$1" --decode none -B 10 -t 1 -n 1 -e $((steps / 20)) \
        --no-calibrate --sample-interval none --json "$tmp/out.json" >"$tmp/out" 2>"$tmp/err" </dev/null &
    pid=$!
    : >"$tmp/looks"
    while kill -0 $pid 2>/dev/null; do
        look $pid 2>/dev/null >>"$tmp/looks"
        sleep "$pause"
    done
    wait $pid || fault "exit status $?"
    bytes=$(wc -c <"$tmp/out.json")
    awk -v bytes="$bytes" -v reader="$1" -v steps="$steps" '
        NF == 2 { rss[n] = $1; fds[n++] = $2 }
        END {
            for (i = 0; i < 10 && n; i++) {
                k = int(i * (n - 1) / 9)
                printf "%s, %d steps, look %d: %d KiB, %d descriptors\n", reader, steps, k, rss[k], fds[k]
            }
            printf "%s: JSON of %d bytes\n", reader, bytes
            from = int(n / 4) + 1
            for (i = from; i < n - 2; i++)
                if (rss[i] > rss[from] + 4096 || fds[i] > fds[from] + 2) {
                    printf "look %d: grows\n", i
                    exit 1
                }
        }' "$tmp/looks" || fault "memory or descriptors grow"
    [ "$bytes" -lt 4000000 ] || fault "a result of $bytes bytes"
    [ "$(wc -l <"$tmp/out")" -lt 120 ] || fault "a table of $(wc -l <"$tmp/out") lines"
}

soak null
soak auto
finish
