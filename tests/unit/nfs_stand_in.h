/* SPDX-License-Identifier: Apache-2.0
 *
 * A libnfs made here: it answers at once, over a pair of sockets for each connection, for the
 * reader with data that tell their place, for the store from a folder. Linked before the real one.
 * Whatever it does not expect ends the program. */
#ifndef IOBENCH_TESTS_NFS_STAND_IN_H
#define IOBENCH_TESTS_NFS_STAND_IN_H

#include "dataset/store_nfs.h"

#include <stdint.h>

/* Of each file; reads of as many bytes; and reads that a connection holds. */
enum { NFS_FILE_BYTES = 1 << 20, NFS_BYTES = 512, NFS_CALLS_MOST = 64 };

/* What the next calls of a kind meet. */
enum nfs_trouble { TROUBLE_NONE, TROUBLE_STATUS, TROUBLE_LOST, TROUBLE_UNASKED, TROUBLE_SILENCE };

struct nfs_stand_in {
    const char *root;                               /* the folder it serves; NULL: made data */
    void (*told)(const char *call, int64_t status); /* of each call on the folder */
    const char *trouble_kind;
    enum nfs_trouble trouble; /* LOST: done, but the answer is lost */
    int64_t trouble_status;
    unsigned trouble_count;
    uint64_t *clock_ns;  /* passes in silence */
    uint64_t polled;     /* calls that a turn makes for a connection it looks at */
    uint32_t contexts;   /* mounted and not destroyed */
    uint32_t sends_most; /* calls that fit into a socket; 0: all */
    struct nfs_context *cut;
    struct nfs_context *latest;
    uint32_t readers; /* contexts that have served reads */
};
extern struct nfs_stand_in nfs_stand_in;

#endif
