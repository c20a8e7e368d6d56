#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cross.sh FOLDER [OPTION OF configure...]: build for AArch64 with all libraries into FOLDER/build, by Debian's cross compiler
# against Debian 12's packages for arm64. mmdebstrap unpacks those into FOLDER/root, where they stay for the next time;
# nothing of them runs, and no root is needed. Needs mmdebstrap, gcc-aarch64-linux-gnu, pkg-config and qemu-user-static.
# Environment: MIRROR.
#
#     packaging/cross.sh /var/tmp/arm --enable-werror
#     qemu-aarch64-static -L /var/tmp/arm/root /var/tmp/arm/build/iobench doctor
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
root=$folder/root
source=$(cd "$(dirname "$0")/.." && pwd)
packages() {
    sed -n '/^Build-Depends:/,/^Standards/p' "$source/packaging/debian/control" | grep -oE 'z?lib[a-z0-9+-]*-dev' | grep -v libjs
    echo libcmocka-dev libgcc-12-dev libstdc++-12-dev
}

[ -e "$root/made" ] || {
    mmdebstrap --architectures=arm64 --variant=extract --include="$(packages | tr '\n ' ,,)" \
        bookworm "$folder/root.tar" "${MIRROR:-http://deb.debian.org/debian}"
    mkdir -p "$root"
    tar -xf "$folder/root.tar" -C "$root" --exclude='./dev/*'
    rm "$folder/root.tar"
    # What scripts of the packages would do: links within the root, and the MPI that mpi-c means.
    (cd "$root" && find . -type l -lname '/*' | while read -r link; do
        ln -sfn "$(realpath -m --relative-to="${link%/*}" ".$(readlink "$link")")" "$link"
    done)
    ln -sf ompi-c.pc "$root/usr/lib/aarch64-linux-gnu/pkgconfig/mpi-c.pc"
    touch "$root/made"
}
mkdir -p "$folder/build"
cd "$folder/build"
export PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig"
"$source/configure" -q --host=aarch64-linux-gnu --without-cuda CC="${CC:-aarch64-linux-gnu-gcc} --sysroot=$root" \
    PKG_CONFIG=pkg-config EMULATOR="qemu-aarch64-static -L $root" "$@"
exec make -j"$(nproc)"
