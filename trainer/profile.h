/* SPDX-License-Identifier: Apache-2.0
 *
 * profile: step times of a training job, as the replay trainer (replay.c) reads them from a file.
 * Pure except for the allocation.
 *
 * Text: one step per line, in milliseconds; empty lines and lines that begin with # are skipped.
 * With commas, the first line may name the columns: step_ms or ms is used, else the last one. JSON:
 * an array of milliseconds, or {"step_ms": [...], "batch_size": N}.
 */
#ifndef IOBENCH_TRAINER_PROFILE_H
#define IOBENCH_TRAINER_PROFILE_H

#include <stddef.h>
#include <stdint.h>

struct profile {
    uint64_t *step_ns;
    size_t count;
    uint64_t batch_size; /* of the recorded job; 0 if not in the file */
};

/* name is for messages. text[bytes] is NUL. Returns 0, or a negative errno with a reason; call
 * profile_release() in either case. */
int profile_parse(const char *name, const char *text, size_t bytes, struct profile *profile);
void profile_release(struct profile *profile);

#endif
