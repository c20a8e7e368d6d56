/* SPDX-License-Identifier: Apache-2.0
 *
 * account: everything counted in one epoch of one rank: what its batches held, what the trainer
 * did, how long each stage waited, CPU time and reads. Epochs of a run, ranks and nodes are sums of
 * it (result_epoch_add()). It controls nothing. The trainer's thread.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_ACCOUNT_H
#define IOBENCH_PIPELINE_ENGINE_ACCOUNT_H

#include "base/clock.h"
#include "base/stats.h"
#include "pipeline/engine/batches.h"
#include "dataset/hints.h"
#include "pipeline/loader/loader.h"
#include "pipeline/result/result.h"
#include "trainer/trainer.h"

#include <sys/resource.h>

struct account {
    /* Set by the caller, for all epochs. */
    struct loader *loader;
    struct batches *batches;
    struct meter *meter;
    struct recorder *recorder;
    const struct hinting *hinting; /* NULL: no hints are made */
    uint32_t workers;
    bool reads;                /* the reader is not idle */
    struct histogram *late_ns; /* over the run: how late batches were ready */
    /* of the current epoch */
    struct result_epoch *epoch;
    struct rusage usage;
    struct loader_waits waits;       /* of earlier epochs */
    uint64_t open_wait_ns, hints_ns; /* the same */
    struct pace taken;               /* samples taken by the trainer over time */
    uint64_t idle_ns;                /* the trainer is idle since, as far as it is on the meter */
    uint64_t waited_ns;              /* idle before the step to come */
    uint64_t order_ns;               /* of that for the epoch's order */
    uint64_t step_ns;                /* the step under way is on the meter until then; 0: no step */
    uint64_t told_ns;                /* on the meter, of steps whose times are not known yet */
    uint64_t told_wait_ns;           /* the same of waits, too much if a device computed */
    uint64_t owed_wait_ns;           /* of these, no longer to be told of waits to come */
};

/* Start the epoch's clock. */
void account_begin(struct account *account, struct result_epoch *epoch);
/* Count a batch that the trainer took at taken_ns and whose step has ended or begun; after
 * account_step_end(), before its times are added. */
void account_batch(struct account *account, const struct batch *batch, uint64_t taken_ns);
/* An epoch's clock runs from its start to the end of its last step, and the trainer is at a step or
 * idle: it waits for the epoch's order, for a batch, or for what the host does between two steps.
 * account_idle(): it still is. A meter that learned of waits and steps when they end would show a
 * long one as neither wait nor work. */
void account_idle(struct account *account, uint64_t now_ns);
/* The trainer may know the epoch's order now. */
void account_order(struct account *account, uint64_t now_ns);
/* The trainer begins a step, and is still at it. Returns the time that it was idle before. */
uint64_t account_step_begin(struct account *account, uint64_t now_ns);
void account_step_goes_on(struct account *account, uint64_t now_ns);
/* Add the times of a step, or of an earlier step that ended later than its call. */
void account_step(struct account *account, const struct trainer_times *times);
/* The call of a step returned: the trainer is idle again. */
void account_step_end(struct account *account, uint64_t now_ns);
/* Stop the epoch's clock. */
void account_stop(struct account *account);
/* Wait until the reads have ended, and add figures known only then. */
void account_end(struct account *account);
/* Its part for the steady state, in which samples are taken as fast as they are read, so the amount
 * in memory neither grows nor shrinks. The first quarter of the reads, which fills memory and may
 * spend a device's burst credit, is left out: the rest is the sustained rate. */
void account_reads(struct account *account, const struct loader_figures *loader);

#endif
