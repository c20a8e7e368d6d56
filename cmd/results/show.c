/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench show: shows what the trainer sees of a record or a batch.
 */
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/pack/cursor.h"
#include "dataset/store.h"
#include "decode/decoder.h"
#include "decode/view.h"
#include "formats/format.h"
#include "pipeline/engine/decoders.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <png.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* show_sheet: a picture of samples in cells: on the left the whole image with the box that training
 * uses, on the right the row that the trainer gets. Written as PNG. One thread. */

struct show_sheet {
    uint32_t thumb, side;           /* of a whole image and of a row, in pixels */
    uint32_t columns, rows, count;  /* cells */
    uint32_t width, height, across; /* of the sheet; columns to the next cell */
    uint8_t *pixels;                /* RGB */
};

enum { GAP = 8, LINE = 2, PIXEL_BYTES = 3 };

static const uint8_t paper[PIXEL_BYTES] = {255, 255, 255};
static const uint8_t box_colour[PIXEL_BYTES] = {255, 64, 0};
static const uint8_t cross_colour[PIXEL_BYTES] = {96, 96, 96};

static uint8_t *pixel_at(const struct show_sheet *sheet, uint32_t x, uint32_t y)
{
    return sheet->pixels + ((size_t)y * sheet->width + x) * PIXEL_BYTES;
}

static uint32_t cell_height(const struct show_sheet *sheet)
{
    return sheet->thumb > sheet->side ? sheet->thumb : sheet->side;
}

static void fill_rectangle(struct show_sheet *sheet, uint32_t x, uint32_t y, uint32_t width,
                           uint32_t height, const uint8_t *colour)
{
    for (uint32_t row = y; row < y + height; row++)
        for (uint32_t column = x; column < x + width; column++)
            memcpy(pixel_at(sheet, column, row), colour, PIXEL_BYTES);
}

/* Fill cell i. whole: thumb x thumb RGB pixels of the whole image, stretched to a square; NULL: it
 * cannot be decoded. row: side x side pixels of the box, or NULL: crossed out. */
static void sheet_show(struct show_sheet *sheet, uint32_t i, const uint8_t *whole,
                       const uint8_t *row, const struct view_shown *shown)
{
    const uint32_t x = GAP + i % sheet->columns * sheet->across, beside = x + sheet->thumb + GAP,
                   y = GAP + i / sheet->columns * (cell_height(sheet) + GAP);

    if (whole) {
        /* Size of the whole image with its own aspect ratio, which fits into the square. */
        const double longer = shown->width > shown->height ? shown->width : shown->height;
        const uint32_t width = (uint32_t)fmax(1, nearbyint(sheet->thumb * shown->width / longer));
        const uint32_t height = (uint32_t)fmax(1, nearbyint(sheet->thumb * shown->height / longer));
        for (uint32_t at = 0; at < height; at++) {
            const uint8_t *line =
                whole + (size_t)(at * sheet->thumb / height) * sheet->thumb * PIXEL_BYTES;
            for (uint32_t column = 0; column < width; column++)
                memcpy(pixel_at(sheet, x + column, y + at),
                       line + (size_t)(column * sheet->thumb / width) * PIXEL_BYTES, PIXEL_BYTES);
        }
        /* Draw the box within a width x height picture at x, y. */
        const double scale_x = (double)width / shown->width,
                     scale_y = (double)height / shown->height;
        const uint32_t left = (uint32_t)(shown->box.x * scale_x);
        const uint32_t top = (uint32_t)(shown->box.y * scale_y);
        uint32_t across = (uint32_t)ceil(shown->box.width * scale_x);
        uint32_t down = (uint32_t)ceil(shown->box.height * scale_y);
        across = left + across > width ? width - left : across;
        down = top + down > height ? height - top : down;
        const uint32_t thick = across > LINE && down > LINE ? LINE : 1;
        fill_rectangle(sheet, x + left, y + top, across, thick, box_colour);
        fill_rectangle(sheet, x + left, y + top + down - thick, across, thick, box_colour);
        fill_rectangle(sheet, x + left, y + top, thick, down, box_colour);
        fill_rectangle(sheet, x + left + across - thick, y + top, thick, down, box_colour);
    }
    for (uint32_t at = 0; row && at < sheet->side; at++)
        memcpy(pixel_at(sheet, beside, y + at), row + (size_t)at * sheet->side * PIXEL_BYTES,
               (size_t)sheet->side * PIXEL_BYTES);
    if (!row) {
        for (uint32_t at = 0; at + LINE <= sheet->side; at++) {
            fill_rectangle(sheet, beside + at, y + at, LINE, LINE, cross_colour);
            fill_rectangle(sheet, beside + sheet->side - LINE - at, y + at, LINE, LINE,
                           cross_colour);
        }
    }
}

