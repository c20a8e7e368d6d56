#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# decode/baseline is a library of its own: docs/examples/jpeg.c compiles with the C library alone, by
# each compiler here and for 32 bits, and decodes the same; its symbols have one prefix, and a shared
# library exports what the header declares.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

CC=${CC:-cc}
LIBRARY=$SRCDIR/decode/baseline
command -v "${CC%% *}" >/dev/null || skip "no compiler in CC"
cp "$SRCDIR/docs/examples/jpeg.c" example.c || exit 1

# decodes PROGRAM: by the example
decodes() {
    for name in yuv420 yuv422 yuv444 grayscale large; do
        "./$1" <"$SRCDIR/tests/fixtures/images/$name.jpg" || die "$1 does not decode $name.jpg"
    done
}

mkdir objects
# shellcheck disable=SC2086 # CC has words
(cd objects && expect 0 $CC -std=c11 -pedantic-errors -Wall -Wextra -O1 -fPIC -fvisibility=hidden \
    -I"$SRCDIR" -c "$LIBRARY"/*.c) || exit 1
# shellcheck disable=SC2086
expect 0 $CC -I"$SRCDIR" example.c objects/*.o -o example
decodes example >expected || exit 1
[ "$(grep -ao 'P6 [0-9]* [0-9]* 255' expected | wc -l)" = 5 ] || die "not five images"
expect 1 ./example <"$SRCDIR/tests/fixtures/images/cmyk.jpg"
says "for libjpeg-turbo"

for compiler in clang "$CC -m32"; do
    echo 'int main(void) { return 0; }' >probe.c
    # shellcheck disable=SC2086
    { $compiler -include stdio.h probe.c -o probe && ./probe; } >/dev/null 2>&1 || {
        echo "not tried, since it makes no program here: $compiler"
        continue
    }
    # shellcheck disable=SC2086
    expect 0 $compiler -O0 -I"$SRCDIR" example.c "$LIBRARY"/*.c -o other
    decodes other >found || exit 1
    cmp expected found || die "$compiler: other pixels"
done

if command -v c++ >/dev/null; then
    printf '%s\n' '#include "decode/baseline/baseline.h"' \
        'int main() { baseline_destroy(baseline_create()); return BASELINE_VERSION < 1; }' >plus.cc
    expect 0 c++ -Wall -Wextra -Werror -I"$SRCDIR" -c plus.cc
    # shellcheck disable=SC2086 # CC may have what objects/ need
    expect 0 $CC plus.o objects/*.o -o plus
    expect 0 ./plus
fi

command -v nm >/dev/null || skip "no nm; the rest passed"
nm -g --defined-only objects/*.o | sed -n 's/^[0-9a-f]* [A-Z] //p' | grep -v '^baseline_' >strangers &&
    die "symbols without the prefix: $(cat strangers)"
# shellcheck disable=SC2086
expect 0 $CC -shared objects/*.o -o library.so
nm -D --defined-only library.so | sed -n 's/^[0-9a-f]* T //p' | sort >exported
sed -n 's/^[a-z].*[ *]\(baseline_[a-z_]*\)(.*/\1/p' "$LIBRARY/baseline.h" | sort >declared
[ -s declared ] || die "no declarations found"
cmp declared exported || die "exported, not declared, or the other way: $(diff declared exported)"
