/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule: the steps that a backend runs for one batch, in order, as `iobench plan` prints them.
 * A schedule is made without computing anything, also for a device that is not in this machine.
 * Knows no backend.
 */
#ifndef IOBENCH_TRAINER_SCHEDULE_H
#define IOBENCH_TRAINER_SCHEDULE_H

#include "trainer/graph.h"

enum schedule_phase {
    SCHEDULE_ONCE, /* when weights are loaded, not once per batch */
    SCHEDULE_FORWARD,
    SCHEDULE_LOSS,
    SCHEDULE_BACKWARD,
    SCHEDULE_UPDATE,
    SCHEDULE_PHASES,
};

extern const char *const schedule_phases[SCHEDULE_PHASES]; /* their names */

enum { SCHEDULE_ENGINE_BYTES = 64, SCHEDULE_FUSED_BYTES = 96 };

/* Byte counts take each tensor once per step; the workspace is not among them. */
struct schedule_step {
    enum schedule_phase phase;
    uint32_t node;                      /* of the graph; UINT32_MAX: all parameters */
    const char *operation;              /* "convolution", "weight gradient"; static storage */
    char engine[SCHEDULE_ENGINE_BYTES]; /* kernel or library engine: "device_affine", "cuDNN 12" */
    char fused[SCHEDULE_FUSED_BYTES];   /* "prologue, statistics"; "" where nothing is */
    uint64_t read_bytes, write_bytes;
    uint64_t workspace_bytes;
    double flops;       /* two per multiply-accumulate; 0 where memory alone counts */
    double measured_ns; /* mean over request.passes; 0: not measured */
};

struct schedule {
    struct schedule_step *steps;
    uint32_t count;
};

struct schedule_request {
    const struct graph *graph;
    uint32_t batch_size;
    bool training;    /* backward and update too */
    bool int8;        /* inference: convolutions in INT8, as if every range were known */
    uint32_t passes;  /* run that many batches of random images and time each step; 0: none */
    uint32_t device;  /* compute capability the schedule is for, 80 or 90; 0: this machine's */
    uint32_t threads; /* of CPU backends; 0: all */
};

/* The least time a step takes on hardware with these peaks (roofline), in ns. */
double schedule_predict_ns(const struct schedule_step *step, double flops_per_s,
                           double bytes_per_s);

/* Adds the time since *since_ns to *took_ns and restarts; took_ns NULL: does nothing. */
void schedule_lap(uint64_t *took_ns, uint64_t *since_ns);

/* Appends a step. -ENOMEM with a reason. */
int schedule_add(struct schedule *schedule, const struct schedule_step *step);
/* Appends the update of all FP32 parameters by SGD with momentum. */
int schedule_add_update(struct schedule *schedule, const struct graph *graph, const char *engine,
                        double measured_ns);
void schedule_free(struct schedule *schedule);

#endif
