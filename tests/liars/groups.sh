# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Control groups for processes of a test; sourced after cli.sh. They are thawed, emptied and removed
# however the test ends. This shell never enters one.

# group CONTROLLER: make a group below our own, or below the root; its folder is in $GROUP.
group() {
    own=$(sed -n "s/^[0-9]*:\([^:]*,\)\{0,1\}$1\(,[^:]*\)\{0,1\}://p" /proc/self/cgroup | head -n 1)
    parent=/sys/fs/cgroup/$1${own%/}
    if [ -z "$own" ]; then
        own=$(sed -n 's/^0:://p' /proc/self/cgroup)
        parent=/sys/fs/cgroup${own%/}
        [ "$1" = freezer ] || { echo "+$1" >"$parent/cgroup.subtree_control"; } 2>/dev/null || return 1
    fi
    GROUP=$parent/iobench-test.$$.$1
    mkdir "$GROUP" 2>/dev/null || return 1
    GROUPS_MADE="${GROUPS_MADE-} $GROUP"
}

put() { { echo "$1" >"$2"; } 2>/dev/null; }

quota() { # GROUP MICROSECONDS, of each 100 ms; max: none
    case $2 in
    max) put -1 "$1/cpu.cfs_quota_us" || put "max 100000" "$1/cpu.max" ;;
    *) put "$2" "$1/cpu.cfs_quota_us" || put "$2 100000" "$1/cpu.max" ;;
    esac
}

freeze() { put FROZEN "$1/freezer.state" || put 1 "$1/cgroup.freeze"; }
thaw() { put THAWED "$1/freezer.state" || put 0 "$1/cgroup.freeze"; }

groups_end() {
    for made in ${GROUPS_MADE-}; do
        thaw "$made"
        quota "$made" max
        while read -r process; do
            kill -KILL "$process" 2>/dev/null
        done <"$made/cgroup.procs"
        for _ in $(seq 100); do
            rmdir "$made" 2>/dev/null && break
            sleep 0.1
        done
    done
}
# shellcheck disable=SC2034 # of cli.sh
CLEANUP=groups_end
trap 'exit 1' HUP
