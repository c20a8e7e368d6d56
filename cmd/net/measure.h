/* SPDX-License-Identifier: Apache-2.0
 *
 * measure: what `iobench net` measures: messages between two ranks by size, all pairs, collectives
 * by size; and all-reduces at a trainer's rhythm. The warm-up is not measured, and finds how many
 * operations fill a repeat. Between the repeats, off the clock, the data are rewritten and what
 * arrived is verified. Main thread only.
 */
#ifndef IOBENCH_CMD_NET_MEASURE_H
#define IOBENCH_CMD_NET_MEASURE_H

#include "base/stats.h"
#include "cmd/net/transport.h"

/* ---- what every rank sends to every other, and what stands out; pure, any thread ----
 *
 * Rules, for bandwidths. Links within a node and between nodes are never compared with each other;
 * on a single node each rank counts as a node. A value is slow if it is below 3/4 of the median of
 * its peers and below that median by more than 5 times the scaled median absolute deviation (MAD x
 * 1.4826, the standard deviation of normal data), which one slow link cannot move.
 * - A node is slow at sending (receiving) if even its fastest link out (in) is slow among those of
 *   the nodes; needs 3 nodes. Its links are not listed again.
 * - A link is slow among the others.
 * - A pair is asymmetric if one direction has less than 3/4 of the other, and the ratio is as far
 *   from those of the other pairs; with fewer than 3 pairs, less than half. */

struct matrix {
    uint32_t ranks, nodes;
    uint32_t *node_of;   /* of each rank */
    double *bytes_per_s; /* [from * ranks + to]; NAN on the diagonal and where not measured */
    double *latency_s;   /* the same, half a round trip */
};

enum suspect_kind { SUSPECT_SENDER, SUSPECT_RECEIVER, SUSPECT_LINK, SUSPECT_ASYMMETRY };

struct suspect {
    enum suspect_kind kind;
    uint32_t from, to; /* ranks; of a node: its number (on a single node a rank), twice */
    double bytes_per_s;
    double typical; /* median of its peers; of an asymmetry: the other direction */
};

/* Find at most `most` suspects, nodes first. Returns their number, or -ENOMEM with a reason. */
int matrix_judge(const struct matrix *matrix, struct suspect *suspects, int most);

/* Set the median of the links between nodes (is_within: inside of nodes); NAN if there are none. On
 * a single node all links are between nodes. Returns 0 or -ENOMEM with a reason. */
int matrix_median(const struct matrix *matrix, const double *values, bool is_within,
                  double *middle);

/* ---- a survey; all ranks call, rank 0 gets everything ---- */

enum pair_kind {
    PAIR_LATENCY, /* half of a round trip */
    PAIR_FORTH,   /* from the leading rank to the other */
    PAIR_BACK,
    PAIR_BOTH, /* at the same time; the sum of both directions */
    PAIR_KINDS,
};

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
    uint64_t damage; /* flip a bit before this verification, from 1: shows that it is caught */
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
    uint32_t other; /* rank that rank 0 exchanges messages with: on another node if there is one */
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

/* ---- all-reduces as data parallel training makes them ----
 *
 * A step computes for a given time; in the last two thirds of it, the backward pass, its gradients
 * become final a bucket at a time, and each bucket is added up over the ranks while the next one is
 * computed. The step ends with the later of computing and the last bucket. Nothing is computed: the
 * time passes. */

enum { RHYTHM_BUCKETS = 256 };

struct rhythm {
    struct transport *transport;
    uint64_t buckets[RHYTHM_BUCKETS]; /* bytes, in the order in which they become final; a multiple
                                         of 4 for each rank */
    uint32_t count;
    uint64_t bytes;   /* of all buckets */
    uint64_t step_ns; /* of computing */
    uint64_t damage;  /* flip a bit before this run's comparison, from 1: shows that it is caught */
    uint64_t turn;    /* runs so far: the data differ from one run to the next */
};

/* Figures of the slowest rank. */
struct rhythm_figures {
    uint64_t steps;
    double time_s; /* of all steps */
    double late_s; /* in which all-reduces went on after computing had ended */
    double busy_s; /* in which an all-reduce was under way */
};

/* Add a bucket of about this many bytes: whole words for each rank. Returns 0, or -EINVAL with a
 * reason. */
int rhythm_add(struct rhythm *rhythm, uint64_t bytes, uint32_t ranks);
/* Collective, with an arena of twice rhythm->bytes: make steps until ended() is true on all ranks,
 * at least one; then compare the sums of the last step with what was sent. Returns 0, -EBADMSG for
 * wrong data, or as transport_wait(). */
int rhythm_run(struct rhythm *rhythm, bool (*ended)(void *context), void *context,
               struct rhythm_figures *figures);

/* ---- data whose place, sender and time can be recognised, so that a lost, swapped, stale or
 * changed word is found; off the clock, any thread ---- */

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
