/* SPDX-License-Identifier: Apache-2.0
 *
 * survey: what `iobench net` measures: messages between two ranks by size, all pairs, collectives
 * by size. All ranks call; rank 0 gets everything. Main thread only.
 */
#ifndef IOBENCH_CMD_NET_SURVEY_H
#define IOBENCH_CMD_NET_SURVEY_H

#include "cmd/net/matrix.h"
#include "cmd/net/measure.h"

enum survey_pairs {
    SURVEY_PAIRS_AUTO,   /* one by one up to SURVEY_ALONE_RANKS */
    SURVEY_PAIRS_ALONE,  /* one at a time: each has the fabric for itself */
    SURVEY_PAIRS_ROUNDS, /* disjoint pairs at once: as many rounds as ranks */
    SURVEY_PAIRS_NONE,
};

enum { SURVEY_ALONE_RANKS = 8, SURVEY_SIZES = 64 };

struct survey_settings {
    uint64_t from_bytes, to_bytes, factor;
    uint64_t pair_bytes; /* of messages between all pairs */
    int pairs;           /* enum survey_pairs */
    bool has_sizes, has_collectives;
    bool verify;
    uint64_t repeats, repeat_ns;
    uint64_t damage; /* struct measure */
    uint64_t seed;
    /* On rank 0, from the first step on; may be NULL. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
};

struct survey_size {
    uint64_t bytes;
    struct stats_summary pair[PAIR_KINDS];
};

struct survey_collective {
    uint64_t bytes;
    struct stats_summary seconds[COLLECTIVES];
};

struct fabric_survey {
    uint32_t other; /* what rank 0 exchanges messages with: on another node if there is one */
    uint32_t size_count;
    struct survey_size sizes[SURVEY_SIZES];
    struct survey_collective collectives[SURVEY_SIZES];
    bool has_sizes, has_collectives, has_pairs;
    bool is_alone; /* pairs were measured one at a time */
    struct matrix matrix;
    uint64_t verified_bytes; /* on all ranks */
    char transport[TRANSPORT_TEXT_BYTES];
};

/* Collective: open the chosen transport and measure. Returns 0 or a negative errno; call
 * survey_destroy() in either case. */
int survey_run(const struct survey_settings *settings, struct transport *transport,
               struct ranks *ranks, struct fabric_survey *survey);
void survey_destroy(struct fabric_survey *survey);

/* The partner of a rank in a round of [0, survey_rounds()): each pair of ranks meets once. Returns
 * `rank` itself if it has none. */
uint32_t survey_rounds(uint32_t ranks);
uint32_t survey_partner(uint32_t ranks, uint32_t round, uint32_t rank);

#endif
