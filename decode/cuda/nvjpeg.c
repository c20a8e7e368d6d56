/* SPDX-License-Identifier: Apache-2.0
 *
 * The nvjpeg decoder, the module iobench-nvjpeg.so: baseline JPEGs become pending, and a GPU
 * decodes and resizes them together: copied to pinned memory as they come, decoded by nvJPEG into
 * GPU memory, resized there by our kernel, and copied to their rows. Every other image, each that
 * the headers' strict parser or the end of the file shows to be damaged, and each that nvJPEG
 * refuses or leaves out, is decoded by the first decoder of pixels, on the CPU, with the same view;
 * so that decoder judges damage. It does not shrink in the inverse DCT, since nvJPEG does not.
 *
 * nvJPEG reports one status for a batch and, with hardware engines, may leave an image unwritten
 * without saying so. So a batch that fails is undecoded as a whole, and each image is marked before
 * it is decoded and looked at before it is used. All memory but nvJPEG's own is allocated by
 * open().
 */
#include "base/bytes.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/image_header.h"
#include "base/sample.h"
#include "decode/baseline/baseline.h"
#include "decode/decoder.h"
#include "decode/image.h"
#include "decode/plugins.h"
#include "kernels/device.h"
#include "kernels/runtime.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- the library ----
 *
 * The part of nvJPEG that is used, loaded at run time, so building needs nothing of it. Its ABI is
 * the same in libnvjpeg.so.12 and .13. */

enum library_status {
    LIBRARY_SUCCESS,
    LIBRARY_ALLOCATOR_FAILURE = 5,
    LIBRARY_ARCH_MISMATCH = 7,
    LIBRARY_NOT_IMPLEMENTED = 9,
};
enum { LIBRARY_BACKEND_GPU = 2, LIBRARY_BACKEND_HARDWARE = 3 };
enum { LIBRARY_RGB_INTERLEAVED = 5 };
enum { LIBRARY_CHANNELS = 4 };

/* Where a decoded image goes; interleaved ones use the first channel alone. */
struct library_image {
    unsigned char *channel[LIBRARY_CHANNELS];
    size_t pitch[LIBRARY_CHANNELS];
};

/* Handles, states and parsed streams are opaque. Statuses are enum library_status. */
struct library {
    int (*create)(int backend, void *device_allocator, void *pinned_allocator, unsigned flags,
                  void **handle);
    int (*destroy)(void *handle);
    int (*state_create)(void *handle, void **state);
    int (*state_destroy)(void *state);
    int (*parsed_create)(void *handle, void **parsed);
    int (*parsed_destroy)(void *parsed);
    int (*parse_header)(void *handle, const unsigned char *data, size_t length, void *parsed);
    /* unsupported: 0 if a batch may have this image. */
    int (*supported)(void *handle, void *parsed, int *unsupported);
    int (*batch_begin)(void *handle, void *state, int images, int cpu_threads, int format);
    int (*batch)(void *handle, void *state, const unsigned char *const *data, const size_t *lengths,
                 struct library_image *images, void *stream);
};

static const struct {
    const char *symbol;
    size_t offset;
} symbols[] = {
    {"nvjpegCreateEx", offsetof(struct library, create)},
    {"nvjpegDestroy", offsetof(struct library, destroy)},
    {"nvjpegJpegStateCreate", offsetof(struct library, state_create)},
    {"nvjpegJpegStateDestroy", offsetof(struct library, state_destroy)},
    {"nvjpegJpegStreamCreate", offsetof(struct library, parsed_create)},
    {"nvjpegJpegStreamDestroy", offsetof(struct library, parsed_destroy)},
    {"nvjpegJpegStreamParseHeader", offsetof(struct library, parse_header)},
    {"nvjpegDecodeBatchedSupported", offsetof(struct library, supported)},
    {"nvjpegDecodeBatchedInitialize", offsetof(struct library, batch_begin)},
    {"nvjpegDecodeBatched", offsetof(struct library, batch)},
};

