/* SPDX-License-Identifier: Apache-2.0
 *
 * pauses: counts how often the process was stopped (SIGSTOP, Ctrl-Z, a batch system's suspend) and
 * continued. The clock goes on meanwhile, so no time measured across a pause is true. A frozen
 * control group sends no signal and is not seen.
 */
#ifndef IOBENCH_BASE_PAUSES_H
#define IOBENCH_BASE_PAUSES_H

#include <stdint.h>

void pauses_watch(void);
/* Since pauses_watch(); any thread. */
uint64_t pauses_count(void);

#endif
