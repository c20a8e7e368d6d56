/* SPDX-License-Identifier: Apache-2.0
 *
 * A libnfs made here, for the reader nfs: it answers at once, over a pair of sockets for each
 * connection, with data that tell their place. Linked before the real one. Whatever it does not
 * expect ends the program. */
#ifndef IOBENCH_TESTS_NFS_STAND_IN_H
#define IOBENCH_TESTS_NFS_STAND_IN_H

#include "dataset/libnfs.h"

#include <stdint.h>

/* Of each file; reads of as many bytes; and reads that a connection holds. */
enum { NFS_FILE_BYTES = 1 << 20, NFS_BYTES = 512, NFS_CALLS_MOST = 64 };

struct nfs_stand_in {
    uint64_t polled;     /* calls that a turn makes for a connection it looks at */
    uint32_t contexts;   /* mounted and not destroyed */
    uint32_t sends_most; /* calls that fit into a socket; 0: all */
    struct nfs_context *cut;
    struct nfs_context *latest;
    uint32_t readers;   /* contexts that have served reads */
    uint32_t mtime_s;   /* of all files */
    const char *opened; /* by the store: the path below the mount */
};
extern struct nfs_stand_in nfs_stand_in;

#endif
