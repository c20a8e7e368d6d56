/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/cuda/device_batch.h"

#include "base/bytes.h"
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 256, VECTOR = 16 };
/* Files are smaller than their pixels, and tables take some 6 KiB an image. */
enum { FILES_SHARE = 8, TABLES_BYTES = 64 << 10 };

/* ---- opening ---- */

static int check(int status, const char *what)
{
    if (status == LIBRARY_SUCCESS)
        return 0;
    return fail(status == LIBRARY_ALLOCATOR_FAILURE ? ENOMEM : EIO, "nvJPEG: %s: %s", what,
                library_status_text(status));
}

/* With JPEG engines, if they are wanted and the GPU has any. */
static int open_engine(struct device_batch *batch, int engine)
{
    int status = LIBRARY_ARCH_MISMATCH;

    if (engine != NVJPEG_GPU)
        status = batch->library.create(LIBRARY_BACKEND_HARDWARE, NULL, NULL, 0, &batch->handle);
    const bool has_none = status == LIBRARY_ARCH_MISMATCH || status == LIBRARY_NOT_IMPLEMENTED;
    if (engine == NVJPEG_HARDWARE && has_none)
        return fail(ENODEV, "nvJPEG: the %s has no JPEG engines (%s): use engine=gpu",
                    batch->runtime.name, library_status_text(status));
    snprintf(batch->engine, sizeof batch->engine, "%s of %s",
             has_none ? "multiprocessors" : "JPEG engines", batch->runtime.name);
    if (has_none)
        status = batch->library.create(LIBRARY_BACKEND_GPU, NULL, NULL, 0, &batch->handle);
    return check(status, "start");
}

static int open_library(struct device_batch *batch, int engine)
{
    int code = open_engine(batch, engine);

    if (code == 0)
        code = check(batch->library.state_create(batch->handle, &batch->state), "make a state");
    if (code == 0)
        code = check(batch->library.parsed_create(batch->handle, &batch->parsed), "make a parser");
    return code;
}

static uint64_t files_bytes(const struct nvjpeg_settings *settings)
{
    return settings->memory / FILES_SHARE;
}

static uint64_t tables_bytes(const struct nvjpeg_settings *settings)
{
    return settings->images * TABLES_BYTES;
}

uint64_t device_batch_pinned_bytes(const struct nvjpeg_settings *settings)
{
    return files_bytes(settings) + tables_bytes(settings) + NVJPEG_IMAGES_MAX;
}

static int allocate(struct device_batch *batch, const struct nvjpeg_settings *settings)
{
    const uint64_t marks = NVJPEG_IMAGES_MAX;

    batch->pixels.bytes = settings->memory;
    batch->files.bytes = files_bytes(settings);
    batch->tables.bytes = tables_bytes(settings);
    batch->row_stride = bytes_align_up((uint64_t)batch->side * batch->side * 3, ALIGNMENT);
    batch->pixels.start = runtime_allocate(batch->pixels.bytes);
    if (batch->pixels.start)
        batch->rows = runtime_allocate(batch->capacity * batch->row_stride);
    if (batch->rows)
        batch->device_tables = runtime_allocate(batch->tables.bytes);
    if (batch->device_tables)
        batch->device_marks = runtime_allocate(marks);
    if (batch->device_marks)
        batch->files.start = runtime_pin(batch->files.bytes);
    if (batch->files.start)
        batch->tables.start = runtime_pin(batch->tables.bytes);
    if (batch->tables.start)
        batch->marks = runtime_pin(marks);
    return batch->marks ? 0 : -ENOMEM;
}

int device_batch_open(struct device_batch *batch, const struct nvjpeg_settings *settings)
{
    *batch = (struct device_batch){.side = (uint32_t)settings->look.size,
                                   .capacity = (uint32_t)settings->images};
    int code = runtime_usable();
    if (code == 0)
        code = library_open(&batch->library);
    if (code == 0)
        code = runtime_open(&batch->runtime, (uint32_t)settings->device, 0);
    if (code == 0)
        code = runtime_event_create(&batch->done);
    if (code == 0)
        code = open_library(batch, settings->engine);
    if (code == 0)
        code = allocate(batch, settings);
    device_batch_clear(batch);
    return code;
}

