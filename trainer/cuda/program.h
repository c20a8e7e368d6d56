/* SPDX-License-Identifier: Apache-2.0
 *
 * program: a graph compiled for one number of images, to train or to infer: a list of steps and the
 * buffers between them. All programs of a model share one arena. The second run is captured as a
 * CUDA graph, which later runs launch at once.
 *
 * A step is one kernel or cuDNN engine with its arguments, ready to be launched. Tensors are named
 * by the fields that point to them; operands say which buffers those are, so that a program can
 * place its buffers after all steps are known.
 */
#ifndef IOBENCH_TRAINER_CUDA_PROGRAM_H
#define IOBENCH_TRAINER_CUDA_PROGRAM_H

#include "trainer/cuda/model.h"

enum { CUDA_OPERANDS_MAX = 8 };

/* Moments of a batch in flight, by the device's clock: two on the upload stream, then those of the
 * compute stream. */
enum cuda_moment {
    CUDA_UPLOAD,
    CUDA_UPLOADED,
    CUDA_COMPUTE, /* compute begins; the batch is uploaded */
    CUDA_STEP_END,
    CUDA_DONE, /* the report is on the host */
    CUDA_UPDATE,
    CUDA_UPDATED,
    CUDA_MOMENTS,
};

/* A batch on the device, from its upload until its loss is reported (cuda.c). */
struct cuda_flight {
    struct cuda_header *staged; /* pinned, as the report */
    struct cuda_report *report;
    void *moments[CUDA_MOMENTS];
    const uint8_t *rows;        /* on the device */
    struct trainer_batch batch; /* as it was given; its rows and labels are the caller's again */
    bool updated, update_reported;
    uint64_t waited_ns; /* time the host waited for batches before starting this one */
};

struct cuda_step;

struct cuda_kernel {
    const char *operation; /* "weight gradient" */
    const char *name;      /* of the kernel; for convolutions, of the one used without cuDNN */
    int (*launch)(const struct cuda_model *model, const struct cuda_flight *flight,
                  const struct cuda_step *step);
};

/* A pointer among the step's arguments that points to a buffer of its program. */
struct cuda_operand {
    uint32_t buffer;
    uint16_t place; /* of the pointer, in the step */
    bool written;
};

struct cuda_step {
    const struct cuda_kernel *kernel;
    uint32_t node;
    uint32_t operand_count;
    struct cuda_operand operands[CUDA_OPERANDS_MAX];
    union {
        struct {
            struct device_input to;
            void *output;
        } input;
        struct {
            struct dnn_shape shape;
            const struct dnn_plan *plan; /* NULL: the plain kernel */
            struct dnn_tensors tensors;
        } convolution;
        struct {
            struct device_pixels pixels;
            struct device_affine with;
            const void *x;
            void *y;
        } affine;
        struct { /* or a ReLU's gradient, from its output and the gradient of that */
            enum device_type type;
            bool relu;
            uint64_t count;
            const void *a, *b;
            void *output;
        } sum;
        struct {
            struct device_pixels pixels;
            struct device_norm norm;
            const void *x;
            const float *sums, *squares;
        } statistics;
        struct {
            struct device_pixels pixels;
            struct device_norm norm;
            struct device_norm_gradient gradient;
            const void *x;
            float *d_gamma, *d_beta, *abc;
            struct kernel_window window; /* of a stem's pool, as the next one */
            const uint8_t *winners;
        } norm_backward;
        struct {
            struct device_pixels pixels;
            const float *abc;
            const void *dz, *x;
            void *d_input;
        } norm_apply;
        struct {
            struct kernel_window window;
            enum device_type type;
            const float *scale, *bias;
            const void *x;
            void *output;
            uint8_t *winners;
        } stem;
        struct { /* backward: from d_output to d_input */
            struct kernel_window window;
            enum device_type type;
            const void *from;
            void *to;
            uint8_t *winners;
        } pool;
        struct {
            struct kernel_lrn lrn;
            enum device_type type;
            const void *input, *d_output;
            void *output;
        } lrn;
        struct {
            struct device_pixels pixels;
            uint32_t plane;
            const uint64_t *key;
            double rate;
            const void *input;
            void *output;
        } dropout;
        struct {
            struct device_part part;
            const void *from;
            void *to;
        } copy;
        struct {
            uint32_t images, classes;
            bool training;
            const void *logits;
            void *d_logits;
        } loss;
        struct {
            struct device_pixels pixels;
            const void *d_output;
            float *d_bias;
        } bias_gradient;
        struct { /* between a floating-point type and INT8 */
            enum device_type type;
            uint64_t count;
            float step;
            const void *from;
            void *to;
        } quantise;
        struct {
            enum device_type type;
            uint64_t count;
            const void *values;
            struct magnitudes *magnitudes;
        } observe;
        struct {
            uint64_t floats;                   /* gradients that are final */
            uint32_t first_chunk, chunk_count; /* those that were not before */
        } ready;
    };
};

