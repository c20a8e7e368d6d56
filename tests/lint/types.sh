#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names of structs, unions and enums are unique: `struct pool` means one type. Bench programs
# and tests are exempt: each is a separate program.
. "$(dirname "$0")/lint.sh"

lint() {
    # shellcheck disable=SC2046 # file names have no blanks
    code_lines '^[ \t]*(static |const )*(struct|union|enum) [a-z][a-z0-9_]* \{' \
        $(FOLDERS=$(echo " $FOLDERS " | sed 's/ bench / /; s/ tests / /') sources '*.c' '*.h') |
        sed -E 's/^([^:]*):[^{]* ([a-z][a-z0-9_]*) \{.*/\2 \1/' | sort | awk '
        $1 == name { print $2 ": " $1 " is the name of another type in " file }
        { name = $1; file = $2 }'
}

bad base/x.c 'struct thing {
};
struct thing {
};'
good base/x.c 'struct thing {
    struct other *other;
};
enum thing_kind { THING };'
lint_tree