enum { BATCH_MAX = 1024, THUMB_OF_ONE = 448, TEXT_BYTES = 512 };

struct show_settings {
    char *record, *shuffle, *format, *decode, *output, *json;
    uint64_t batch, batch_size, epoch, seed, io_timeout_ns;
};

#define FIELD(field) .offset = offsetof(struct show_settings, field)
/* clang-format off: a row or two each */
static const struct option_spec show_options[] = {
    {"record", 'r', OPTION_TEXT, FIELD(record), .metavar = "N", .section = "What is shown",
     .summary = "this record, as numbered in messages (from 0), instead of a batch"},
    {"batch", 'b', OPTION_COUNT, FIELD(batch), .fallback = "0",
     .summary = "this batch of the epoch (from 0)"},
    {"batch-size", 'B', OPTION_COUNT, FIELD(batch_size), .fallback = "32", .minimum = 1,
     .maximum = BATCH_MAX, .summary = "samples per batch"},
    {"epoch", 0, OPTION_COUNT, FIELD(epoch), .fallback = "1", .minimum = 1, .maximum = 1e9,
     .summary = "epoch (from 1)"},
    {"seed", 0, OPTION_COUNT, FIELD(seed), .fallback = "1",
     .summary = "random seed of sample order and crops"},
    {"shuffle", 's', OPTION_TEXT, FIELD(shuffle), .fallback = "auto", .metavar = "NAME[:...]",
     .summary = "shuffle strategy: the sample order of an epoch; auto as in 'iobench run'"},

    {"decode", 0, OPTION_TEXT, FIELD(decode), .fallback = "jpeg", .metavar = "NAME[:...]",
     .section = "How it is read", .summary = "decoder, with the options of the run"},
    {"format", 'f', OPTION_TEXT, FIELD(format), .fallback = "auto", .metavar = "NAME[:...]",
     .summary = "format of the data set"},
    {"io-timeout", 0, OPTION_DURATION, FIELD(io_timeout_ns), .fallback = "60s", .zero = "none",
     .summary = "time-out for a server that does not respond (nfs://)"},

    {"output", 'o', OPTION_TEXT, FIELD(output), .metavar = "FILE.png", .reach = OPTION_WRITES,
     .section = "Output",
     .summary = "write the picture: each whole image with its box, and the pixels of the trainer"},
    {"json", 'j', OPTION_TEXT, FIELD(json), .metavar = "FILE", .reach = OPTION_WRITES,
     .begins = "{\"data\": \"\", \"epoch\"", .implied = "-",
     .summary = "write JSON to FILE, by default to standard output"},
    {0},
};
/* clang-format on */

/* One record. */
struct shown_record {
    uint64_t record, offset;
    const char *path; /* of its shard */
    int32_t label;
    struct view_shown view; /* width 0: unknown */
    int code;               /* of decoding; reason if not 0 */
    char reason[TEXT_BYTES];
};

struct show {
    const struct show_settings *settings;
    struct plugin_choice format, choice, whole_choice;
    struct catalog *catalog;
    struct cursor *cursor;
    struct format_scratch scratch;
    struct decoder decoder, whole;
    bool is_open, whole_is_open;
    uint8_t *bytes, *row, *whole_row; /* the record, its row, and the whole image */
    struct show_sheet sheet;
    uint64_t *records;
    struct shown_record *shown;
    uint32_t count;
};

/* ---- which records ---- */

