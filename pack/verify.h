/* SPDX-License-Identifier: Apache-2.0
 *
 * verify: looks at every record of a data set: its framing and checksum, the sample in it, the
 * header of the image or all of it. It does not stop at a fault; it tells each one, in the order
 * of the files, to an observer. It prints nothing.
 */
#ifndef IOBENCH_PACK_VERIFY_H
#define IOBENCH_PACK_VERIFY_H

#include "base/image_limits.h"
#include "base/option.h"

#include <stdbool.h>
#include <stdint.h>

struct verify_job {
    const char *path; /* borrowed */
    char *format;     /* "auto" or NAME[:OPTIONS] */
    bool decode;      /* whole images, not only their headers */
    struct image_limits limits;
    uint64_t threads;       /* 0: one a CPU */
    uint64_t io_timeout_ns; /* see store_set_timeout() */
    char *json;             /* for the command that calls */
};

extern const struct option_spec verify_options[]; /* of a struct verify_job */

struct verify_fault {
    const char *path;
    uint64_t offset; /* of the record, or of where its framing is wrong */
    const char *what;
};

struct verify_progress {
    bool indexing;        /* done and total are bytes then, else records */
    uint64_t done, total; /* total 0: not known yet */
    uint64_t bytes;       /* of records, so far */
    uint64_t elapsed_ns;
};

/* Both are called from the caller's thread; either may be NULL. */
struct verify_observer {
    void (*progress)(void *context, const struct verify_progress *progress);
    void (*fault)(void *context, const struct verify_fault *fault);
    void *context;
};

struct verify_figures {
    char format[64];
    uint32_t shards;
    uint64_t records, bytes; /* looked at */
    uint64_t faults;
    uint64_t elapsed_ns;
};

/* 0 when all was looked at, faults or not; a negative errno with a reason when it could not be;
 * -EINTR after verify_interrupt(). */
int verify_run(const struct verify_job *job, const struct verify_observer *observer,
               struct verify_figures *figures);

void verify_interrupt(void); /* from a signal handler */

#endif
