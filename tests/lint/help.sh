#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make help` knows each target that is meant for people: a line "#: NAME  what" beside its rule.
. "$(dirname "$0")/lint.sh"

lint() {
    set -- Makefile.am ./*/local.mk tests/*/local.mk
    for file; do
        [ -e "$file" ] || continue
        sed -n 's/^\.PHONY: //p' "$file" | tr ' ' '\n' | grep -v '^clean-' | while read -r target; do
            grep -q "^#: $target  *[^ ]" "$file" || echo "$file: make help does not know $target"
        done
    done
}

bad Makefile.am '.PHONY: x
x:'
good Makefile.am '.PHONY: x clean-x
#: x  what it is for
x:'
lint_tree
