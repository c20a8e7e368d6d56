/* SPDX-License-Identifier: Apache-2.0
 *
 * verify: checks every record of a data set: framing and checksum, the sample in it, and the header
 * or the whole of its image. Continues past faults and prints each, in file order.
 */
#ifndef IOBENCH_CMD_PACK_VERIFY_H
#define IOBENCH_CMD_PACK_VERIFY_H

#include "base/image_header.h"
#include "base/option.h"
#include "cmd/pack/packing.h"
#include "dataset/catalog.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* How much of an image is checked. */
enum verify_decode { VERIFY_RECORDS, VERIFY_HEADERS, VERIFY_PIXELS };

struct verify_job {
    const char *path;  /* borrowed */
    char *format;      /* "auto" or NAME[:OPTIONS] */
    int decode;        /* enum verify_decode */
    bool entry_points; /* keep the decoder's hints beside the data */
    struct image_limits limits;
    uint64_t threads;       /* 0: one per CPU */
    uint64_t io_timeout_ns; /* see store_set_timeout() */
    char *json;             /* for the calling command; "-": faults are not printed */
    const char *teller;     /* prints the faults, to stderr; NULL: they go to standard output */
};

extern const struct option_spec verify_options[]; /* for a struct verify_job */

struct verify_figures {
    char format[64];
    uint32_t shards;
    uint64_t records, bytes; /* checked */
    uint64_t faults;
    json_t *list;     /* of the faults, to release; NULL without json */
    uint64_t hints;   /* images that have one, with entry_points */
    char *hints_path; /* where they are, to free(); NULL: nowhere */
    uint64_t elapsed_ns;
    uint32_t remark_count;
    char remarks[REMARK_KINDS][REMARK_TEXT_BYTES];
};

/* Returns 0 if everything was checked, faults or not; a negative errno with a reason if not; -EINTR
 * after stop_ask(). */
int verify_run(const struct verify_job *job, struct pack_line *line,
               struct verify_figures *figures);

#endif
