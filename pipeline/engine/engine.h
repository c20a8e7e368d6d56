/* SPDX-License-Identifier: Apache-2.0
 *
 * engine: loader, decode workers, batch buffers and trainer joined for one job. It is built once,
 * and carries out one run after the other; run.c decides what happens between runs.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_ENGINE_H
#define IOBENCH_PIPELINE_ENGINE_ENGINE_H

#include "pipeline/result/recorder.h"
#include "pipeline/result/result.h"
#include "shuffle/plan.h"
#include "trainer/trainer.h"

struct engine;

struct engine_config {
    const struct job *job;
    const struct job_plugins *plugins;
    const struct catalog *catalog;
    uint64_t epochs_max;
    struct ranks *ranks;           /* that share the work; NULL: one alone. From a run's start on
                                      they are impatient (job->silence_ns) */
    const struct trainer *trainer; /* the caller's, and open; NULL: the plug-in that is chosen */
    struct meter *meter;           /* what the stages do is counted there; NULL: nowhere */
    struct recorder *recorder;     /* epochs and their parts are marked there; NULL: nowhere */
};

/* Return the scope of this job's plans. */
struct plan_scope engine_scope(const struct job *job, const struct catalog *catalog);

/* Told about ten times a second from the trainer's loop; a return other than 0 ends the run. */
typedef int (*engine_tick)(void *context, const struct result_epoch *so_far, uint64_t draws);

struct engine *engine_create(const struct engine_config *config, struct result *result);
void engine_destroy(struct engine *engine);

/* One run: readers open, epochs [0, epochs) one after the other, readers close. before and after
 * are called around each epoch, outside its clock. They get the code so far and return the one that
 * counts: before, 0 lets the epoch begin; it is called with a failure as well when the run could
 * not be started, after with that of the epoch. Any hook may be NULL. run->epochs has room for the
 * result_rows() of
 * epochs. */
struct engine_hooks {
    int (*before)(void *context, struct result_epoch *epoch, int code);
    int (*after)(void *context, struct result_epoch *epoch, int code);
    engine_tick tick;
    /* After a good epoch, while the next one is not begun: 0 goes on, above 0 ends the run in good
     * order, below 0 is an error. Not with overlapping epochs. */
    int (*between)(void *context, struct result_epoch *epoch);
    void *context;
};
int engine_run(struct engine *engine, uint64_t epochs, const struct engine_hooks *hooks,
               struct result_run *run, struct result *result);

#endif
