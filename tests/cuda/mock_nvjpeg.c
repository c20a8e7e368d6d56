/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of nvJPEG that the nvjpeg decoder uses, in place of libnvjpeg.so.13, on the emulated
 * device of the module that IOBENCH_NVJPEG_MODULE names: libjpeg-turbo decodes, and images arrive
 * in the order of the stream. As the library is documented: hardware engines take baseline images
 * of one scan, but no 4:1:1; a batch has the size that it was begun with, and one status; after a
 * failure it must be begun again. What a caller must not do ends the program.
 *
 * IOBENCH_EMULATED_NVJPEG is a list of: no-engines; skips (the third image of each batch is left
 * unwritten, without a word); late (the last one is written behind what the caller starts next);
 * fails (every second batch does); memory (there is none for any).
 */
#include "tests/cuda/emulated.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum {
    SUCCESS = 0,
    BAD_JPEG = 3,
    ALLOCATOR_FAILURE = 5,
    EXECUTION_FAILED = 6,
    ARCH_MISMATCH = 7,
    HARDWARE = 3,
    RGB_INTERLEAVED = 5,
};

struct handle {
    int backend;
    uint32_t states; /* and parsed streams */
};

struct state {
    struct handle *handle;
    int begun;
    uint32_t batches;
};

struct parsed {
    struct handle *handle;
    bool plain;
};

struct image {
    unsigned char *channel[4];
    size_t pitch[4];
};

/* What is called from outside alone. */
int nvjpegCreateEx(int backend, void *device, void *pinned, unsigned flags, void **made);
int nvjpegDestroy(void *given);
int nvjpegJpegStateCreate(void *given, void **made);
int nvjpegJpegStateDestroy(void *given);
int nvjpegJpegStreamCreate(void *given, void **made);
int nvjpegJpegStreamDestroy(void *given);
int nvjpegJpegStreamParseHeader(void *given, const unsigned char *data, size_t length, void *to);
int nvjpegDecodeBatchedSupported(void *given, void *parsed, int *unsupported);
int nvjpegDecodeBatchedInitialize(void *given, void *of, int images, int threads, int format);
int nvjpegDecodeBatched(void *given, void *of, const unsigned char *const *data,
                        const size_t *lengths, struct image *images, void *stream);

static void refuse(const char *what)
{
    fprintf(stderr, "emulated nvJPEG: %s\n", what);
    abort();
}

static bool wants(const char *word)
{
    const char *list = getenv("IOBENCH_EMULATED_NVJPEG");

    return list && strstr(list, word);
}

/* Of the module, which is loaded, but not for all to see. */
static void *of_module(const char *symbol)
{
    const char *path = getenv("IOBENCH_NVJPEG_MODULE");
    void *module = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *found = module ? dlsym(module, symbol) : NULL;

    if (!found)
        refuse("IOBENCH_NVJPEG_MODULE is not the emulated module");
    return found;
}

/* ---- handles ---- */

int nvjpegCreateEx(int backend, void *device, void *pinned, unsigned flags, void **made)
{
    struct handle *handle = calloc(1, sizeof *handle);

    if (device || pinned || flags)
        refuse("no allocators and no flags are known");
    if (!handle)
        return ALLOCATOR_FAILURE;
    if (backend == HARDWARE && wants("no-engines")) {
        free(handle);
        return ARCH_MISMATCH;
    }
    handle->backend = backend;
    *made = handle;
    return SUCCESS;
}

int nvjpegDestroy(void *given)
{
    if (((struct handle *)given)->states > 0)
        refuse("a handle goes before its states");
    free(given);
    return SUCCESS;
}

int nvjpegJpegStateCreate(void *given, void **made)
{
    struct state *state = calloc(1, sizeof *state);

    if (!state)
        return ALLOCATOR_FAILURE;
    state->handle = given;
    state->handle->states++;
    *made = state;
    return SUCCESS;
}

int nvjpegJpegStateDestroy(void *given)
{
    ((struct state *)given)->handle->states--;
    free(given);
    return SUCCESS;
}

int nvjpegJpegStreamCreate(void *given, void **made)
{
    struct parsed *parsed = calloc(1, sizeof *parsed);

    if (!parsed)
        return ALLOCATOR_FAILURE;
    parsed->handle = given;
    parsed->handle->states++;
    *made = parsed;
    return SUCCESS;
}

int nvjpegJpegStreamDestroy(void *given)
{
    ((struct parsed *)given)->handle->states--;
    free(given);
    return SUCCESS;
}

/* ---- images ---- */

struct decoding {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
};

