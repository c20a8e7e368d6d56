/* SPDX-License-Identifier: Apache-2.0
 *
 * pack: makes a data set out of a source. It prints nothing; it tells an observer.
 *
 * Which sample goes where is a function of its number alone: shard s of S holds the numbers
 * count * s / S up to count * (s + 1) / S, after the permutation when they are shuffled. So each
 * shard can be made without the others, several at once, and what an interruption left is
 * completed by the same request: finished shards stay (pack/target.h).
 */
#ifndef IOBENCH_PACK_PACK_H
#define IOBENCH_PACK_PACK_H

#include "base/option.h"

#include <stdbool.h>
#include <stdint.h>

enum pack_on_error { PACK_STOP, PACK_SKIP };

struct pack_job {
    const char *source, *target; /* borrowed; the target is a folder that pack makes */
    char *from;                  /* see source_open() */
    char *format;                /* of the target: NAME[:OPTIONS] */
    uint64_t shards;             /* 0: by shard_bytes */
    uint64_t shard_bytes;
    uint64_t threads; /* 0: one a CPU */
    uint64_t shuffle; /* seed of the order; 0: as the source has it */
    uint64_t limit;   /* the first so many samples of the source; 0: all */
    uint64_t quality;
    int on_error;           /* enum pack_on_error: a damaged sample ends it, or is left out */
    bool force;             /* replace the data set that is there */
    bool start_over;        /* what is unfinished there and of another plan is begun anew */
    bool dry_run;           /* say what would be done */
    const char *command;    /* borrowed: what to repeat after an interruption; may be NULL */
    uint64_t io_timeout_ns; /* see store_set_timeout() */
};

extern const struct option_spec pack_options[]; /* of a struct pack_job */

enum pack_phase { PACK_LOOK, PACK_WRITE, PACK_DONE };

struct pack_progress {
    enum pack_phase phase;
    uint64_t done, total; /* samples; while looking at the source: bytes */
    uint64_t bytes;       /* of images, so far */
    uint64_t kept;        /* samples of done that an earlier call wrote */
    uint64_t elapsed_ns;  /* of this phase */
};

/* Called from the caller's thread, about ten times a second. */
struct pack_observer {
    void (*progress)(void *context, const struct pack_progress *progress);
    /* Of a dry run: a file that would be removed. May be NULL. */
    void (*removed)(void *context, const char *path, uint64_t bytes);
    void *context;
};

struct pack_figures {
    char source[192];
    uint64_t samples, skipped; /* written by this call (or to be); left out because damaged */
    uint32_t shards, shards_kept;
    uint64_t image_bytes;
    uint64_t needed_bytes, removed_files; /* of a dry run */
    uint64_t elapsed_ns;
    char first_skipped[512]; /* why, of one of them */
};

/* 0, or a negative errno with a reason. -EINTR after pack_interrupt(); -EBUSY: another process is
 * making the target. */
int pack_run(const struct pack_job *job, const struct pack_observer *observer,
             struct pack_figures *figures);

/* Ask a running pack to stop; what is finished stays. From a signal handler. */
void pack_interrupt(void);

#endif
