/* SPDX-License-Identifier: Apache-2.0
 *
 * backend: computes a graph on a device: `reference` (the C kernels, the oracle), `cpu` (oneDNN),
 * `cuda` (GPUs). Independent of data sets, ranks and recipes.
 *
 * One thread per state. Parameters, gradients and momenta are three arenas of the graph's
 * parameter_floats, in the backend's own layout within each parameter; ranks with the same backend
 * may sum them as plain floats. load() and save() use the canonical layout of graph.h.
 */
#ifndef IOBENCH_TRAINER_BACKEND_H
#define IOBENCH_TRAINER_BACKEND_H

#include "base/plugin.h"
#include "base/stop.h"
#include "trainer/graph.h"
#include "trainer/trainer.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- schedules ----
 *
 * The steps that a backend runs for one batch, in order, as `iobench plan` prints them. Created
 * without computing anything, even for a device that is not in this machine. */

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

/* ---- the contract ---- */

struct backend_loss {
    uint32_t count;   /* images in the reported batch; 0: none reported */
    bool update_due;  /* a step's gradients are ready: exchange them, then call update() */
    double loss;      /* mean cross-entropy over labelled rows */
    uint32_t correct; /* top-1 */
    uint32_t correct_top5;
    uint32_t counted;           /* labelled rows */
    struct trainer_times times; /* by the device's own clock; all 0 if it has none */
};

/* Gradients in arena floats [0, done) are final; called in ascending order during step(). */
typedef int (*backend_gradients_ready)(void *context, uint64_t done);

struct calibration;

struct backend_config {
    const struct graph *graph;
    uint32_t batch_size;
    bool training;       /* false: forward only, BN by running statistics, no dropout */
    uint64_t seed;       /* for dropout */
    uint32_t threads;    /* 0: all CPUs */
    uint32_t local_rank; /* among the ranks on this host: each takes its own device */
    /* The caller sums gradients in host memory: a device backend keeps a host copy, current from
     * step() until update(), which reads it back. */
    bool gradients_on_host;
    /* Alternatively the caller sums them on the device: a device backend calls this while it
     * enqueues a step on its stream, once only for steps that it replays. The work started must be
     * ordered by that stream. */
    backend_gradients_ready enqueue;
    void *enqueue_context;
    /* How to allocate and free memory for gradients that the caller sums on the device, if it has
     * memory of its own for that. NULL: any memory will do. allocate() returns NULL, with a reason,
     * if it has none: that is no error, but slower. */
    void *(*allocate_gradients)(uint64_t bytes);
    void (*release_gradients)(void *memory);
    uint64_t
        rank_timeout_ns; /* a longer step means waiting for an unresponsive rank; 0: no limit */
    /* Or the host is notified of each step's gradients, sums them wherever they are, and calls
     * update() before the next step is computed. */
    bool exchanged_by_host;
    bool accumulates; /* several batches may share an update: trainer_batch.continues */
    bool late;        /* run() may report results later, see there */
    /* Inference only: receives each node's output where it is stored in floating point; complete
     * once every batch is reported. See trainer/quantise.h. */
    struct calibration *calibration;
    /* Inference only: the range of each node's output, if known. The graph is then computed in INT8
     * as trainer/quantise.h describes. Must outlive the backend. */
    const float *ranges;
    /* Asked between the parts of open(), load() and prepare(), which may take minutes, on their
     * thread; nonzero ends them, as their result. Outlives the backend. */
    struct tick tick;
};

struct backend_memory {
    float *parameters, *gradients, *momenta, *statistics;
    uint64_t workspace_bytes, activation_bytes;
    uint64_t device_bytes; /* all device memory this backend uses; 0: no device */
    uint64_t batch_bytes;  /* the part that batches are uploaded to */
    uint64_t pinned_bytes; /* pinned host memory, including batches from allocate() */
    bool on_device;        /* the arenas are not in host memory */
    uint32_t device;       /* but on this device, */
    void *stream;          /* and this stream orders work on them */
    uint64_t layout;       /* arenas with equal values may be summed; 0: the canonical layout */
};

