#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every reader with a low limit on open files or maps: a run ends with all records or with a reason.
# shellcheck disable=SC2154,SC2034,SC2086 # tmp and tried are those of streams.sh; words without
# blanks
. "$(dirname "$0")/streams.sh"

readers="pread mmap" written=files
! built_with URING || readers="uring $readers"
! built_with LMDB || readers="$readers lmdb" written="$written lmdb"
for format in $written; do
    expect 0 "$IOBENCH" pack synthetic:count=400,mean=4000 "$tmp/$format" -f $format
done
set_of() { # READER
    case $1 in lmdb*) echo "$tmp/lmdb" ;; *) echo "$tmp/files" ;; esac
}

# ends LIMIT READER LOADERS OPTIONS...: must end, with all records or with a word of the limit.
ends() {
    limit=$1 reader=$2 loaders=$3
    shift 3
    tried="ulimit -n $limit; iobench run -r $reader --io-threads $loaders $*"
    (
        # shellcheck disable=SC3045 # dash and bash have it
        ulimit -n "$limit"
        watched "$IOBENCH" run -d "$(set_of "$reader")" -r "$reader" --io-threads "$loaders" \
            --decode none -s buffer:300 -n 1 -e 2 --no-calibrate --io-timeout none "$@"
    ) >"$tmp/out" 2>"$tmp/err" </dev/null
    status=$?
    case $status in
    0) out "valid" ;;
    1) grep -qE 'ulimit|open files|file descriptors' "$tmp/err" || fault "no word of the limit" ;;
    *) fault "exit status $status" ;;
    esac
}

long=${IOBENCH_LONG:+16 20 32 64}
for reader in $readers; do
    for loaders in 1 3; do
        for limit in ${long:-24}; do
            ends "$limit" $reader $loaders
        done
    done
    ends 40 $reader 1 --limit-rate 2MiB
    ends 40 $reader 2 --overlap-epochs
done

# If the shuffle holds more records than the map limit, records are copied.
for files in 1 7; do
    for loaders in 1 3; do
        ends 256 mmap:files=$files $loaders
        [ "$status" -eq 0 ] || fault "not all records came"
    done
done
finish
