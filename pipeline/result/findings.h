/* SPDX-License-Identifier: Apache-2.0
 *
 * findings: defects in the samples of a run: their number, and the first ones by file and offset.
 * Counted by each decode thread, summed over threads and ranks. One thread at a time for each.
 */
#ifndef IOBENCH_PIPELINE_RESULT_FINDINGS_H
#define IOBENCH_PIPELINE_RESULT_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

struct result;

enum finding {
    FINDING_SKIPPED, /* left out because of --on-error skip */
    FINDING_IMAGE,   /* decoded up to the damage because of jpeg:damaged=decode */
    FINDING_LABEL,   /* not a class number; delivered without a class */
    FINDING_EMPTY,   /* has no image; delivered with pixels of zero */
    FINDING_KINDS,
};

enum { FINDINGS_NAMED = 3, FINDING_BYTES = 384 };

struct findings_kind {
    uint64_t count; /* summed over epochs, so that a record counts once per epoch */
    /* The first of these records in the data set, each listed once. */
    uint32_t named;
    uint64_t records[FINDINGS_NAMED];
    char texts[FINDINGS_NAMED][FINDING_BYTES]; /* file, offset and cause */
};

struct findings {
    struct findings_kind kinds[FINDING_KINDS];
};

void findings_note(struct findings *findings, enum finding kind, uint64_t record, const char *text);
void findings_add(struct findings *into, const struct findings *from);
/* Return whether another rank can have sent this. */
bool findings_sound(const struct findings *findings);
/* Add a notice for each kind; damaged images degrade the result. where: text such as "run 1". */
void findings_tell(const struct findings *findings, const char *where, struct result *result);

extern const char *const finding_keys[FINDING_KINDS]; /* the name in JSON */

#endif