static int choose_records(struct show *show)
{
    const struct show_settings *settings = show->settings;
    const struct plan_scope scope = {.catalog = show->catalog,
                                     .seed = settings->seed,
                                     .ranks = 1,
                                     .batch_size = (uint32_t)settings->batch_size};
    struct plugin_choice shuffle;
    struct plan plan;

    show->records = memory_array(settings->batch_size, sizeof *show->records);
    if (!show->records)
        return -ENOMEM;
    if (settings->record) {
        uint64_t record;
        int code = option_parse_count(show->settings->record, &record);
        if (code)
            return code;
        if (record >= show->catalog->record_count)
            return fail(EINVAL,
                        "--record %" PRIu64 ": the data set has %" PRIu64 " records, from 0",
                        record, show->catalog->record_count);
        show->records[show->count++] = record;
        return 0;
    }
    int code = shuffle_choose(settings->shuffle, show->catalog->compressed, &shuffle);
    if (code)
        return code;
    code = plan_open(&plan, &shuffle, &scope);
    if (code == 0)
        code = plan_begin(&plan, settings->epoch - 1);
    const uint64_t draws = code ? 0 : plan_draws(&plan);
    if (code == 0 && settings->batch >= (draws + settings->batch_size - 1) / settings->batch_size)
        code = fail(EINVAL,
                    "--batch %" PRIu64 ": the epoch has %" PRIu64 " samples, %" PRIu64 " a batch",
                    settings->batch, draws, settings->batch_size);
    if (code == 0)
        code = plan_seek(&plan, settings->batch * settings->batch_size);
    uint64_t *slots = code ? NULL : memory_array(plan.traits.slots, sizeof *slots);
    struct plan_op op;
    if (code == 0)
        code = slots ? 1 : -ENOMEM;
    while (code > 0 && show->count < settings->batch_size && (code = plan_next(&plan, &op, 1)) > 0)
        if (op.kind == PLAN_FETCH)
            slots[op.slot] = op.record;
        else
            show->records[show->count++] = slots[op.slot];
    free(slots);
    plan_close(&plan);
    plugin_release(&shuffle);
    return code < 0 ? code : 0;
}

/* ---- how they are decoded ---- */

static int open_decoders(struct show *show)
{
    show->is_open = true;
    int code = decoder_open(&show->decoder, &show->choice);
    if (code == 0) {
        /* The same decoder for the whole image, which also shows what is left of damaged ones. */
        char text[TEXT_BYTES];
        const uint32_t side = show->count == 1 ? THUMB_OF_ONE : show->decoder.traits.side;
        int bytes =
            snprintf(text, sizeof text, "%s%csize=%u,view=whole,damaged=decode",
                     show->settings->decode, strchr(show->settings->decode, ':') ? ',' : ':', side);
        if (bytes >= (int)sizeof text)
            code = fail(EINVAL, "--decode: text too long");
        else {
            code = plugin_choose("decoder", decoder_registry, text, &show->whole_choice);
            if (code == 0) {
                show->whole_is_open = true;
                code = decoder_open(&show->whole, &show->whole_choice);
            }
        }
    }
    if (code)
        return code;
    const size_t largest = show->catalog->record_bytes_max;
    show->cursor = cursor_create(show->catalog);
    show->bytes = memory_zeroed(largest);
    show->scratch = (struct format_scratch){.bytes = memory_zeroed(largest), .capacity = largest};
    show->row = memory_zeroed(show->decoder.traits.row_bytes);
    show->whole_row = memory_zeroed(show->whole.traits.row_bytes);
    show->shown = memory_array(show->count, sizeof *show->shown);
    if (!show->cursor || !show->bytes || !show->scratch.bytes || !show->row || !show->whole_row ||
        !show->shown)
        return -ENOMEM;
    /* Close in either case. */
    const uint32_t count = show->count;
    const uint32_t thumb = show->whole.traits.side;
    const uint32_t side = show->decoder.traits.side;
    show->sheet = (struct show_sheet){.thumb = thumb, .side = side, .count = count};
    show->sheet.across = thumb + GAP + side + 2 * GAP;
    show->sheet.columns = (uint32_t)ceil(sqrt(count / 2.0)); /* a cell is twice as wide as high */
    show->sheet.rows = (count + show->sheet.columns - 1) / show->sheet.columns;
    show->sheet.width = show->sheet.columns * show->sheet.across;
    show->sheet.height = GAP + show->sheet.rows * (cell_height(&show->sheet) + GAP);
    show->sheet.pixels = memory_array((size_t)show->sheet.width * show->sheet.height, PIXEL_BYTES);
    if (!show->sheet.pixels)
        return -ENOMEM;
    memset(show->sheet.pixels, paper[0],
           (size_t)show->sheet.width * show->sheet.height * PIXEL_BYTES);
    return 0;
}

