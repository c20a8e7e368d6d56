/* SPDX-License-Identifier: Apache-2.0
 *
 * The jpeg decoder: a JPEG (or an image of another kind, decode/image.h) to one row of RGB pixels,
 * on the CPU.
 *
 * Huffman decoding of the scan up to the last row of the box is unavoidable, since a baseline scan
 * has no entry points, unless they were noted before (decode/image.h). The rest is kept small:
 * - rows above the box are only entropy-decoded (jpeg_skip_scanlines), columns beside it are not
 *   transformed (jpeg_crop_scanline), rows below it are not touched;
 * - a box larger than the output is reduced by the inverse DCT, as far as it stays at least as
 *   large as the output, by factors for which libjpeg-turbo has SIMD code;
 * - rows go straight from libjpeg into the ring of the resize kernel, in cache. The defaults are
 *   libjpeg's own, accurate DCT and interpolated chroma, so the pixels are those of other loaders;
 *   fast DCT and repeated chroma save about 1% each, since both variants have SIMD code.
 *   "scale=any" is slower: there is no SIMD code for 3/8, 5/8, 6/8 and 7/8. See bench/decode.
 *
 * Baseline images are decoded by decode/baseline/ (engine=auto), but for scale=any;
 * libjpeg-turbo decodes all others, and is the judge of every damaged one.
 *
 * libjpeg and libpng allocate from a bump allocator, so nothing is allocated per image.
 *
 * EXIF orientation is ignored, as in most training pipelines, unless jpeg:as=NAME names one that
 * turns images upright (decode/view.h).
 */
#include "decode/image.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "decode/baseline/baseline.h"
#include "decode/plugins.h"

#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>
#include <jerror.h>

enum { BUMP_BYTES = 4 << 20 };

/* A progressive image needs the coefficients of up to four components, two bytes each, plus rows
 * (see jdcoefct.c); a baseline image only rows. */
enum { BUMP_BYTES_PER_PIXEL = 12 };

enum { DCT_ISLOW, DCT_IFAST };
enum { UPSAMPLE_PLAIN, UPSAMPLE_FANCY };
enum { SCALE_AS, SCALE_FAST, SCALE_ANY, SCALE_NONE };
enum { ENGINE_AUTO, ENGINE_OWN, ENGINE_TURBO };
enum { ENTRY_POINTS_AUTO, ENTRY_POINTS_NO };

struct jpeg_settings {
    struct look_settings look;
    int dct, upsampling, scale, engine, entry_points;
};

struct jpeg_state {
    struct jpeg_decompress_struct jpeg; /* first: libjpeg passes it to on_error() */
    struct baseline *baseline;          /* NULL: libjpeg decodes all */
    struct baseline *hinting;           /* makes hints where libjpeg decodes; NULL until asked */
    struct entry_points points;         /* in use for the current image; has_notes: noted in ... */
    bool has_notes;                     /* ... the image decoded last */
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct jpeg_source_mgr source;
    struct bump bump;
    struct resize resize;
    struct view view;
    struct view_rules rules;
    struct view_shown shown;
    uint8_t *turned; /* a row before it is turned upright; NULL: images are not turned */
    const struct jpeg_settings *settings;
    const struct convention *as;
    int scale;
    bool created, truncated;
    bool verifies; /* every coefficient is read, and any warning counts, for image_verify() */
    jmp_buf escape;
    char reason[JMSG_LENGTH_MAX];
};

static const char *const dct_names[] = {"islow", "ifast", NULL};
static const char *const upsampling_names[] = {"plain", "fancy", NULL};
static const char *const engine_names[] = {"auto", "own", "turbo", NULL};
static const char *const entry_points_names[] = {"auto", "no", NULL};
static const char *const scale_names[] = {"auto", "fast", "any", "none", NULL};

