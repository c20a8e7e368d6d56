/* SPDX-License-Identifier: Apache-2.0
 * Three ranks on two nodes. They run one by one: first each report is kept, then every rank gets
 * all of them. */
#ifndef IOBENCH_TESTS_UNIT_WIRE_H
#define IOBENCH_TESTS_UNIT_WIRE_H

#include "tests/unit/unit.h"

#include "ranks/plugins.h"

enum { RANKS = 3, REPORT_MOST = 1 << 20 };

/* Ranks 0 and 1 on node 0, rank 2 on node 1. */
static struct wire {
    uint8_t report[RANKS][REPORT_MOST]; /* the last of each */
    uint64_t bytes[RANKS];
    bool is_kept; /* across all ranks */
    uint32_t rank;
} wire;

static int fake_gather(void *state, const void *mine, uint64_t bytes, void *all)
{
    const bool is_code = bytes == sizeof(int); /* of ranks_meet(): all succeed alike */

    assert_true(bytes <= REPORT_MOST);
    if (!is_code) {
        memcpy(wire.report[wire.rank], mine, bytes);
        wire.bytes[wire.rank] = bytes;
    }
    for (uint32_t i = 0; i < RANKS; i++)
        memcpy((uint8_t *)all + i * bytes,
               wire.is_kept && !is_code && wire.bytes[i] == bytes ? wire.report[i]
                                                                  : (const uint8_t *)mine,
               bytes);
    return 0;
}

static inline struct ranks as_rank(uint32_t rank)
{
    static struct ranks_ops fake;

    fake = ranks_none; /* but for what others send */
    fake.gather = fake_gather;
    wire.rank = rank;
    return (struct ranks){.ops = &fake,
                          .place = {.rank = rank,
                                    .ranks = RANKS,
                                    .local_rank = rank == 1,
                                    .local_ranks = rank == 2 ? 1 : 2,
                                    .node = rank == 2,
                                    .nodes = 2,
                                    .host = {rank == 2 ? 'b' : 'a'}}};
}

#endif
