/* SPDX-License-Identifier: Apache-2.0
 *
 * backend: computes a graph on some device: `reference` (the C kernels, the oracle), `cpu`
 * (oneDNN), `cuda` (GPUs). It knows neither data sets nor ranks nor recipes.
 *
 * One state, one thread. Parameters, gradients and momenta lie in three arenas of the graph's
 * parameter_floats, in the backend's own layout inside each parameter; ranks with the same backend
 * may add them up as plain floats. load() and save() speak the canonical layout of graph.h.
 */
#ifndef IOBENCH_TRAINER_BACKEND_H
#define IOBENCH_TRAINER_BACKEND_H

#include "base/plugin.h"
#include "trainer/schedule.h"

#include <stdbool.h>
#include <stdint.h>

struct backend_batch {
    const uint8_t *rows;   /* count x height x width x 3, RGB; normalised by the backend */
    const int32_t *labels; /* -1: no label, no gradient */
    uint32_t count;        /* up to batch_size */
    uint64_t step;
    uint64_t waited_ns; /* for this batch, before it was given */
};

/* What a device's own clock says of a step; all 0 where there is none. */
struct backend_times {
    uint64_t wait_ns;   /* the device had no batch, and neither had the host */
    uint64_t upload_ns; /* the device had nothing to do but to wait for the batch's upload */
    uint64_t copy_ns;   /* the upload itself, also what other work hides */
    uint64_t compute_ns;
    uint64_t exchange_ns; /* that enqueue() started and compute did not hide */
    uint64_t update_ns;   /* of the step before */
};

struct backend_loss {
    uint32_t count;   /* images of the batch that this is told of; 0: of none */
    bool update_due;  /* the gradients of a step are there: exchange them, then update() */
    double loss;      /* mean cross-entropy over labelled rows */
    uint32_t correct; /* top-1 */
    uint32_t correct_top5;
    uint32_t counted; /* labelled rows */
    struct backend_times times;
};

/* The gradients of arena floats [0, done) are final; called in rising order during step(). */
typedef int (*backend_gradients_ready)(void *context, uint64_t done);

struct calibration;

struct backend_config {
    const struct graph *graph;
    uint32_t batch_size;
    bool training;       /* false: forward only, BN by running statistics, dropout off */
    uint64_t seed;       /* of dropout */
    uint32_t threads;    /* 0: all CPUs */
    uint32_t local_rank; /* of the ranks on this host: each takes a device of its own */
    /* Somebody else adds the gradients up in memory of the host: backends on a device keep a copy
     * there, current from step() until update(), which takes it back. */
    bool gradients_on_host;
    /* Or on the device: backends on a device call this while they put a step on their stream, and
     * only once for steps that they replay. What it starts must be ordered by that stream. */
    backend_gradients_ready enqueue;
    void *enqueue_context;
    uint64_t
        silence_ns; /* a device that takes longer for a step waits for a silent rank; 0: never */
    /* Or the host is told of each step's gradients, adds them up, wherever they lie, and calls
     * update(), before the next step is computed. */
    bool exchanged_by_host;
    bool late; /* results of run() may come later: see there */
    /* Only to infer: what each node puts out is added to it, where that is stored in floating
     * point; all of it when all batches were told of. See trainer/quantise.h. */
    struct calibration *calibration;
    /* Only to infer: the range of each node's output, where known. Then it is computed in INT8 as
     * trainer/quantise.h says. The array outlives the backend. */
    const float *ranges;
};

enum backend_recipe { BACKEND_SGD, BACKEND_LARS };

struct backend_update {
    enum backend_recipe recipe;
    double rate, rate_before; /* of this step and the one before: LARS momentum is rescaled */
    double momentum, decay, eta;
    double gradient_scale; /* 1 / ranks after a sum over ranks */
};

struct backend_memory {
    float *parameters, *gradients, *momenta, *statistics;
    uint64_t workspace_bytes, activation_bytes;
    uint64_t device_bytes; /* of the device, all that this backend takes; 0: there is no device */
    uint64_t batch_bytes;  /* of it, where batches are uploaded to */
    uint64_t pinned_bytes; /* of the host, batches from allocate() too */
    bool on_device;        /* the arenas are no memory of the host... */
    uint32_t device;       /* ...but of this one, */
    void *stream;          /* and this orders what is done with them */
    uint64_t layout;       /* arenas may be added up where this is equal; 0: the canonical layout */
};

/* What run() is to do. */
struct backend_pass {
    const struct backend_batch *batch; /* NULL: there is none; what is under way goes on */
    bool learns;                       /* else forward only, by running statistics */
    double label_smoothing;            /* of who learns, as the next two */
    backend_gradients_ready ready;
    void *context;
    float *logits; /* of who does not: count x classes, or NULL */
};

