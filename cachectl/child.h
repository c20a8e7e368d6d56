/* SPDX-License-Identifier: Apache-2.0
 *
 * child: run another program with a time limit, without ever waiting silently. It gets no input,
 * has its own process group, and what it prints is kept (the end of it).
 */
#ifndef IOBENCH_CACHECTL_CHILD_H
#define IOBENCH_CACHECTL_CHILD_H

#include "cachectl/crew.h"

enum { CHILD_OUTPUT_BYTES = 256 };

struct child_result {
    int status;                      /* exit status; 128 + signal when one ended it */
    char output[CHILD_OUTPUT_BYTES]; /* the last line it printed, on either stream */
};

/* argv[0] is an absolute path. 0 when it ran to its end, whatever its status; -ETIMEDOUT (it is
 * then killed, or left alone when it is somebody else's), or a negative errno when it could not be
 * started; with a reason. */
int child_run(const char *const *argv, const char *doing, uint64_t timeout_ns,
              const struct cache_observer *observer, struct child_result *result);

#endif
