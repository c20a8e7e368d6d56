/* SPDX-License-Identifier: Apache-2.0
 *
 * model: a network's parameters and everything else that its programs share on the device.
 *
 * Tensors are NHWC in the backend's number type; images have 4 channels, of which 3 are used.
 * Parameters and momenta are FP32 in arenas of parameter_floats, convolution weights as output x
 * height x width x input. Layers compute with copies in their own type, which each update
 * refreshes, and the update reads gradients where layers left them; those that an exchange sums, or
 * that are saved, are collected in an FP32 arena. Knows no program. One thread. 0 or a negative
 * errno with a reason.
 */
#ifndef IOBENCH_TRAINER_CUDA_MODEL_H
#define IOBENCH_TRAINER_CUDA_MODEL_H

#include "kernels/device.h"
#include "kernels/runtime.h"
#include "trainer/backend.h"
#include "trainer/cuda/dnn.h"
#include "trainer/settings.h"
#include "trainer/quantise.h"

enum { CUDA_NONE = UINT32_MAX };
enum { CUDA_IMAGE_CHANNELS = 4 }; /* a third of the time that cuDNN takes with 8 in the stem */

/* Sent to the device before each batch, with the rows; one piece of pinned and of device memory. In
 * FP16 the gradient of the summed loss is propagated, not that of the mean, so that small numbers
 * do not vanish; it is divided where the optimiser reads it, or an exchange's arena is filled. */
struct cuda_header {
    float gradient_scale; /* of d_logits */
    float unscale;        /* of FP32 gradients; FP16 only */
    float sum[2];         /* see device_parameters; only if batches share updates */
    /* followed by a dropout key per node, 8 bytes, and a label per image, 4 bytes */
};

/* Returned to the host after each batch. */
struct cuda_report {
    struct device_loss loss;
    uint64_t gradients_ns, exchanged_ns; /* when gradients were final, and summed; device's clock */
};

/* Parameters of an INT8 convolution, on the device. */
struct cuda_int8 {
    int8_t *weight;
    float *scale, *bias, *last; /* see struct device_int8; one piece of memory */
};

/* Nodes that an INT8 convolution computes besides itself, if nothing else reads the outputs in
 * between: BN, folded into its weights; the sum with `other`, held in INT8; ReLU. Only the output
 * of the last node is stored. 0: none; end 0: the node is no such convolution. */
struct cuda_chain {
    uint32_t norm, sum, other, relu, end;
};

struct cuda_memory {
    void *start;
    void (*release)(void *start);
};

struct cuda_model {
    const struct graph *graph;
    const struct cuda_settings *settings;
    struct backend_config config;
    struct runtime runtime;
    struct dnn *dnn;
    enum device_type type;
    int code;      /* first error of an allocation */
    bool outlined; /* only to compile programs: nothing is allocated, addresses are not used */
    struct cuda_memory *memory; /* all but the programs' arena and workspace */
    uint32_t memory_count;
    uint64_t device_bytes, pinned_bytes; /* of that memory */
    float *parameters, *gradients, *momenta, *statistics;
    float *host_gradients; /* pinned; NULL unless the config wants them */
    void **compute;        /* of each parameter: what layers read */
    void **given;          /* its gradient as layers compute it, in FP16 of the summed loss */
    struct device_parameters table;
    float *norms; /* CUDA_NORM_ROWS rows of its channels for each BN node */
    float *partial;
    void *workspace;
    uint64_t workspace_bytes;
    uint64_t header_bytes;
    struct cuda_header *header; /* of the running pass */
    struct device_loss *per_image;
    struct cuda_report *report;
    float *logits, *logits_result;   /* FP32, on the device; pinned */
    struct quantise_node *quantised; /* of each node, in INT8; NULL: none is */
    struct cuda_int8 *int8;          /* of each node */
    struct cuda_chain *chains;       /* of each node */
    char notice[512]; /* of the first convolution without cuDNN's engine, or without its fastest */
    struct magnitudes *magnitudes; /* of each node, while calibrating */
    uint32_t *scratch;             /* of their kernel */
};

enum cuda_norm_row {
    CUDA_MEAN,
    CUDA_INVERSE,
    CUDA_SCALE,
    CUDA_BIAS,
    CUDA_ABC, /* three of them */
    /* Read and written by fused convolutions. */
    CUDA_SUMS = CUDA_ABC + 3,
    CUDA_SQUARES,
    CUDA_TYPED_SCALE,
    CUDA_TYPED_BIAS,
    CUDA_GAMMA,
    CUDA_BETA,
    CUDA_D_GAMMA,
    CUDA_D_BETA,
    CUDA_NORM_ROWS = 16, /* a multiple of 4 floats: rows of 4, 8, ... channels are aligned */
};

/* Opens everything but calibration; `outlined` may be set before. Close it in either case. */
int cuda_model_open(struct cuda_model *model, const struct cuda_settings *settings,
                    const struct backend_config *config);
void cuda_model_close(struct cuda_model *model);
/* Canonical layout; NULL: skipped. */
int cuda_model_load(struct cuda_model *model, const float *parameters, const float *momenta,
                    const float *statistics);
int cuda_model_save(const struct cuda_model *model, float *parameters, float *momenta,
                    float *statistics, float *gradients);

/* Allocate device memory or pinned host memory that lives as long as the model. NULL after an
 * error, which the model keeps. */
void *cuda_allocate(struct cuda_model *model, uint64_t bytes);
void *cuda_pin(struct cuda_model *model, uint64_t bytes);
/* Device memory with zeros. */
void *cuda_zeros(struct cuda_model *model, uint64_t bytes);

/* ---- shapes and addresses of a node ---- */

uint32_t cuda_channels(const struct cuda_model *model, uint32_t node); /* padding included */
uint64_t cuda_numbers(const struct cuda_model *model, uint32_t node);  /* of one image */
struct kernel_window cuda_window(const struct cuda_model *model, uint32_t images, uint32_t node);
struct dnn_shape cuda_shape(const struct cuda_model *model, uint32_t images, uint32_t node,
                            enum dnn_kind kind, uint32_t fusion);
float *cuda_norm_row(const struct cuda_model *model, uint32_t node, enum cuda_norm_row row);
struct device_norm cuda_norm(const struct cuda_model *model, uint32_t node);
float *cuda_parameter(const struct cuda_model *model, uint32_t parameter);
/* dnn_find(); remember that an engine was not used since it is wrong, and that cuDNN has none for
 * this operation of a step, which is then slow. operation NULL: nothing is computed so. */
const struct dnn_plan *cuda_find_plan(struct cuda_model *model, uint32_t node,
                                      const char *operation, const struct dnn_shape *shape,
                                      int *code);
int32_t *cuda_labels(const struct cuda_model *model, struct cuda_header *header);

#endif
