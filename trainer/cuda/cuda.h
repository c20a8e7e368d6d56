/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuda backend's own parts, for trainer/cuda alone.
 *
 * As on the CPU, a plan is the graph compiled for one number of images, to train or to infer: a
 * list of steps, each one kernel or a few. Convolutions and fully connected layers are cuDNN's
 * (trainer/cuda/dnn.h), everything else is ours (kernels/device.h). Its second run is captured as
 * one CUDA graph, which all later runs start at once.
 *
 * Tensors are NHWC in the backend's number type; images have 4 or 8 channels, of which 3 are used.
 * Parameters, gradients and momenta are FP32 in arenas of parameter_floats, weights of convolutions
 * as output x height x width x input. Layers compute with copies in their own type, which each
 * update renews.
 *
 * BN is fused with what stands behind it: ReLU; a sum with another tensor or another BN, and ReLU;
 * ReLU and max-pool. What lies between is never stored. Where it pays, the convolutions on both
 * sides compute parts of it, too (trainer/cuda/fuse.c).
 *
 * In FP16 the gradient of the summed loss goes back, not that of the mean, so that small numbers
 * do not vanish; it is divided where it becomes FP32.
 *
 * While a plan is built the first error is kept in it, so that building reads as a list.
 */
#ifndef IOBENCH_TRAINER_CUDA_CUDA_H
#define IOBENCH_TRAINER_CUDA_CUDA_H

#include "kernels/device.h"
#include "trainer/backend.h"
#include "trainer/cuda/dnn.h"
#include "trainer/cuda/runtime.h"
#include "trainer/cuda/settings.h"
#include "trainer/lifetimes.h"
#include "trainer/quantise.h"

enum { CUDA_NONE = UINT32_MAX };

/* What goes to the device before each batch, beside the rows; in one piece of pinned memory and
 * one of the device's. */
struct cuda_header {
    float gradient_scale; /* of d_logits */
    float unscale;        /* of FP32 gradients; FP16 alone */
    uint64_t unused;
    /* then: a dropout key for each node, 8 bytes; a label for each image, 4 bytes */
};

/* What goes back to the host after each batch. */
struct cuda_report {
    struct device_loss loss;
    uint64_t gradients_ns, exchanged_ns; /* when they were final, and added up; device's clock */
};

/* Where a batch lies on the device until its first step has taken it. */
struct cuda_slot {
    struct cuda_header *header;
    uint8_t *rows;
};

/* Moments of a batch on its way, by the device's clock: two on the upload stream, then those of the
 * compute stream. */
enum cuda_moment {
    CUDA_UPLOAD,
    CUDA_UPLOADED,
    CUDA_COMPUTE, /* it begins, with an uploaded batch */
    CUDA_STEP_END,
    CUDA_DONE, /* the report is on the host */
    CUDA_UPDATE,
    CUDA_UPDATED,
    CUDA_MOMENTS,
};

/* A batch on its way, from when it is given until its loss is told; see flight.c. */
struct cuda_flight {
    struct cuda_header *staged; /* pinned, as the report */
    struct cuda_report *report;
    void *moments[CUDA_MOMENTS];
    uint32_t count; /* images */
    bool learns, labelled, updated;
    uint64_t waited_ns; /* by the host for batches, before it started this one */
};

/* What a convolution in INT8 takes of its parameters, on the device. */
struct cuda_int8 {
    int8_t *weight;
    float *scale, *bias, *last; /* see struct device_int8; last: NULL where there is no sum */
};

