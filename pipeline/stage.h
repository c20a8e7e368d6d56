/* SPDX-License-Identifier: Apache-2.0
 *
 * stage: the decode workers. Each takes fetches from the loader, parses the record, decodes the
 * image into its row of a batch, and returns the memory. Workers share nothing but the queues.
 */
#ifndef IOBENCH_PIPELINE_STAGE_H
#define IOBENCH_PIPELINE_STAGE_H

#include "base/plugin.h"
#include "decode/decoder.h"
#include "formats/format.h"
#include "pipeline/batcher.h"
#include "pipeline/findings.h"
#include "pipeline/loader.h"

#include <stdbool.h>

struct stage;

struct stage_site {
    const struct catalog *catalog;
    const struct plugin_choice *format, *decoder;
    struct loader *loader;
    struct batcher *batcher;
    uint32_t workers;
    uint32_t batch_size;
    uint64_t seed;
    bool skip_errors; /* a bad record becomes an empty row with label -1, and is counted */
    bool check_crc;
    bool digest;         /* sum up (label, image bytes) of every sample */
    struct meter *meter; /* what the workers do is counted there; NULL: nowhere */
};

/* Of all workers together, since the last stage_start(). Samples and bytes are counted batch by
 * batch (struct batch_account). */
struct stage_figures {
    struct decode_figures decode;
    struct findings findings;
};

struct stage *stage_create(const struct stage_site *site); /* NULL with a reason */
void stage_destroy(struct stage *stage);
/* Bytes of a row of this decoder. 0 or a negative errno. */
int stage_row_bytes(const struct plugin_choice *decoder, size_t *row_bytes);

int stage_start(struct stage *stage, bool no_bytes); /* no_bytes: records come without bytes */
/* The first failure of a worker, or 0. */
int stage_join(struct stage *stage);

/* After stage_join(). */
void stage_figures(struct stage *stage, struct stage_figures *figures);

#endif
