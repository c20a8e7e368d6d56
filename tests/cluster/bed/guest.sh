# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Commands run inside a guest; sourced there.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

serve_nfs() { # FOLDER: as the root of NFS 4.2, also over RDMA if the kernel supports it
    modprobe -d "$BED_MODULES" nfsd || return
    mkdir -p /var/lib/nfs/rpc_pipefs /var/lib/nfs/v4recovery /run/rpcbind
    mount -t nfsd nfsd /proc/fs/nfsd || return
    touch /var/lib/nfs/etab /var/lib/nfs/rmtab
    # No earlier client has files to reclaim; without this the first open waits for 90 s.
    echo 10 >/proc/fs/nfsd/nfsv4leasetime
    echo 10 >/proc/fs/nfsd/nfsv4gracetime
    exportfs -o rw,async,no_root_squash,no_subtree_check,insecure,fsid=0 "*:$1" || return
    rpc.nfsd -N 3 -V 4.2 -U 8 || return
    rpc.mountd -N 3 || return
    echo Y >/proc/fs/nfsd/v4_end_grace
    if modprobe -d "$BED_MODULES" rpcrdma 2>/dev/null; then
        echo rdma 20049 >/proc/fs/nfsd/portlist
    fi
}

mount_nfs() { # SERVER POINT [OPTIONS]
    modprobe -d "$BED_MODULES" nfsv4 || return
    mkdir -p "$2"
    mount -t nfs4 -o "vers=4.2${3:+,$3}" "$1:/" "$2"
}

make_rxe() { # soft-RoCE on the Ethernet interface
    for module in crc32_generic rdma_rxe ib_uverbs; do modprobe -d "$BED_MODULES" $module || return; done
    rdma link add rxe0 type rxe netdev eth0
}
