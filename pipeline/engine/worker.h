/* SPDX-License-Identifier: Apache-2.0
 *
 * worker: what turns a fetched record into a row of a batch: parse, decode, note what is wrong with
 * it. One for each decode thread; knows no thread, loader or trainer.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_WORKER_H
#define IOBENCH_PIPELINE_ENGINE_WORKER_H

#include "decode/decoder.h"
#include "formats/format.h"
#include "pipeline/engine/batches.h"
#include "pipeline/engine/config.h"
#include "pipeline/loader/fetch.h"
#include "pipeline/result/findings.h"

#include <stdbool.h>

enum { WORKER_GROUP_MAX = 64 }; /* records begun and not finished */

/* A record whose row the decoder has yet to write. */
struct unfinished {
    const struct fetch *fetch;
    struct sample sample;
    struct batch_account account; /* if the image is good */
    bool lost;                    /* its bytes were, while they were read */
    uint64_t begun_ns;            /* for the trace */
};

struct worker {
    const struct engine_config *config;
    struct batches *batches;
    bool parses; /* records have bytes, and a stage needs them parsed */
    struct decoder decoder;
    bool decoder_open;
    struct format_scratch scratch;
    struct unfinished unfinished[WORKER_GROUP_MAX];
    uint32_t unfinished_count;
    uint8_t hint[DECODE_HINT_MAX]; /* of the current record, made within the fault guard */
    size_t hint_bytes;
    bool has_hint;
    uint64_t hints_ns;        /* in the current group */
    struct findings findings; /* of this run */
    struct trace_ring *trace; /* of its thread; NULL: none */
    uint64_t begun_ns;        /* the current record, for the trace */
};

/* Open the decoder. Returns 0 or a negative errno with a reason; call worker_close() either way. */
int worker_open(struct worker *worker, const struct engine_config *config, struct batches *batches);
void worker_close(struct worker *worker);

/* Decode one record into its row, or begin to. Returns 0, or -errno to stop the run. */
int worker_begin(struct worker *worker, const struct fetch *fetch, struct batch_account *account);
/* Finish what was begun. Returns 0, or the first failure that is to stop the run, with its reason.
 */
int worker_finish(struct worker *worker, struct batch_account *account);
/* The same after a failure, if code is one, which remains. */
int worker_end(struct worker *worker, int code, struct batch_account *account);
/* Trace a record that is decoded since from_ns. */
void worker_trace(struct worker *worker, const struct fetch *fetch, uint64_t from_ns);
/* Account for a record that is decoded, or is not. Returns 0, or -errno to stop the run. */
int worker_settle(struct worker *worker, const struct fetch *fetch, const struct sample *sample,
                  int code, struct batch_account *account);

#endif