static const struct option_spec jpeg_options[] = {
    LOOK_ROWS,
    {"dct", 0, OPTION_CHOICE, offsetof(struct jpeg_settings, dct), .fallback = "islow",
     .choices = dct_names,
     .summary = "inverse DCT: exact to a level (islow) or slightly faster (ifast)"},
    {"upsampling", 0, OPTION_CHOICE, offsetof(struct jpeg_settings, upsampling),
     .fallback = "fancy", .choices = upsampling_names,
     .summary = "chroma repeated (plain) or interpolated as image viewers do (fancy)"},
    {"scale", 0, OPTION_CHOICE, offsetof(struct jpeg_settings, scale), .fallback = "auto",
     .choices = scale_names,
     .summary = "shrink in the DCT by 1/2, 1/4, 1/8 (fast), by any eighth (any), or never (none); "
                "auto: fast, but never like other loaders (as)"},
    {"engine", 0, OPTION_CHOICE, offsetof(struct jpeg_settings, engine), .fallback = "auto",
     .choices = engine_names,
     .summary =
         "baseline JPEGs by our own decoder, same pixels (own; auto: where the CPU has AVX2), "
         "or all by libjpeg-turbo (turbo)"},
    {"entry-points", 0, OPTION_CHOICE, offsetof(struct jpeg_settings, entry_points),
     .fallback = "auto", .choices = entry_points_names,
     .summary = "decode from an entry point just above the crop, if 'verify --entry-points' noted "
                "one, same pixels (auto), or never (no)"},
    {0},
};

/* ---- what libjpeg calls ---- */

static void on_error(j_common_ptr jpeg)
{
    struct jpeg_state *state = (struct jpeg_state *)(void *)jpeg;

    if (!state->verifies || jpeg->err->num_warnings == 0) /* else the first complaint is kept */
        jpeg->err->format_message(jpeg, state->reason);
    longjmp(state->escape, 1);
}

/* These warnings say nothing about the pixels: a version or colour transform unknown to libjpeg, a
 * broken colour profile. Of other warnings the first is kept. */
static void on_message(j_common_ptr jpeg, int level)
{
    struct jpeg_state *state = (struct jpeg_state *)(void *)jpeg;
    const int message = jpeg->err->msg_code;

    if (level >= 0 ||
        (!state->verifies &&
         (message == JWRN_JFIF_MAJOR || message == JWRN_ADOBE_XFORM || message == JWRN_BOGUS_ICC)))
        return;
    if (jpeg->err->num_warnings++ == 0)
        jpeg->err->format_message(jpeg, state->reason);
}

static void on_progress(j_common_ptr jpeg)
{
    struct jpeg_state *state = (struct jpeg_state *)(void *)jpeg;

    if (!image_limits_scan(&state->settings->look.limits, (uint64_t)state->jpeg.input_scan_number,
                           state->jpeg.image_width, state->jpeg.image_height, state->reason,
                           sizeof state->reason))
        longjmp(state->escape, 1);
}

/* All bytes are there from the start. */
static void source_idle(j_decompress_ptr jpeg)
{
    (void)jpeg;
}

/* The image ended early: supply an end marker, as libjpeg.txt advises, so that the available data
 * is decoded. */
static boolean source_fill(j_decompress_ptr jpeg)
{
    static const JOCTET end[] = {0xff, JPEG_EOI};
    struct jpeg_state *state = (struct jpeg_state *)(void *)jpeg;

    state->truncated = true;
    if (state->verifies)
        WARNMS(jpeg, JWRN_JPEG_EOF);
    jpeg->src->next_input_byte = end;
    jpeg->src->bytes_in_buffer = sizeof end;
    return TRUE;
}

static void source_skip(j_decompress_ptr jpeg, long bytes)
{
    struct jpeg_source_mgr *source = jpeg->src;

    if (bytes <= 0)
        return;
    if ((size_t)bytes >= source->bytes_in_buffer) {
        source_fill(jpeg);
        return;
    }
    source->next_input_byte += bytes;
    source->bytes_in_buffer -= (size_t)bytes;
}

/* ---- one JPEG ---- */

/* Before 2.1.3 (Ubuntu 22.04) libjpeg-turbo wrote rows of the whole width where it crops them
 * without interpolated chroma: beyond their end (its ChangeLog, 2.0.7, 9). */
enum { CROPS_PLAIN = LIBJPEG_TURBO_VERSION_NUMBER >= 2001003 };

