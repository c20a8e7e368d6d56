/* SPDX-License-Identifier: Apache-2.0
 *
 * source: the samples of a new data set: another data set, an archive, MNIST files, or a generator.
 * It numbers its samples from 0 to count - 1; a number always names the same sample. Knows nothing
 * of the target.
 *
 * open() and close() on one thread; read() on many at once, each with its own cursor, unless the
 * source is in_order: then one thread and ascending numbers. close() frees everything.
 */
#ifndef IOBENCH_CMD_PACK_SOURCE_H
#define IOBENCH_CMD_PACK_SOURCE_H

#include "base/sample.h"
#include "base/plugin.h"
#include "decode/decoder.h"

#include <stdbool.h>

/* Arguments of open(). */
struct source_config {
    uint64_t threads;
    bool skip;        /* continue past damage found by open() */
    uint64_t quality; /* of JPEGs that a source encodes itself, 1 to 100 */
    int odd_labels;   /* enum format_odd_labels, of sources that can have them */
    /* Called during open(); may be NULL. */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_context;
};

/* Results of open(). */
struct source_traits {
    uint64_t count;
    uint64_t image_bytes; /* of all samples, or an estimate */
    uint64_t fingerprint; /* differs if the samples differ: sizes and times of the files, seeds */
    bool in_order;
    bool encodes;            /* makes JPEGs of pixels, of config->quality */
    uint64_t skipped;        /* places of damage skipped by open() */
    char first_skipped[512]; /* one of them */
    char what[192];          /* description: "lmdb, 1 shard" */
};

/* Memory of one sample, reused for the next. A sample points into it. */
struct source_buffer {
    void *record, *scratch;
    size_t record_capacity, scratch_capacity;
};

struct source_ops {
    struct plugin plugin;
    bool generates; /* generates its samples, from no path */
    /* Return 0 (no) to 100 (certain), as a format does. NULL: never detected. */
    int (*detect)(const char *path);
    int (*open)(void *state, const void *settings, const char *path,
                const struct source_config *config, struct source_traits *traits);
    void (*close)(void *state); /* NULL: nothing to do */
    int (*cursor_open)(void *state, void **cursor);
    void (*cursor_close)(void *state, void *cursor);
    int (*read)(void *state, void *cursor, uint64_t number, struct source_buffer *slot,
                struct sample *sample);
};

extern const struct plugin *const source_registry[];

/* detect() of a front end's module; 0 if it cannot be loaded. */
int source_detect_inside(const struct source_ops *front, const char *path);

/* Return the only source that generates its samples. */
const struct plugin *source_generator(void);

struct source {
    struct plugin_choice choice;
    const struct source_ops *ops;
    void *state;
    struct source_traits traits;
};

/* from: "auto", or NAME[:OPTIONS] of a source or a format. path may itself name a source that needs
 * no path ("synthetic:count=1000"). Close in either case. */
int source_open(struct source *source, const char *from, const char *path,
                const struct source_config *config);
void source_close(struct source *source);

int source_cursor_open(struct source *source, void **cursor);
void source_cursor_close(struct source *source, void *cursor);
int source_read(struct source *source, void *cursor, uint64_t number, struct source_buffer *slot,
                struct sample *sample);

/* For sources: grow *buffer to at least `bytes`. */
int source_reserve(void **buffer, size_t *capacity, size_t bytes);
/* For sources whose next read overwrites the sample: copy its image and name into the buffer. */
int source_keep(struct source_buffer *slot, struct sample *sample);
void source_buffer_release(struct source_buffer *slot);

/* Make images cheaper to decode, for `pack --side` and `--raw`: smaller, and JPEGs or bare pixels
 * (PPM). One thread. */
struct recode {
    uint32_t side; /* shrink larger images to this shorter side; 0: leave their size */
    bool raw;      /* all images become pixels; else only smaller ones are encoded again */
    int quality;   /* of JPEGs, 1 to 100 */
};

struct recoder {
    struct plugin_choice choice;
    struct decoder decoder;
    uint8_t *pixels;
    size_t capacity;
    struct recode recode;
};

/* Close in either case. Returns 0 or a negative errno with a reason. */
int recoder_open(struct recoder *recoder, const struct recode *recode);
void recoder_close(struct recoder *recoder);

/* If the sample's image is to be changed, make the new one in *image, a malloc()ed buffer of
 * *capacity bytes that is replaced if too small, and the sample's image. Returns 1; 0 if it stays
 * as it is; or a negative errno: -EBADMSG for a damaged image. */
int recoder_apply(struct recoder *recoder, struct sample *sample, void **image, size_t *capacity);

/* Compute how many bytes of pixels the image will have. Returns 0 or a negative errno. */
int recode_pixel_bytes(const struct recode *recode, const struct sample *sample, uint64_t *bytes);

/* Encode a raw sample into *jpeg, a malloc()ed buffer of *capacity bytes that is replaced if too
 * small. quality: 1 to 100. Stateless; any thread. Returns 0 or a negative errno. */
int image_to_jpeg(const struct sample *raw, int quality, void **jpeg, size_t *capacity,
                  size_t *count);

#endif
