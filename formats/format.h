/* SPDX-License-Identifier: Apache-2.0
 *
 * format: how samples are stored in files. A format turns a path into a catalog, bytes into a
 * sample, and samples into a shard. Knows nothing of readers.
 *
 * index() runs off the clock, on one thread. parse() is pure and runs on many threads at once; it
 * allocates nothing, but for labels in JSON. A writer is one state per shard; different shards may
 * be written by different threads. Only formats/format.c calls through the ops.
 */
#ifndef IOBENCH_FORMATS_FORMAT_H
#define IOBENCH_FORMATS_FORMAT_H

#include "base/plugin.h"
#include "dataset/catalog.h"
#include "base/sample.h"

#include <stdbool.h>

/* How to index. */
struct format_scan {
    catalog_fault_handler fault; /* NULL: the first fault ends indexing */
    void *fault_context;
    /* Called occasionally, for a progress bar; may be NULL. */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_context;
};

/* Buffer for bytes that are not contiguous in the record (multi-part RecordIO). */
struct format_scratch {
    void *bytes;
    size_t capacity; /* at least the record's length */
};

enum { FORMAT_BY_NAME = 30 }; /* the confidence of a name alone */

enum format_parse_flags {
    FORMAT_SKIP_CRC = 1,
    FORMAT_ODD_LABELS = 2,   /* accept a label that is not a class: see has_odd_label */
    FORMAT_ROUND_LABELS = 4, /* round such a label to the nearest class, if there is one */
    FORMAT_WHOLE = 8,        /* accept an intact record without an image, whole and undecoded */
};

/* Choices of --odd-labels for labels that are not integers; names in enum order. */
enum format_odd_labels { FORMAT_ODD_NONE, FORMAT_ODD_ROUND, FORMAT_ODD_REFUSE };
extern const char *const format_odd_labels_names[];
/* Return it as flags of format_parse(). */
unsigned format_odd_labels_flags(int odd_labels);

struct scanner;
struct format_ops {
    struct plugin plugin; /* state: a writer's state */
    /* Return the confidence that path (a file or folder) is of this format, 0 (no) to 100
     * (certain), from names and first bytes only. */
    int (*detect)(const char *path);
    int (*index)(const void *settings, const char *root, const struct format_scan *scan,
                 struct catalog *catalog);
    /* Instead of index(), of a format whose shards are the files that takes() accepts, or those
     * that match the pattern which is its first setting: add the records of the shard begun in
     * catalog. See formats/scan.h. */
    int (*walk)(const void *settings, struct scanner *scanner, struct catalog *catalog);
    /* Would a new file of this name in the folder be part of it, unless shard_list_never()? NULL:
     * none would. */
    bool (*takes)(const char *name);
    bool records_are_images; /* bare: parsing them finds no damage */
    /* Returns -EBADMSG with a reason if the record is damaged. An empty image or label is no
     * damage: image_bytes is 0, label -1. Never reads outside [record, +bytes). sample is preset
     * with the shard's label; shard is for formats that use its path. */
    int (*parse)(const void *settings, const struct shard *shard, const void *record, size_t bytes,
                 unsigned flags, struct format_scratch *scratch, struct sample *sample);
    /* Returns 0 if this build can write it, else -ENOTSUP with a reason. NULL: it can, or the
     * format is read-only. */
    int (*writable)(void);
    /* The other calls write; all are NULL in a read-only format. path: the file to create, as named
     * by format_shard_path(); for files a new or empty folder. */
    int (*shard_open)(void *state, const void *settings, const char *path);
    int (*shard_append)(void *state, const struct sample *sample);
    /* commit false: abandon and remove the shard. Called after every shard_open(). */
    int (*shard_close)(void *state, bool commit);
    /* How shards are named: "train-00003-of-01024.rec". */
    struct {
        const char *alone; /* the only one; "": the folder itself. NULL: as one of many */
        uint32_t most;     /* shards of a set; 0: any number */
        int digits;
        bool has_count; /* "-of-..." */
        const char *end;
    } naming;
};

extern const struct plugin *const format_registry[];

static inline const struct format_ops *format_of(const struct plugin *plugin)
{
    return (const struct format_ops *)(const void *)plugin; /* plugin is the first member */
}

/* Return the format with the highest confidence, 1 to 100, that path is of it; NULL: none, and 0.
 */
const struct plugin *format_most_likely(const char *path, int *surest);

/* Returns 0, or -ENOTSUP with a reason: what this build lacks, or the writable formats. */
int format_check_writable(const struct plugin *format);

/* Return the path of shard number shard of shards below folder. shards 0: return the most shards
 * that this format can have (0: any number). -ENOTSUP as above. */
int format_shard_path(const struct plugin *format, const char *folder, uint32_t shard,
                      uint32_t shards, char **path);

/* Return the most likely format of path; NULL with a reason. This and the calls below reject an
 * incomplete data set (dataset/manifest.h). */
const struct plugin *format_detect(const char *path);

/* Judge the first bytes of a file, or of a value in a database (path is then ""). Returns 0 if they
 * are of no kind known to be another tool's, else -ENOTSUP with a reason that names the kind and
 * what to do. Any thread. */
int format_hint_foreign(const char *path, const uint8_t *head, size_t bytes);

/* Return what to append to a message that path does not exist: if it is a pattern, how to name its
 * files. Main thread; until the next call. */
const char *format_hint_missing(const char *path);

/* Select the format that text names ("NAME[:OPTIONS]"), or with "auto" the most likely one for
 * path. Returns 0 or a negative errno. Release the choice in either case. */
int format_choose(const char *text, const char *path, struct plugin_choice *choice);

/* Get the catalog of a data set: from its sidecar if that is up to date, else by indexing (which
 * saves a new sidecar if use_sidecar). Returns 0 or a negative errno. */
int format_catalog(const struct plugin_choice *format, const char *root, bool use_sidecar,
                   const struct format_scan *scan, struct catalog **catalog);

/* Report a catalog's remarks to the function given to format_on_remark(), if any. Main thread. */
void format_say_remarks(const struct catalog *catalog);
void format_on_remark(void (*say)(const char *text));

/* Load the catalog from a sidecar only. Returns -ENOENT if there is none, -ESTALE if the data set
 * changed, -EINVAL if damaged. */
int format_catalog_kept(const struct plugin_choice *format, const char *root,
                        struct catalog **catalog);

/* shard: the shard of the catalog that contains the record. */
int format_parse(const struct plugin_choice *format, const struct shard *shard, const void *record,
                 size_t bytes, unsigned flags, struct format_scratch *scratch,
                 struct sample *sample);

/* Round an odd label, or refuse it, as format_parse() does. */
int format_settle_label(unsigned flags, struct sample *sample);

/* Make the remarks of a sample that was parsed: an odd label, an empty image. */
int format_remark_sample(struct catalog *catalog, const struct extent *extent,
                         const struct sample *sample);

/* One shard being written. Close it after every open, failed ones too; commit false abandons it
 * and removes what was written. */
struct format_writer {
    const struct format_ops *ops;
    void *state;
};

int format_writer_open(struct format_writer *writer, const struct plugin_choice *format,
                       const char *path);
int format_writer_append(struct format_writer *writer, const struct sample *sample);
int format_writer_close(struct format_writer *writer, bool commit);

/* Return 0, or a negative errno with a reason if a new file of this path would become part of a
 * data set: of `set`, a path or NULL, or of one that was packed or indexed where it lies. */
int format_check_apart(const char *path, const char *set);

#endif
