#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Only cmd/ prints or exits: the library reports errors with fail() and a code.
. "$(dirname "$0")/lint.sh"

lint() {
    # shellcheck disable=SC2046
    grep_code '(^|[^a-zA-Z0-9_>.])(printf|vprintf|puts|putchar|perror|exit|_exit|_Exit|quick_exit|abort|err|errx|warn|warnx|error)[ ]*\(|(^|[^a-zA-Z0-9_])(stdout|stderr)([^a-zA-Z0-9_]|$)' \
        'only cmd/ prints and exits: use fail() and pass the code up' \
        $(sources '*.c' '*.h' | grep -Ev '^(cmd|tests|bench|docs/examples)/|^cachectl/main\.c$')
}

bad base/x.c 'printf("x");'
bad pipeline/x.c '    fprintf(stderr, "x");'
bad readers/x.c 'if (x) exit(1);'
good cmd/x.c 'printf("x"); exit(1);'
good base/x.c 'snprintf(text, 4, "printf(%d)", x); /* exit(1) */'
lint_tree
