/* SPDX-License-Identifier: Apache-2.0
 *
 * findings: what in the samples of a run is not as it should be: how many, and the first of them
 * by file and offset. Counted by each decode worker, added up over workers and ranks. One thread at
 * a time for each.
 */
#ifndef IOBENCH_PIPELINE_RESULT_FINDINGS_H
#define IOBENCH_PIPELINE_RESULT_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

struct result;

enum finding {
    FINDING_SKIPPED, /* left out, as --on-error skip asks */
    FINDING_IMAGE,   /* decoded as far as it went, as jpeg:damaged=decode asks */
    FINDING_LABEL,   /* no class number; delivered without a class */
    FINDING_KINDS,
};

enum { FINDINGS_NAMED = 3, FINDING_BYTES = 384 };

struct findings_kind {
    uint64_t count; /* in each epoch anew */
    /* The first records of the data set among them, each once. */
    uint32_t named;
    uint64_t records[FINDINGS_NAMED];
    char texts[FINDINGS_NAMED][FINDING_BYTES]; /* file, offset and what is wrong */
};

struct findings {
    struct findings_kind kinds[FINDING_KINDS];
};

void findings_note(struct findings *findings, enum finding kind, uint64_t record, const char *text);
void findings_add(struct findings *into, const struct findings *from);
/* Can another rank have sent this? */
bool findings_sound(const struct findings *findings);
/* A notice for each kind, and whether the figures stand. where: "run 1". */
void findings_tell(const struct findings *findings, const char *where, struct result *result);

extern const char *const finding_keys[FINDING_KINDS]; /* in JSON */

#endif
