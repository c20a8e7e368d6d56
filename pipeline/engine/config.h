/* SPDX-License-Identifier: Apache-2.0
 *
 * config: what an engine is created from.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_CONFIG_H
#define IOBENCH_PIPELINE_ENGINE_CONFIG_H

#include "base/stop.h"
#include "dataset/catalog.h"
#include "pipeline/engine/hinting.h"
#include "pipeline/result/recorder.h"
#include "pipeline/settings/job.h"
#include "trainer/trainer.h"

struct engine_config {
    const struct job *job;
    const struct job_plugins *plugins;
    const struct catalog *catalog;
    struct ranks *ranks; /* NULL: a single process. Time-outs apply from the start of a run
                            (job->silence_ns) */
    const struct trainer
        *trainer;              /* open, owned by the caller; NULL: the plug-in named by the job */
    struct meter *meter;       /* counts what the stages do; NULL: nothing is counted */
    struct hinting *hinting;   /* hints to be made, owned by the caller; NULL: none */
    struct recorder *recorder; /* marks epochs and their phases; NULL: nothing is marked */
    /* Decode threads take all records though no stage looks at them: the ceiling of a job in which
     * one does (decoders_look()). */
    bool by_threads;
    /* Called while the engine is made, which may take minutes; a result other than 0 ends that.
     * Outlives the engine. */
    struct tick tick;
};

#endif