void device_batch_close(struct device_batch *batch)
{
    if (batch->runtime.stream)
        runtime_wait(batch->runtime.stream);
    if (batch->parsed)
        batch->library.parsed_destroy(batch->parsed);
    if (batch->state)
        batch->library.state_destroy(batch->state);
    if (batch->handle)
        batch->library.destroy(batch->handle);
    runtime_release(batch->pixels.start);
    runtime_release(batch->rows);
    runtime_release(batch->device_tables);
    runtime_release(batch->device_marks);
    runtime_unpin(batch->files.start);
    runtime_unpin(batch->tables.start);
    runtime_unpin(batch->marks);
    runtime_event_destroy(batch->done);
    runtime_close(&batch->runtime);
}

void device_batch_clear(struct device_batch *batch)
{
    batch->count = 0;
    batch->tiles = 1;
    batch->pixels.used = batch->files.used = 0;
    /* The images' own table comes first. */
    batch->tables.used = bytes_align_up(batch->capacity * sizeof(struct device_resized), ALIGNMENT);
}

/* ---- adding ---- */

static uint64_t axis_bytes(const struct resize_axis *axis, uint32_t side)
{
    return bytes_align_up(side * sizeof *axis->first, VECTOR) +
           bytes_align_up((uint64_t)side * axis->taps * sizeof *axis->weights, VECTOR);
}

static bool has_room(const struct device_space *space, uint64_t bytes)
{
    return bytes <= space->bytes - space->used;
}

static uint8_t *take(struct device_space *space, uint64_t bytes, uint64_t alignment)
{
    uint8_t *at = space->start + space->used;

    space->used = bytes_align_up(space->used + bytes, alignment);
    return at;
}

/* Copy a table, and return where the device will have it. */
static const void *put_table(struct device_batch *batch, const void *from, uint64_t bytes)
{
    uint8_t *at = take(&batch->tables, bytes, VECTOR);

    memcpy(at, from, bytes);
    return batch->device_tables + (at - batch->tables.start);
}

static struct device_axis put_axis(struct device_batch *batch, const struct resize_axis *axis)
{
    const uint64_t side = batch->side;

    return (struct device_axis){
        .first = put_table(batch, axis->first, side * sizeof *axis->first),
        .weights = put_table(batch, axis->weights, side * axis->taps * sizeof *axis->weights),
        .taps = axis->taps,
        .widest = axis->widest,
        .high = axis->high};
}

static bool is_supported(struct device_batch *batch, const struct device_image *image)
{
    int unsupported = 1;

    return batch->library.parse_header(batch->handle, image->bytes, image->length, batch->parsed) ==
               LIBRARY_SUCCESS &&
           batch->library.supported(batch->handle, batch->parsed, &unsupported) ==
               LIBRARY_SUCCESS &&
           unsupported == 0;
}

enum device_added device_batch_add(struct device_batch *batch, const struct device_image *image)
{
    const struct resize *plan = image->plan;
    const uint64_t pitch = bytes_align_up((uint64_t)image->width * 3, VECTOR);
    const uint64_t pixels = bytes_align_up(pitch * image->height, ALIGNMENT);
    const uint64_t file = bytes_align_up(image->length, ALIGNMENT);
    const uint64_t tables = axis_bytes(&plan->x, batch->side) + axis_bytes(&plan->y, batch->side);
    const uint32_t tile = device_resize_tile(plan->x.first, plan->x.widest, batch->side);
    const uint32_t tiles = tile ? (batch->side + tile - 1) / tile : 0;

