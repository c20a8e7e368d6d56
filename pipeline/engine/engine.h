/* SPDX-License-Identifier: Apache-2.0
 *
 * engine: connects loader, decode threads, batch buffers and trainer for one job. Created once, it
 * carries out run after run; the caller decides what happens in between. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_ENGINE_H
#define IOBENCH_PIPELINE_ENGINE_ENGINE_H

#include "base/clock.h"
#include "base/stats.h"
#include "base/stop.h"
#include "dataset/catalog.h"
#include "dataset/hints.h"
#include "pipeline/engine/batches.h"
#include "pipeline/evidence/witness.h"
#include "pipeline/loader/loader.h"
#include "pipeline/result/timeline.h"
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

/* ---- the account of an epoch ----
 *
 * Everything counted in one epoch of one rank: what its batches held, what the trainer did, how
 * long each stage waited, CPU time and reads. Epochs of a run, ranks and nodes are sums of it
 * (result_epoch_add()). It controls nothing. The trainer's thread; for the engine and its tests. */

struct account {
    struct meter *meter;
    struct histogram *late_ns; /* over the run: how late batches were ready */
    /* of the current epoch */
    struct result_epoch *epoch;
    struct pace taken;     /* samples taken by the trainer over time */
    uint64_t idle_ns;      /* idle since then; the time before is on the meter */
    uint64_t waited_ns;    /* idle time before the next step */
    uint64_t order_ns;     /* part of waited_ns spent on the epoch's order */
    uint64_t step_ns;      /* the step is on the meter until then; 0: no step */
    uint64_t told_ns;      /* on the meter, of steps with unknown times */
    uint64_t told_wait_ns; /* the same for waits; too large if a device computed */
    uint64_t owed_wait_ns; /* excess of told_wait_ns, to subtract from later waits */
};

/* Count a batch that the trainer took at taken_ns and whose step has ended or begun; after idle_ns
 * was set to the end of its call, before its times are added. */
void account_batch(struct account *account, const struct batch *batch, uint64_t taken_ns);
/* An epoch's clock runs from its start to the end of its last step. Meanwhile the trainer is either
 * at a step or idle: waiting for the epoch's order, for a batch, or for what the host does between
 * two steps. account_idle() reports that it is still idle. A meter that learned of waits and steps
 * when they end would show a long one as neither wait nor work. */
void account_idle(struct account *account, uint64_t now_ns);
/* The trainer may know the epoch's order now. */
void account_order(struct account *account, uint64_t now_ns);
/* The trainer begins a step, and is still at it. Returns the time that it was idle before. */
uint64_t account_step_begin(struct account *account, uint64_t now_ns);
void account_step_goes_on(struct account *account, uint64_t now_ns);
/* Add the times of a step, or of an earlier step that ended later than its call. */
void account_step(struct account *account, const struct trainer_times *times);
/* Add the figures of the steady state, in which samples are taken as fast as they are read, so the
 * amount in memory neither grows nor shrinks. The first quarter of the reads, which fills memory
 * and may spend a device's burst credit, is left out: the rest is the sustained rate. */
void account_reads(struct account *account, const struct loader_figures *loader);

#endif
