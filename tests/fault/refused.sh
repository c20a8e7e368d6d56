#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Disable features of io_uring one by one, as old kernels and containers do: every byte is still
# correct, and the output names the engine in use.
skip() {
    echo "skipped: $1"
    exit 77
}
command -v strace >/dev/null || skip "strace is not installed"
[ -x tests/unit/test_readers ] || skip "built without unit tests"
./iobench list reader | grep -q '^ *uring ' || skip "built without liburing"
strace -f -o /dev/null -e trace=io_uring_setup true 2>/dev/null || skip "strace may not trace here"
case $(file -L tests/unit/test_readers 2>/dev/null; ldd tests/unit/test_readers) in
*libasan* | *__asan* | *libclang_rt*) skip "a sanitizer does not like to be traced" ;;
esac

failed=0
# inject WHAT WORDS: with WHAT injected, test_readers passes and prints WORDS.
inject() {
    said=$(strace -f -o /dev/null -e trace="${1%%:*}" -e inject="$1" tests/unit/test_readers quick 2>&1) || {
        echo "FAULT: $1: $said"
        failed=1
    }
    echo "$said" | grep -q "$2" || {
        echo "FAULT: $1: nobody says $2"
        failed=1
    }
}
inject io_uring_setup:error=EPERM 'refused here (sysctl'
inject io_uring_setup:error=ENOSYS 'io_uring is refused here (not in this kernel)'
inject io_uring_setup:error=ENOMEM 'refused here (no memory.*Cannot allocate memory; [0-9]* threads read instead'
inject io_uring_register:error=ENOMEM 'buffers are not registered: RLIMIT_MEMLOCK'
inject io_uring_enter:error=EINTR:when=3+7 'io_uring, O_DIRECT'
exit $failed
