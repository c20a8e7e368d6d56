/* SPDX-License-Identifier: Apache-2.0
 *
 * key_set: which keys a shard has already, by hashes of 64 bits: 16 bytes a key at most. One thread
 * per set. */
#ifndef IOBENCH_FORMATS_KEY_SET_H
#define IOBENCH_FORMATS_KEY_SET_H

#include <stdbool.h>
#include <stdint.h>

struct key_set {
    uint64_t *slots; /* hashes; 0: free */
    uint64_t count, capacity;
};

/* Add a key to a set that begins as zeroes. Returns 1 if it is new, 0 if the set has it or, rarely,
 * another of the same hash, or -ENOMEM with a reason. */
int key_set_add(struct key_set *set, const char *key);
bool key_set_has(const struct key_set *set, const char *key);
void key_set_release(struct key_set *set);

#endif