    if (tile == 0 || (uint64_t)image->width * 3 < DEVICE_MARK_BYTES || !is_supported(batch, image))
        return DEVICE_UNFIT;
    if (batch->count == batch->capacity || !has_room(&batch->pixels, pixels) ||
        !has_room(&batch->files, file) || !has_room(&batch->tables, tables))
        return batch->count ? DEVICE_FULL : DEVICE_UNFIT;
    const uint32_t index = batch->count++;
    uint8_t *pixels_at = take(&batch->pixels, pixels, ALIGNMENT);
    struct device_resized resized = {
        .image = pixels_at,
        .pitch = (uint32_t)pitch,
        .width = image->width,
        .height = image->height,
        .tile = tile,
        .mirror = plan->mirror,
        .output = batch->rows + index * batch->row_stride,
    };
    resized.x = put_axis(batch, &plan->x);
    resized.y = put_axis(batch, &plan->y);
    memcpy(batch->tables.start + index * sizeof resized, &resized, sizeof resized);
    batch->tiles = tiles > batch->tiles ? tiles : batch->tiles;
    batch->data[index] =
        memcpy(take(&batch->files, image->length, ALIGNMENT), image->bytes, image->length);
    batch->lengths[index] = image->length;
    batch->images[index] = (struct library_image){.channel = {pixels_at}, .pitch = {pitch}};
    batch->targets[index] = image->row;
    return DEVICE_ADDED;
}

const void *device_batch_file(const struct device_batch *batch, uint32_t index)
{
    return batch->data[index];
}

/* ---- decoding ---- */

/* Beginning a batch also resets one that failed. */
static bool decode(struct device_batch *batch)
{
    const int count = (int)batch->count;
    int status = LIBRARY_SUCCESS;

    if (batch->begun != batch->count)
        status = batch->library.batch_begin(batch->handle, batch->state, count, 1,
                                            LIBRARY_RGB_INTERLEAVED);
    if (status == LIBRARY_SUCCESS)
        status = batch->library.batch(batch->handle, batch->state, batch->data, batch->lengths,
                                      batch->images, batch->runtime.stream);
    batch->begun = status == LIBRARY_SUCCESS ? batch->count : 0;
    if (status != LIBRARY_SUCCESS && !batch->notice[0])
        snprintf(batch->notice, sizeof batch->notice,
                 "nvJPEG refused a batch of %d images (%s): the CPU decoded them", count,
                 library_status_text(status));
    return status == LIBRARY_SUCCESS;
}

/* An image is looked at before it is resized: had nvJPEG not written its end by then, its row would
 * be wrong, whatever was there later. */
static int fetch_rows(struct device_batch *batch)
{
    const uint64_t row_bytes = (uint64_t)batch->side * batch->side * 3;
    void *stream = batch->runtime.stream;
    const struct device_resized *images = (const void *)batch->device_tables;

    int code = device_find_marks(images, batch->count, batch->device_marks, stream);
    if (code == 0)
        code = device_resize(images, batch->count, batch->side, batch->side, batch->tiles, stream);
    if (code == 0)
        code = runtime_copy(batch->marks, batch->device_marks, batch->count, stream);
    for (uint32_t i = 0; i < batch->count && code == 0; i++)
        code =
            runtime_copy(batch->targets[i], batch->rows + i * batch->row_stride, row_bytes, stream);
    return code;
}

int device_batch_run(struct device_batch *batch, bool decoded[NVJPEG_IMAGES_MAX])
{
    void *stream = batch->runtime.stream;
    bool good = false;

    memset(decoded, 0, NVJPEG_IMAGES_MAX * sizeof *decoded);
    int code = runtime_use(batch->runtime.device);
    if (code == 0)
        code = runtime_copy(batch->device_tables, batch->tables.start, batch->tables.used, stream);
    if (code == 0)
        code = device_mark((const void *)batch->device_tables, batch->count, stream);
    if (code == 0)
        good = decode(batch);
    if (code == 0 && good)
        code = fetch_rows(batch);
    if (code == 0)
        code = runtime_event_record(batch->done, stream);
    if (code == 0)
        code = runtime_event_synchronise(batch->done);
    for (uint32_t i = 0; i < batch->count && code == 0 && good; i++)
        decoded[i] = !batch->marks[i];
    return code;
}