/* What all plans of one state share. */
struct cuda_model {
    const struct graph *graph;
    const struct cuda_settings *settings;
    struct backend_config site;
    struct runtime runtime;
    struct dnn *dnn;
    enum device_type type;
    uint32_t image_channels;
    float *parameters, *gradients, *momenta, *statistics;
    float *host_gradients; /* pinned; NULL unless the site wants them */
    bool is_stuck;         /* the device does not answer: nothing may wait for it */
    void **compute;        /* of each parameter: what layers take */
    void *compute_memory;
    struct device_parameters table;
    float *norms; /* of each BN node: CUDA_NORM_ROWS rows of its channels */
    float *partial;
    uint64_t partial_floats;
    void *workspace;
    uint64_t workspace_bytes;
    uint32_t slot_count;
    struct cuda_slot *slots;
    struct cuda_flight *flights;                   /* slot_count + 1 */
    uint64_t given, started, told;                 /* passes */
    uint64_t waited_ns;                            /* for batches since one was started */
    uint64_t rows_bytes, header_bytes, slot_bytes; /* a batch's rows; slot_bytes: of all slots */
    struct cuda_header *header;                    /* of the pass that runs */
    struct device_loss *per_image;
    struct cuda_report *report;
    float *logits, *logits_result; /* FP32, on the device; pinned */
    uint64_t device_bytes,
        pinned_bytes;                /* taken so far; plans' arena and workspace are not in it */
    struct quantise_node *quantised; /* of each node, in INT8; NULL: nothing is */
    struct cuda_int8 *int8;          /* of each node */
    void *int8_memory;
    struct magnitudes *magnitudes; /* of each node, while somebody calibrates */
    uint32_t *scratch;             /* of their kernel */
};

enum cuda_norm_row {
    CUDA_MEAN,
    CUDA_INVERSE,
    CUDA_SCALE,
    CUDA_BIAS,
    CUDA_ABC, /* three of them */
    /* What fused convolutions take and leave. */
    CUDA_SUMS = CUDA_ABC + 3,
    CUDA_SQUARES,
    CUDA_TYPED_SCALE,
    CUDA_TYPED_BIAS,
    CUDA_GAMMA,
    CUDA_BETA,
    CUDA_D_GAMMA,
    CUDA_D_BETA,
    CUDA_NORM_ROWS,
};

/* A tensor's place: in the arena that all plans share, or somewhere fixed. */
struct cuda_buffer {
    struct lifetime life; /* in steps */
    void *address;        /* set when the plan is bound, or fixed */
    bool fixed;
};

struct cuda_plan;

struct cuda_step {
    int (*run)(const struct cuda_plan *plan, const struct cuda_step *step);
    uint32_t node;
    /* Buffers; CUDA_NONE where there is none. What each is, the step's function says. */
    uint32_t in, other, mask, out, extra;
    bool relu;
    uint32_t norm, norm_other;           /* BN nodes of a sum, a stem, or before a convolution */
    uint32_t norm_behind;                /* ...and behind it */
    uint32_t part_offset, part_channels; /* of a concatenation */
    struct dnn_shape shape;
    const struct dnn_plan *dnn; /* NULL: the plain kernel */
    uint64_t ready_floats;      /* gradients that are final then; 0: no step of that kind */
};

/* What the plan knows of a node while it is built. */
struct cuda_node {
    uint32_t consumers, consumer; /* how many, and the last one */
    bool needs_gradient;
    bool absorbed;       /* computed by a node before it, or (BN) by the sum behind it */
    uint32_t relu;       /* the ReLU behind that this node computes, too */
    uint32_t pool;       /* of a BN: the max-pool behind its ReLU */
    uint32_t norm;       /* of a sum: the BN that it applies to its input... */
    uint32_t norm_other; /* ...and to its other input */
    uint32_t value;      /* buffer of the output */
    uint32_t value8;     /* the same in INT8 */
    bool chained;        /* a convolution in INT8 computes it */
    uint32_t which;      /* buffer of a max-pool's winners */
    uint32_t gradient_count;
    uint32_t gradients[GRAPH_INPUTS_MAX + 1]; /* of the output, still to be added up */
    /* Of a convolution: what each kind of it computes, too (enum dnn_fusion); the BN whose ReLU it
     * takes, or whose sums it leaves on the way back; and the node that ends with that ReLU: this
     * BN, or a sum that applies it. */
    uint32_t fusion[DNN_WEIGHT + 1];
    uint32_t norm_before, end_before;
    bool counted;  /* of a BN: the convolution before leaves its sums */
    bool unstored; /* of a BN: the ReLU behind is computed anew by the convolution that takes it */
    bool applied;  /* of a BN or a sum: a convolution computes it, too */
    uint32_t dz;   /* of what ends with a ReLU: its gradient, where a convolution has left it */
};

