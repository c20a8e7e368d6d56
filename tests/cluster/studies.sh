#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Studies on guests, as a user of a cluster runs them: up to four nodes with kernels of their own, which
# read from a kernel NFS server.
#
#   sudo ./bootstrap experiment [FOLDER]                                  all experiments
#   cd build && sudo srcdir=.. ../tests/cluster/studies.sh FOLDER [nodes fabric]
#
# Leaves page and picture of each in FOLDER.
OUT=$(mkdir -p "${1:?the folder for results}" && cd "$1" && pwd) || exit
# shellcheck source=tests/cluster/bed/uml.sh
. "$(dirname "$0")/bed/uml.sh"
# shellcheck source=tests/cluster/bed/sets.sh
. "$BED/sets.sh"
command -v jq >/dev/null || skip "jq is not installed"
shift
[ $# -gt 0 ] || set -- nodes fabric
BUDGET=${BUDGET:-60} # seconds of each

truncate -s 640M disk.img
mke2fs -q -F -t ext4 disk.img
boot_server
nodes="node1 node2 node3 node4"
hosts=''
for node in $nodes; do
    uml_guest "$node" 1024M
    hosts=$hosts,$(address_of "$node"):1
done
# shellcheck disable=SC2086 # a list
await $nodes
for node in $nodes; do
    must "$node" ". $BED/guest.sh; mount_nfs $(address_of server) /mnt/nfs"
done
for name; do
    must node1 "$IOBENCH study $name --budget $BUDGET --sets /mnt/nfs/sets -o /run/$name --launch \
        'mpirun -n {ranks} --allow-run-as-root --host ${hosts#,} --map-by node --bind-to none \
        --mca mpi_yield_when_idle 1 --mca plm_rsh_agent $AGENT --mca oob_tcp_if_include $BED_NET.0/24 $BED_TCP'"
    cat must
    on node1 "cat /run/$name/page.md" | sed "s/(picture\.svg)/(study-$name.svg)/" >"$OUT/study-$name.md"
    on node1 "cat /run/$name/picture.svg" >"$OUT/study-$name.svg" || die "no picture of $name"
done
