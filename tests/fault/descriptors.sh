#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No descriptor is left (EMFILE) for one file after the other that a command opens. Many of them are
# files that may be missing; but none of these is, so the command must fail and name the shortage.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

FAULTS=$PROGRAMS/tests/fault/faults.so
[ -e "$FAULTS" ] || skip "faults.so is not built"
! nm -D "$IOBENCH" 2>/dev/null | grep -q '__asan_init\|__tsan_init\|__ubsan_handle' ||
    skip "a sanitizer has its own memory functions"

# short AT COMMAND...: run it, its open number AT refused.
short() {
    at=$1
    shift
    rm -rf made
    mkdir made
    out=$(env FAULT_CLASS=own-open FAULT_AT="$at" FAULT_ERRNO=24 FAULT_REPORT="$T/calls" \
        LD_PRELOAD="$FAULTS" "$IOBENCH" "$@" 2>&1) && status=0 || status=$?
}

opens() { sed -n 's/^own-open //p' calls; }

# refused STEP COMMAND...: every open or, without IOBENCH_LONG, one of STEP. The first run makes an
# index; later ones differ by a file or two that a thread is in time for.
refused() {
    step=${IOBENCH_LONG:+1}
    step=${step:-$1}
    shift
    for _ in 1 2; do
        short 0 "$@"
        [ "$status" = 0 ] || die "exit status $status undisturbed: $*"
    done
    most=$(opens) tried=0
    for at in $(seq "$((most % step + 1))" "$step" "$most"); do
        short "$at" "$@"
        [ "$(opens)" -ge "$at" ] || continue
        tried=$((tried + 1))
        [ "$status" != 0 ] || die "exit status 0 without open $at of $most: $*"
        ! grep -q '"valid": true' made/run.json 2>/dev/null || die "valid without open $at of $most: $*"
        case $out in *"Too many open files"*) ;; *) die "no word of open $at of $most: $*" ;; esac
    done
    [ "$tried" -gt "$((most / step / 2))" ] || die "only $tried of $most opens: $*"
}

expect 0 "$IOBENCH" pack synthetic:count=12,classes=3,mean=4k set --shards 2
refused 1 run --data set --runs 1 --no-calibrate --decode-threads 1 --memory 8m --json made/run.json
refused 3 monitor --interval 20ms -- true
refused 9 verify --decode set
refused 9 inspect set
refused 9 doctor set
refused 9 pack set made/set --format recordio
