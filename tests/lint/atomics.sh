#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Atomics are used only in base/, where each has a name that states its memory order.
. "$(dirname "$0")/lint.sh"

lint() {
    # shellcheck disable=SC2046
    grep_code '(^|[^a-zA-Z0-9_/])(atomic_[a-z]+|_Atomic|__atomic_[a-z_]+|__sync_[a-z_]+)|stdatomic' \
        'atomics belong in base/ (base/atomic.h)' \
        $(sources '*.c' '*.h' '*.cu' | grep -v '^base/')
}

bad readers/x.c '#include <stdatomic.h>'
bad pipeline/x.c 'static _Atomic int x;'
bad pipeline/x.c 'int y = atomic_load(&x);'
bad tests/unit/x.c 'int y = __atomic_load_n(&x, 5);'
good base/x.h 'static _Atomic int x;'
good pipeline/x.c '#include "base/atomic.h"'
lint_tree