static void on_error(j_common_ptr jpeg)
{
    longjmp(((struct decoding *)(void *)jpeg)->escape, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    jpeg->err->num_warnings += level < 0;
}

static void begin(struct decoding *decoding)
{
    decoding->jpeg.err = jpeg_std_error(&decoding->errors);
    decoding->errors.error_exit = on_error;
    decoding->errors.emit_message = on_message;
    jpeg_create_decompress(&decoding->jpeg);
}

int nvjpegJpegStreamParseHeader(void *given, const unsigned char *data, size_t length, void *to)
{
    struct decoding decoding;
    struct parsed *parsed = to;
    volatile int status = BAD_JPEG;

    (void)given;
    parsed->plain = false;
    begin(&decoding);
    if (setjmp(decoding.escape) == 0) {
        jpeg_mem_src(&decoding.jpeg, data, length);
        jpeg_read_header(&decoding.jpeg, TRUE);
        parsed->plain = !jpeg_has_multiple_scans(&decoding.jpeg) &&
                        !decoding.jpeg.progressive_mode && decoding.jpeg.num_components != 4 &&
                        decoding.jpeg.max_h_samp_factor <= 2;
        status = SUCCESS;
    }
    jpeg_destroy_decompress(&decoding.jpeg);
    return status;
}

int nvjpegDecodeBatchedSupported(void *given, void *parsed, int *unsupported)
{
    const struct handle *handle = given;

    *unsupported = handle->backend == HARDWARE && !((struct parsed *)parsed)->plain;
    return SUCCESS;
}

int nvjpegDecodeBatchedInitialize(void *given, void *of, int images, int threads, int format)
{
    struct state *state = of;

    if (state->handle != given || images < 1 || threads < 1 || format != RGB_INTERLEAVED)
        refuse("a batch begins otherwise");
    state->begun = images;
    return SUCCESS;
}

/* ---- decoding ---- */

struct arrival {
    unsigned char *pixels, *to;
    size_t row_bytes, pitch;
};

static void arrive(const void *work, uint64_t rows)
{
    const struct arrival *arrival = work;

    for (uint64_t i = 0; i < rows; i++)
        memcpy(arrival->to + i * arrival->pitch, arrival->pixels + i * arrival->row_bytes,
               arrival->row_bytes);
    free(arrival->pixels);
}

static bool decode_to(const unsigned char *data, size_t length, struct arrival *arrival,
                      uint64_t *rows)
{
    struct decoding decoding;
    unsigned char *volatile pixels = NULL;
    volatile bool good = false;

    begin(&decoding);
    if (setjmp(decoding.escape) == 0) {
        jpeg_mem_src(&decoding.jpeg, data, length);
        jpeg_read_header(&decoding.jpeg, TRUE);
        decoding.jpeg.out_color_space = JCS_RGB;
        jpeg_start_decompress(&decoding.jpeg);
        *rows = decoding.jpeg.output_height;
        arrival->row_bytes = (size_t)decoding.jpeg.output_width * 3;
        pixels = malloc(*rows * arrival->row_bytes);
        while (pixels && decoding.jpeg.output_scanline < decoding.jpeg.output_height) {
            JSAMPROW row = pixels + decoding.jpeg.output_scanline * arrival->row_bytes;
            jpeg_read_scanlines(&decoding.jpeg, &row, 1);
        }
        jpeg_finish_decompress(&decoding.jpeg);
        good = pixels && decoding.errors.num_warnings == 0;
    }
    jpeg_destroy_decompress(&decoding.jpeg);
    if (!good)
        free(pixels);
    arrival->pixels = good ? pixels : NULL;
    return good;
}

enum when { IN_ORDER, LATE, NEVER };

static int decode_one(const unsigned char *data, size_t length, const struct image *image,
                      enum when when, void *stream)
{
    int (*start)(void (*run)(const void *, uint64_t), const void *, size_t, uint64_t, void *);
    bool (*on_device)(const void *memory, uint64_t bytes);
    struct arrival arrival = {.to = image->channel[0], .pitch = image->pitch[0]};
    uint64_t rows = 0;
    void *symbol = of_module(when == LATE ? "emulated_start_late" : "emulated_start");

    memcpy(&start, &symbol, sizeof start);
    symbol = of_module("emulated_on_device");
    memcpy(&on_device, &symbol, sizeof on_device);
    if (!decode_to(data, length, &arrival, &rows))
        return BAD_JPEG;
    if (arrival.pitch < arrival.row_bytes || !on_device(arrival.to, arrival.pitch * rows))
        refuse("an image has no room on the device");
    if (when != NEVER)
        return start(arrive, &arrival, sizeof arrival, rows, stream) ? EXECUTION_FAILED : SUCCESS;
    free(arrival.pixels);
    return SUCCESS;
}

int nvjpegDecodeBatched(void *given, void *of, const unsigned char *const *data,
                        const size_t *lengths, struct image *images, void *stream)
{
    struct state *state = of;
    const int count = state->begun;
    const enum when third = wants("skips") ? NEVER : IN_ORDER;
    const enum when last = wants("late") ? LATE : IN_ORDER;
    int status = SUCCESS;

    if (state->handle != given || count < 1)
        refuse("a batch that was not begun");
    if (wants("fails") && ++state->batches % 2 == 0)
        status = EXECUTION_FAILED;
    if (wants("memory"))
        status = ALLOCATOR_FAILURE;
    for (int i = 0; i < count && status == SUCCESS; i++)
        status = decode_one(data[i], lengths[i], &images[i],
                            i == 2           ? third
                            : i == count - 1 ? last
                                             : IN_ORDER,
                            stream);
    if (status != SUCCESS)
        state->begun = 0;
    return status;
}
