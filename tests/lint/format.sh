#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clang-format formats C. Versions differ in details, so only one is used.
. "$(dirname "$0")/lint.sh"

FORMAT=$(command -v clang-format-14 || command -v clang-format) || skip "clang-format is not installed"
"$FORMAT" --version | grep -q 'version 14\.' || skip "clang-format 14 decides, this is another"

lint() {
    cp "$SRCDIR/.clang-format" "$LINT_TMP/.clang-format"
    # shellcheck disable=SC2046
    "$FORMAT" --style=file --dry-run $(sources '*.c' '*.h') 2>&1 | grep 'warning:' |
        sed 's/code should be.*/not as clang-format lays it out: make format/' | sort -u -t: -k1,1
}

bad base/x.c 'int x( void ) { return 1 ; }'
good base/x.c 'int x;'
lint_tree
