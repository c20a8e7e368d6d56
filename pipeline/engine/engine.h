/* SPDX-License-Identifier: Apache-2.0
 *
 * engine: connects loader, decode threads, batch buffers and trainer for one job. Created once, it
 * carries out run after run; the caller decides what happens in between. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_ENGINE_H
#define IOBENCH_PIPELINE_ENGINE_ENGINE_H

#include "base/stop.h"
#include "dataset/catalog.h"
#include "dataset/hints.h"
#include "pipeline/evidence/witness.h"
#include "pipeline/result/result.h"
#include "pipeline/settings/job.h"
#include "shuffle/plan.h"
#include "trainer/trainer.h"

struct engine;

struct engine_config {
    const struct job *job;
    const struct job_plugins *plugins;
    const struct catalog *catalog;
    struct ranks *ranks; /* NULL: a single process. Time-outs apply from the start of a run
                            (job->rank_timeout_ns) */
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

/* Count the draws of this job's first epoch. Returns 0 or -errno. */
int engine_draws(const struct job *job, const struct job_plugins *plugins,
                 const struct catalog *catalog, uint64_t *draws);

/* Find what this rank reads in the first epoch of a run. Only between runs; clear reach either way.
 */
int engine_reach(struct engine *engine, struct reach *reach);

/* Called about ten times a second in the trainer's loop; a result other than 0 ends the run. */
typedef int (*engine_tick)(void *context, const struct result_epoch *so_far, uint64_t draws);

/* Destroy it in either case. Returns 0 or a negative errno with a reason. */
int engine_create(const struct engine_config *config, struct result *result,
                  struct engine **engine);
void engine_destroy(struct engine *engine);

/* Carry out one run: open the reader, run the epochs, close the reader. before and after are called
 * around each epoch, off its clock; each gets the current status and returns the one to use. If the
 * run could not start, before is called with the failure; 0 lets the epoch begin. All hooks may
 * be NULL. run->epochs has room for result_rows(epochs) rows. */
struct engine_hooks {
    int (*before)(void *context, struct result_epoch *epoch, int code);
    int (*after)(void *context, struct result_epoch *epoch, int code);
    engine_tick tick;
    /* Called after a successful epoch, before the next one. Returns 0 to continue, 1 to end the run
     * cleanly, or -errno. NULL with overlapping epochs: decode threads would be at work. */
    int (*between)(void *context, struct result_epoch *epoch);
    void *context;
};
int engine_run(struct engine *engine, uint64_t epochs, const struct engine_hooks *hooks,
               struct result_run *run, struct result *result);

#endif
