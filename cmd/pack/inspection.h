/* SPDX-License-Identifier: Apache-2.0
 *
 * inspect: describes a data set: its files, the sizes of its records, and what a sample of them
 * contains. Writes nothing, not even a sidecar. One thread.
 */
#ifndef IOBENCH_PACK_INSPECT_H
#define IOBENCH_PACK_INSPECT_H

#include "base/histogram.h"
#include "base/image_header.h"
#include "base/option.h"
#include "dataset/catalog.h"

#include <stdbool.h>
#include <stdint.h>

enum { INSPECT_SHOWN = 8, INSPECT_NAME_BYTES = 64 };

struct inspect_job {
    const char *path;       /* borrowed */
    char *format;           /* "auto" or NAME[:OPTIONS] */
    uint64_t samples;       /* number of records to inspect */
    uint64_t io_timeout_ns; /* see store_set_timeout() */
    uint64_t shown;         /* of the first records, at most INSPECT_SHOWN */
    char *json;             /* for the calling command */
};

extern const struct option_spec inspect_options[]; /* for a struct inspect_job */

struct inspect_record {
    char shard[INSPECT_NAME_BYTES]; /* last part of the path */
    char name[INSPECT_NAME_BYTES];
    uint64_t offset, bytes, id, image_bytes;
    int32_t label;
    uint32_t width, height, components;
    const char *kind; /* "JPEG", "PNG", "raw", "other" */
    bool damaged;
    char reason[256];
};

struct inspection {
    char format[64];
    const char *sidecar;     /* "fresh", "stale", "damaged", "none" */
    const char *compression; /* "none", "gzip", "zlib" */
    uint32_t shards;
    uint64_t records, data_bytes, record_bytes;
    uint64_t unread_samples, other_files; /* left out: samples of unsupported kinds; others */
    uint32_t remark_count;
    char remarks[REMARK_KINDS][REMARK_TEXT_BYTES];
    struct histogram shard_bytes, size_bytes; /* of each shard, of each record */
    /* of the inspected records */
    uint64_t looked, damaged, raw, progressive, gray, four_components;
    uint64_t of_kind[IMAGE_KINDS]; /* by the images' first bytes */
    char first_damage[640];        /* of the first inspected record: file, offset and fault */
    struct histogram image_bytes, width, height;
    uint64_t unlabelled, classes; /* distinct labels */
    int32_t label_minimum, label_maximum;
    uint64_t class_minimum,
        class_maximum; /* records with the rarest and with the commonest label */
    uint32_t shown;
    struct inspect_record first[INSPECT_SHOWN];
};

/* Called while the data set is indexed, with bytes; may be NULL. */
struct inspect_observer {
    void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *context;
};

/* Returns 0, or a negative errno with a reason. inspection is large: do not put it on the stack. */
int inspect_run(const struct inspect_job *job, const struct inspect_observer *observer,
                struct inspection *inspection);

#endif
