/* SPDX-License-Identifier: Apache-2.0
 *
 * seal: a checksum over all that a result says, whatever the layout of its text. It tells a figure
 * that was changed by hand or by accident; it does not withstand somebody who computes it anew.
 */
#ifndef IOBENCH_REPORT_SEAL_H
#define IOBENCH_REPORT_SEAL_H

#include "base/json.h"

#include <stdbool.h>

/* Adds "checksum". 0, or -ENOMEM with a reason. */
int seal_add(json_t *document);

/* Does the document have a checksum that is not its own? */
bool seal_is_broken(const json_t *document);

#endif
