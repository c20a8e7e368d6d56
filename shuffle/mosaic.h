/* SPDX-License-Identifier: Apache-2.0
 *
 * mosaic: what the orders of MosaicML streaming share. For shuffle/ alone.
 */
#ifndef IOBENCH_SHUFFLE_MOSAIC_H
#define IOBENCH_SHUFFLE_MOSAIC_H

#include <stdint.h>

/* Where canonical node `node` of `nodes` begins in a walk of total positions. */
uint64_t mosaic_node_start(uint64_t total, uint64_t node, uint32_t nodes);

/* Draws take turns among the nodes, each record once: the position in the walk of the draw that
 * is number `draw` over all ranks. draw < total, 1 <= nodes <= total. */
uint64_t mosaic_weave(uint64_t draw, uint64_t total, uint32_t nodes);

#endif