struct backend_ops {
    struct plugin plugin;
    int (*check)(const void *settings); /* whether this machine computes so; NULL: it does */
    bool on_device; /* computes, and keeps almost all of its memory, on a device */
    /* run() adds up the gradients of batches that share an update, and calls ready() for the last
     * alone. Otherwise the wrapper does so, in host memory: run() is then never late. */
    bool accumulates;
    int (*open)(void *state, const void *settings, const struct backend_config *config);
    void (*close)(void *state);
    /* Canonical layout; statistics: mean[channels], variance[channels] of each BN in node order.
     * NULL arrays are skipped. open() sets momenta to 0, running means to 0, variances to 1. */
    int (*load)(void *state, const float *parameters, const float *momenta,
                const float *statistics);
    int (*save)(void *state, float *parameters, float *momenta, float *statistics,
                float *gradients);
    /* Run forward and, for labelled batches, the loss. Training adds label smoothing and the
     * backward pass: gradients are those of the mean loss over labelled rows; BN uses this batch's
     * mean and variance and updates the running variance with the unbiased one. On return the batch
     * belongs to the caller again and the loss is reported.
     *
     * With config.late, and without logits, the reported loss may be that of the oldest unreported
     * batch, or none (all 0); calls still take effect in order. With config.exchanged_by_host, a
     * step itself may be late: ready() is then called for the batch whose loss is reported, and the
     * next update is that batch's. Without rows, run() waits for the oldest unreported batch;
     * if there is none, for the last update, whose time alone is reported. Drain this way before
     * load(), save(), and when switching between training and inference. */
    int (*run)(void *state, const struct trainer_batch *batch, struct backend_loss *loss);
    /* Make, off the clock, what run() makes for the first batch of `count` images: a last, smaller
     * one, or an evaluation. No batch is in flight. NULL: nothing is made. */
    int (*prepare)(void *state, uint32_t count, bool learns);
    /* No more batches follow, and the exchange that enqueue() feeds is about to close: drop
     * anything kept for replay. Never waits. NULL: nothing is kept. */
    void (*forget)(void *state);
    /* Formulas: kernels/kernels.h. LARS adapts the rate of weights alone. */
    int (*update)(void *state, const struct kernel_update *update);
    /* Host memory that a device copies from at full speed. NULL: any memory will do. */
    void *(*allocate)(void *state, size_t bytes);
    void (*release)(void *state, void *memory);
    void (*memory)(void *state, struct backend_memory *memory); /* for exchange and report */
    /* What makes this backend slower than the user expects, in one sentence; "": nothing. NULL:
     * nothing ever does. */
    const char *(*notice)(const void *state);
    /* Append the steps of one batch, without a state or device. */
    int (*schedule)(const void *settings, const struct schedule_request *request,
                    struct schedule *schedule);
};

extern const struct plugin *const backend_registry[];
const struct backend_ops *backend_ops_of(const struct plugin *plugin);

/* ---- the wrapper: the only caller of ops. It holds both sides to the contract. ---- */

struct backend {
    const struct backend_ops *ops;
    void *state;
    struct backend_config config;
    bool loaded;
    float *sums;   /* gradients of the update's earlier batches, times their labelled rows */
    bool adds;     /* there were such batches */
    uint64_t rows; /* labelled, of theirs */
};

/* Returns 0, or a negative errno with a reason. Call backend_close() in either case. The graph is
 * sealed and outlives the backend. */
int backend_open(struct backend *backend, const struct plugin_choice *choice,
                 const struct backend_config *config);
void backend_close(struct backend *backend);

/* The first load sets the parameters. NULL arrays keep their values. */
int backend_load(struct backend *backend, const float *parameters, const float *momenta,
                 const float *statistics);
int backend_save(struct backend *backend, float *parameters, float *momenta, float *statistics,
                 float *gradients);

/* Run a training step. ready may be NULL. Returns -EINVAL if a label is out of range. batch NULL:
 * drain, see run(). */
int backend_step(struct backend *backend, const struct trainer_batch *batch, double label_smoothing,
                 backend_gradients_ready ready, void *context, struct backend_loss *loss);
void backend_forget(struct backend *backend);
int backend_update(struct backend *backend, const struct kernel_update *update);

/* After the weights are loaded, with no batch in flight. */
int backend_prepare(struct backend *backend, uint32_t count, bool learns);
/* loss may be NULL. Without labels, no row is counted. */
int backend_infer(struct backend *backend, const struct trainer_batch *batch, float *logits,
                  struct backend_loss *loss);
/* Page-aligned memory for batches; NULL with a reason. */
void *backend_allocate(struct backend *backend, size_t bytes);
void backend_release(struct backend *backend, void *memory);
void backend_memory(struct backend *backend, struct backend_memory *memory);
const char *backend_notice(const struct backend *backend);
/* Lower bound of the host memory of a backend on the host: parameters and, for training, gradients,
 * momenta and what the backward pass reads of a batch, in values of value_bytes. Inference reuses
 * the memory of outputs that no later step reads: only its images are certain. */
