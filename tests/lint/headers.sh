#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each header compiles alone, and twice in a row. A template (*_template.h) needs the macros of who
# includes it.
. "$(dirname "$0")/lint.sh"

command -v "${CC%% *}" >/dev/null 2>&1 || skip "no compiler in CC"
BUILD=$PWD
FLAGS="$CC ${LINT_CFLAGS-} -I. -I$BUILD -include $BUILD/config.h"

# One compiler for all: to start it costs as much as a header.
lint() {
    rm -rf "$LINT_TMP/alone"
    mkdir "$LINT_TMP/alone"
    count=0
    for path in $(sources '*.h' | grep -v _template.h); do
        count=$((count + 1))
        printf '#include "%s"\n#include "%s"\n' "$path" "$path" >"$LINT_TMP/alone/$count.c"
    done
    # shellcheck disable=SC2086 # flags are words
    $FLAGS -fsyntax-only "$LINT_TMP/alone/"*.c 2>&1 | grep 'error:'
}

bad base/x.h 'static inline uint32_t x(void) { return 1; }'
bad base/x.h 'struct x { int x; };'
good base/x.h '#ifndef X
#define X
#include <stdint.h>
static inline uint32_t x(void) { return 1; }
#endif'
lint_tree