/* ---- each record ---- */

static void show_record(struct show *show, uint32_t i)
{
    struct shown_record *shown = &show->shown[i];
    const uint8_t *whole = NULL;
    struct sample sample;

    *shown = (struct shown_record){.record = show->records[i]};
    const struct extent *extent = catalog_extent(show->catalog, shown->record);
    const struct shard *shard = &show->catalog->shards[extent->shard];
    shown->path = shard->path;
    shown->offset = extent->offset;
    shown->label = -1;
    int code = cursor_read(show->cursor, shown->record, show->bytes);
    if (code == 0)
        code = format_parse(&show->format, shard, show->bytes, extent->bytes, FORMAT_ODD_LABELS,
                            &show->scratch, &sample);
    if (code == 0)
        shown->label = sample.label;
    shown->code = code;
    if (shown->code == 0) {
        const struct decode_source source = decode_source_of(&sample);
        const struct view view =
            view_of_record(show->settings->seed, show->settings->epoch - 1, shown->record);
        if (decoder_decode(&show->whole, &source, &view, show->whole_row) >= 0) {
            whole = show->whole_row;
            shown->view = *show->whole.traits.shown;
        }
        shown->code = decoder_decode(&show->decoder, &source, &view, show->row);
        if (shown->code >= 0)
            shown->view = *show->decoder.traits.shown;
    }
    if (shown->code)
        snprintf(shown->reason, sizeof shown->reason, "%s", fail_reason());
    sheet_show(&show->sheet, i, whole, shown->code < 0 ? NULL : show->row, &shown->view);
}

/* ---- the command ---- */

static int show_all(struct show *show, const char *path)
{
    store_set_timeout(show->settings->io_timeout_ns);
    const struct format_scan scan = {0};
    int code = format_choose(show->settings->format, path, &show->format);
    if (code == 0) {
        code = format_catalog_kept(&show->format, path, &show->catalog);
        if (code)
            code = format_catalog(&show->format, path, false, &scan, &show->catalog);
        if (code == 0)
            format_say_remarks(show->catalog);
    }
    if (code == 0)
        code = choose_records(show);
    if (code == 0)
        code = open_decoders(show);
    for (uint32_t i = 0; code == 0 && i < show->count; i++)
        show_record(show, i);
    if (code)
        return code;
    const struct show_settings *settings = show->settings;
    if (settings->output) {
        png_image image = {.version = PNG_IMAGE_VERSION,
                           .width = show->sheet.width,
                           .height = show->sheet.height,
                           .format = PNG_FORMAT_RGB};
        struct text_stream stream;
        char *png = NULL;
        size_t bytes = 0;
        code = text_stream_open(&stream);
        const bool written = code == 0 && png_image_write_to_stdio(&image, stream.stream, 0,
                                                                   show->sheet.pixels, 0, NULL);
        if (code == 0)
            code = text_stream_take(&stream, &png, &bytes);
        if (code == 0 && !written)
            code = fail(ENOMEM, "libpng cannot write the picture: %s", image.message);
        if (code == 0)
            code = report_write_file(settings->output, png, bytes);
        free(png);
    }
    if (code == 0 && settings->json) {
        json_t *records = json_array();
        for (uint32_t i = 0; i < show->count; i++) {
            const struct view_box *box = &show->shown[i].view.box;
            json_t *seen =
                show->shown[i].code < 0
                    ? json_null()
                    : json_pack("{s:o, s:o, s:o, s:o, s:b}", "x", json_number(box->x), "y",
                                json_number(box->y), "width", json_number(box->width), "height",
                                json_number(box->height), "mirror", (int)box->mirror);
            json_array_append_new(
                records,
                json_pack("{s:I, s:o, s:I, s:i, s:I, s:I, s:o, s:o}", "record",
                          (json_int_t)show->shown[i].record, "shard",
                          json_text(show->shown[i].path), "offset",
                          (json_int_t)show->shown[i].offset, "label", (int)show->shown[i].label,
                          "width", (json_int_t)show->shown[i].view.width, "height",
                          (json_int_t)show->shown[i].view.height, "box", seen, "damaged",
                          show->shown[i].code ? json_text(show->shown[i].reason) : json_null()));
        }
        code = json_file_write(
            settings->json,
            json_pack("{s:o, s:I, s:I, s:o, s:o}", "data", json_text(show->catalog->root), "epoch",
                      (json_int_t)show->settings->epoch, "seed", (json_int_t)show->settings->seed,
                      "decoder", json_text(show->settings->decode), "records", records));
    }
    if (code == 0 && !(settings->json && strcmp(settings->json, "-") == 0))
        for (uint32_t i = 0; i < show->count; i++) {
            const struct view_box *box = &show->shown[i].view.box;
            printf("record %" PRIu64 "  %s: offset %" PRIu64 "  label %" PRId32,
                   show->shown[i].record, escape_shown(show->shown[i].path), show->shown[i].offset,
                   show->shown[i].label);
            if (show->shown[i].code >= 0)
                printf("  %u x %u  box %g,%g %g x %g%s", show->shown[i].view.width,
                       show->shown[i].view.height, box->x, box->y, box->width, box->height,
                       box->mirror ? " mirrored" : "");
            printf("%s%s\n", show->shown[i].code ? "  DAMAGED: " : "",
                   show->shown[i].code ? escape_shown(show->shown[i].reason) : "");
        }
    return code;
}

