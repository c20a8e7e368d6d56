#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# decode/baseline on other CPUs, compiled by Debian's cross compilers and run by qemu's user mode: on
# AArch64 the NEON kernels equal plain C; there and on a big-endian CPU the pixels of all images are
# those that this machine decodes.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

CC=${CC:-cc}
command -v "${CC%% *}" >/dev/null || skip "no compiler in CC"

built() { # PROGRAM COMPILER...
    program=$1
    shift
    expect 0 "$@" -O1 -I"$SRCDIR" "$SRCDIR"/decode/baseline/*.c \
        "$SRCDIR/tests/unit/test_baseline_kernels.c" -o "$program"
}

sums() { # RUN...
    "$@" "$SRCDIR"/tests/fuzz/corpus/baseline/* "$SRCDIR"/tests/fixtures/images/*.jpg
}

tried=0
for cpu in "aarch64 1" "s390x 0"; do
    name=${cpu% *} levels=${cpu#* }
    for tool in "$name-linux-gnu-gcc" "qemu-$name"; do
        command -v "$tool" >/dev/null || {
            echo "$name: no $tool"
            continue 2
        }
    done
    # shellcheck disable=SC2086 # CC has words
    [ -f expected ] || built here $CC
    sums ./here >expected || die "decoding here"
    built "$name" "$name-linux-gnu-gcc" -static
    expect 0 "qemu-$name" "./$name"
    says "levels 1 to $levels equal plain C"
    sums "qemu-$name" "./$name" >found || die "decoding on $name"
    cmp expected found || die "$name decodes other pixels"
    tried=$((tried + 1))
done
[ $tried -gt 0 ] || skip "neither AArch64 nor s390x has both a cross compiler and qemu-user here"
[ "$(grep -cv ' 0*$' expected)" -gt 60 ] || die "hardly any image was decoded"
