/* SPDX-License-Identifier: Apache-2.0
 *
 * The cpu backend's internals, the module iobench-cpu.so.
 *
 * A program is the graph compiled for a number of images, to train or to infer: a list of steps,
 * each a oneDNN primitive with its tensors or a function of our own. It is built once and run for
 * every batch. A short last batch has its own program, since BN reads all rows.
 *
 * Layouts: each convolution picks its preferred layout, and its output keeps that layout through
 * BN, ReLU, pools and sums; a reorder is added only where two neighbours disagree. Each parameter
 * is stored in the layout that the first program's forward pass prefers ("home"), unless that is
 * larger than the canonical one; so a training step reorders only the weights for which the
 * backward pass prefers another layout. In BF16 each step copies the weights anyway, and home is
 * the layout of their FP32 gradient, which is then computed where the update reads it.
 *
 * Memory: tensors whose lifetimes do not overlap share space in one arena (trainer/backend.h).
 * All programs share the arena, as only one runs at a time.
 *
 * The first error while building is kept in the program, so that building code reads as a list.
 */
#ifndef IOBENCH_TRAINER_CPU_CPU_H
#define IOBENCH_TRAINER_CPU_CPU_H

#include "trainer/backend.h"
#include "trainer/cpu/dnnl.h"
#include "trainer/settings.h"
#include "trainer/quantise.h"

#include <string.h>

/* Shared by all programs of a state. */
struct cpu_model {
    const struct graph *graph;
    struct backend_config config;
    struct cpu_dnnl dnnl;
    float *parameters, *gradients, *momenta,
        *statistics;                             /* gradients, momenta: NULL for inference */
    const struct cpu_layout **canonical, **home; /* per parameter */
    bool homes_known;
    uint64_t parameter_version; /* incremented when parameters change */
    /* Type of activations, their gradients and the weights that layers read: dnnl_f32 or dnnl_bf16.
     * All else, the arrays above included, is FP32. */
    dnnl_data_type_t type;
    enum cpu_gradients weight_gradients;
    struct quantise_node *quantised; /* per node, for INT8; NULL: none, as always with BF16 */
};

/* Storage of a tensor: in the shared arena, in the program's own memory, or elsewhere. */
enum cpu_place { CPU_ARENA, CPU_KEPT, CPU_FOREIGN };

struct cpu_buffer {
    enum cpu_place place;
    struct lifetime life; /* in steps, for CPU_ARENA */
    void *address;        /* set when the program is bound; CPU_FOREIGN: from the start */
};

/* A view of a buffer in a layout. Tensors may share a buffer. */
struct cpu_tensor {
    const struct cpu_layout *layout; /* NULL: no tensor */
    uint32_t buffer;
    float step; /* quantisation step of INT8; 0: floating point */
};

enum cpu_step_kind {
    CPU_PRIMITIVE,
    CPU_NORMALISE,
    CPU_STATISTICS,
    CPU_FOLD,
    CPU_SUM_RELU_BACKWARD,
    CPU_DROPOUT,
    CPU_DROPOUT_BACKWARD,
    CPU_OBSERVE,
    CPU_LOSS,
    CPU_READY,
};

enum { CPU_ARGUMENTS = 12 };

struct cpu_step {
    enum cpu_step_kind kind;
    uint32_t node;
    bool of_parameters; /* depends on parameters only: rerun after they change */
    dnnl_primitive_t primitive;
    int argument_count;
    dnnl_exec_arg_t arguments[CPU_ARGUMENTS];
    uint32_t source, target, other; /* buffers, for steps of our own */
    uint32_t norm;                  /* CPU_FOLD: the BN */
    uint32_t mask;                  /* CPU_SUM_RELU_BACKWARD: buffer of the ReLU's output */
    uint64_t floats;                /* per buffer */
    uint64_t ready_floats;
};

struct cpu_memory {
    dnnl_memory_t memory;
    uint32_t buffer;
};

/* Per-node state while building. */
struct cpu_node {
    bool absorbed;            /* a ReLU computed by the previous node */
    bool relu;                /* also computes the ReLU that follows */
    uint32_t norm;            /* the BN folded into its weights, or 0 */
    uint32_t summand;         /* the node whose output it accumulates into, or 0 */
    bool hidden;              /* its own output is never stored: a later node is fused into it */
    struct cpu_tensor floats; /* FP32 copy of an INT8 output, made on demand */
    struct cpu_tensor source, output; /* source: the input in its primitive's layout */
    struct cpu_tensor mean, variance, workspace;
    dnnl_primitive_desc_t forward; /* hint for the backward primitives */
    uint32_t gradient_count;
    struct cpu_tensor *gradients; /* one per consumer, not yet summed */
};

/* Memory owned by a program, allocated while it is built. */
struct cpu_constant {
    struct cpu_constant *next;
    _Alignas(64) char bytes[];
};

struct cpu_program {
    struct cpu_program *next;
    struct cpu_constant *constants;
    struct cpu_model *model;
    uint32_t count; /* images */
    bool training;
    int code; /* first error while building; the thread has its reason */
    struct cpu_step *steps;
    uint32_t step_count;
    struct cpu_buffer *buffers;
    uint32_t buffer_count;
    struct cpu_memory *memories;
    uint32_t memory_count;
    struct cpu_node *nodes; /* while building only */
    uint32_t scratch;       /* scratchpad shared by all primitives */
    uint64_t arena_bytes, kept_bytes;
    void *kept;
    void *bound; /* the arena it is bound to */
    uint64_t parameter_version;
    uint64_t *took_ns; /* per step, summed over runs; NULL: not timed */
};

/* Build the steps of a program whose model, number of images and pass are set (build.c). Returns 0
 * or a negative errno. */
int cpu_program_build(struct cpu_program *program);

/* ---- schedule.c ---- */

/* Append the program's steps. passes: number of timed runs. */
int cpu_program_list(const struct cpu_program *program, uint32_t passes, struct schedule *schedule);
/* Measure the schedule's peaks, of matrix products in that type, on OpenMP's current number of
 * threads. */
int cpu_peaks(struct cpu_dnnl *dnnl, dnnl_data_type_t type, struct schedule *schedule);

extern const struct backend_ops iobench_backend_cpu; /* what the program finds in the module */

/* ---- BF16: the upper half of a single-precision number ---- */

static inline float bf16_to_float(uint16_t value)
{
    const uint32_t bits = (uint32_t)value << 16;
    float number;

    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Round to nearest, ties to even; a NaN stays one. */
static inline uint16_t bf16_of_float(float number)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof bits);
    const bool is_nan = (bits & INT32_MAX) > 0x7f800000;
    return (uint16_t)((is_nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
