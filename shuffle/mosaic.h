/* SPDX-License-Identifier: Apache-2.0
 *
 * mosaic: common parts of the MosaicML streaming strategies. For shuffle/ only.
 */
#ifndef IOBENCH_SHUFFLE_MOSAIC_H
#define IOBENCH_SHUFFLE_MOSAIC_H

#include <stdint.h>

/* Return the first position of canonical node `node` of `nodes`, of total positions. */
uint64_t mosaic_node_start(uint64_t total, uint64_t node, uint32_t nodes);

/* Return the position of global draw `draw`: draws rotate over the nodes, each record once.
 * draw < total, 1 <= nodes <= total. */
uint64_t mosaic_weave(uint64_t draw, uint64_t total, uint32_t nodes);

#endif
