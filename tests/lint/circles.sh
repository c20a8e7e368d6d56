#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No dependency cycles between files: if one source uses a function or variable of another, the
# other does not depend on the first, directly or indirectly. Reads the built objects, so no use is
# missed; and the sources for inline functions, which objects do not name: one of x.h is of x.c. A
# registry.c is a table of plug-ins and may name files that use its family's header.
. "$(dirname "$0")/lint.sh"

command -v nm >/dev/null 2>&1 || skip "no nm"
command -v tsort >/dev/null 2>&1 || skip "no tsort"

# OBJECT NAME TYPE lines of objects: "user owner symbol" for each use of another's symbol.
uses() {
    awk '
    { object = $1; sub(/^\.\//, "", object); sub(/\.o$/, "", object)
      sub(/\/[a-z_0-9]*_so-/, "/", object); sub(/\/iobench_[a-z0-9]+-/, "/", object) }
    $3 ~ /^[TDBRVWC]$/ { if (!($2 in owner)) owner[$2] = object }
    $3 == "U" { user[++count] = object; used[count] = $2 }
    END {
        for (i = 1; i <= count; i++) {
            by = user[i]; of = owner[used[i]]
            if (of != "" && of != by && by !~ /registry$/ && !seen[by " " of]++)
                print by, of, used[i]
        }
    }'
}

# Print files in a cycle, one per line, with what each uses of the others.
circles() {
    uses >"$LINT_TMP/uses"
    cut -d ' ' -f 1,2 "$LINT_TMP/uses" | LC_ALL=C tsort 2>&1 >/dev/null |
        sed -n 's/^tsort: \([^ ]*\)$/\1/p' | sort -u >"$LINT_TMP/circle"
    awk 'NR == FNR { in_circle[$1]; next }
        ($1 in in_circle) && ($2 in in_circle) { print $1 ".c: uses " $3 " of " $2 ".c, which uses it: a circle" }
        ' "$LINT_TMP/circle" "$LINT_TMP/uses"
}

# OBJECT NAME TYPE lines of the inline functions of the C files below a folder.
inlines() {
    (
        cd "$1" || exit 1
        # shellcheck disable=SC2046
        strip $(sources '*.c' '*.h' | grep -Ev '^(bench|docs/examples|tests)/')
        cd "$LINT_TMP/code" || exit 1
        # shellcheck disable=SC2046
        awk '
        FNR == 1 { is_header = sub(/\.h$/, "", FILENAME); stem = FILENAME; sub(/\.c$/, "", stem); begun = 0 }
        is_header {
            gsub(/__attribute__\(\([a-z_]*\)\)/, "")
            if (/^static inline /) begun = 1
            if (begun && match($0, /[a-z_0-9]+\(/)) {
                owner[substr($0, RSTART, RLENGTH - 1)] = stem
                begun = 0
            }
            next
        }
        {
            for (rest = $0; match(rest, /[a-z_][a-z_0-9]*\(/); rest = substr(rest, RSTART + RLENGTH)) {
                name = substr(rest, RSTART, RLENGTH - 1)
                if ((name in owner) && !seen[stem, name]++) print stem ".o", name, "U"
            }
        }
        END { for (name in owner) print owner[name] ".o", name, "T" }
        ' $(find . -name '*.h' | sed 's|^\./||; s|\.h$|.c|' | sort | xargs ls 2>/dev/null | sed 's|c$|h|') \
            $(find . -name '*.c' | sed 's|^\./||' | sort)
    )
}

objects() {
    for folder in $FOLDERS; do
        case $folder in
        tests | bench | docs/examples) continue ;;
        esac
        [ ! -d "$folder" ] || find "./$folder" -name '*.o' ! -name 'tests_*' ! -name 'bench_*'
    done
}

[ -n "$(printf '%s\n' 'a.o one T' 'a.o two U' 'b.o two T' 'b.o three U' 'c.o three T' 'c.o one U' | circles)" ] || {
    echo "this lint did not see a circle of three files"
    exit 1
}
[ -z "$(printf '%s\n' 'a.o one T' 'a.o two U' 'b.o two T' 'registry.o t T' 'registry.o one U' 'a.o t U' | circles)" ] || {
    echo "this lint found a circle where there is none"
    exit 1
}
mkdir -p "$LINT_TMP/own/base"
echo 'static inline int one(void)' >"$LINT_TMP/own/base/a.h"
echo 'int x = two();' >"$LINT_TMP/own/base/a.c"
echo 'static inline __attribute__((always_inline)) int two(void)' >"$LINT_TMP/own/base/b.h"
echo 'int y = one();' >"$LINT_TMP/own/base/b.c"
[ -n "$(inlines "$LINT_TMP/own" | circles)" ] || {
    echo "this lint did not see a circle of inline functions"
    exit 1
}
rm -r "$LINT_TMP/code"
[ -n "$(objects)" ] || skip "nothing is built here"
# shellcheck disable=SC2046
found=$({ nm -A -P -g $(objects) 2>/dev/null | sed 's/^\([^:]*\): /\1 /'; inlines "$SRCDIR"; } | circles)
[ -n "$found" ] || exit 0
printf '%s\n' "$found"
exit 1
