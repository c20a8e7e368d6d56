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
shift
[ $# -gt 0 ] || set -- nodes fabric
BUDGET=${BUDGET:-60} # seconds of each

truncate -s 640M disk.img
mke2fs -q -F -t ext4 disk.img
boot_server
nodes="node1 node2 node3 node4"
for node in $nodes; do uml_guest "$node" 1024M; done
# shellcheck disable=SC2086 # a list
await $nodes
for node in $nodes; do
    must "$node" ". $BED/guest.sh; mount_nfs $(address_of server) /mnt/nfs"
done
# What is special about this network goes into the environment, so that the pages show usual commands.
hosts() {
    for node in $nodes; do echo "$(address_of "$node") slots=1"; done
}
must node1 "echo '$(hosts)' >/run/hosts"
settings="OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=$AGENT
    OMPI_MCA_oob_tcp_if_include=$BED_NET.0/24 OMPI_MCA_btl_tcp_if_include=$BED_NET.0/24 OMPI_MCA_btl=self,tcp
    OMPI_MCA_pml=ob1 OMPI_MCA_rmaps_base_mapping_policy=node OMPI_MCA_mpi_yield_when_idle=1"
for name; do
    must node1 "cd /run; env $(echo "$settings" | tr -s ' \n' ' ') $IOBENCH study $name --budget $BUDGET \
        --sets /mnt/nfs/sets -o $name --launch 'mpirun -n {ranks} --hostfile hosts'"
    cat must
    on node1 "cat /run/$name/page.md" | sed "s/(picture\.svg)/(study-$name.svg)/" >"$OUT/study-$name.md"
    on node1 "cat /run/$name/picture.svg" >"$OUT/study-$name.svg" || die "no picture of $name"
done