/* Find the smallest n/8 that leaves the box at least as large as the output. */
static uint32_t choose_scale(const struct jpeg_state *state, const struct view_box *box)
{
    const double shorter = box->width < box->height ? box->width : box->height;
    const double side = (double)state->settings->look.size;

    if (state->scale == SCALE_NONE || state->view.width)
        return 8;
    const uint32_t factor = state->scale == SCALE_FAST ? 2 : 0;
    uint32_t numerator = 1;
    while (numerator < 8 && shorter * numerator / 8 < side)
        numerator = factor ? numerator * factor : numerator + 1;
    return numerator;
}

/* Inks are paper minus light. Adobe stores them inverted, which is light already. */
static void inks_to_rgbx(uint8_t *row, uint32_t pixels, bool inverted)
{
    const uint8_t flip = inverted ? 0 : 255;

    for (uint8_t *end = row + (size_t)pixels * RESIZE_PIXEL_BYTES; row < end;
         row += RESIZE_PIXEL_BYTES) {
        const uint32_t black = row[3] ^ flip;
        for (int i = 0; i < 3; i++)
            row[i] = (uint8_t)(((uint32_t)(row[i] ^ flip) * black + 127) / 255);
    }
}

static int decode_opened(struct jpeg_state *state, const struct image_request *request)
{
    struct jpeg_decompress_struct *jpeg = &state->jpeg;
    int code;

    jpeg_read_header(jpeg, TRUE);
    const struct decode_source *source = request->source;
    if (!image_end_jpeg(source->bytes, source->length,
                        source->length - state->source.bytes_in_buffer)) {
        state->truncated = true;
        if (!request->accepts_damaged)
            return 0;
    }
    const uint32_t width = jpeg->image_width, height = jpeg->image_height;
    if ((code = image_check_size(request, width, height)))
        return code;
    if (state->verifies) { /* the pixels do not matter */
        jpeg->out_color_space = jpeg->jpeg_color_space;
        jpeg->do_fancy_upsampling = FALSE;
        jpeg->dct_method = JDCT_IFAST;
        jpeg_start_decompress(jpeg);
        JSAMPROW line =
            bump_alloc_array(request->bump, jpeg->output_width, (size_t)jpeg->output_components);
        if (!line)
            return -ENOMEM;
        while (jpeg->output_scanline < jpeg->output_height)
            jpeg_read_scanlines(jpeg, &line, 1);
        jpeg_finish_decompress(jpeg);
        return 0;
    }
    struct view_box box = image_box(request, width, height);
    const uint32_t numerator = choose_scale(state, &box);
    const bool inks = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->scale_num = numerator;
    jpeg->scale_denom = 8;
    jpeg->out_color_space = inks ? JCS_CMYK : JCS_EXT_RGBX;
    jpeg->dct_method = state->settings->dct == DCT_IFAST ? JDCT_IFAST : JDCT_ISLOW;
    jpeg->do_fancy_upsampling = state->settings->upsampling == UPSAMPLE_FANCY;
    /* Disable smoothing of coarse progressive scans: it costs time and complete files do not need
     * it. */
    jpeg->do_block_smoothing = FALSE;
    request->figures->progressive += jpeg->progressive_mode != 0;
    request->figures->grayscale += jpeg->num_components == 1;
    request->figures->cmyk += inks;
    jpeg_start_decompress(jpeg);

    if ((code = image_plan(request, &state->resize, width, height, numerator)))
        return code;
    /* Interpolated chroma reads one pixel beyond the box. */
    const uint32_t margin = state->settings->upsampling == UPSAMPLE_FANCY;
    JDIMENSION origin = state->resize.x.low, end = state->resize.x.high + margin;
    origin -= origin > margin ? margin : origin;
    JDIMENSION columns = (end < jpeg->output_width ? end : jpeg->output_width) - origin;
    if (!margin && !CROPS_PLAIN) {
        origin = 0;
        columns = jpeg->output_width;
    }
    if (columns < jpeg->output_width)
        jpeg_crop_scanline(jpeg, &origin, &columns);
    if ((code = resize_begin(&state->resize, origin, columns, request->row)))
        return code;
    const bool inverted = jpeg->saw_Adobe_marker;
    uint8_t *rows[RESIZE_ROWS_MAX];
    if (state->resize.row > 0)
        jpeg_skip_scanlines(jpeg, state->resize.row);
    for (uint32_t count; (count = resize_want(&state->resize, rows));) {
        count = jpeg_read_scanlines(jpeg, rows, count);
        if (count == 0)
            return fail(EBADMSG, "the JPEG has fewer rows than its header says");
        for (uint32_t i = 0; inks && i < count; i++)
            inks_to_rgbx(rows[i], columns, inverted);
        resize_give(&state->resize, count);
    }
    return 0;
}

