/* SPDX-License-Identifier: Apache-2.0
 *
 * source: where the samples of a new data set come from: another data set, an archive, another
 * field's files, or made ones. It numbers its samples 0..count; the same number is the same
 * sample every time. It knows nothing of where they go.
 *
 * open() and close() on one thread; read() on many at once, each with a cursor of its own, unless
 * the source is in_order: then one thread, numbers only going up. After close, all is gone.
 */
#ifndef IOBENCH_PACK_SOURCE_H
#define IOBENCH_PACK_SOURCE_H

#include "base/plugin.h"
#include "dataset/sample.h"

#include <stdbool.h>

/* What open() is told. */
struct source_config {
    uint64_t threads;
    bool skip;        /* go on past damage that open() meets */
    uint64_t quality; /* of JPEGs that a source must make itself, 1..100 */
    /* Told now and then while open() looks around; may be NULL. */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_context;
};

/* What open() answers. */
struct source_traits {
    uint64_t count;
    uint64_t image_bytes; /* of all samples, or a good guess */
    uint64_t fingerprint; /* differs when the samples do: sizes and times of the files, seeds */
    bool in_order;
    uint64_t skipped;        /* places of damage that open() went past */
    char first_skipped[512]; /* one of them */
    char what[192];          /* for people: "lmdb, 1 shard" */
};

/* Memory of one sample, reused for the next. A sample points into it. */
struct source_buffer {
    void *record, *scratch;
    size_t record_capacity, scratch_capacity;
};

struct source_ops {
    struct plugin plugin;
    bool generates; /* makes its samples, from no path */
    /* As a format's: 0 no .. 100 certain. NULL: never found by itself. */
    int (*detect)(const char *path);
    int (*open)(void *state, const void *settings, const char *path,
                const struct source_config *site, struct source_traits *traits);
    void (*close)(void *state);
    int (*cursor_open)(void *state, void **cursor);
    void (*cursor_close)(void *state, void *cursor);
    int (*read)(void *state, void *cursor, uint64_t number, struct source_buffer *slot,
                struct sample *sample);
};

extern const struct plugin *const source_registry[];

/* The source that generates its samples; there is one. */
const struct plugin *source_generator(void);

struct source {
    struct plugin_choice choice;
    const struct source_ops *ops;
    void *state;
    struct source_traits traits;
};

/* from: "auto", NAME[:OPTIONS] of an source (a "source" to the user), or of a format. path may
 * itself name a source that needs no path ("synthetic:count=1000"). Close in either case. */
int source_open(struct source *source, const char *from, const char *path,
                const struct source_config *site);
void source_close(struct source *source);

int source_cursor_open(struct source *source, void **cursor);
void source_cursor_close(struct source *source, void *cursor);
int source_read(struct source *source, void *cursor, uint64_t number, struct source_buffer *slot,
                struct sample *sample);

/* For sources: at least bytes behind *buffer. */
int source_reserve(void **buffer, size_t *capacity, size_t bytes);
/* For sources whose next read overwrites what a sample points to: its image and name move into
 * slot. */
int source_keep(struct source_buffer *slot, struct sample *sample);
void source_buffer_release(struct source_buffer *slot);

#endif