static int show_command(const struct invocation *invocation)
{
    struct show show = {.settings = invocation->settings};
    uint32_t damaged = 0;

    const char *decode = show.settings->decode;
    int code = plugin_choose("decoder", decoder_registry, decode, &show.choice);
    if (code == 0 && !decoder_of(show.choice.plugin)->gives_pixels)
        code = fail(EINVAL, "--decode %s: makes no pixels", decode);
    if (code) {
        plugin_release(&show.choice);
        return command_misused(invocation);
    }
    code = outputs_check_path(show.settings->output, "\x89PNG\r\n\x1a\n");
    if (code == 0)
        code = show_all(&show, invocation->operands[0]);
    for (uint32_t i = 0; code == 0 && i < show.count; i++)
        damaged += show.shown[i].code != 0;
    free(show.sheet.pixels);
    show.sheet.pixels = NULL;
    free(show.shown);
    free(show.records);
    free(show.whole_row);
    free(show.row);
    free(show.scratch.bytes);
    free(show.bytes);
    cursor_destroy(show.cursor);
    if (show.whole_is_open)
        decoder_close(&show.whole);
    if (show.is_open)
        decoder_close(&show.decoder);
    catalog_destroy(show.catalog);
    plugin_release(&show.whole_choice);
    plugin_release(&show.choice);
    plugin_release(&show.format);
    return code ? command_failed(invocation) : damaged ? COMMAND_FAILED : COMMAND_OK;
}

const struct command command_show = {
    .name = "show",
    .summary = "show what the trainer sees of a record or a batch",
    .operands = "DATA",
    .operands_minimum = 1,
    .operands_maximum = 1,
    .operands_exist = true,
    .description =
        "Decodes a batch, or one record, exactly as a run with the same seed, shuffle and decoder "
        "does, prints each record's place, label and crop box, and draws a picture: on the left "
        "the whole image with its box, on the right the pixels that the trainer gets, cropped, "
        "resized and mirrored. A damaged image is named and crossed out, and what can be decoded "
        "of it is on the left; the exit status is then 1. Changes nothing in DATA.",
    .examples = "iobench show /mnt/imagenet/train -o batch.png\tthe first batch\n"
                "iobench show /mnt/set --record 1017 -o it.png\ta record named in a message\n"
                "iobench show /mnt/set --epoch 2 --batch 5 --json\tboxes of a later batch\n",
    .options = show_options,
    .settings_size = sizeof(struct show_settings),
    .operands_reach = {OPTION_READS_SET},
    .is_confined = true,
    .run = show_command,
};
