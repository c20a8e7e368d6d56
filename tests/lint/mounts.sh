#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A test mounts in a mount namespace of its own (MOUNTS of tests/cli/cli.sh, own_mounts() of tests/unit/mounts.h) or in a
# guest: else a killed one leaves its mounts to the machine.
. "$(dirname "$0")/lint.sh"

lint() {
    own='^(ON_DISK=yes )?MOUNTS=yes|unshare ([^"]* )?-m|BED'
    [ ! -d tests ] || find tests -name '*.sh' ! -path 'tests/cluster/bed/*' ! -path 'tests/lint/*' \
        -exec grep -LE -- "$own" {} + | sort | xargs -r grep -nHE '(^|[;&|{(!]|then|do|if) *mount +-' |
        sed 's|^\([^:]*:[0-9]*\):.*|\1: mounts on the machine: set MOUNTS=yes before cli.sh|'
    # shellcheck disable=SC2046
    code_lines '(^|[^a-z_A-Z0-9>.])mount\(' $(sources '*.c' | grep '^tests/') | while IFS=: read -r file line _; do
        grep -q 'own_mounts()' "$file" || echo "$file:$line: mounts on the machine: call own_mounts() first"
    done
}

bad tests/cli/x.sh 'mount -t tmpfs tmpfs x || exit 77'
bad tests/cli/x.sh '{ mkfs x && mount -o loop x y; } 2>/dev/null'
bad tests/unit/x.c 'if (mount("x", "y", "tmpfs", 0, NULL))'
good tests/cli/x.sh 'MOUNTS=yes
mount -t tmpfs tmpfs x'
good tests/cli/x.sh 'says "mount -t proc"'
good tests/cluster/x.sh 'unshare -u -m sh -c "mount -t tmpfs tmpfs x"'
good tests/unit/x.c 'if (own_mounts() && mount("x", "y", "tmpfs", 0, NULL))'
lint_tree
