#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No file of a checkout is large: a package or data set committed by mistake stays in every clone.
. "$(dirname "$0")/lint.sh"

# What git tracks or would add; its own trees, below, are no checkouts.
files() {
    git ls-files -z --cached --others --exclude-standard 2>/dev/null || find . -type f -print0
}

lint() {
    files | xargs -0 sh -c 'find "$@" -maxdepth 0 -type f -size +300k -printf "%p: %k KiB (at most 300)\n" 2>/dev/null' sh
}

bad tests/set.bin "$(head -c 320000 /dev/zero | tr '\0' x)"
good tests/set.bin "$(head -c 300000 /dev/zero | tr '\0' x)"
[ -e "$SRCDIR/.git" ] || skip "no checkout"
lint_tree