static int decode_jpeg(struct jpeg_state *state, const struct image_request *request)
{
    struct jpeg_decompress_struct *jpeg = &state->jpeg;
    const struct decode_source *source = request->source;
    int code;

    /* libjpeg keeps the tables of one image for the next, which may lack them. Here each image
     * stands alone: the bump allocator has their memory again. */
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        jpeg->quant_tbl_ptrs[i] = NULL;
    for (int i = 0; i < NUM_HUFF_TBLS; i++)
        jpeg->dc_huff_tbl_ptrs[i] = jpeg->ac_huff_tbl_ptrs[i] = NULL;
    state->truncated = false;
    state->errors.num_warnings = 0;
    state->source.next_input_byte = source->bytes;
    state->source.bytes_in_buffer = source->length;
    if (setjmp(state->escape) == 0)
        code = decode_opened(state, request);
    else if (state->bump.refused) /* with the reason */
        code = -ENOMEM;
    else
        code = fail(EBADMSG, "the JPEG cannot be decoded: %s%s", state->reason,
                    image_kind_of(source->bytes, source->length) == IMAGE_UNKNOWN
                        ? "; --decode=none reads data that is no image"
                        : "");
    if (code == 0 && (state->truncated || state->errors.num_warnings))
        code = image_judge(request, state->truncated,
                           state->truncated ? "the JPEG is cut short" : state->reason);
    jpeg_abort_decompress(jpeg);
    return code;
}

/* ---- entry points ----
 *
 * Up to 34 points; point i is that of MCU row (i + 1) x spacing, the spacing being MCU rows / 34,
 * rounded up. In groups of up to four, little-endian:
 *     u32 CRC-32C of the image up to and including the byte of the group's last point, in pieces
 *         that end with the byte of each point so far, each followed by the ten bytes below
 *     up to four times: u32 bit of the image, 3 x u16 DC predictors
 * A point follows from the bytes above it alone, so with the same CRC it is right, whatever
 * follows. A CRC is no signature: hints are taken only from files that are trusted like the data.
 */

enum { POINT_BYTES = 10, GROUP = 4, CRC_BYTES = 4 };

static uint32_t spacing_of(uint32_t mcu_rows)
{
    assert(mcu_rows > 0);
    return (mcu_rows + ENTRY_POINTS_MAX - 1) / ENTRY_POINTS_MAX;
}

static size_t group_offset(uint32_t group)
{
    return (size_t)group * (CRC_BYTES + GROUP * POINT_BYTES);
}

static size_t point_offset(uint32_t i)
{
    return group_offset(i / GROUP) + CRC_BYTES + i % GROUP * POINT_BYTES;
}

static size_t hint_bytes(uint32_t count)
{
    return count ? point_offset(count - 1) + POINT_BYTES : 0;
}

_Static_assert(ENTRY_POINTS_MAX *POINT_BYTES + (ENTRY_POINTS_MAX + GROUP - 1) / GROUP * CRC_BYTES <=
                   DECODE_HINT_MAX,
               "a hint has room for all points");

/* The CRC up to a point. */
struct seal {
    uint32_t crc;
    size_t done;
};

/* Returns false if the point is above the one before, or outside the image. */
static bool seal_point(struct seal *seal, const struct decode_source *source, const uint8_t *raw)
{
    const size_t end = (size_t)bytes_le32(raw) / 8 + 1;

    if (end < seal->done || end > source->length)
        return false;
    seal->crc = crc32c(seal->crc, (const uint8_t *)source->bytes + seal->done, end - seal->done);
    seal->crc = crc32c(seal->crc, raw, POINT_BYTES);
    seal->done = end;
    return true;
}

/* Before baseline_start(): note them in passing. */
static void note_points(struct entry_points *notes, struct baseline *decoder, uint32_t mcu_rows)
{
    const uint32_t spacing = spacing_of(mcu_rows);

    notes->count = (mcu_rows - 1) / spacing;
    assert(notes->count <= ENTRY_POINTS_MAX);
    baseline_note_points(decoder, spacing, notes->points);
}

