# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# The liars' suite: a falsehood is injected into a real run, which must end INVALID, with a notice
# that names it, or with a figure that an independent witness confirms. Sourced, never run;
# tests/liars/all.sh runs all.
#
#     lie "what is not true"
#     LIE="..." run STATUS ARGUMENTS...   the program, with that exit status (or any)
#     caught "words of its output"        or: confirmed "figure and witness" COMMAND...
#
# A case that cannot be tried here ends with: cannot "reason".
# shellcheck source=tests/cli/cli.sh
[ -n "${T-}" ] || . "$(dirname "$0")/../cli/cli.sh"
SHIM=$(dirname "$IOBENCH")/tests/liars/liar.so
lies=0 truths=0 skipped=0 falsehood=

lie() { falsehood=$1 lies=$((lies + 1)) missed=; }

cannot() { # REASON
    echo "$falsehood | not tried here: $1"
    lies=$((lies - 1)) skipped=$((skipped + 1))
}

# Lies for the next run, in the words of tests/liars/liar.c.
can_lie() {
    [ -e "$SHIM" ] || { cannot "liar.so is not built" && return 1; }
    ! nm -D "$IOBENCH" 2>/dev/null | grep -q '__asan_init\|__tsan_init\|__ubsan_handle' ||
        { cannot "a sanitizer has its own functions of the C library" && return 1; }
}

is_root() { [ "$(id -u)" = 0 ] || { cannot "needs root" && return 1; }; }

# run STATUS ARGUMENTS...: a short and small `iobench run`. $LIE: the lies during it.
run() {
    wanted=$1
    shift
    tried="iobench run $*"
    if [ -n "${LIE-}" ]; then
        out=$(LD_PRELOAD=$SHIM LIAR=$LIE "$IOBENCH" run --runs 1 --no-calibrate --memory 16m "$@" 2>&1)
    else
        out=$("$IOBENCH" run --runs 1 --no-calibrate --memory 16m "$@" 2>&1)
    fi
    status=$?
    [ "$wanted" = any ] || [ "$status" = "$wanted" ] || missed="exit status $status, not $wanted"
}

# warm WORDS RUN...: the whole set is in memory before the run. Other tests may drop the machine's
# caches at any moment, so retry a few times until the words appear.
warm() {
    awaited=$1
    shift
    for _ in 1 2 3 4 5; do
        cat set/* >/dev/null
        missed=
        "$@"
        case $(flat) in *"$awaited"*) break ;; esac
    done
}

# Print the output without line breaks.
flat() { printf '%s\n' "$out" | tr -s ' \n' ' '; }

miss() {
    echo "MISSED: $falsehood: $1"
    echo "  ${tried-}"
    printf '%s\n' "$out" | sed 's/^/  /' | head -n 60
}

caught() { # WORDS...: one of them must be in the output
    for words; do
        case $(flat) in *"$words"*)
            tell "$words"
            return
            ;;
        esac
    done
    missed="${missed:-does not say: $1}"
    tell "$1"
}

# confirmed FIGURE COMMAND...: the command confirms the figure.
confirmed() {
    words=$1
    shift
    "$@" || missed="${missed:-not so: $words}"
    tell "$words"
}

tell() {
    if [ -n "$missed" ]; then
        miss "$missed"
    else
        truths=$((truths + 1))
        echo "$falsehood | $1"
    fi
}

stop() { # PROCESS
    kill "$1" && wait "$1" 2>/dev/null
}

# number KEY FILE: the first figure of that name in a JSON file.
number() { sed -n 's/.*"'"$1"'": \([-+.0-9e]*\).*/\1/p' "$2" | head -n 1; }

# holds EXPRESSION: of awk.
holds() { awk "BEGIN { exit !($1) }"; }

finish() {
    echo "$truths of $lies caught, $skipped not tried"
    [ "$truths" = "$lies" ] || exit 1
    [ "$lies" -gt 0 ] || exit 77
    exit 0
}
