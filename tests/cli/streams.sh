# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# For tests that check the two streams separately and continue after a fault; sourced, after cli.sh.
# shellcheck disable=SC2154 # T and SRCDIR are those of cli.sh
. "$(dirname "$0")/cli.sh"
tmp=$T
faults=0

# try STATUS ARGUMENTS...: run the program; its output goes to $tmp/out and $tmp/err.
try() {
    wanted=$1
    shift
    tried="iobench $*"
    "$IOBENCH" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    status=$?
    [ "$status" -eq "$wanted" ] || fault "exit status $status, not $wanted"
}

# watched COMMAND...: its exit status is 124 if it hangs, which no slow machine makes it do.
watched() {
    if command -v python3 >/dev/null; then
        python3 "$SRCDIR/tests/cli/watched.py" "$@"
    else
        "$@"
    fi
}

fault() {
    faults=$((faults + 1))
    echo "FAULT: $tried: $1"
    sed 's/^/  out: /' "$tmp/out" | head -n 20
    sed 's/^/  err: /' "$tmp/err" | head -n 20
}

# out TEXT, err TEXT: that output must contain TEXT, verbatim or with line breaks and blanks
# collapsed. empty out|err: must be empty.
contains() { grep -qF -e "$2" "$tmp/$1" || tr -s ' \n' ' ' <"$tmp/$1" | grep -qF -e "$2"; }
out() { contains out "$1" || fault "'$1' is not in its output"; }
err() { contains err "$1" || fault "'$1' is not in its messages"; }
no_out() { ! contains out "$1" || fault "'$1' is in its output"; }
empty() { [ ! -s "$tmp/$1" ] || fault "something on std$1"; }

# saved NAME: the output must equal tests/cli/saved/NAME. UPDATE=1 rewrites it.
saved() {
    [ "${UPDATE:-0}" = 0 ] || cp "$tmp/out" "$SRCDIR/tests/cli/saved/$1"
    diff -u "$SRCDIR/tests/cli/saved/$1" "$tmp/out" || fault "differs from tests/cli/saved/$1"
}

# page STATUS ARGUMENT...: add what it prints to the file pages
page() {
    try "$@"
    shift
    { echo "\$ iobench $*" && cat out && sed 's/^/! /' err && echo; } >>pages
}

# same NAME: the pages so far equal tests/cli/saved/pages-NAME.txt
same() {
    tried="all of pages-$1.txt"
    sed -e "s/\"iobench_version\": \"[^\"]*\"/\"iobench_version\": \"VERSION\"/; s/iobench [0-9][0-9.]*[0-9]/iobench VERSION/" \
        -e "/\"checksum\":/d; s/\"order_ns\": [0-9]*/\"order_ns\": TIME/; s|$PROGRAMS/iobench|iobench|; s|$T/||g" \
        -e 's/"elapsed_s": [0-9.e-]*/"elapsed_s": TIME/; s|, [0-9.,]* [mun]*s, [0-9.,]* .iB/s$|, TIME|' \
        -e 's|^[0-9.,]* [mun]*s, [0-9.,]* samples/s, .*|TIME|; s|  # this build .*||' pages >out
    rm pages
    saved "pages-$1.txt"
}

# make_set FORMAT COUNT: a small synthetic set in $tmp/FORMAT.
make_set() {
    "$IOBENCH" pack "synthetic:count=$2,mean=6000" "$tmp/$1" -f "$1" --shards 2 >"$tmp/out" 2>&1 ||
        die "no data set: $(cat "$tmp/out")"
}

finish() {
    [ "$faults" -eq 0 ] || die "$faults faults"
}
