/* SPDX-License-Identifier: Apache-2.0
 *
 * idlest: finds the connection with the fewest reads in constant time, for any number of
 * connections and reads. One thread. */
#ifndef IOBENCH_READERS_IDLEST_H
#define IOBENCH_READERS_IDLEST_H

#include <stdint.h>

struct idlest {
    struct idlest_member {
        uint32_t reads;
        uint32_t previous, next; /* with as many reads: index, or UINT32_MAX */
    } * members;
    uint32_t *first; /* by number of reads: a member that has as many, or UINT32_MAX */
    uint32_t fewest;
};

/* At most reads_most at a time on all members together. Returns 0, or -ENOMEM with a reason. */
int idlest_create(struct idlest *idlest, uint32_t members, uint32_t reads_most);
void idlest_destroy(struct idlest *idlest); /* valid after a failed or missing create */

/* Return the member with the fewest reads, which has one more now. Of several the one that ended a
 * read last, so that at a low depth few connections open files. */
uint32_t idlest_take(struct idlest *idlest);
void idlest_give(struct idlest *idlest, uint32_t member); /* a read of the member has ended */

#endif