struct backend_ops {
    struct plugin plugin;
    int (*open)(void *state, const void *settings, const struct backend_config *config);
    void (*close)(void *state);
    /* Canonical layout; statistics: mean[channels], variance[channels] of each BN in node order.
     * Arrays may be NULL: left alone. open() sets momenta 0, running means 0, variances 1. */
    int (*load)(void *state, const float *parameters, const float *momenta,
                const float *statistics);
    int (*save)(void *state, float *parameters, float *momenta, float *statistics,
                float *gradients);
    /* Forward and, of labelled batches, the loss. To learn: with label smoothing, then backward;
     * the gradient is that of the mean loss over the labelled rows; BN takes mean and variance from
     * this batch alone, the running variance takes the unbiased one. The batch is the caller's
     * again when this returns, and the loss is told.
     *
     * With config.late, and no logits asked for, it may be that of the oldest batch that none was
     * told of yet, or nothing at all (all is 0); what follows is still done in the order of the
     * calls. With config.exchanged_by_host, steps themselves may be so late: then ready() is called
     * for the batch whose loss is told, and the update is that one's. Without a batch it waits for
     * the oldest that was not told, and tells nothing when all were; so they must be before load(),
     * save(), and between batches to learn from and others. */
    int (*run)(void *state, const struct backend_pass *pass, struct backend_loss *loss);
    /* No batch comes any more, and who is behind enqueue() goes: nothing that it started is kept to
     * be replayed. Waits for nothing. NULL: nothing ever is. */
    void (*forget)(void *state);
    /* kernels/kernels.h has the formulas. LARS adapts the rate of parameters that decay. */
    int (*update)(void *state, const struct backend_update *update);
    /* Memory of the host that a device copies batches from at full speed. NULL: any is good. */
    void *(*allocate)(void *state, size_t bytes);
    void (*release)(void *state, void *memory);
    void (*memory)(void *state, struct backend_memory *memory); /* for exchange and the report */
    /* Appends the steps of one batch, without a state or a device; NULL: not supported. */
    int (*schedule)(const void *settings, const struct schedule_request *request,
                    struct schedule *schedule);
};

extern const struct plugin *const backend_registry[];

/* ---- the wrapper: the only caller of ops. It holds both sides to the contract. ---- */

struct backend {
    const struct backend_ops *ops;
    void *state;
    struct backend_config config;
    bool loaded;
};

/* 0, or a negative errno with a reason. Call backend_close() in either case. The graph is sealed
 * and outlives the backend. */
int backend_open(struct backend *backend, const struct plugin_choice *choice,
                 const struct backend_config *config);
void backend_close(struct backend *backend);

/* The first load() brings the parameters. What is NULL keeps its value. */
int backend_load(struct backend *backend, const float *parameters, const float *momenta,
                 const float *statistics);
int backend_save(struct backend *backend, float *parameters, float *momenta, float *statistics,
                 float *gradients);

/* A batch to learn from. ready may be NULL. -EINVAL when a label is no class of the network. */
int backend_step(struct backend *backend, const struct backend_batch *batch, double label_smoothing,
                 backend_gradients_ready ready, void *context, struct backend_loss *loss);
/* No further batch, see run(); the arguments as those of backend_step(). 1 and a loss, or 0. */
int backend_finish(struct backend *backend, double label_smoothing, backend_gradients_ready ready,
                   void *context, struct backend_loss *loss);
void backend_forget(struct backend *backend);
int backend_update(struct backend *backend, const struct backend_update *update);

/* loss may be NULL. Of a batch without labels it counts none. */
int backend_infer(struct backend *backend, const struct backend_batch *batch, float *logits,
                  struct backend_loss *loss);
/* For batches, aligned to a page; NULL with a reason. */
void *backend_allocate(struct backend *backend, size_t bytes);
void backend_release(struct backend *backend, void *memory);
void backend_memory(struct backend *backend, struct backend_memory *memory);
/* Loads initial weights; then, if request->passes, runs one batch of random images, calls
 * warmed_up(), and runs and updates request->passes times. update_ns: mean time of an update. For
 * ops.schedule() alone. */
int backend_rehearse(const struct backend_ops *ops, void *state,
                     const struct schedule_request *request, int (*warmed_up)(void *state),
                     double *update_ns);

/* "NAME[:OPTIONS]" or "auto", the first of the registry that works here; precision NULL: the
 * backend's default. 0, or -EINVAL with a reason. Call plugin_release() in either case. */
int backend_choose(const char *text, const char *precision, struct plugin_choice *choice);
const char *backend_precision(const struct plugin_choice *choice);

/* The steps of one batch; nothing need be open. -ENOTSUP with a reason from backends that list
 * none. Call schedule_free() in either case. */
int backend_schedule(const struct plugin_choice *choice, const struct schedule_request *request,
                     struct schedule *schedule);

/* ImageNet mean and deviation per channel, of 0..255 values; every backend normalises with them. */
extern const float backend_mean[3], backend_deviation[3];

#endif
