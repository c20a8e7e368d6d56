/* SPDX-License-Identifier: Apache-2.0
 *
 * decoders: the decode threads. Each takes fetches from the loader, lets its worker make rows of
 * batches of them and returns the memory. They share only queues. What needs no image is counted
 * by the loader's thread instead.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_DECODERS_H
#define IOBENCH_PIPELINE_ENGINE_DECODERS_H

#include "decode/decoder.h"
#include "pipeline/engine/batches.h"
#include "pipeline/engine/engine.h"
#include "pipeline/result/result.h"
#include "pipeline/loader/loader.h"

#include <stdbool.h>

struct decoders;

/* config: must outlive the decoders. With JOB_ERROR_SKIP a bad record is an empty row, label -1.
 * Returns NULL with a reason. */
struct decoders *decoders_create(const struct engine_config *config, uint32_t workers,
                                 struct batches *batches);
void decoders_destroy(struct decoders *decoders);
/* Find this decoder's traits, without the engine. Returns 0 or -errno. */
int decoders_traits(const struct plugin_choice *decoder, struct decoder_traits *traits);

/* Return whether a stage of this job looks at its records; else the loader's thread counts them. */
bool decoders_look(const struct job *job, const struct job_plugins *plugins);

/* Return what decodes, or "" (struct decoder_traits). */
const char *decoders_engine(const struct decoders *decoders);
/* Return the first notice of a decoder, or "". Only while no thread decodes. */
const char *decoders_notice(const struct decoders *decoders);

/* `take` of the loader's sink: count records that no stage looks at. */
int decoders_take(void *decoders, struct fetch *const *fetches, uint32_t count);

/* no_bytes: the reader delivers no bytes. trace: NULL, or with a ring for each decode thread from
 * DECODERS_RING on, behind the loader's. */
enum { LOADER_RING, TRAINER_RING, DECODERS_RING };
int decoders_start(struct decoders *decoders, struct loader *loader, bool no_bytes,
                   struct trace *trace);
/* Returns 0 or the first failure of a decode thread. */
int decoders_join(struct decoders *decoders);

/* Sum over all decode threads since decoders_start(). Samples and bytes are counted per batch
 * (struct batch_account). Call after decoders_join(). */
void decoders_figures(struct decoders *decoders, struct decode_figures *decode,
                      struct findings *findings);

#endif
