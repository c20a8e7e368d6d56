#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A disk that is too small: refused with figures before, told with file and offset while.
. "$(dirname "$0")/cli.sh"

mkdir small
mount -t tmpfs -o size=4m tmpfs small 2>/dev/null || skip "a small file system cannot be mounted here"
# shellcheck disable=SC2034 # cli.sh runs it
CLEANUP="umount $T/small"

expect 1 "$IOBENCH" pack synthetic:count=500,mean=100k small/set
says "needs about" "4.00 MiB are free"
[ -z "$(ls small)" ] || die "something was written: $(ls -a small)"

# Small images take more room as files than the guess says: the disk is full in the middle.
mkdir idx
{
    printf '\0\0\010\003\0\0\007\320\0\0\0\010\0\0\0\010'
    head -c 128000 /dev/urandom
} >idx/a-images-idx3-ubyte
{
    printf '\0\0\010\001\0\0\007\320'
    head -c 2000 /dev/zero
} >idx/a-labels-idx1-ubyte
expect 1 "$IOBENCH" pack idx small/set --format files
says "No space left on device" "small/set"
[ -z "$(ls -A small)" ] || die "what could not be finished is left: $(find small)"
mount -o remount,size=40m small
expect 0 "$IOBENCH" pack idx small/set --format files
says "2,000 samples"
expect 0 "$IOBENCH" verify small/set
expect 0 "$IOBENCH" pack idx other
same_digest other small/set

# What cannot be read or made, for somebody who is not root.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    as="setpriv --reuid 65534 --regid 65534 --clear-groups"
    chmod 755 "$T"
    if $as "$IOBENCH" --version >/dev/null 2>&1; then
        mkdir closed open
        chmod 700 closed
        chmod 777 open
        # shellcheck disable=SC2086 # words
        expect 1 $as "$IOBENCH" pack synthetic:count=5,mean=8k closed/set
        says "closed" "Permission denied"
        chmod 700 other
        # shellcheck disable=SC2086
        expect 1 $as "$IOBENCH" pack other open/set
        says "other" "Permission denied"
        # shellcheck disable=SC2086
        expect 1 $as "$IOBENCH" verify other
        says "Permission denied"
    fi
fi
exit 0