/* After the last row that is needed: step over the rest of the scan, and make the hint. Returns its
 * bytes; 0 if the image can have no point: damaged, or too small or too large. */
static size_t finish_points(const struct entry_points *notes, struct baseline *decoder,
                            const struct decode_source *source, uint8_t hint[DECODE_HINT_MAX])
{
    struct seal seal = {0, 0};

    if (source->length > UINT32_MAX / 8 || baseline_finish_points(decoder))
        return 0;
    for (uint32_t i = 0; i < notes->count; i++) {
        uint8_t *raw = hint + point_offset(i);
        const struct baseline_point *point = &notes->points[i];
        bytes_put_le32(raw, (uint32_t)point->bit);
        for (int j = 0; j < 3; j++)
            bytes_put_le16(raw + 4 + 2 * j, point->dc[j]);
        if (!seal_point(&seal, source, raw))
            return 0;
        bytes_put_le32(hint + group_offset(i / GROUP), seal.crc);
    }
    return hint_bytes(notes->count);
}

enum entry entry_points_find(const struct decode_source *source, uint32_t mcu_rows, uint32_t row,
                             struct entry_points *found)
{
    const uint32_t spacing = spacing_of(mcu_rows), count = (mcu_rows - 1) / spacing;
    const uint8_t *hint = source->hint;
    struct seal seal = {0, 0};
    uint32_t i = 0;

    if (source->hint_bytes == 0)
        return ENTRY_NONE;
    if (source->hint_bytes != hint_bytes(count))
        return ENTRY_STALE;
    found->count = row / spacing < count ? row / spacing : count;
    if (found->count == 0)
        return ENTRY_NONE;
    for (; i < found->count || (i % GROUP && i < count); i++) {
        const uint8_t *raw = hint + point_offset(i);
        struct baseline_point *point = &found->points[i];
        *point = (struct baseline_point){.row = (i + 1) * spacing, .bit = bytes_le32(raw)};
        for (int j = 0; j < 3; j++)
            point->dc[j] = bytes_le16(raw + 4 + 2 * j);
        if (!seal_point(&seal, source, raw))
            return ENTRY_STALE;
    }
    return seal.crc == bytes_le32(hint + group_offset((i - 1) / GROUP)) ? ENTRY_FOUND : ENTRY_STALE;
}

/* ---- one baseline JPEG, without libjpeg ---- */

/* Returns DECODE_OTHER if libjpeg must decode, and judge, this image. */
static int decode_baseline(struct jpeg_state *state, const struct image_request *request)
{
    const struct decode_source *source = request->source;
    struct baseline *decoder = state->baseline;
    struct baseline_image image;
    int code;

    if (!decoder || baseline_open(decoder, source->bytes, source->length, &image) ||
        !image_end_jpeg(source->bytes, source->length, image.header_bytes))
        return DECODE_OTHER;
    if ((code = image_check_size(request, image.width, image.height)))
        return code;
    char why[sizeof state->reason]; /* not used: libjpeg reports the reason */
    if (!image_limits_scan(request->limits, image.scans, image.width, image.height, why,
                           sizeof why))
        return DECODE_OTHER; /* the file may have fewer scans */
    const struct view_box box = image_box(request, image.width, image.height);
    const uint32_t numerator = choose_scale(state, &box);
    if (numerator & (numerator - 1)) /* scale=any */
        return DECODE_OTHER;
    const uint32_t width = image.width, height = image.height;
    if (baseline_scale(decoder, numerator, &image))
        return DECODE_OTHER;
    if ((code = image_plan(request, &state->resize, width, height, numerator)))
        return code;
    const struct resize *plan = &state->resize;
    const struct baseline_region region = {plan->x.low, plan->y.low, plan->x.high - plan->x.low,
                                           plan->y.high - plan->y.low};
    if ((code = resize_begin(&state->resize, region.x, region.width, request->row)))
        return code;
    void *memory = bump_alloc(&state->bump, baseline_select(decoder, &region));
    if (!memory)
        return -ENOMEM;
    /* With a hint, skip what is above the region and to its right. */
    struct entry_points *points = &state->points;
    const enum entry entry =
        entry_points_find(source, image.mcu_rows, baseline_last_entry(decoder), points);
    const bool entered = entry == ENTRY_FOUND, notes = source->wants_hint && !entered;
    request->figures->stale += entry == ENTRY_STALE;
    if (notes)
        note_points(points, decoder, image.mcu_rows);
    if (entered ? baseline_start_at(decoder, memory, points->points, points->count)
                : baseline_start(decoder, memory))
        return DECODE_OTHER;
    uint8_t *rows[RESIZE_ROWS_MAX];
    for (uint32_t count; (count = resize_want(&state->resize, rows));) {
        for (uint32_t i = 0; i < count; i++)
            if (baseline_read(decoder, rows[i]))
                return DECODE_OTHER;
        resize_give(&state->resize, count);
    }
    request->figures->entered += entered;
    state->has_notes = notes;
    request->figures->grayscale += image.components == 1;
    request->figures->progressive += image.scans > 0;
    return 0;
}