/* One batch on its way through a plan. */
struct cuda_pass {
    const uint8_t *rows; /* on the device */
    double label_smoothing;
    bool labelled;
};

struct cuda_plan {
    struct cuda_plan *next;
    struct cuda_model *model;
    uint32_t count; /* images */
    bool training;
    int code; /* first error while building; its reason is the thread's */
    struct cuda_step *steps;
    uint32_t step_count;
    struct cuda_buffer *buffers;
    uint32_t buffer_count;
    struct cuda_node *nodes; /* only while building */
    uint64_t arena_bytes, workspace_bytes;
    void *bound; /* the arena it is bound to */
    void *graph; /* captured for this label smoothing, with labels or without */
    double label_smoothing;
    bool labelled;
    bool has_run;
    const struct cuda_pass *pass; /* while it runs */
};

/* ---- build.c: the calls that a plan is built with ---- */

uint32_t cuda_add_buffer(struct cuda_plan *plan, uint64_t bytes);
uint32_t cuda_add_fixed(struct cuda_plan *plan, void *address);
/* A tensor of a node's shape. */
uint32_t cuda_add_tensor(struct cuda_plan *plan, uint32_t node);
/* Buffers that the step names live at least until it. */
void cuda_add_step(struct cuda_plan *plan, const struct cuda_step *step);
/* An empty one: all buffers CUDA_NONE. */
struct cuda_step cuda_step_of(int (*run)(const struct cuda_plan *, const struct cuda_step *),
                              uint32_t node);
void cuda_keep_code(struct cuda_plan *plan, int code);
struct dnn_shape cuda_shape(const struct cuda_plan *plan, uint32_t node, enum dnn_kind kind);
/* Looks for a plan for the step's shape; none is no error. */
void cuda_find_dnn(struct cuda_plan *plan, struct cuda_step *step);

/* ---- what steps and their building need to know of nodes ---- */

static inline void *cuda_at(const struct cuda_plan *plan, uint32_t buffer)
{
    return buffer == CUDA_NONE ? NULL : plan->buffers[buffer].address;
}
/* Of a sum that applies a BN: the node whose output comes beside it, to be normalised if there is a
 * BN on that side, too (norm_other). */
uint32_t cuda_beside(const struct cuda_plan *plan, uint32_t sum);
uint32_t cuda_channels(const struct cuda_model *model, uint32_t node); /* padding included */
uint64_t cuda_numbers(const struct cuda_model *model, uint32_t node);  /* of one image */
struct device_pixels cuda_pixels(const struct cuda_plan *plan, uint32_t node);
struct kernel_window cuda_window(const struct cuda_plan *plan, uint32_t node);
float *cuda_norm_row(const struct cuda_model *model, uint32_t node, enum cuda_norm_row row);
struct device_norm cuda_norm(const struct cuda_model *model, uint32_t node);
float *cuda_gradient(const struct cuda_model *model, uint32_t parameter);
const float *cuda_unscale(const struct cuda_model *model); /* NULL: 1 */
const uint64_t *cuda_dropout_key(const struct cuda_model *model, uint32_t node);
int32_t *cuda_labels(const struct cuda_model *model, struct cuda_header *header);

/* fuse.c: which convolutions compute what stands around them, as settings and tournament say. */
void cuda_fuse(struct cuda_plan *plan);
/* What a fused step takes beside input, weights and output. */
void cuda_add_tensors(const struct cuda_plan *plan, const struct cuda_step *step,
                      struct dnn_tensors *tensors);

