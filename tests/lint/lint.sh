# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Shared by all lints; sourced, never run. A lint defines `lint`, which checks the tree in the
# working directory and prints one line per fault ("FILE:LINE: what is wrong"), then calls
#
#     bad FILE TEXT      a tree with only this file must fail, or the lint detects nothing
#     good FILE TEXT     a tree with only this file must pass
#     lint_tree          check the real tree and exit 0 (clean) or 1
#
# A tree is a checkout or an unpacked tarball; git is not needed.
set -u

FOLDERS="base bench cachectl cmd dataset decode docs/examples formats kernels pipeline ranks readers report shuffle telemetry tests trainer"
SRCDIR=$(cd "${srcdir:-.}" && pwd)
LINT_TMP=$(mktemp -d)
trap 'rm -rf "$LINT_TMP"' EXIT

# Print the files in the source folders that match one of the patterns: sources '*.c' '*.h'
sources() {
    set -f # the patterns are for find
    expression=
    for pattern; do
        expression="$expression${expression:+ -o }-name $pattern"
    done
    for folder in $FOLDERS; do
        # shellcheck disable=SC2086 # an expression is words
        [ ! -d "$folder" ] || find "$folder" -type f \( $expression \)
    done | sort
    set +f
}

# Every hand-written text file.
texts() {
    sources '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' '*.mk' '*.sh' '*.py' '*.md'
    for path in configure.ac Makefile.am packaging/m4/optional.m4 packaging/m4/cuda.m4 bootstrap packaging/portable.sh .ci/run $(find docs -name "*.md" 2>/dev/null) ./*.md NEWS packaging/man/local.mk packaging/man/cachectl.1; do
        [ ! -f "$path" ] || echo "$path"
    done
}

# Copy C to $LINT_TMP/code, without comments and with empty strings and characters; line numbers are
# unchanged. One process for all files.
strip() {
    printf '%s\n' "$@" | sed "s|[^/]*$||; s|^|$LINT_TMP/code/|" | sort -u | xargs mkdir -p
    awk -v to="$LINT_TMP/code/" '
    FNR == 1 { if (path) close(path); path = to FILENAME; inside = 0 }
    {
        line = $0; out = ""
        while (length(line)) {
            if (inside) {
                end = index(line, "*/")
                if (!end) { line = ""; break }
                line = substr(line, end + 2); inside = 0
            } else if (match(line, /\/\*|\/\/|"|\047/)) {
                mark = substr(line, RSTART, RLENGTH)
                out = out substr(line, 1, RSTART - 1)
                line = substr(line, RSTART + RLENGTH)
                if (mark == "//") { line = ""; break }
                if (mark == "/*") { inside = 1; out = out " "; continue }
                if (out ~ /^[ \t]*#[ \t]*include[ \t]*$/) { out = out mark line; break }
                pattern = mark == "\"" ? "^([^\"\\\\]|\\\\.)*\"?" : "^([^\047\\\\]|\\\\.)*\047?"
                match(line, pattern)
                line = substr(line, RLENGTH + 1); out = out mark mark
            } else { out = out line; line = "" }
        }
        print out >path
    }' "$@"
}

# code_lines REGEX FILE...: print "FILE:LINE:CODE" for each line of code that matches.
code_lines() {
    regex=$1
    shift
    [ $# -gt 0 ] || return 0
    strip "$@"
    (cd "$LINT_TMP/code" && grep -nHsE -- "$regex" "$@")
}

# grep_code REGEX MESSAGE FILE...: a fault for each line of code that matches.
grep_code() {
    regex=$1 message=$2
    shift 2
    code_lines "$regex" "$@" | sed "s|^\([^:]*:[0-9]*\):.*|\1: $message|"
}

# includes FILE...: print "FILE HEADER" for each header included by name in quotes.
includes() {
    code_lines '^[ \t]*#[ \t]*include[ \t]*"' "$@" | sed 's|^\([^:]*\):[^"]*"\([^"]*\)".*|\1 \2|'
}

tree_of() {
    rm -rf "$LINT_TMP/tree"
    mkdir -p "$LINT_TMP/tree/$(dirname "$1")"
    printf '%s\n' "$2" >"$LINT_TMP/tree/$1"
    (cd "$LINT_TMP/tree" && lint)
}

bad() {
    [ -n "$(tree_of "$1" "$2")" ] || {
        echo "this lint did not see the fault in its own bad $1:"
        printf '%s\n' "$2"
        exit 1
    }
}

good() {
    found=$(tree_of "$1" "$2")
    [ -z "$found" ] || {
        echo "this lint found a fault in its own good $1:"
        printf '%s\n' "$found" "$2"
        exit 1
    }
}

skip() {
    echo "skipped: $*"
    exit 77
}

lint_tree() {
    found=$(cd "$SRCDIR" && lint)
    [ -n "$found" ] || exit 0
    printf '%s\n' "$found"
    exit 1
}
