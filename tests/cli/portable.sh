#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The package of packaging/portable.sh needs only a shell: it runs in its own root folder.
. "$(dirname "$0")/cli.sh"

BUILD=${IOBENCH%/*}

# bare COMMAND...: in the folder `root` as the whole file system, with /proc.
bare() {
    unshare --mount ${other_user:+"$other_user"} sh -c \
        'mount --rbind /proc root/proc && exec chroot root "$@"' sh "$@"
}

mkdir -p root/bin root/proc root/store
cp /bin/sh root/bin/sh
ldd /bin/sh | sed -n 's/^[^/]*\(\/[^ ]*\).*/\1/p' | while read -r path; do
    mkdir -p "root/${path%/*}"
    cp -L "$path" "root/$path"
done
other_user=
[ "$(id -u)" = 0 ] || other_user=--map-root-user
bare /bin/sh -c : 2>/dev/null || skip "no root folder of its own can be had here"

modules=
for module in archive cpu cuda mpi; do
    [ ! -f "$BUILD/iobench-$module.so" ] || modules="$modules $BUILD/iobench-$module.so"
done
# shellcheck disable=SC2086 # words
expect 0 sh "$SRCDIR/packaging/portable.sh" portable "$IOBENCH" "$BUILD/cachectl/cachectl" $modules \
    "$SRCDIR/README.md"
says "portable.tar.gz"
tar -C root -xzf portable.tar.gz

# ---- the program, by name and through a link ----
expect 0 bare /portable/iobench --version
says "iobench 0"
expect 0 bare /portable/cachectl --help
expect 0 bare /portable/iobench pack synthetic:count=20,classes=3,mean=4k /store/set --format recordio
expect 0 bare /portable/iobench --data /store/set --batch-size 10 --runs 1 --no-calibrate
says "samples/s"
expect 0 bare /portable/iobench train --network lenet --size 32 --classes 3 --lr 0.001 --epochs 1 \
    --data /store/set --batch-size 10 --memory 16m
says ": valid, "

# ---- one process is a job by itself, however started; several need their MPI, and report that ----
started() { # COUNT: as one of COUNT ranks of mpirun
    bare /bin/sh -c "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=$1 \
        /portable/iobench --data /store/set --batch-size 10 --runs 1 --no-calibrate"
}
expect 0 started 1
if built_with MPI && grep -q '^#define MPI_COMPONENTS "/' "$CONFIG"; then
    expect 1 started 2
    says "install that version" "OPAL_PREFIX"
    ! printf '%s\n' "${out-}" | grep "MPI_" || die "it used MPI all the same:"
fi
ln -s root/portable/iobench link
expect 0 ./link --version
# ---- a module is found, and reports what is missing ----
if [ -f "$BUILD/iobench-cuda.so" ]; then
    expect 0 bare /portable/iobench list backend
    says "unavailable here: iobench-cuda.so cannot be loaded: libcudnn.so.9"
    mkdir -p root/usr/local/nvidia/lib64 # a driver, as in containers
    cp root/portable/lib/libjansson.so* root/usr/local/nvidia/lib64/libcuda.so.1
    expect 0 bare /bin/sh -c 'LD_DEBUG=files exec /portable/iobench list backend'
    says "calling init: /usr/local/nvidia/lib64/libcuda.so.1"
fi
# ---- no library of the machine is used: without its own library it does not start ----
mv root/portable/lib/libjansson.so* root/store
expect 127 bare /portable/iobench --version
# ---- except folders that the user names, as some machines do for their driver ----
expect 0 bare /bin/sh -c 'LD_LIBRARY_PATH=/store exec /portable/iobench --version'
