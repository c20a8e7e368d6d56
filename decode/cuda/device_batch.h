/* SPDX-License-Identifier: Apache-2.0
 *
 * device_batch: images that a GPU decodes and resizes together: copied to pinned memory as they
 * come, decoded by nvJPEG into GPU memory, resized there by our kernel, and copied to their rows.
 *
 * nvJPEG reports one status for a batch and, with hardware engines, may leave an image unwritten
 * without saying so. So a batch that fails is undecoded as a whole, and each image is marked before
 * it is decoded and looked at before it is used. All memory but nvJPEG's own is allocated by
 * open(). One thread at a time.
 */
#ifndef IOBENCH_DECODE_CUDA_DEVICE_BATCH_H
#define IOBENCH_DECODE_CUDA_DEVICE_BATCH_H

#include "decode/cuda/library.h"
#include "decode/nvjpeg_settings.h"
#include "kernels/device.h"
#include "kernels/resize.h"
#include "kernels/runtime.h"

struct device_batch {
    struct library library;
    struct runtime runtime;
    void *handle, *state, *parsed; /* nvJPEG's */
    void *done;                    /* an event */
    uint32_t side, capacity, count, tiles;
    uint32_t begun;   /* the size of batches that the state is for */
    char engine[128]; /* the GPU, and what decodes there */
    char notice[128]; /* of the first batch that was refused; empty: none was */
    /* Each a part of a whole: device memory for images, pinned memory for files, and tables in
     * both. */
    struct device_space {
        uint8_t *start;
        uint64_t bytes, used;
    } pixels, files, tables;
    uint8_t *device_tables, *rows, *device_marks;
    uint64_t row_stride;
    uint8_t *marks; /* pinned */
    const unsigned char *data[NVJPEG_IMAGES_MAX];
    size_t lengths[NVJPEG_IMAGES_MAX];
    struct library_image images[NVJPEG_IMAGES_MAX];
    void *targets[NVJPEG_IMAGES_MAX];
};

struct device_image {
    const void *bytes;
    size_t length;
    uint32_t width, height;
    const struct resize *plan;
    void *row; /* side x side x 3, host memory */
};

enum device_added { DEVICE_ADDED, DEVICE_FULL, DEVICE_UNFIT };

/* Return how much pinned memory a batch takes. */
uint64_t device_batch_pinned_bytes(const struct nvjpeg_settings *settings);

/* Returns 0 or a negative errno with a reason; close() in either case. */
int device_batch_open(struct device_batch *batch, const struct nvjpeg_settings *settings);
void device_batch_close(struct device_batch *batch);

/* DEVICE_UNFIT: nvJPEG does not decode it, or it is larger than all space. */
enum device_added device_batch_add(struct device_batch *batch, const struct device_image *image);
/* The copy of an image's file, until the batch is cleared. */
const void *device_batch_file(const struct device_batch *batch, uint32_t index);

/* Decode all images into their rows; decoded[i] says which were. Returns 0, or a negative errno
 * with a reason if the device failed. */
int device_batch_run(struct device_batch *batch, bool decoded[NVJPEG_IMAGES_MAX]);
void device_batch_clear(struct device_batch *batch);

#endif
