/* SPDX-License-Identifier: Apache-2.0
 *
 * weights: parameters and running statistics of a network in a safetensors file, under the names
 * and in the shapes of torchvision's model where it has the same network, else under our own:
 * LAYER.weight, LAYER.bias, and for batch norm also LAYER.running_mean, LAYER.running_var.
 *
 * Also the format of such files, and checkpoints, from which training goes on.
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

/* ---- checkpoints ----
 *
 * Everything needed to resume training bit for bit, in one file that is either complete
 * or absent (base/file.h: draft, fsync, rename). Loading checks kind, version, sizes and CRC.
 *
 * The file, little-endian: "IOBENCHK", u32 version, u32 side, u32 classes, u32 0, network name (32
 * bytes), u64 each of parameter floats, statistic floats, seed, global batch size, epoch, step,
 * elapsed nanoseconds, samples, and f64 the rate of the last step; 1,024 bytes of settings, a text
 * padded with zeros (not in version 1); then the floats of parameters, momenta and statistics in
 * the canonical layout of trainer/graph.h; then u32 CRC-32C of everything before it. */

enum { CHECKPOINT_NAME_BYTES = 32, CHECKPOINT_SETTINGS_BYTES = 1024 };

/* Progress of a loop over batches, saved with the weights. */
struct training_position {
    uint64_t epoch; /* finished */
    uint64_t elapsed_ns, samples;
    /* Options of the training, a line "option value" each; "": unknown. It comes from a file:
     * escape it. */
    char settings[CHECKPOINT_SETTINGS_BYTES];
};

struct checkpoint {
    char network[CHECKPOINT_NAME_BYTES];
    uint32_t side, classes;
    uint64_t parameter_floats, statistic_floats;
    uint64_t seed, batch_size; /* samples per update, of all ranks */
    uint64_t step;             /* finished */
    double rate_before;
    struct training_position position;
};

/* How many floats it has: parameters, momenta and statistics, one after the other. */
uint64_t checkpoint_floats(const struct checkpoint *checkpoint);

/* Check that a checkpoint may replace the file at path: only another one, or an empty file. Returns
 * 0 or a negative errno with a reason. */
int checkpoint_check_replaced(const char *path);

/* Returns 0 or a negative errno with a reason; on failure a previous file stays. The caller sees to
 * it that no other process writes there. */
int checkpoint_write(const char *path, const struct checkpoint *checkpoint, const float *floats);

/* wanted: network, side, classes and numbers of floats. Returns -EINVAL for a checkpoint that
 * differs in any of these, -EBADMSG for a damaged one. The floats are overwritten in either case.
 */
int checkpoint_read(const char *path, const struct checkpoint *wanted,
                    struct checkpoint *checkpoint, float *floats);

#endif
