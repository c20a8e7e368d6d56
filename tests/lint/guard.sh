#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No command measures without a guard (telemetry/guard.h): what turns readings of the clock into rates is reached only
# through functions that begin and end one, and a command that has guards judges what they found. Reads the built
# objects, so no call is missed; it proves itself on copies of their graph in which nobody begins, ends or judges.
. "$(dirname "$0")/lint.sh"

command -v objdump >/dev/null 2>&1 || skip "no objdump"
command -v python3 >/dev/null 2>&1 || skip "no python3"
[ "$(uname -m)" = x86_64 ] || skip "this lint knows the relocations of x86-64 only"

objects() {
    for folder in $FOLDERS; do
        case $folder in
        tests | bench) continue ;;
        esac
        [ ! -d "$folder" ] || find "./$folder" -name '*.o' ! -name 'tests_*' ! -name 'bench_*' ! -name '*.nvcc.o'
    done
}

[ -n "$(objects)" ] || skip "nothing is built here"
found=$(objects | python3 "$SRCDIR/tests/lint/guard.py") || exit 1
[ -n "$found" ] || exit 0
printf '%s\n' "$found"
exit 1