/* Returns 0, or -ENOENT or -EINVAL with a reason. The library stays loaded. The front end has
 * loaded it from wherever it is (base/plugin.h). */
static int library_open(struct library *library)
{
    static const char *const names[] = {"libnvjpeg.so.13", "libnvjpeg.so.12"};
    void *loaded = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names && !loaded; i++)
        loaded = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    if (!loaded)
        return fail(ENOENT,
                    "%s or %s is not found: install it (it is in the CUDA toolkit, and in the "
                    "Python package nvidia-nvjpeg), or add its folder to LD_LIBRARY_PATH",
                    names[0], names[1]);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(loaded, symbols[i].symbol);
        if (!found)
            return fail(EINVAL, "libnvjpeg lacks %s: it is older than CUDA 11.4's",
                        symbols[i].symbol);
        memcpy((char *)library + symbols[i].offset, &found, sizeof found);
    }
    return 0;
}

static const char *library_status_text(int status)
{
    static const char *const texts[] = {
        "success",          "not initialised",     "invalid parameter",
        "bad JPEG",         "JPEG not supported",  "out of memory",
        "execution failed", "not on this GPU",     "internal error",
        "not implemented",  "incomplete bitstream"};

    return status >= 0 && (size_t)status < sizeof texts / sizeof *texts ? texts[status]
                                                                        : "unknown status";
}

/* ---- a batch ---- */

struct device_batch {
    struct library library;
    struct runtime runtime;
    void *handle, *state, *parsed; /* nvJPEG's */
    void *done;                    /* an event */
    uint32_t side, capacity, count, tiles;
    uint32_t begun;   /* the size of batches that the state is for */
    char engine[128]; /* the GPU, and what decodes there */
    char notice[128]; /* of the first batch that was refused; empty: none was */
    /* Pools that images take their parts from: device memory for pixels, pinned memory for files,
     * and both for tables. */
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

enum { ALIGNMENT = 256, VECTOR = 16 };
/* Files are smaller than their pixels, and tables take some 6 KiB an image. */
enum { FILES_SHARE = 8, TABLES_BYTES = 64 << 10 };

/* ---- opening ---- */

static int check_status(int status, const char *what)
{
    if (status == LIBRARY_SUCCESS)
        return 0;
    return fail(status == LIBRARY_ALLOCATOR_FAILURE ? ENOMEM : EIO, "nvJPEG: %s: %s", what,
                library_status_text(status));
}

/* Start nvJPEG on the GPU's JPEG engines, if they are wanted and it has any, else on its
 * multiprocessors. */
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
    return check_status(status, "start");
}

static void device_batch_clear(struct device_batch *batch)
{
    batch->count = 0;
    batch->tiles = 1;
    batch->pixels.used = batch->files.used = 0;
    /* The images' own table comes first. */
    batch->tables.used = bytes_align_up(batch->capacity * sizeof(struct device_resized), ALIGNMENT);
}

