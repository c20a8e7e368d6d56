#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches and unpacks the guests' kernels, into $IOBENCH_GUESTS; installs nothing. 110 MB are
# downloaded from Debian, 500 MB unpacked.
set -eu
FOLDER=${IOBENCH_GUESTS:-/var/cache/iobench-guests}
mkdir -p "$FOLDER"
cd "$FOLDER"

fetch() { # PACKAGE FOLDER
    [ ! -d "$2" ] || return 0
    echo "fetching $1 into $FOLDER/$2"
    [ -n "$(find . -maxdepth 1 -name "$1_*.deb")" ] || apt-get -q download "$1"
    dpkg-deb -x "$(find . -maxdepth 1 -name "$1_*.deb" | head -n 1)" "$2.new"
    mkdir -p "$2.new/lib"
    [ ! -d "$2.new/usr/lib/uml" ] || ln -s ../usr/lib/uml/modules "$2.new/lib/modules"
    for modules in "$2.new"/lib/modules/*; do
        depmod -b "$2.new" "${modules##*/}"
    done
    mv "$2.new" "$2"
    rm -f "$1"_*.deb
}

fetch user-mode-linux uml
fetch "$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ { print $2; exit }')" linux
