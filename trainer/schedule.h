/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule: the steps that a backend runs for one batch, in order, as `iobench plan` prints them.
 * Created without computing anything, even for a device that is not in this machine. Independent of
 * backends.
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

enum { SCHEDULE_ENGINE_BYTES = 64, SCHEDULE_FUSED_BYTES = 96, SCHEDULE_LIBRARY_BYTES = 32 };

/* Byte counts include each tensor once per step, and no workspace. */
struct schedule_step {
    enum schedule_phase phase;
    uint32_t node;                      /* index in the graph; UINT32_MAX: all parameters */
    const char *operation;              /* "convolution", "weight gradient"; static storage */
    char engine[SCHEDULE_ENGINE_BYTES]; /* kernel or library engine: "device_affine", "cuDNN 12" */
    char fused[SCHEDULE_FUSED_BYTES];   /* "prologue, statistics"; "" if nothing is fused */
    uint64_t read_bytes, write_bytes;
    uint64_t workspace_bytes;
    double flops;       /* two per multiply-accumulate; 0 for memory-bound operations */
    double measured_ns; /* mean over request.passes; 0: not measured */
};

struct schedule {
    struct schedule_step *steps;
    uint32_t count;
    char library[SCHEDULE_LIBRARY_BYTES]; /* whose engines these are, with its version; "": none */
    double flops_per_s, bytes_per_s;      /* peaks of this machine; 0: not measured */
    const char *peaks;                    /* how they were measured */
};

struct schedule_request {
    const struct graph *graph;
    uint32_t batch_size;
    bool training;       /* include backward and update */
    bool int8;           /* inference with INT8 convolutions, as if all ranges were known */
    uint32_t passes;     /* batches of random images to run and time; 0: none */
    uint32_t device;     /* target compute capability, 80 or 90; 0: this machine's */
    uint32_t threads;    /* for CPU backends; 0: all CPUs */
    const float *ranges; /* set by backend_schedule() for INT8: one per node; NULL: no INT8 */
};

/* Return the minimum time of a step on hardware with these peak rates (roofline model), in ns. */
double schedule_predict_ns(const struct schedule_step *step, double flops_per_s,
                           double bytes_per_s);

/* Add the time since *since_ns to *took_ns and restart. No-op if took_ns is NULL. */
void schedule_lap(uint64_t *took_ns, uint64_t *since_ns);

/* Append a step. Returns -ENOMEM with a reason. */
int schedule_add(struct schedule *schedule, const struct schedule_step *step);
/* Append an SGD update with momentum of all FP32 parameters. */
int schedule_add_update(struct schedule *schedule, const struct graph *graph, const char *engine,
                        double measured_ns);
void schedule_free(struct schedule *schedule);

#endif
