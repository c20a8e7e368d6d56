/* SPDX-License-Identifier: Apache-2.0
 *
 * pattern: data whose place, sender and time can be recognised, so that a lost, swapped, stale or
 * changed word is found. Off the clock. Any thread.
 */
#ifndef IOBENCH_CMD_NET_PATTERN_H
#define IOBENCH_CMD_NET_PATTERN_H

#include "cmd/net/transport.h"

/* What a rank sends in one turn. */
struct pattern {
    uint32_t rank;
    uint64_t turn; /* of measuring; the same on all ranks */
};

void pattern_fill(const struct pattern *pattern, unsigned char *data, uint64_t bytes);
/* Compare data that was bytes from `offset` on. Returns 0, or -EBADMSG with a reason that names the
 * sender and the first wrong byte. */
int pattern_check(const struct pattern *pattern, uint64_t offset, const unsigned char *data,
                  uint64_t bytes);

/* The same for floats whose sum over all ranks is exact. bytes: a multiple of 4. */
void pattern_fill_floats(const struct pattern *pattern, unsigned char *data, uint64_t bytes);
int pattern_check_sum(uint64_t turn, uint32_t ranks, uint64_t offset, const unsigned char *data,
                      uint64_t bytes);

#endif
