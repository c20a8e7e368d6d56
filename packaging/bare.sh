#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bare.sh FOLDER SUITE COMMAND: run COMMAND (of sh) in a copy of this source tree on a bare system of that release, as
# debootstrap leaves it: bookworm, trixie (Debian 12, 13), jammy, noble, resolute (Ubuntu 22.04, 24.04, 26.04). As root,
# with the network, in a mount namespace of its own. FOLDER keeps the system for the next time, with the packages that
# were installed. Environment: MIRROR.
#
#     for suite in bookworm trixie jammy noble resolute; do
#         packaging/bare.sh /var/tmp/$suite $suite './bootstrap check' || echo "fails on $suite"
#     done
set -eu
root=$(mkdir -p "$1" && cd "$1" && pwd) suite=$2 command=$3
case $suite in
jammy | noble | resolute) mirror=http://archive.ubuntu.com/ubuntu parts=main,universe script=/usr/share/debootstrap/scripts/gutsy ;;
*) mirror=http://deb.debian.org/debian parts=main script='' ;;
esac
cd "$(dirname "$0")/.."
[ -e "$root/etc/made" ] || {
    [ -z "$(ls -A "$root")" ] || { echo "bare.sh: $root is in use, and no system that this has made" && exit 1; } >&2
    # shellcheck disable=SC2086 # no script: the one of the suite
    debootstrap --variant=minbase --components=$parts "$suite" "$root" "${MIRROR:-$mirror}" $script \
        >"$root.log" 2>&1 || { tail -n 3 "$root.log" && exit 1; } >&2
    touch "$root/etc/made"
}
cp /etc/resolv.conf "$root/etc/"
rm -rf "$root/root/iobench"
mkdir -p "$root/root/iobench"
if [ -e .git ]; then git archive HEAD; else tar -c .; fi | tar -x -C "$root/root/iobench"

# Its root is a mount, not a chroot: tests make namespaces of their own.
# shellcheck disable=SC2016 # the inner shell expands it
exec unshare -m --propagation private sh -ec '
    mount --bind "$0" "$0"
    for folder in proc sys dev; do mount --rbind "/$folder" "$0/$folder"; done
    mount -t tmpfs run "$0/run"
    cd "$0"
    mkdir -p outside
    pivot_root . outside
    umount -l outside
    cd /root/iobench
    exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        ${CONFIGURE_FLAGS+"CONFIGURE_FLAGS=$CONFIGURE_FLAGS"} sh -c "$1"' "$root" "$command"