extern const struct cuda_kernel cuda_kernel_input, cuda_kernel_convolution,
    cuda_kernel_convolution_int8, cuda_kernel_bias, cuda_kernel_statistics, cuda_kernel_norm_finish,
    cuda_kernel_norm_infer, cuda_kernel_affine, cuda_kernel_sum, cuda_kernel_stem,
    cuda_kernel_max_pool, cuda_kernel_average_pool, cuda_kernel_lrn, cuda_kernel_dropout,
    cuda_kernel_join, cuda_kernel_loss, cuda_kernel_quantise, cuda_kernel_dequantise,
    cuda_kernel_observe;
extern const struct cuda_kernel cuda_kernel_gradient_sum, cuda_kernel_weight, cuda_kernel_data,
    cuda_kernel_bias_gradient, cuda_kernel_relu_backward, cuda_kernel_norm_backward,
    cuda_kernel_norm_apply, cuda_kernel_stem_backward, cuda_kernel_max_pool_backward,
    cuda_kernel_average_pool_backward, cuda_kernel_lrn_backward, cuda_kernel_dropout_backward,
    cuda_kernel_split, cuda_kernel_ready;

/* Return whether the step computes a convolution, so that its shape is set. */
bool cuda_step_convolves(const struct cuda_step *step);

/* ---- programs ---- */

struct cuda_program {
    struct cuda_program *next;
    struct cuda_model *model;
    uint32_t count; /* images */
    bool training;
    struct cuda_step *steps;
    uint32_t step_count;
    struct lifetime *buffers; /* of tensors in the arena; times are steps */
    uint32_t buffer_count;
    uint64_t arena_bytes, workspace_bytes;
    void *bound; /* the arena it is bound to */
    /* Index: whether the update waits for more batches, if that changes the steps. Whether the
     * steps have run, and their graphs, captured for this label smoothing, with labels or
     * without. */
    bool has_run[2];
    void *graphs[2];
    double label_smoothing;
    bool labelled;
    void **moments;  /* events around each step (program.c); NULL: steps are not timed */
    double *took_ns; /* of each step, in all timed runs */
};

/* Rewrite the model's graph into blocks, fuse them, emit steps and place buffers (build.c). NULL
 * with a reason. */
struct cuda_program *cuda_compile(struct cuda_model *model, uint32_t count, bool training);
void cuda_program_destroy(struct cuda_program *program);
/* Point the steps' tensors into the arena, of at least arena_bytes. */
void cuda_program_bind(struct cuda_program *program, void *arena);
/* Drop the captured graphs: memory they refer to has moved. */
void cuda_program_forget(struct cuda_program *program);
/* Put all steps on the compute stream. */
int cuda_program_start(struct cuda_program *program, const struct cuda_flight *flight);
/* Time each step of the following runs, by events of the graph. */
int cuda_program_time(struct cuda_program *program);
/* Add the times of the last run, which is done. No-op if steps are not timed. */
int cuda_program_add_times(struct cuda_program *program);

#endif
