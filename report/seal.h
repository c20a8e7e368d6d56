/* SPDX-License-Identifier: Apache-2.0
 *
 * seal: a checksum over the contents of a result, independent of layout. Detects figures changed by
 * hand or by accident, not by somebody who recomputes it.
 */
#ifndef IOBENCH_REPORT_SEAL_H
#define IOBENCH_REPORT_SEAL_H

#include "base/json.h"

#include <stdbool.h>

/* Add "checksum". Returns 0, or -ENOMEM with a reason. */
int seal_add(json_t *document);

/* Does the document have a wrong checksum? */
bool seal_is_broken(const json_t *document);

#endif
