/* SPDX-License-Identifier: Apache-2.0
 *
 * The cpu backend's own parts, for trainer/cpu*.c alone.
 *
 * A program is the graph compiled for one number of images, to train or to infer: a list of steps,
 * each a oneDNN primitive with its tensors or a call of ours. It is built once and runs as often as
 * there are batches. A short last batch has a program of its own, since BN looks at all rows.
 *
 * Layouts: each convolution says which layout it likes best, and its output goes on in that layout
 * through BN, ReLU, pools and sums; a reorder stands only where two neighbours disagree. Each
 * parameter lives in the layout that the first program's forward pass likes ("home"), when that
 * takes no more room than the canonical one; so a training step reorders no weights but those that
 * the backward pass wants otherwise.
 *
 * Memory: tensors that are never needed together share a place in one arena (trainer/lifetimes.h),
 * which all programs share, as one runs at a time.
 *
 * While a program is built the first error is kept in it, so that building reads as a list.
 */
#ifndef IOBENCH_TRAINER_CPU_H
#define IOBENCH_TRAINER_CPU_H

#include "trainer/backend.h"
#include "trainer/cpu_dnnl.h"
#include "trainer/lifetimes.h"
#include "trainer/quantise.h"

/* What all programs of one state share. */
struct cpu_model {
    const struct graph *graph;
    struct cpu_dnnl dnnl;
    float *parameters, *gradients, *momenta, *statistics; /* gradients, momenta: NULL to infer */
    const struct cpu_layout **canonical, **home;          /* of each parameter */
    bool homes_known;
    uint64_t parameter_version; /* rises whenever parameters change */
    uint64_t seed;
    struct quantise_node *quantised; /* of each node, in INT8; NULL: all in FP32 */
    struct calibration *calibration; /* NULL: nobody looks */
};

/* Where a tensor's bytes are: in the shared arena, kept by its program, or somebody else's. */
enum cpu_place { CPU_ARENA, CPU_KEPT, CPU_FOREIGN };

struct cpu_buffer {
    enum cpu_place place;
    struct lifetime life; /* in steps; CPU_ARENA */
    void *address;        /* set when the program is bound; CPU_FOREIGN: from the start */
};

/* A buffer seen through a layout. Several tensors may be of one buffer. */
struct cpu_tensor {
    const struct cpu_layout *layout; /* NULL: no tensor */
    uint32_t buffer;
    float step; /* of INT8; 0: FP32 */
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
    bool of_parameters; /* looks at parameters alone: done again only after they changed */
    dnnl_primitive_t primitive;
    int argument_count;
    dnnl_exec_arg_t arguments[CPU_ARGUMENTS];
    uint32_t source, target, other; /* buffers, of steps of ours */
    uint32_t norm;                  /* CPU_FOLD: the BN */
    uint32_t mask;                  /* CPU_SUM_RELU_BACKWARD: the buffer of the ReLU's output */
    uint64_t floats;                /* of each buffer */
    uint64_t ready_floats;
};

struct cpu_memory {
    dnnl_memory_t memory;
    uint32_t buffer;
};

/* What the program knows of a node while it is built. */
struct cpu_node {
    uint32_t consumers, consumer; /* how many, and the last one */
    bool absorbed;                /* a ReLU that the node before it computes */
    bool relu;                    /* computes the ReLU behind it, too */
    uint32_t norm;                /* the BN whose scale and shift its weights take in, or 0 */
    uint32_t summand;             /* the node whose output it adds its own to, in place, or 0 */
    bool hidden;                  /* its own output never exists: a node behind is in it */
    bool needs_gradient;
    struct cpu_tensor floats;         /* of an output in INT8, when somebody wants them */
    struct cpu_tensor source, output; /* source: the input as its primitive takes it */
    struct cpu_tensor mean, variance, workspace;
    dnnl_primitive_desc_t forward; /* hint of the backward primitives */
    uint32_t gradient_count;
    struct cpu_tensor *gradients; /* one of each consumer, still to be added up */
};

/* Memory of a program's own, made while it is built. */
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
    int code; /* first error while building; its reason is the thread's */
    struct cpu_step *steps;
    uint32_t step_count;
    struct cpu_buffer *buffers;
    uint32_t buffer_count;
    struct cpu_memory *memories;
    uint32_t memory_count;
    struct cpu_node *nodes;           /* only while building */
    dnnl_primitive_attr_t attributes; /* only while building: scratch memory is ours */
    uint32_t scratch;                 /* one buffer for what primitives scribble in */
    uint64_t arena_bytes, kept_bytes;
    void *kept;
    void *bound; /* the arena it is bound to */
    uint64_t parameter_version;
    uint64_t *took_ns; /* of each step, summed over runs; NULL: not timed */
};

/* ---- cpu_threads.c ---- */

/* One thread's part, [first, end), of some work. */
typedef void (*cpu_part)(const void *context, uint64_t first, uint64_t end);
/* Shares out `count` things to all threads in multiples of `unit`; returns when all are done. */
void cpu_share(uint64_t count, uint64_t unit, cpu_part body, const void *context);

/* ---- cpu_builder.c: the calls that a program is built with ---- */

uint32_t cpu_add_buffer(struct cpu_program *program, enum cpu_place place, uint64_t bytes,
                        void *address);
struct cpu_tensor cpu_add_tensor(struct cpu_program *program, const struct cpu_layout *layout);
struct cpu_tensor cpu_foreign(struct cpu_program *program, const struct cpu_layout *layout,
                              void *address);
