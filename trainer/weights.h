/* SPDX-License-Identifier: Apache-2.0
 *
 * weights: parameters and running statistics of a network in a safetensors file, under the names
 * and in the shapes of torchvision's model where it has the same network, else under our own:
 * LAYER.weight, LAYER.bias, and for batch norm also LAYER.running_mean, LAYER.running_var.
 *
 * Arrays are in the canonical layout of trainer/graph.h. Returns 0 or a negative errno with a
 * reason.
 */
#ifndef IOBENCH_TRAINER_WEIGHTS_H
#define IOBENCH_TRAINER_WEIGHTS_H

#include "trainer/graph.h"

/* The file has each tensor of the network in its shape, as F32, F16 or BF16, and no other but
 * counters of batches (.num_batches_tracked). Statistics may be missing from none of its layers. */
int weights_read(const char *path, const struct network *network, const struct graph *graph,
                 float *parameters, float *statistics);
/* -EEXIST if there is a file. The file appears when it is complete and synced. */
int weights_write(const char *path, const struct network *network, const struct graph *graph,
                  float *parameters, float *statistics);

/* ---- safetensors ----
 *
 * Files of named tensors, as PyTorch users exchange weights. Layout, from the README of
 * github.com/huggingface/safetensors: u64 LE header length N, N bytes of JSON, {"NAME": {"dtype":
 * "F32", "shape": [...], "data_offsets": [begin, end]}, ..., "__metadata__": {text: text}}, then
 * the data, to which the offsets refer: without gaps and overlaps, little-endian, row-major. One
 * thread per file. */

enum { SAFETENSORS_RANK_MAX = 8, SAFETENSORS_SHAPE_BYTES = 160 };

struct safetensor {
    const char *name;
    const char *type; /* "F32"; a static string */
    uint32_t rank;    /* 0: a single number */
    uint64_t shape[SAFETENSORS_RANK_MAX];
    uint64_t begin, bytes; /* in the data */
    float *floats;         /* for safetensors_write() */
};

struct safetensors {
    char *path;
    int fd;
    uint64_t data_at;           /* offset in the file */
    struct safetensor *tensors; /* by offset */
    size_t count;
    void *header;
};

/* Read and check the header. -EBADMSG: not such a file, or damaged. Call safetensors_close() in
 * either case. */
int safetensors_open(struct safetensors *file, const char *path);
void safetensors_close(struct safetensors *file);
const struct safetensor *safetensors_find(const struct safetensors *file,
                                          const char *name); /* or NULL */
uint64_t safetensor_count(const struct safetensor *tensor);  /* of its numbers */
/* "64 x 3 x 7 x 7"; returns text. */
const char *safetensor_shape(const struct safetensor *tensor, char text[SAFETENSORS_SHAPE_BYTES]);
/* Read F32, F16 or BF16 as floats, safetensor_count() of them. -ENOTSUP for other types. */
int safetensors_read(const struct safetensors *file, const struct safetensor *tensor,
                     float *floats);

/* Write tensors of F32, each with name, rank, shape and floats, in this order. The file appears
 * when it is complete and synced; -EEXIST if there is one. */
int safetensors_write(const char *path, const struct safetensor *tensors, size_t count);

#endif