/* ---- the plug-in ---- */

/* The baseline decoder has libjpeg's default methods alone. */
static bool wants_baseline(const struct jpeg_settings *settings)
{
    return settings->dct == DCT_ISLOW && settings->upsampling == UPSAMPLE_FANCY &&
           settings->engine != ENGINE_TURBO &&
           (settings->engine != ENGINE_AUTO || baseline_is_fast());
}

static int jpeg_open(void *opaque, const void *settings, struct decoder_traits *traits)
{
    struct jpeg_state *state = opaque;
    int code;

    state->settings = settings;
    traits->side = (uint32_t)state->settings->look.size;
    traits->row_bytes = (size_t)traits->side * traits->side * 3;
    traits->shown = &state->shown;
    state->as = &conventions[state->settings->look.as];
    state->rules = look_rules(&state->settings->look);
    state->scale = state->settings->scale != SCALE_AS ? state->settings->scale
                   : state->as->scales                ? SCALE_FAST
                                                      : SCALE_NONE;
    if (state->as->upright && !(state->turned = memory_zeroed(traits->row_bytes)))
        return -ENOMEM;
    code = bump_open(&state->bump, BUMP_BYTES,
                     BUMP_BYTES + state->settings->look.limits.pixels * BUMP_BYTES_PER_PIXEL *
                                      (state->verifies ? 2 : 1)); /* of up to ten components */
    if (code)
        return code;
    if (wants_baseline(state->settings) && !(state->baseline = baseline_create()))
        return fail(ENOMEM, "out of memory for a JPEG decoder");
    state->jpeg.err = jpeg_std_error(&state->errors);
    state->errors.error_exit = on_error;
    state->errors.emit_message = on_message;
    if (setjmp(state->escape))
        return fail(ENOMEM, "libjpeg cannot start: %s", state->reason);
    state->created = true;
    jpeg_create_decompress(&state->jpeg);
    state->progress.progress_monitor = on_progress;
    state->jpeg.progress = &state->progress;
    state->source = (struct jpeg_source_mgr){
        .init_source = source_idle,
        .fill_input_buffer = source_fill,
        .skip_input_data = source_skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = source_idle,
    };
    state->jpeg.src = &state->source;
    return bump_serve_jpeg(&state->bump, (struct jpeg_common_struct *)&state->jpeg);
}

static void jpeg_close(void *opaque)
{
    struct jpeg_state *state = opaque;

    baseline_destroy(state->baseline);
    baseline_destroy(state->hinting);
    if (state->created)
        jpeg_destroy_decompress(&state->jpeg);
    bump_close(&state->bump);
    free(state->turned);
}