/* A step of ours. The result is valid until the next one is added. */
struct cpu_step *cpu_add_step(struct cpu_program *program, enum cpu_step_kind kind, uint32_t node,
                              uint32_t source, uint32_t target);

/* sum = where output > 0, the sum of the two terms. All have one layout. */
void cpu_add_sum_relu(struct cpu_program *program, uint32_t node, const struct cpu_tensor terms[2],
                      const struct cpu_tensor *output, const struct cpu_tensor *sum);

struct cpu_argument {
    int name; /* DNNL_ARG_ */
    const struct cpu_tensor *tensor;
};

/* A primitive and its step. */
void cpu_add_primitive(struct cpu_program *program, dnnl_primitive_desc_t desc, uint32_t node,
                       const struct cpu_argument *arguments, int count);
/* behind: of enum cpu_behind. scaling: NULL for none. */
dnnl_primitive_attr_t cpu_attributes(struct cpu_program *program, unsigned behind,
                                     const struct cpu_scaling *scaling, uint32_t node);
/* Zeroed memory that lives as long as the program. NULL after an error. */
void *cpu_add_constant(struct cpu_program *program, uint64_t bytes);
/* The scales that a primitive takes as an argument; one without a layout when it takes none. */
struct cpu_tensor cpu_add_scales(struct cpu_program *program, const struct cpu_scaling *scaling);
/* The description of a primitive. NULL after an error. */
dnnl_primitive_desc_t cpu_describe(struct cpu_program *program,
                                   const struct cpu_operation *operation,
                                   dnnl_primitive_desc_t hint, unsigned behind, uint32_t node);
/* The layout a primitive wants or gives; of a program with an error: an empty one. */
const struct cpu_layout *cpu_query(const struct cpu_program *program, dnnl_primitive_desc_t desc,
                                   dnnl_query_t what);
/* The same tensor in that layout; itself when it has it already. */
struct cpu_tensor cpu_convert(struct cpu_program *program, const struct cpu_tensor *tensor,
                              const struct cpu_layout *wanted, uint32_t node);
/* The same, of what changes with the parameters alone: done once for them. */
struct cpu_tensor cpu_convert_once(struct cpu_program *program, const struct cpu_tensor *tensor,
                                   const struct cpu_layout *wanted, uint32_t node);
/* A parameter as a primitive wants it. */
struct cpu_tensor cpu_parameter(struct cpu_program *program, uint32_t parameter,
                                const struct cpu_layout *wanted, uint32_t node);
/* Where a primitive that gives this layout writes a parameter's gradient, and what brings it home
 * from there. */
struct cpu_tensor cpu_gradient(struct cpu_program *program, uint32_t parameter,
                               const struct cpu_layout *given);
void cpu_gradient_done(struct cpu_program *program, uint32_t parameter,
                       const struct cpu_tensor *gradient, uint32_t node);
void cpu_add_reorder(struct cpu_program *program, const struct cpu_tensor *from,
                     const struct cpu_tensor *to, uint32_t node);
void cpu_keep(struct cpu_program *program, dnnl_status_t status, uint32_t node);

/* ---- cpu_shapes.c ---- */

/* A node's output in the canonical layout, as planes or as rows. */
const struct cpu_layout *cpu_plain_images(const struct cpu_program *program, uint32_t number);
const struct cpu_layout *cpu_plain_rows(const struct cpu_program *program, uint32_t number);
/* A node's output as rows, for a fully connected layer, and back as planes. */
struct cpu_tensor cpu_images_as_rows(struct cpu_program *program, const struct cpu_tensor *images,
                                     uint32_t number);
struct cpu_tensor cpu_rows_as_images(struct cpu_program *program, const struct cpu_tensor *rows,
                                     uint32_t number);

struct cpu_window cpu_window(const struct graph_node *node);
dnnl_alg_kind_t cpu_pool_kind(const struct graph_node *node);
struct cpu_operation cpu_lrn(const struct graph_node *node, dnnl_prop_kind_t pass,
                             const struct cpu_layout *layout);

/* ---- the passes: what each node becomes ---- */

void cpu_build_forward(struct cpu_program *program);  /* cpu_forward.c */
void cpu_build_backward(struct cpu_program *program); /* cpu_backward.c */
/* A node's output in FP32, whatever it is held in. */
const struct cpu_tensor *cpu_floats(struct cpu_program *program, uint32_t number); /* cpu_int8.c */
/* A node that the program has in INT8 becomes so. */
void cpu_hold_as_planned(struct cpu_program *program, uint32_t number); /* cpu_int8.c */
/* A convolution in INT8, with what is behind it. */
void cpu_build_int8(struct cpu_program *program, uint32_t number); /* cpu_int8.c */
enum { CPU_NORM_FLAGS = dnnl_use_scale | dnnl_use_shift };

/* ---- cpu_program.c ---- */

struct cpu_program *cpu_program_create(struct cpu_model *model, uint32_t count, bool training);
void cpu_program_destroy(struct cpu_program *program);
/* Points the program's tensors into the arena, of at least program->arena_bytes. */
int cpu_program_bind(struct cpu_program *program, void *arena);
int cpu_program_run(struct cpu_program *program, const struct backend_pass *pass,
                    struct backend_loss *loss);

/* ---- cpu_schedule.c ---- */

/* Appends the program's steps. passes: how often it ran while it was timed. */
int cpu_program_list(const struct cpu_program *program, uint32_t passes, struct schedule *schedule);

#endif
