#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --window: the model of `iobench shuffle`, the run's count and the kernel's agree on the reads;
# samples do not depend on the window; presets and job files set it.
. "$(dirname "$0")/cli.sh"

expect 0 "$IOBENCH" pack synthetic:count=700,classes=7,mean=4k set --format recordio --shards 2
READ="--data set --reader pread:threads=1 --iodepth 1 --runs 1 --decode none --no-calibrate"

number() { # KEY FILE
    sed -n "s/.*\"$1\": \([0-9]*\)[.,0]*\$/\1/p" "$2" | head -n 1
}

# ---- a witness: the kernel's view of the shard reads, and how often offsets go back ----
traced=yes
command -v strace >/dev/null && strace -f -o /dev/null -e trace=preadv2 true 2>/dev/null || traced=no
case $(ldd "$IOBENCH") in *libasan* | *libclang_rt* | *libtsan*) traced=no ;; esac
nm "$IOBENCH" 2>/dev/null | grep -qE "__[at]san_init" && traced=no
witness() { # OPTION...: $seen reads, $back of them before the end of the last one in that shard
    [ $traced = yes ] || return 0
    expect 0 strace -f -y -qq -s 0 -e trace=preadv2 -o trace "$IOBENCH" run "$@" --json run.json
    # PID preadv2(FD<...>, [{...}, ...], COUNT, OFFSET, FLAGS) = RESULT
    sed -n 's/.*<\(.*\)>, .*\], [0-9]*, \([0-9]*\), .*) = [0-9]*$/\1 \2/p' trace >reads
    seen=$(wc -l <reads)
    back=$(awk '$1 < file || ($1 == file && $2 < at) { n++ } { file = $1; at = $2 } END { print n + 0 }' reads)
}

for order in epoch mxnet tfdata:50,interleave=2 buffer:50; do
    for window in 1 7 512 auto; do
        expect 0 "$IOBENCH" shuffle $order --data set --labels sorted --epochs 1 --window $window \
            --json=model.json
        model=$(number reads_per_epoch model.json)
        # shellcheck disable=SC2086
        expect 0 "$IOBENCH" run $READ --shuffle $order --window $window --json run.json
        loader=$(number requests run.json)
        [ "$model" = "${loader:-none}" ] ||
            die "$order, window $window: the model says $model reads, the run $loader"
        [ "$(number window_records model.json)" = "$(number window_records run.json)" ] ||
            die "$order, window $window: not one number for model and loader"
        [ $window != 1 ] || [ "$loader" = 700 ] || die "window 1: $loader reads of 700 records"
        # shellcheck disable=SC2086
        witness $READ --shuffle $order --window $window
        [ $traced = no ] || [ "$seen" = "$loader" ] ||
            die "$order, window $window: the run says $loader reads, the kernel $seen"
        # Reads are sorted by offset within each window only.
        windows=$(((699 + $(number window_records run.json)) / $(number window_records run.json)))
        [ $traced = no ] || [ "$back" -lt $windows ] ||
            die "$order, window $window: $back reads go back in $windows windows"
        [ $traced = no ] || [ $order != epoch ] || [ $window != 1 ] || [ "$back" -gt 200 ] ||
            die "window 1 sorts: only $back reads go back"
    done
done

# More I/O threads change nothing.
expect 0 "$IOBENCH" shuffle epoch --data set --labels sorted --epochs 1 --window 100 --json=model.json
expect 0 "$IOBENCH" run --data set --io-threads 2 --window 100 --runs 1 --decode none --no-calibrate --json run.json
[ "$(number requests run.json)" = "$(number reads_per_epoch model.json)" ] || die "2 loaders: other reads"

# ---- samples are the same ----
first=
for order in epoch buffer:50; do
    for window in 1 7 "1 --overlap-epochs" 512 "auto --overlap-epochs"; do
        # shellcheck disable=SC2086
        expect 0 "$IOBENCH" run --data set --shuffle $order --window $window --epochs 2 --runs 1 \
            --decode checksum --digest --no-calibrate --json run.json
        [ "$(grep -c '"samples": 700,' run.json)" -ge 2 ] || die "$order, $window: not each once"
        digest=$(sed -n 's/.*"digest": "\(.*\)"/\1/p' run.json)
        [ "${first:=$digest}" = "$digest" ] || die "$order, $window: digest $digest, not $first"
    done
done

# ---- ways to set the window ----
# One record per read, regardless of memory.
# shellcheck disable=SC2086
expect 0 "$IOBENCH" run --data set --as mxnet --memory 64m --runs 1 --decode none --no-calibrate --json run.json
[ "$(number requests run.json)" = 700 ] || die "--as mxnet: $(number requests run.json) reads"
witness --data set --as mxnet --memory 64m --runs 1 --decode none --no-calibrate
[ $traced = no ] || [ "$seen" = 700 ] || die "--as mxnet: $seen reads"
[ $traced = no ] || [ "$back" -gt 200 ] || die "--as mxnet sorts: $back reads go back"
expect 0 "$IOBENCH" shuffle --as mxnet --records 5000
says "partition sticky" "mxnet    " "each record read alone"
expect 0 "$IOBENCH" run --data set --as mxnet --window 9 --dry-run
says "windows of 9 sorted by offset"
printf '[global]\ndata=set\nruns=1\ndecode=none\ncalibrate=no\n[one]\nwindow=1\n[nine]\nwindow=9\n' >job.ini
expect 0 "$IOBENCH" run job.ini --dry-run
says "each record read alone" "windows of 9 sorted by offset"
expect 0 "$IOBENCH" run --data set --as horovod-tensorflow --format recordio --epochs 2 --runs 1 \
    --decode none --no-calibrate --json run.json
grep -q '"overlap_epochs": true' run.json || die "--as horovod-tensorflow drains at epoch borders"

# A window that does not fit into memory is shortened, with a note.
expect 0 "$IOBENCH" run --data set --window 500 --memory 256k --dry-run
says "--window 500: record memory of 256.00 KiB holds windows of 12 records"
