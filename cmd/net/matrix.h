/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix: what every rank sends to every other, and which node, link or direction stands out.
 *
 * Rules, for bandwidths. Links within a node and between nodes are never compared with each other;
 * on a single node each rank counts as a node. A value is slow if it is below 3/4 of the median of
 * its peers and below that median by more than 5 times the scaled median absolute deviation (MAD x
 * 1.4826, the standard deviation of normal data), which one slow link cannot move.
 * - A node is slow at sending (receiving) if even its fastest link out (in) is slow among those of
 *   the nodes; needs 3 nodes. Its links are not listed again.
 * - A link is slow among the others.
 * - A pair is asymmetric if one direction has less than 3/4 of the other, and the ratio is as far
 *   from those of the other pairs; with fewer than 3 pairs, less than half.
 *
 * Pure. Any thread.
 */
#ifndef IOBENCH_CMD_NET_MATRIX_H
#define IOBENCH_CMD_NET_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
