#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make calls fail one by one in small runs, packs and training runs: tests/fault/sweep.c.
skip() {
    echo "skipped: $1"
    exit 77
}
[ -e tests/fault/faults.so ] || skip "faults.so is not built"
grep -q '^#define HAVE_LMDB 1' config.h || skip "built without LMDB"
if nm -D iobench 2>/dev/null | grep -q '__asan_init\|__tsan_init\|__ubsan_handle'; then
    skip "a sanitizer has its own memory functions"
fi
exec tests/fault/sweep "$@"
