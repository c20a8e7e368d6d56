#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches and unpacks the guests' kernels, into $IOBENCH_GUESTS; installs nothing. 110 MB are
# downloaded from Debian, 500 MB unpacked. Arguments are other kernels' packages, as
# linux-image-5.10.0-46-amd64_VERSION.deb, of which each becomes a folder called by its file up to the underscore.
set -eu
for deb; do # absolute, before the folder changes
    shift
    set -- "$@" "$(realpath "$deb")"
done
FOLDER=${IOBENCH_GUESTS:-/var/cache/iobench-guests}
mkdir -p "$FOLDER"
cd "$FOLDER"

unpack() { # PACKAGE'S FILE, FOLDER
    rm -rf "$2.new"
    dpkg-deb -x "$1" "$2.new"
    mkdir -p "$2.new/lib"
    [ ! -d "$2.new/usr/lib/uml" ] || ln -s ../usr/lib/uml/modules "$2.new/lib/modules"
    for modules in "$2.new"/lib/modules/*; do
        depmod -b "$2.new" "${modules##*/}"
    done
    mv "$2.new" "$2"
}

fetch() { # PACKAGE FOLDER
    [ ! -d "$2" ] || return 0
    echo "fetching $1 into $FOLDER/$2"
    [ -n "$(find . -maxdepth 1 -name "$1_*.deb")" ] || apt-get -q download "$1"
    unpack "$(find . -maxdepth 1 -name "$1_*.deb" | head -n 1)" "$2"
    rm -f "$1"_*.deb
}

fetch user-mode-linux uml
fetch "$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ { print $2; exit }')" linux
for deb; do
    name=$(basename "$deb")
    [ -d "${name%%_*}" ] || unpack "$deb" "${name%%_*}"
done
