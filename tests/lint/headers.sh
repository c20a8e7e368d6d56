#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each header compiles alone, and twice in a row. A template (*_template.h) needs the macros of who
# includes it.
. "$(dirname "$0")/lint.sh"

command -v "${CC%% *}" >/dev/null 2>&1 || skip "no compiler in CC"
BUILD=$PWD
FLAGS="$CC ${LINT_CFLAGS-} -I. -I$BUILD -include $BUILD/config.h"

# shellcheck disable=SC2086 # flags are words
lint() {
    for path in $(sources '*.h' | grep -v _template.h); do
        printf '#include "%s"\n#include "%s"\n' "$path" "$path" |
            $FLAGS -fsyntax-only -x c - 2>&1 |
            sed -n "/error:/{s|^|$path: |p;q;}"
    done
}

bad base/x.h 'static inline uint32_t x(void) { return 1; }'
bad base/x.h 'struct x { int x; };'
good base/x.h '#ifndef X
#define X
#include <stdint.h>
static inline uint32_t x(void) { return 1; }
#endif'
lint_tree
