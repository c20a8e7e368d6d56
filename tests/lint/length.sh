#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Limits the length of functions and files.
. "$(dirname "$0")/lint.sh"

lint() {
    for path in $(sources '*.c' '*.h' '*.cu'); do
        awk -v path="$path" -v function_lines=80 -v file_lines=700 '
            /^{/ { start = NR }
            /^}/ && start {
                if (NR - start + 1 > function_lines)
                    printf "%s:%d: a function of %d lines (at most %d)\n", path, start,
                        NR - start + 1, function_lines
                start = 0
            }
            END {
                if (NR > file_lines)
                    printf "%s: %d lines (at most %d)\n", path, NR, file_lines
            }' "$path"
    done
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