uint64_t backend_least_bytes(const struct graph *graph, bool learns, uint32_t batch_size,
                             uint32_t value_bytes);

/* ---- for members of the family ---- */

struct kernel_loss;
struct backend_loss backend_loss_of(uint32_t count, const struct kernel_loss *loss);
/* For backends with clip_norm: return the update with a gradient_scale that clips, computed from
 * the sum of the squares of all gradients. */
struct kernel_update backend_clip(const struct kernel_update *update, double squares);
/* Update floats [first, end) of arenas in host memory; LARS needs whole parameters and updates
 * those that begin in the range. */
void backend_update_host(const struct graph *graph, const struct backend_memory *arenas,
                         const struct kernel_update *update, uint64_t first, uint64_t end);
/* Load initial weights; if request->passes, also run one batch of random images, call warmed_up(),
 * then run and update request->passes times. update_ns: mean time of an update. For ops.schedule()
 * only. */
int backend_rehearse(const struct backend_ops *ops, void *state,
                     const struct schedule_request *request, int (*warmed_up)(void *state),
                     double *update_ns);

/* Static memory planning: tensors whose lifetimes do not overlap may share space. */
struct lifetime {
    uint32_t first, last; /* moments, both inclusive */
    uint64_t bytes;       /* 0: needs no space */
    uint64_t offset;      /* set by lifetimes_plan(); a multiple of 64 */
};

/* Largest first, each at the lowest offset free for its whole life. apart: bytes from one lifetime
 * to the next. total: bytes of the arena. Returns 0 or -ENOMEM. */
int lifetimes_plan(struct lifetime *lifetimes, size_t apart, uint32_t count, uint64_t *total);

/* ---- choosing ---- */

/* text: "NAME[:OPTIONS]" or "auto", the first in the registry that works here; precision NULL: the
 * backend's default. Returns 0, or -EINVAL with a reason. Call plugin_release() in either case. */
int backend_choose(const char *text, const char *precision, struct plugin_choice *choice);
const char *backend_precision(const struct plugin_choice *choice);
/* Return 0 if this machine can compute as chosen, or a negative errno with a reason. */
int backend_check(const struct plugin_choice *choice);

/* List the steps of one batch; no backend need be open. Returns -ENOTSUP with a reason if the
 * backend cannot. Call schedule_free() in either case. */
int backend_schedule(const struct plugin_choice *choice, const struct schedule_request *request,
                     struct schedule *schedule);

/* ImageNet mean and deviation per channel, for values 0..255; all backends normalise with them. */
extern const float backend_mean[3], backend_deviation[3];

/* ---- recipes: learning rate by step ----
 *
 * Pure; any thread. The values are those used for ResNet-50 on ImageNet: LARS as in the MLPerf
 * Training closed division (reference convergence points, batch 408 to 4,096: 34 to 38 epochs to
 * 75.9%), SGD as in Goyal et al. 2017 with cosine decay (Loshchilov and Hutter 2017), batch 256,
 * scaled with the batch. */

enum backend_recipe { BACKEND_SGD, BACKEND_LARS };
enum recipe_decay { RECIPE_CONSTANT, RECIPE_COSINE, RECIPE_SQUARE };

struct recipe {
    enum backend_recipe kind;
    enum recipe_decay decay_shape; /* of the rate, after warm-up */
    double rate;                   /* peak */
    uint64_t steps, warmup_steps;  /* total, and those of linear warm-up */
    double momentum, weight_decay, eta, label_smoothing;
    double clip_norm;    /* of the gradients of all parameters; 0: any */
    bool zero_gammas;    /* blocks of residual networks start as identities: Goyal et al. 2017,
                            section 5.1, and MLPerf's reference model */
    bool decays_fc_bias; /* biases of fully connected layers decay like weights (LARS in NVIDIA's
                            MXNet submissions to MLPerf: set_wd_mult() of sgdwlars) */
};

/* Recipe for a global batch size. SGD's rate of a network without batch norm is 0.01, scaled with
 * the square root of smaller batches; that of Inception-v3 is an eighth of ResNet's. */
struct recipe recipe_choose(enum backend_recipe kind, const struct network *network,
                            uint64_t global_batch_size, uint64_t epochs, uint64_t steps_per_epoch);

/* Rate at step 0, 1, ...; positive for each step of the recipe, constant after the last. */
double recipe_rate(const struct recipe *recipe, uint64_t step);

#endif
