#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is compiled here compiles for AArch64, with the same warnings: by Debian's cross compiler with its
# libc; of the other libraries the headers of this machine will do.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

CROSS=aarch64-linux-gnu-gcc
command -v $CROSS >/dev/null || skip "no $CROSS"
[ -f /usr/aarch64-linux-gnu/include/stdio.h ] || skip "no libc6-dev-arm64-cross"
[ -n "${LINT_CFLAGS-}" ] || skip "make check says how sources are compiled"

# Objects are named by their sources. Tests need definitions of their own.
sources() {
    (cd "$PROGRAMS" && find ./*/ -name '*.o' ! -path './tests/*') | sed -E 's,[^/]*_(a|so)-,,; s,o$,c,' | sort -u |
        while read -r file; do
            [ ! -f "$SRCDIR/$file" ] || printf '%s\n' "$SRCDIR/$file"
        done
}

CUDA=$(sed -n 's/^CUDA_CPPFLAGS = //p' "$PROGRAMS/Makefile")
# shellcheck disable=SC2086 # flags are words
cross() {
    $CROSS -std=gnu17 $LINT_CFLAGS $CUDA -Werror -O1 -fsyntax-only -include "$CONFIG" -I"$SRCDIR" -I"$PROGRAMS" \
        -DIOBENCH_MODULES='""' -DBINDIR='""' -DBENCH_SOURCE='""' \
        -idirafter /usr/include -idirafter "/usr/include/$(uname -m)-linux-gnu" "$@"
}

printf '#include <zlib.h>\n#include <isa-l/crc.h>\nint sign(char c);\nint sign(char c)\n{\n    return c > 0;\n}\n' >sign.c
cross sign.c || die "this machine's headers do not serve"
sed -i 's/c > 0/c < 0/' sign.c # no char is negative there
! cross sign.c 2>/dev/null || die "a warning of that compiler is not found"
sources >files
[ "$(wc -l <files)" -gt 200 ] || die "only $(wc -l <files) sources were found"
# shellcheck disable=SC2046 # names have no blanks
cross $(cat files) || die "AArch64: see above"
echo "$(wc -l <files) sources compile for AArch64"
