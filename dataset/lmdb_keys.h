/* SPDX-License-Identifier: Apache-2.0
 *
 * lmdb_keys: which entries of an LMDB are samples. Pure.
 */
#ifndef IOBENCH_DATASET_LMDB_KEYS_H
#define IOBENCH_DATASET_LMDB_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Return false for the keys that some tools store beside the samples. */
static inline bool lmdb_key_is_sample(const void *key, size_t bytes)
{
    return !(bytes == 7 && memcmp(key, "__len__", 7) == 0) &&
           !(bytes == 8 && memcmp(key, "__keys__", 8) == 0);
}

#endif
