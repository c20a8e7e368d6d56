#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each mutant of tests/mutants/*.list still changes exactly one line of its file, its tests exist, and it compiles, or it
# would test nothing. The compiler sees those whose file or list changed since it last saw them in this build folder; with
# IOBENCH_LONG=1 all, since a header may have changed.
. "$(dirname "$0")/lint.sh"

BUILD=$PWD
SEEN=$BUILD/tests/lint/mutants.seen
FLAGS="$CC ${LINT_CFLAGS-} -I. -I$BUILD -include $BUILD/config.h -O2 -DIOBENCH_MODULES=PACKAGE"

exists() { # TEST: a script, a source, or a program that a makefile builds of sources of other names
    case $1 in
    *.sh) [ -f "$1" ] ;;
    *) [ -f "$1.c" ] || grep -rq --include='*.mk' "^$(echo "$1" | tr / _)_SOURCES = " tests ;;
    esac
}

is_due() { # LIST FILE
    [ -n "${IOBENCH_LONG-}" ] || [ ! -e "$SEEN" ] || [ -n "$(find "$1" "$2" -newer "$SEEN")" ]
}

# One compiler for all. A library that is not here is no fault of a mutant.
compile() {
    ls "$LINT_TMP"/mutants/*.c >/dev/null 2>&1 || return 0
    # shellcheck disable=SC2086 # flags are words
    $FLAGS -fsyntax-only "$LINT_TMP"/mutants/*.c 2>&1 | grep 'error: ' | grep -v 'error: .*: No such file' |
        sed 's|^[^ ]*/mutants/\([^ ]*\)\.c:[0-9:]*|mutant \1 does not compile:|'
}

# shellcheck disable=SC2013,SC2086
lint() {
    [ -d tests/mutants ] || return 0
    rm -rf "$LINT_TMP/mutants"
    mkdir "$LINT_TMP/mutants"
    for list in tests/mutants/*.list; do
        sed -e '/^#/d' -e '/^$/d' "$list" |
            while read -r name file tests && IFS= read -r edit; do
                sed -e "$edit" "$file" >"$LINT_TMP/mutant" 2>/dev/null
                [ "$(diff "$file" "$LINT_TMP/mutant" 2>/dev/null | grep -c '^[<>]')" = 2 ] ||
                    echo "mutant $name does not change one line of $file: $edit"
                case $file in *.c) ! is_due "$list" "$file" || mv "$LINT_TMP/mutant" "$LINT_TMP/mutants/$name.c" ;; esac
                [ -n "$tests" ] || echo "mutant $name has no test"
                for test in $tests; do
                    exists "$test" || echo "mutant $name: there is no $test"
                done
            done
    done
    compile
}

bad tests/mutants/x.list "one tests/mutants/x.list tests/none
s/never there/x/"
good base/x.c "int x;"
mkdir -p "$LINT_TMP/mutants"
echo 'int x(void) { return y; }' >"$LINT_TMP/mutants/x.c"
[ -n "$(compile)" ] || {
    echo "this lint did not see a mutant that does not compile"
    exit 1
}
touch "$LINT_TMP/begun"
(lint_tree) || exit
mkdir -p "${SEEN%/*}" && touch -r "$LINT_TMP/begun" "$SEEN"
