/* SPDX-License-Identifier: Apache-2.0
 *
 * pack: creates a data set from a source. Prints nothing but its progress.
 *
 * The shard of a sample is a function of its number alone: shard s of S holds the numbers count * s
 * / S up to count * (s + 1) / S, after the permutation if shuffled. So each shard can be made
 * independently, several at once, and the same request completes an interrupted set: finished
 * shards stay (cmd/pack/target.h).
 */
#ifndef IOBENCH_CMD_PACK_PACKING_H
#define IOBENCH_CMD_PACK_PACKING_H

#include "base/option.h"
#include "cmd/line.h"

#include <stdbool.h>
#include <stdint.h>

enum pack_on_error { PACK_STOP, PACK_SKIP };

enum { PACK_QUALITY = 95 }; /* the default */

struct pack_job {
    const char *source, *target; /* borrowed; the target is a folder that pack creates */
    char *from;                  /* see source_open() */
    char *format;                /* of the target: NAME[:OPTIONS] */
    uint64_t shards;             /* 0: by shard_bytes */
    uint64_t shard_bytes;
    uint64_t threads; /* 0: one per CPU */
    uint64_t shuffle; /* seed of the order; 0: source order */
    uint64_t limit;   /* only the first N samples of the source; 0: all */
    uint64_t quality;
    uint64_t side;       /* shrink larger images to this shorter side; 0: leave them as they are */
    bool raw;            /* store pixels */
    int on_error;        /* enum pack_on_error: stop at a damaged sample, or skip it */
    int odd_labels;      /* enum format_odd_labels */
    bool entry_points;   /* for the calling command: then verify the target with them */
    bool start_over;     /* discard an unfinished data set of another plan */
    bool dry_run;        /* report only */
    const char *command; /* borrowed: the command that resumes this pack; may be NULL */
    uint64_t io_timeout_ns; /* see store_set_timeout() */
};

extern const struct option_spec pack_options[]; /* for a struct pack_job */

/* Where progress is shown, and in which words. */
struct pack_line {
    struct line line;
    const char *looking, *working; /* the phases */
    const char *unit;              /* of what is counted; NULL: their rate is not shown */
    uint64_t start_ns;             /* of the phase; 0: with its first line */
};

/* Show how much of the source is read: a progress() of catalogs and sources. line: a struct
 * pack_line, or NULL. */
void pack_show_look(void *line, uint64_t done_bytes, uint64_t total_bytes);
/* Show a line such as "packing [####....] 100 samples/s 10 MiB/s 0:42 left". kept: of `done`, since
 * before the phase; bytes: of images so far. line: NULL to show nothing. */
void pack_show(struct pack_line *line, uint64_t done, uint64_t total, uint64_t kept,
               uint64_t bytes);

struct pack_figures {
    char source[192];
    uint64_t samples, skipped; /* written by this call (or to be); skipped because damaged */
    uint32_t shards, shards_kept;
    uint64_t image_bytes;
    uint64_t recoded, unrecoded_bytes; /* images changed by this call, and their bytes before */
    bool encodes;                      /* JPEGs were made by this call, so their quality matters */
    uint64_t needed_bytes;             /* in a dry run */
    uint64_t elapsed_ns;
    uint64_t damaged; /* images copied as they are, though cut short or of no known kind */
    char first_skipped[512], first_damaged[512]; /* why one of them is */
};

/* Returns 0 or a negative errno with a reason; -EINTR after stop_ask(); -EBUSY if another
 * process is making the target. */
int pack_run(const struct pack_job *job, struct pack_line *line, struct pack_figures *figures);

struct job;
/* Set job->data to the synthetic set of the job's format in the user's cache folder, generating it
 * if absent (a dry run returns -ENOENT and says what would be generated). Reports on stderr what it
 * generates and where. Main thread. Returns 0, -EINVAL without a folder for it, or another negative
 * errno, with a reason. */
int synthetic_prepare(struct job *job);

#endif
