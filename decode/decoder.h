/* SPDX-License-Identifier: Apache-2.0
 *
 * decoder: turns one encoded image into one row of a batch. One state per decode thread; no
 * allocation in steady state after open(). Only decode/decoder.c calls through the ops.
 */
#ifndef IOBENCH_DECODE_DECODER_H
#define IOBENCH_DECODE_DECODER_H

#include "base/image_header.h"
#include "base/sample.h"
#include "base/plugin.h"
#include "decode/view.h"

#include <stddef.h>

/* The image as stored in the record. */
struct decode_source {
    const void *bytes;
    size_t length;
    enum sample_encoding layout;
    uint32_t width, height, channels; /* for raw layouts */
    const void *hint; /* kept from make_hint(), perhaps of another image, or damaged */
    size_t hint_bytes;
    bool wants_hint; /* its make_hint() is the next call; without a hint so far */
};

/* The image of a sample, without a hint. */
struct decode_source decode_source_of(const struct sample *sample);

enum { DECODE_HINT_MAX = 384 };

struct decoder_traits {
    /* Size of one output row; 0 if nothing is written; 8 for checksum: a little-endian u64, CRC-32C
     * of the image in the low half, its length in the high half. */
    size_t row_bytes;
    uint32_t side;       /* the row is side x side x 3 RGB bytes; 0 if it holds no pixels */
    uint32_t pending;    /* images decoded at a time; 0: each at once */
    uint64_t held_bytes; /* host memory from open() to close(), where it is more than a little */
    const char *engine;  /* what decodes, where machines differ; valid while open. NULL: nothing to
                          * report */
    const struct view_shown *shown; /* what the last row shows; NULL: rows hold no pixels */
    const char *notice; /* what happened that a report should tell; valid while open. NULL or empty:
                         * nothing */
};

/* Counts of irregular images, each decoded or counted; none stops a run. */
struct decode_figures {
    uint64_t images, bytes, grayscale, cmyk, progressive, raw, failed;
    uint64_t of_kind[IMAGE_KINDS]; /* other than JPEG */
    uint64_t truncated;            /* ended early; refused, or decoded as far as possible */
    uint64_t corrupt; /* libjpeg warned of corrupt bytes in the decoded part; likewise */
    uint64_t entered; /* not decoded above the crop, or right of it, thanks to a hint */
    uint64_t stale;   /* hints that are not of the image, and were not used */
    uint64_t on_cpu;  /* of a decoder on a device: images that were left to the CPU */
};

/* Results of decoding, other than 0 and a negative errno. */
enum {
    /* With a reason: decoded as far as possible, since the user accepts damaged images. */
    DECODE_DAMAGED = 1,
    DECODE_OTHER,   /* between the readers of a decoder: not an image for this one; try the next */
    DECODE_PENDING, /* the row will be written by finish(); the source is no longer needed */
    DECODE_FULL,    /* nothing was done: finish what is pending, and try again */
};

void decode_figures_add(struct decode_figures *into, const struct decode_figures *from);
/* Write the counts that are not 0 of images other than plain colour JPEGs that were decoded, as "3
 * PNG, 1 cut short". Returns whether there are any. */
bool decode_figures_describe(const struct decode_figures *figures, char *text, size_t bytes);

struct decoder_ops {
    struct plugin plugin;
    /* Rows hold pixels: no further decoding is needed. Settings begin with a struct look_settings.
     */
    bool gives_pixels;
    /* NULL: nothing to do. */
    int (*open)(void *state, const void *settings, struct decoder_traits *traits);
    void (*close)(void *state);
    /* row: row_bytes, height x width x 3 RGB bytes for image decoders. Returns 0, DECODE_DAMAGED,
     * -EBADMSG with a reason if the image cannot be decoded, or -ENOMEM. */
    int (*decode)(void *state, const struct decode_source *source, const struct view *view,
                  void *row, struct decode_figures *figures);
    /* For decoders that decode many images at a time: decode() may also return DECODE_PENDING, or
     * DECODE_FULL if any is pending. finish() returns what decode() would have of the image that
     * was the index-th to become pending; all are finished, in order, before the next decode().
     * NULL: none ever is. */
    int (*finish)(void *state, uint32_t index, struct decode_figures *figures);
    /* Does it use hints, as set? NULL: it never does, and make_hint is NULL too. */
    bool (*uses_hints)(const void *settings);
    /* Make the bytes that speed up decoding this image later. Returns their count; 0: none. If the
     * image was just decoded with wants_hint, does only the work that remains. */
    size_t (*make_hint)(void *state, const struct decode_source *source,
                        uint8_t hint[DECODE_HINT_MAX]);
};

extern const struct plugin *const decoder_registry[];

/* Return the first decoder whose rows hold pixels. */
const struct plugin *decoder_of_pixels(void);

static inline const struct decoder_ops *decoder_of(const struct plugin *plugin)
{
    return (const struct decoder_ops *)(const void *)plugin; /* plugin is the first member */
}

struct decoder {
    const struct decoder_ops *ops;
    void *state;
    struct decoder_traits traits;
    struct decode_figures figures;
    uint32_t pending;
};

int decoder_open(struct decoder *decoder, const struct plugin_choice *choice);
void decoder_close(struct decoder *decoder);
int decoder_decode(struct decoder *decoder, const struct decode_source *source,
                   const struct view *view, void *row);
/* The same for many images at a time: may also return DECODE_PENDING or DECODE_FULL. */
int decoder_begin(struct decoder *decoder, const struct decode_source *source,
                  const struct view *view, void *row);
/* Return what decoder_decode() would have of the index-th pending image. After the last one none is
 * pending. */
int decoder_finish(struct decoder *decoder, uint32_t index);
bool decoder_uses_hints(const struct plugin_choice *choice);
size_t decoder_make_hint(struct decoder *decoder, const struct decode_source *source,
                         uint8_t hint[DECODE_HINT_MAX]);

#endif
