#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Limits the length of functions and files.
. "$(dirname "$0")/lint.sh"

lint() {
    # shellcheck disable=SC2046 # file names have no blanks
    awk -v function_lines=80 -v file_lines=700 '
        FNR == 1 { start = 0 }
        /^{/ { start = FNR }
        /^}/ && start {
            if (FNR - start + 1 > function_lines)
                printf "%s:%d: a function of %d lines (at most %d)\n", FILENAME, start,
                    FNR - start + 1, function_lines
            start = 0
        }
        { lines[FILENAME] = FNR }
        END {
            for (path in lines)
                if (lines[path] > file_lines)
                    printf "%s: %d lines (at most %d)\n", path, lines[path], file_lines
        }' $(sources '*.c' '*.h' '*.cu') /dev/null
}

bad base/x.c "int x(void)
{
$(yes '    x();' | head -n 80)
}"
bad base/x.h "$(yes '/**/' | head -n 701)"
good base/x.c "int x(void)
{
$(yes '    x();' | head -n 78)
}"
lint_tree