static int jpeg_decode(void *opaque, const struct decode_source *source, const struct view *view,
                       void *row, struct decode_figures *figures)
{
    struct jpeg_state *state = opaque;
    struct image_request request = {
        .source = source,
        .view = &state->view,
        .rules = &state->rules,
        .filter = state->as->filter,
        .orientation = ORIENTATION_UPRIGHT,
        .limits = &state->settings->look.limits,
        .width = view->width ? view->width : (uint32_t)state->settings->look.size,
        .height = view->width ? view->height : (uint32_t)state->settings->look.size,
        .bump = &state->bump,
        .row = row,
        .figures = figures,
        .accepts_damaged = state->settings->look.damaged == LOOK_DECODES,
        .shown = &state->shown,
    };

    state->view = look_view(&state->settings->look, view);
    state->has_notes = false;
    bump_reset(&state->bump);
    if (source->layout != SAMPLE_ENCODED)
        return image_decode_raw(&request);
    int code = image_decode_other(&request);
    if (code != DECODE_OTHER)
        return code == -ENOTSUP && !state->verifies ? -EBADMSG : code;
    if (state->as->upright && !view->width)
        request.orientation = orientation_of_jpeg(source->bytes, source->length);
    const bool turns = request.orientation != ORIENTATION_UPRIGHT;
    if (turns) /* the stored image into a row of its own */
        request.row = state->turned;
    code = decode_baseline(state, &request);
    if (code == DECODE_OTHER) {
        bump_reset(&state->bump);
        code = decode_jpeg(state, &request);
    }
    if (turns && code >= 0)
        orientation_turn(request.orientation, state->shown.box.mirror, request.width, request.row,
                         row);
    return code;
}

int image_verify(const void *bytes, size_t count, const struct image_limits *limits)
{
    enum { SIDE = 8 }; /* images of other kinds are decoded whole for any row */
    const struct jpeg_settings settings = {.look = {.size = SIDE, .limits = *limits, .crop = 1},
                                           .engine = ENGINE_TURBO};
    const struct decode_source source = {.bytes = bytes, .length = count, .layout = SAMPLE_ENCODED};
    const struct view whole = {.kind = VIEW_WHOLE};
    struct decode_figures figures = {0};
    struct decoder_traits traits;
    struct image_header header;
    uint8_t row[SIDE * SIDE * 3];
    int code = image_header_check(bytes, count, &header);

    if (code)
        return code;
    if (!image_limits_size(limits, header.width, header.height)) /* of kinds not decoded, too */
        return fail(EBADMSG, "%u x %u pixels are more than max-pixels=%llu", header.width,
                    header.height, (unsigned long long)limits->pixels);
    struct jpeg_state *state = memory_zeroed(sizeof *state);
    if (!state)
        return -ENOMEM;
    state->verifies = true;
    code = jpeg_open(state, &settings, &traits);
    if (code == 0)
        code = jpeg_decode(state, &source, &whole, row, &figures);
    jpeg_close(state);
    free(state);
    return code == -ENOTSUP ? 0 : code;
}

static bool jpeg_uses_hints(const void *opaque)
{
    const struct jpeg_settings *settings = opaque;

    return settings->entry_points == ENTRY_POINTS_AUTO && wants_baseline(settings);
}

static size_t jpeg_make_hint(void *opaque, const struct decode_source *source,
                             uint8_t hint[DECODE_HINT_MAX])
{
    struct jpeg_state *state = opaque;

    if (source->layout != SAMPLE_ENCODED)
        return 0;
    if (state->has_notes) {
        state->has_notes = false;
        return finish_points(&state->points, state->baseline, source, hint);
    }
    /* Of an image that is not decoded. */
    const struct baseline_region corner = {0, 0, 1, 1};
    struct baseline_image image;
    if (!state->baseline && !state->hinting && !(state->hinting = baseline_create()))
        return 0;
    struct baseline *decoder = state->baseline ? state->baseline : state->hinting;
    if (baseline_open(decoder, source->bytes, source->length, &image))
        return 0;
    bump_reset(&state->bump);
    void *memory = bump_alloc(&state->bump, baseline_select(decoder, &corner));
    note_points(&state->points, decoder, image.mcu_rows);
    if (!memory || baseline_start(decoder, memory))
        return 0;
    return finish_points(&state->points, decoder, source, hint);
}

const struct decoder_ops decoder_jpeg = {
    .plugin = {.name = "jpeg",
               .summary = "decodes, crops and resizes on the CPU (libjpeg-turbo; also PNG, WebP, "
                          "PPM, raw)",
               .options = jpeg_options,
               .settings_size = sizeof(struct jpeg_settings),
               .state_size = sizeof(struct jpeg_state)},
    .gives_pixels = true,
    .open = jpeg_open,
    .close = jpeg_close,
    .decode = jpeg_decode,
    .uses_hints = jpeg_uses_hints,
    .make_hint = jpeg_make_hint,
};
