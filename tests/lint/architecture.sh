#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/architecture.svg shows which folders include each other; all arrows point down.
. "$(dirname "$0")/lint.sh"

command -v python3 >/dev/null 2>&1 || skip "no python3"

lint() {
    python3 "$SRCDIR/docs/architecture.py" --check . 2>&1
}

bad base/x.c '#include "dataset/x.h"'
found=$(mkdir -p "$LINT_TMP/two/base" "$LINT_TMP/two/dataset" && cd "$LINT_TMP/two" &&
    echo '#include "dataset/x.h"' >base/x.h && echo '#include "base/x.h"' >dataset/x.h && lint)
case $found in
*"include each other"*) ;;
*)
    echo "this lint did not see two folders that include each other: $found"
    exit 1
    ;;
esac
lint_tree
