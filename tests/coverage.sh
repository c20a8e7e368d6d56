#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Print the lines of C that tests executed, by folder, and the files with the most that none did. In the folder of
# `make coverage`.
find . -name '*.gcda' ! -path './tests/*' ! -path './bench/*' -print0 | xargs -0 -r gcov -n 2>/dev/null | awk '
    /^File / {
        file = substr($2, 2, length($2) - 2)
        sub(/^.*\.\.\//, "", file)
    }
    /^Lines executed:/ && file ~ /^[a-z].*\.c$/ { # once an object
        split($2, part, "[:%]")
        done = int($4 * part[2] / 100 + 0.5)
        if (!(file in lines) || done > ran[file]) { lines[file] = $4; ran[file] = done }
        file = ""
    }
    END {
        for (file in lines) {
            folder = file
            sub(/\/[^\/]*$/, "", folder)
            all[folder] += lines[file]; some[folder] += ran[file]
            all["all"] += lines[file]; some["all"] += ran[file]
        }
        for (folder in all)
            printf "%-24s %6d of %6d lines %5.1f%%\n", folder, some[folder], all[folder], 100 * some[folder] / all[folder] | "sort"
        close("sort")
        print ""
        for (file in lines)
            printf "%6d not %s\n", lines[file] - ran[file], file | "sort -rn | head -n 20"
    }'