void cuda_build_forward(struct cuda_plan *plan);  /* forward.c */
void cuda_build_backward(struct cuda_plan *plan); /* backward.c */

/* ---- int8.c: inference in INT8, where the model has it ---- */

int cuda_int8_open(struct cuda_model *model);
void cuda_int8_close(struct cuda_model *model);
/* After the parameters changed. */
int cuda_int8_load(struct cuda_model *model);
/* Which nodes convolutions in INT8 compute, before anything is built. */
void cuda_int8_look(struct cuda_plan *plan);
/* Builds a node of theirs; false: it is none. */
bool cuda_int8_build(struct cuda_plan *plan, uint32_t node);
/* A node that was built becomes INT8, where the model has it so. */
void cuda_int8_hold(struct cuda_plan *plan, uint32_t node);
/* The buffer of a node's output in floating point, whatever it is held in. */
uint32_t cuda_value(struct cuda_plan *plan, uint32_t node);

/* ---- observe.c: what each node puts out, for who calibrates ---- */

int cuda_observe_open(struct cuda_model *model);
void cuda_observe_close(struct cuda_model *model);
/* A node that was built is looked at. */
void cuda_observe_build(struct cuda_plan *plan, uint32_t node);
/* All that was seen, to who asked for it; nothing is under way. */
int cuda_observe_fetch(const struct cuda_model *model);

/* Steps that both passes have. */
int cuda_run_sum(const struct cuda_plan *plan, const struct cuda_step *step);
int cuda_run_dropout(const struct cuda_plan *plan, const struct cuda_step *step);
struct kernel_lrn cuda_lrn(const struct cuda_plan *plan, uint32_t node);

/* ---- plan.c ---- */

struct cuda_plan *cuda_plan_create(struct cuda_model *model, uint32_t count, bool training);
void cuda_plan_destroy(struct cuda_plan *plan);
/* Points the plan's tensors into the arena, of at least plan->arena_bytes. */
void cuda_plan_bind(struct cuda_plan *plan, void *arena);
/* Its graph is no longer right: memory it names has moved. */
void cuda_plan_forget(struct cuda_plan *plan);
/* All of it on the compute stream. */
int cuda_plan_start(struct cuda_plan *plan, const struct cuda_pass *pass);
/* Says of all gradients that they are final. */
int cuda_plan_tell_ready(const struct cuda_plan *plan, const struct backend_pass *pass);

/* ---- flight.c ---- */

int cuda_flights_open(struct cuda_model *model);
void cuda_flights_close(struct cuda_model *model);
/* The upload of a batch begins, into a slot that is free. */
int cuda_flight_give(struct cuda_model *model, const struct backend_pass *pass);
/* Until it is there, and its giver's again. */
int cuda_flight_given(struct cuda_model *model);
/* The oldest one that was not started; NULL: all were. */
const struct cuda_flight *cuda_flight_next(const struct cuda_model *model);
/* It goes on the compute stream. The plan is for as many images, to do the same. */
int cuda_flight_start(struct cuda_plan *plan, double label_smoothing);
/* The update behind the last one that was started begins, or is done. */
int cuda_flight_updated(struct cuda_model *model, bool done);
/* Waits for the oldest batch that was started. */
int cuda_flight_land(struct cuda_model *model, struct backend_loss *loss);

/* ---- model.c ---- */

/* Memory of the device, and pinned memory of the host, that is counted. */
void *cuda_allocate(struct cuda_model *model, uint64_t bytes);
void *cuda_pin(struct cuda_model *model, uint64_t bytes);
int cuda_model_open(struct cuda_model *model, const struct cuda_settings *settings,
                    const struct backend_config *site);
void cuda_model_close(struct cuda_model *model);
int cuda_model_load(struct cuda_model *model, const float *parameters, const float *momenta,
                    const float *statistics);
int cuda_model_save(const struct cuda_model *model, float *parameters, float *momenta,
                    float *statistics, float *gradients);

#endif
