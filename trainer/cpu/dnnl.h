/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN for the cpu backend. The C interfaces of versions 2 and 3 differ in how a layout is
 * represented and how an operation is described; this header hides the difference. Independent of
 * graphs.
 *
 * Layouts are interned: equal layouts are one pointer, valid until cpu_dnnl_close().
 */
#ifndef IOBENCH_TRAINER_CPU_DNNL_H
#define IOBENCH_TRAINER_CPU_DNNL_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdint.h>

#if DNNL_VERSION_MAJOR < 3
typedef const dnnl_memory_desc_t *cpu_raw_layout;
#else
typedef const_dnnl_memory_desc_t cpu_raw_layout;
#endif

/* The result does not depend on the shift, yet version 2 requires it; version 3 rejects it. */
enum { CPU_NORM_BACKWARD_TAKES_SHIFT = DNNL_VERSION_MAJOR < 3 };

/* Version 2 adds the bias before scaling a result, version 3 after. */
enum { CPU_SCALES_TAKE_BIAS = DNNL_VERSION_MAJOR < 3 };

/* A tensor's dimensions and the position of each element; or "any", for queries. */
struct cpu_layout {
    struct cpu_layout *next;
    dnnl_data_type_t type;
    int ndims;
    dnnl_dims_t dims;
    uint64_t bytes;
    cpu_raw_layout raw;
};

struct cpu_dnnl {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct cpu_layout *layouts;
    int code; /* -ENOMEM: a layout could not be interned; an empty one was returned */
};

int cpu_dnnl_open(struct cpu_dnnl *dnnl);
void cpu_dnnl_close(struct cpu_dnnl *dnnl);
/* Returns 0, or a negative errno whose reason says what oneDNN could not do. */
int cpu_check(dnnl_status_t status, const char *what);

/* ---- threads ---- */

/* One thread's share, [first, end), of some work. */
typedef void (*cpu_part)(const void *context, uint64_t first, uint64_t end);
/* Split `count` items among all threads in multiples of `unit`; return when all are done. */
void cpu_share(uint64_t count, uint64_t unit, cpu_part body, const void *context);

/* ---- layouts ---- */

const struct cpu_layout *cpu_tagged(struct cpu_dnnl *dnnl, int ndims, const dnnl_dim_t *dims,
                                    dnnl_data_type_t type, dnnl_format_tag_t tag);
/* Dense, in dimension order; cpu_plain(): FP32. */
const struct cpu_layout *cpu_dense(struct cpu_dnnl *dnnl, int ndims, const dnnl_dim_t *dims,
                                   dnnl_data_type_t type);
const struct cpu_layout *cpu_plain(struct cpu_dnnl *dnnl, int ndims, const dnnl_dim_t *dims);
/* The same dimensions in any layout. */
const struct cpu_layout *cpu_any(struct cpu_dnnl *dnnl, const struct cpu_layout *like,
                                 dnnl_data_type_t type);
/* The part of a tensor that begins at the offsets; NULL if it would split a block. */
const struct cpu_layout *cpu_cut(struct cpu_dnnl *dnnl, const struct cpu_layout *whole,
                                 const dnnl_dim_t *dims, const dnnl_dim_t *offsets);
/* The layout a primitive expects or produces. */
const struct cpu_layout *cpu_layout_of(struct cpu_dnnl *dnnl, dnnl_primitive_desc_t desc,
                                       dnnl_query_t what);
/* Mix the layout into the hash. */
uint64_t cpu_layout_hash(uint64_t hash, const struct cpu_layout *layout);
/* Copy from one layout to another, synchronously. */
int cpu_reorder(const struct cpu_dnnl *dnnl, const struct cpu_layout *from_layout,
                const float *from, const struct cpu_layout *to_layout, float *to);

/* ---- operations ---- */

enum { CPU_INPUTS_MAX = 10 };

enum cpu_operation_kind {
    CPU_CONVOLUTION,
    CPU_INNER_PRODUCT,
    CPU_NORM,
    CPU_ELTWISE,
    CPU_POOL,
    CPU_LRN,
    CPU_ADD,
    CPU_CONCAT, /* of the channels */
    CPU_SUM,    /* all tensors in one layout */
};

struct cpu_window {
    dnnl_dims_t strides, sides, before, behind;
};

/* Factors applied to a result before any post-op. */
struct cpu_scaling {
    int argument; /* DNNL_ARG_WEIGHTS, or DNNL_ARG_FROM of a reorder */
    int count;    /* one per output channel, or one */
    bool grouped; /* the first dimension of the weights is groups */
    const float *factors;
    float summand; /* CPU_ACCUMULATE: factor of the previous contents */
};

/* In a backward pass the tensors are gradients; BN, element-wise and LRN use one layout for all. */
struct cpu_operation {
    enum cpu_operation_kind kind;
    dnnl_prop_kind_t pass;
    dnnl_alg_kind_t algorithm; /* CPU_ELTWISE, CPU_POOL */
    unsigned behind;           /* of enum cpu_behind */
    const struct cpu_layout *source, *target;
    const struct cpu_layout *weight, *bias; /* CPU_CONVOLUTION, CPU_INNER_PRODUCT; bias or NULL */
    struct cpu_window window;               /* CPU_CONVOLUTION, CPU_POOL */
    const struct cpu_scaling *scaling;      /* CPU_CONVOLUTION in INT8; or NULL */
    float epsilon;                          /* CPU_NORM */
    unsigned flags;
    dnnl_dim_t size; /* CPU_LRN */
    float alpha, beta, k;
    const struct cpu_layout *const *inputs; /* CPU_CONCAT, CPU_SUM; up to CPU_INPUTS_MAX */
    int input_count;
};

/* Post-ops: add the previous contents of the target, then ReLU. */
enum cpu_behind { CPU_RELU = 1, CPU_ACCUMULATE = 2 };

dnnl_status_t cpu_dnnl_describe(const struct cpu_dnnl *dnnl, const struct cpu_operation *with,
                                dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t hint,
                                dnnl_primitive_desc_t *desc);
/* behind: flags of enum cpu_behind. summand: factor of the previous contents. */
dnnl_status_t cpu_dnnl_append(dnnl_post_ops_t list, unsigned behind, float summand);
dnnl_status_t cpu_dnnl_scale(dnnl_primitive_attr_t attributes, const struct cpu_scaling *scaling);
/* The run-time argument that supplies the factors; 0: they are in the attributes. */
int cpu_dnnl_scales_argument(const struct cpu_scaling *scaling);

/* Return the properties of a layout of oneDNN's own. */
dnnl_data_type_t cpu_raw_type(cpu_raw_layout raw);
int cpu_raw_dims(cpu_raw_layout raw, dnnl_dims_t dims);

#endif