/* Returns 0 or a negative errno with a reason; close() in either case. */
static int device_batch_open(struct device_batch *batch, const struct nvjpeg_settings *settings)
{
    *batch = (struct device_batch){.side = (uint32_t)settings->look.size,
                                   .capacity = (uint32_t)settings->images};
    int code = runtime_usable();
    if (code || (code = library_open(&batch->library)) ||
        (code = runtime_open(&batch->runtime, (uint32_t)settings->device, 0)) ||
        (code = runtime_event_create(&batch->done)) ||
        (code = open_engine(batch, settings->engine)) ||
        (code = check_status(batch->library.state_create(batch->handle, &batch->state),
                             "make a state")) ||
        (code = check_status(batch->library.parsed_create(batch->handle, &batch->parsed),
                             "make a parser")))
        return code;
    batch->pixels.bytes = settings->memory;
    batch->files.bytes = settings->memory / FILES_SHARE;
    batch->tables.bytes = settings->images * TABLES_BYTES;
    batch->row_stride = bytes_align_up((uint64_t)batch->side * batch->side * 3, ALIGNMENT);
    device_batch_clear(batch);
    const bool has_all = (batch->pixels.start = runtime_allocate(batch->pixels.bytes)) &&
                         (batch->rows = runtime_allocate(batch->capacity * batch->row_stride)) &&
                         (batch->device_tables = runtime_allocate(batch->tables.bytes)) &&
                         (batch->device_marks = runtime_allocate(NVJPEG_IMAGES_MAX)) &&
                         (batch->files.start = runtime_pin(batch->files.bytes)) &&
                         (batch->tables.start = runtime_pin(batch->tables.bytes)) &&
                         (batch->marks = runtime_pin(NVJPEG_IMAGES_MAX));
    return has_all ? 0 : -ENOMEM;
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

static uint8_t *take_space(struct device_space *space, uint64_t bytes, uint64_t alignment)
{
    uint8_t *at = space->start + space->used;

    space->used = bytes_align_up(space->used + bytes, alignment);
    return at;
}

/* Copy a table, and return where the device will have it. */
static const void *put_table(struct device_batch *batch, const void *from, uint64_t bytes)
{
    uint8_t *at = take_space(&batch->tables, bytes, VECTOR);

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

/* Returns DECODE_PENDING, DECODE_FULL, or DECODE_OTHER if nvJPEG does not decode it, or it is
 * larger than all space. */
static int device_batch_add(struct device_batch *batch, const struct decode_source *source,
                            const struct baseline_image *image, const struct resize *plan,
                            void *row)
{
    const struct library *library = &batch->library;
    const uint64_t pitch = bytes_align_up((uint64_t)image->width * 3, VECTOR);
    const uint64_t pixels = bytes_align_up(pitch * image->height, ALIGNMENT);
    const uint64_t file = bytes_align_up(source->length, ALIGNMENT);
    const uint64_t tables = axis_bytes(&plan->x, batch->side) + axis_bytes(&plan->y, batch->side);
    const uint32_t tile = device_resize_tile(plan->x.first, plan->x.widest, batch->side);
    const uint32_t tiles = tile ? (batch->side + tile - 1) / tile : 0;
    int unsupported = 1;

    if (tile == 0 || (uint64_t)image->width * 3 < DEVICE_MARK_BYTES ||
        library->parse_header(batch->handle, source->bytes, source->length, batch->parsed) !=
            LIBRARY_SUCCESS ||
        library->supported(batch->handle, batch->parsed, &unsupported) != LIBRARY_SUCCESS ||
        unsupported)
        return DECODE_OTHER;
    if (batch->count == batch->capacity || !has_room(&batch->pixels, pixels) ||
        !has_room(&batch->files, file) || !has_room(&batch->tables, tables))
        return batch->count ? DECODE_FULL : DECODE_OTHER;
    const uint32_t index = batch->count++;
    uint8_t *pixels_at = take_space(&batch->pixels, pixels, ALIGNMENT);
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
        memcpy(take_space(&batch->files, source->length, ALIGNMENT), source->bytes, source->length);
    batch->lengths[index] = source->length;
    batch->images[index] = (struct library_image){.channel = {pixels_at}, .pitch = {pitch}};
    batch->targets[index] = row;
    return DECODE_PENDING;
}

/* ---- decoding ---- */

/* Decode all images into their rows; decoded[i] says which were. Returns 0, or a negative errno
 * with a reason if the device failed. */
static int device_batch_run(struct device_batch *batch, bool decoded[NVJPEG_IMAGES_MAX])
{
    const struct device_resized *images = (const void *)batch->device_tables;
    void *stream = batch->runtime.stream;

    memset(decoded, 0, NVJPEG_IMAGES_MAX * sizeof *decoded);
    int code = runtime_use(batch->runtime.device);
    if (code ||
        (code =
             runtime_copy(batch->device_tables, batch->tables.start, batch->tables.used, stream)) ||
        (code = device_mark(images, batch->count, stream)))
        return code;
    const int count = (int)batch->count;
    int status = LIBRARY_SUCCESS; /* beginning a batch also resets one that failed */
    if (batch->begun != batch->count)
        status = batch->library.batch_begin(batch->handle, batch->state, count, 1,
                                            LIBRARY_RGB_INTERLEAVED);
    if (status == LIBRARY_SUCCESS)
        status = batch->library.batch(batch->handle, batch->state, batch->data, batch->lengths,
                                      batch->images, stream);
    const bool good = status == LIBRARY_SUCCESS;
    batch->begun = good ? batch->count : 0;
    if (!good && !batch->notice[0])
        snprintf(batch->notice, sizeof batch->notice,
                 "nvJPEG refused a batch of %d images (%s): the CPU decoded them", count,
                 library_status_text(status));
    /* Check the end of an image before it is resized: if nvJPEG has not written it by then, the row
     * is wrong, whatever is written later. */
    if (good && ((code = device_find_marks(images, batch->count, batch->device_marks, stream)) ||
                 (code = device_resize(images, batch->count, batch->side, batch->side, batch->tiles,
                                       stream)) ||
                 (code = runtime_copy(batch->marks, batch->device_marks, batch->count, stream))))
        return code;
    for (uint32_t i = 0; good && code == 0 && i < batch->count; i++)
        code = runtime_copy(batch->targets[i], batch->rows + i * batch->row_stride,
                            (uint64_t)batch->side * batch->side * 3, stream);
    if (code || (code = runtime_event_record(batch->done, stream)) ||
        (code = runtime_event_synchronise(batch->done)))
        return code;
    for (uint32_t i = 0; good && i < batch->count; i++)
        decoded[i] = !batch->marks[i];
    return 0;
}

/* ---- the decoder ---- */

enum { PLAN_BYTES = 64 << 10, PLAN_MOST = 64 << 20 };

struct nvjpeg_pending {
    struct view view;
    struct view_shown shown;
    bool is_gray;
};

struct nvjpeg_state {
    const struct nvjpeg_settings *settings;
    struct device_batch batch;
    struct baseline *baseline; /* parses headers */
    struct bump bump;          /* for the plan of one resize */
    struct view_rules rules;
    struct plugin_choice choice;
    struct decoder cpu;
    struct nvjpeg_pending pending[NVJPEG_IMAGES_MAX];
    bool decoded[NVJPEG_IMAGES_MAX];
    bool ran; /* the batch */
    int code; /* of the batch: the device's failure, */
    char reason[FAIL_REASON_BYTES];
    struct view_shown shown;
};

extern const struct decoder_ops iobench_decoder_nvjpeg;
static int decode_on_cpu(struct nvjpeg_state *state, const struct decode_source *source,
                         const struct view *view, void *row, struct decode_figures *figures)
{
    const int code = decoder_decode(&state->cpu, source, view, row);

    state->shown = *state->cpu.traits.shown;
    /* The caller counts these three for all images. */
    state->cpu.figures.images = state->cpu.figures.bytes = state->cpu.figures.failed = 0;
    decode_figures_add(figures, &state->cpu.figures);
    state->cpu.figures = (struct decode_figures){0};
    figures->on_cpu++;
    return code;
}

static int nvjpeg_decode(void *opaque, const struct decode_source *source, const struct view *asked,
                         void *row, struct decode_figures *figures)
{
    struct nvjpeg_state *state = opaque;
    const struct look_settings *look = &state->settings->look;
    struct baseline_image image;
    struct resize resize;

    if (state->ran) {
        device_batch_clear(&state->batch);
        state->ran = false;
    }
    /* Images that are not for the device. */
    if (source->layout != SAMPLE_ENCODED || asked->width ||
        baseline_open(state->baseline, source->bytes, source->length, &image) ||
        !image_limits_size(&look->limits, image.width, image.height) ||
        !image_end_jpeg(source->bytes, source->length, image.header_bytes) ||
        (conventions[look->as].upright &&
         orientation_of_jpeg(source->bytes, source->length) != ORIENTATION_UPRIGHT))
        return decode_on_cpu(state, source, asked, row, figures);
    const struct view view = look_view(look, asked);
    struct view_shown shown;
    const struct image_request request = {.view = &view,
                                          .rules = &state->rules,
                                          .filter = conventions[look->as].filter,
                                          .orientation = ORIENTATION_UPRIGHT,
                                          .width = state->batch.side,
                                          .height = state->batch.side,
                                          .bump = &state->bump,
                                          .shown = &shown};
    bump_reset(&state->bump);
    const int code = image_plan(&request, &resize, image.width, image.height, 8);
    if (code)
        return code;
    const uint32_t index = state->batch.count;
    const int added = device_batch_add(&state->batch, source, &image, &resize, row);
    if (added == DECODE_OTHER)
        return decode_on_cpu(state, source, asked, row, figures);
    if (added == DECODE_PENDING)
        state->pending[index] = (struct nvjpeg_pending){*asked, shown, image.components == 1};
    return added;
}

static int nvjpeg_finish(void *opaque, uint32_t index, struct decode_figures *figures)
{
    struct nvjpeg_state *state = opaque;
    const struct nvjpeg_pending *pending = &state->pending[index];

    assert(index < state->batch.count);
    if (!state->ran) {
        state->code = device_batch_run(&state->batch, state->decoded);
        if (state->code)
            snprintf(state->reason, sizeof state->reason, "%s", fail_reason());
        state->ran = true;
    }
    if (state->code)
        return fail(state->code, "%s", state->reason);
    if (!state->decoded[index]) {
        const struct decode_source source = {.bytes = state->batch.data[index],
                                             .length = state->batch.lengths[index],
                                             .layout = SAMPLE_ENCODED};
        return decode_on_cpu(state, &source, &pending->view, state->batch.targets[index], figures);
    }
    figures->grayscale += pending->is_gray;
    state->shown = pending->shown;
    return 0;
}

/* ---- the plug-in ---- */

static int nvjpeg_usable(void)
{
    struct library library;
    const int code = runtime_usable();

    return code ? code : library_open(&library);
}

static int nvjpeg_open(void *opaque, const void *settings, struct decoder_traits *traits)
{
    struct nvjpeg_state *state = opaque;

    state->settings = settings;
    state->rules = look_rules(&state->settings->look);
    /* The CPU's decoder shows the same of an image. */
    char text[64];
    snprintf(text, sizeof text, "%s:scale=none", decoder_of_pixels()->name);
    int code = plugin_choose("decoder", decoder_registry, text, &state->choice);
    if (code == 0) {
        *(struct look_settings *)state->choice.settings = state->settings->look;
        code = decoder_open(&state->cpu, &state->choice);
    }
    if (code)
        return code;
    *traits = state->cpu.traits;
    traits->shown = &state->shown;
    traits->pending = (uint32_t)state->settings->images;
    traits->engine = state->batch.engine;
    traits->notice = state->batch.notice;
    if (!(state->baseline = baseline_create()))
        return fail(ENOMEM, "out of memory for a JPEG decoder");
    code = bump_open(&state->bump, PLAN_BYTES, PLAN_MOST);
    if (code == 0)
        code = device_batch_open(&state->batch, state->settings);
    /* The pinned memory. */
    traits->held_bytes = state->batch.files.bytes + state->batch.tables.bytes + NVJPEG_IMAGES_MAX;
    return code;
}

static void nvjpeg_close(void *opaque)
{
    struct nvjpeg_state *state = opaque;
    struct device_batch *batch = &state->batch;

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
    baseline_destroy(state->baseline);
    bump_close(&state->bump);
    decoder_close(&state->cpu);
    plugin_release(&state->choice);
}

const struct decoder_ops iobench_decoder_nvjpeg = {
    .plugin = {.name = "nvjpeg",
               .settings_size = sizeof(struct nvjpeg_settings),
               .state_size = sizeof(struct nvjpeg_state),
               .usable = nvjpeg_usable},
    .gives_pixels = true,
    .open = nvjpeg_open,
    .close = nvjpeg_close,
    .decode = nvjpeg_decode,
    .finish = nvjpeg_finish,
};
