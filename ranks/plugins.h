/* SPDX-License-Identifier: Apache-2.0
 * Members of the ranks family and the words that ranks call to each other; inside this folder only.
 */
#ifndef IOBENCH_RANKS_PLUGINS_H
#define IOBENCH_RANKS_PLUGINS_H

#include "ranks/ranks.h"

extern const struct ranks_ops ranks_mpi;
extern const struct ranks_ops ranks_none;

/* Heartbeats are twice a second. */
#define RANKS_SIGN_NS UINT64_C(500000000)

/* Meaning of a word with a number: the sender aborts everything before the collective check of that
 * number; it has reached the collective of that number; it is alive; it is rank 0, and misses a
 * rank at the collective check of that number. */
enum word_kind { WORD_CALL_OFF, WORD_ARRIVES, WORD_LIVES, WORD_MISSES, WORD_KINDS };

static inline uint64_t word_of(uint64_t number, enum word_kind kind)
{
    return number * WORD_KINDS + kind;
}

#endif
