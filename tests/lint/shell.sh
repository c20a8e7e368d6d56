#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Scripts pass shellcheck.
. "$(dirname "$0")/lint.sh"

command -v shellcheck >/dev/null || skip "shellcheck is not installed"

lint() {
    scripts=$(sources '*.sh')
    for path in bootstrap packaging/portable.sh .ci/run; do
        [ ! -f "$path" ] || scripts="$scripts $path"
    done
    # SC1091: the sourced lint.sh is checked by itself.
    # shellcheck disable=SC2086
    shellcheck -f gcc -S info -e SC1091 $scripts
}

# shellcheck disable=SC2016 # $1 is the fault
bad tests/x.sh '#!/bin/sh
cd $1'
# shellcheck disable=SC2016
good tests/x.sh '#!/bin/sh
cd "$1" || exit'
lint_tree
