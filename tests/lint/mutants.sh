#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each mutant of tests/mutants/*.list still changes exactly one line of its file, and its tests exist.
. "$(dirname "$0")/lint.sh"

exists() { # TEST
    case $1 in
    *.sh) [ -f "$1" ] ;;
    *) [ -f "$1.c" ] ;;
    esac
}

# shellcheck disable=SC2013,SC2086
lint() {
    [ -d tests/mutants ] || return 0
    cat tests/mutants/*.list | sed -e '/^#/d' -e '/^$/d' |
        while read -r name file tests && IFS= read -r edit; do
            [ "$(sed -e "$edit" "$file" 2>/dev/null | diff "$file" - 2>/dev/null | grep -c '^[<>]')" = 2 ] ||
                echo "mutant $name does not change one line of $file: $edit"
            [ -n "$tests" ] || echo "mutant $name has no test"
            for test in $tests; do
                exists "$test" || echo "mutant $name: there is no $test"
            done
        done
}

bad tests/mutants/x.list "one tests/mutants/x.list tests/none
s/never there/x/"
good base/x.c "int x;"
lint_tree
