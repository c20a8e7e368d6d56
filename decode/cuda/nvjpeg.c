/* SPDX-License-Identifier: Apache-2.0
 *
 * The nvjpeg decoder, the module iobench-nvjpeg.so: baseline JPEGs become pending, and a GPU
 * decodes and resizes them together (decode/cuda/device_batch.h). Every other image, each that the
 * headers' strict parser or the end of the file shows to be damaged, and each that nvJPEG refuses
 * or leaves out, is decoded by the first decoder of pixels, on the CPU, with the same view; so that
 * decoder judges damage. It does not shrink in the inverse DCT, since nvJPEG does not.
 */
#include "base/bump.h"
#include "base/fail.h"
#include "base/image_end.h"
#include "decode/baseline/baseline.h"
#include "decode/cuda/device_batch.h"
#include "decode/decoder.h"
#include "decode/orientation.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PLAN_BYTES = 64 << 10, PLAN_MOST = 64 << 20, TEXT_BYTES = 512 };

struct nvjpeg_pending {
    struct view view;
    struct view_shown shown;
    size_t length;
    void *row;
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

const char *iobench_module_release(void);
extern const struct decoder_ops iobench_decoder_nvjpeg;
const char *iobench_module_release(void)
{
    return PACKAGE_VERSION;
}

/* ---- the CPU ---- */

static int open_cpu(struct nvjpeg_state *state)
{
    const struct look_settings *look = &state->settings->look;
    char text[TEXT_BYTES], area[32] = "auto";

    if (look->min_area > 0)
        snprintf(area, sizeof area, "%.17g", look->min_area);
    snprintf(text, sizeof text,
             "%s:size=%llu,view=%s,as=%s,min-area=%s,crop=%.17g,damaged=%s,max-pixels=%llu,"
             "max-scans=%llu,scale=none",
             decoder_of_pixels()->name, (unsigned long long)look->size, look_view_names[look->view],
             convention_names[look->as], area, look->crop, look_damaged_names[look->damaged],
             (unsigned long long)look->limits.pixels, (unsigned long long)look->limits.scans);
    int code = plugin_choose("decoder", decoder_registry, text, &state->choice);
    return code ? code : decoder_open(&state->cpu, &state->choice);
}

static int decode_on_cpu(struct nvjpeg_state *state, const struct decode_source *source,
                         const struct view *view, void *row, struct decode_figures *figures)
{
    const int code = decoder_decode(&state->cpu, source, view, row);
    const struct view_shown *shown = decoder_shown(&state->cpu);

    if (shown)
        state->shown = *shown;
    /* These three are counted for all images by who calls. */
    state->cpu.figures.images = state->cpu.figures.bytes = state->cpu.figures.failed = 0;
    decode_figures_add(figures, &state->cpu.figures);
    state->cpu.figures = (struct decode_figures){0};
    figures->on_cpu++;
    return code;
}

/* ---- the device ---- */

/* Is this an image for the device? */
static bool is_plain(struct nvjpeg_state *state, const struct decode_source *source,
                     const struct view *view, struct baseline_image *image)
{
    const struct look_settings *look = &state->settings->look;

    return source->layout == DECODE_ENCODED && view->width == 0 &&
           baseline_open(state->baseline, source->bytes, source->length, image) == 0 &&
           image_limits_size(&look->limits, image->width, image->height) &&
           image_end_jpeg(source->bytes, source->length, image->header_bytes) &&
           (!conventions[look->as].upright ||
            orientation_of_jpeg(source->bytes, source->length) == ORIENTATION_UPRIGHT);
}

static int plan(struct nvjpeg_state *state, const struct view_shown *shown, struct resize *resize)
{
    const struct look_settings *look = &state->settings->look;
    const struct resize_box box = {.x = shown->box.x,
                                   .y = shown->box.y,
                                   .width = shown->box.width,
                                   .height = shown->box.height,
                                   .image_width = shown->width,
                                   .image_height = shown->height,
                                   .mirror = shown->box.mirror,
                                   .filter = conventions[look->as].filter};

    bump_reset(&state->bump);
    return resize_plan(resize, &box, (uint32_t)look->size, (uint32_t)look->size, &state->bump);
}

static int nvjpeg_decode(void *opaque, const struct decode_source *source, const struct view *asked,
                         void *row, struct decode_figures *figures)
{
    struct nvjpeg_state *state = opaque;
    struct baseline_image image;
    struct resize resize;

    if (state->ran) {
        device_batch_clear(&state->batch);
        state->ran = false;
    }
    if (!is_plain(state, source, asked, &image))
        return decode_on_cpu(state, source, asked, row, figures);
    const struct view view = look_view(&state->settings->look, asked);
    const struct view_shown shown = {view_box(&view, &state->rules, image.width, image.height),
                                     image.width, image.height};
    int code = plan(state, &shown, &resize);
    if (code)
        return code;
    const uint32_t index = state->batch.count;
    const enum device_added added =
        device_batch_add(&state->batch, &(struct device_image){.bytes = source->bytes,
                                                               .length = source->length,
                                                               .width = image.width,
                                                               .height = image.height,
                                                               .plan = &resize,
                                                               .row = row});
    if (added == DEVICE_FULL)
        return DECODE_FULL;
    if (added == DEVICE_UNFIT)
        return decode_on_cpu(state, source, asked, row, figures);
    state->pending[index] =
        (struct nvjpeg_pending){*asked, shown, source->length, row, image.components == 1};
    return DECODE_PENDING;
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
        const struct decode_source source = {.bytes = device_batch_file(&state->batch, index),
                                             .length = pending->length,
                                             .layout = DECODE_ENCODED};
        return decode_on_cpu(state, &source, &pending->view, pending->row, figures);
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
    int code = open_cpu(state);
    if (code)
        return code;
    *traits = state->cpu.traits;
    traits->pending = (uint32_t)state->settings->images;
    traits->engine = state->batch.engine;
    traits->notice = state->batch.notice;
    traits->held_bytes = device_batch_pinned_bytes(state->settings);
    if (!(state->baseline = baseline_create()))
        return fail(ENOMEM, "out of memory for a JPEG decoder");
    code = bump_open(&state->bump, PLAN_BYTES, PLAN_MOST);
    return code ? code : device_batch_open(&state->batch, state->settings);
}

static void nvjpeg_close(void *opaque)
{
    struct nvjpeg_state *state = opaque;

    device_batch_close(&state->batch);
    baseline_destroy(state->baseline);
    bump_close(&state->bump);
    decoder_close(&state->cpu);
    plugin_release(&state->choice);
}

static const struct view_shown *nvjpeg_shown(const void *opaque)
{
    return &((const struct nvjpeg_state *)opaque)->shown;
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
    .shown = nvjpeg_shown,
};
