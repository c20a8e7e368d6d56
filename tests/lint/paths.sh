#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2153
# Source files named in documents, comments or the list of mutants exist: `pipeline/loader/loader.c`. So do files that pages link: [pack](pack.md).
. "$(dirname "$0")/lint.sh"

lint() {
    folders=$(echo "$FOLDERS" docs man | tr -s ' \n' '  ' | sed 's/ *$//' | tr ' ' '|')
    # shellcheck disable=SC2046
    grep -noE "(^|[^A-Za-z0-9_./-])($folders)/[a-z0-9_/]+\.(c|h|cu|cuh|sh|py|md|mk)([^A-Za-z0-9_*]|\$)" \
        /dev/null $(texts | grep -v '^tests/lint/'; ls tests/mutants/*.list 2>/dev/null) | # its bad and good trees name others
        sed -E 's/^([^:]*:[0-9]*):[^a-z]*([a-z0-9_/]+\.[a-z]+).*/\2 \1/' | sort -u |
        while read -r path place; do
            [ -e "$path" ] || echo "$place: names $path, which is not there"
        done
    # shellcheck disable=SC2046
    grep -noE ']\([^]): ]+\)' /dev/null $(texts | grep '\.md$') | sed -E 's/^([^:]*):([0-9]*):]\(([^)#]*).*/\1 \2 \3/' |
        while read -r page line link; do
            [ -e "$(dirname "$page")/${link:-.}" ] || echo "$page:$line: links $link, which is not there"
        done
    # A page may leave out the folder that its text names.
    sources '*.c' '*.h' '*.cu' '*.cuh' | sed 's|.*/||' >"$LINT_TMP/names"
    # shellcheck disable=SC2046
    grep -noE '`[a-z0-9_]+\.(c|h|cu|cuh)`' /dev/null $(texts | grep '\.md$') |
        sed -E 's/^([^:]*:[0-9]*):`(.*)`$/\2 \1/' |
        while read -r name place; do
            grep -qxF "$name" "$LINT_TMP/names" || echo "$place: names $name, which is not there"
        done
}

bad docs/x.md 'See `pipeline/nowhere.c`.'
bad base/x.c '/* base/y.h has it. */'
bad docs/x.md 'The window (`nowhere.c`) is read ahead.'
bad docs/x.md 'See [it](y.md#part).'
bad tests/mutants/x.list 'base/y.c | a = 1; | a = 2; | never read'
good docs/x.md 'See [it](x.md#part), [here](#part), [there](https://example.org/y.md).'
good base/x.c '/* base/x.c, tests/unit/test_*.c */'
lint_tree
