#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A record too large for any read is refused while indexing, with file, offset, size and limit. All
# files are sparse.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"

mkdir -p files/class tar
truncate -s 1200M files/class/b.jpg || skip "no sparse files in $T"
python3 - <<'P'
import struct, tarfile
def member(file, name, size):
    info = tarfile.TarInfo(name)
    info.size = size
    file.write(info.tobuf(tarfile.GNU_FORMAT))
    file.seek((size + 511) // 512 * 512, 1)
with open("tar/a.tar", "wb") as file:
    member(file, "a.jpg", 1000)
    member(file, "b.jpg", 3 << 30)
    file.write(bytes(1024))
P
for command in "run --decode none -n 1" inspect verify; do
    for set in files tar; do
        # shellcheck disable=SC2086 # words
        case $command in
        run*) try 1 $command -d $set -f $set ;;
        *) try 1 $command $set -f $set ;;
        esac
        cat "$tmp/err" >>"$tmp/out"
        out "is too large: iobench reads records up to 1 GiB less 128 KiB"
        case $set in
        files) out "b.jpg: offset 0: a record of 1258291200 bytes" ;;
        tar) out "a.tar: offset 1536: a record of 3221225984 bytes" ;;
        esac
    done
done
finish
