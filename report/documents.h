/* SPDX-License-Identifier: Apache-2.0
 *
 * documents: what a report shows of documents that are no runs: inferences, checkpoints and
 * fabrics. A kind is known by the document's "schema" (docs/json.md). Documents are untrusted. Any
 * thread.
 */
#ifndef IOBENCH_REPORT_DOCUMENTS_H
#define IOBENCH_REPORT_DOCUMENTS_H

#include "report/svg.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct document_kind {
    const char *schema;
    const char *title;  /* of the picture */
    const char *picked; /* members that the page shows, separated by blanks */
    /* Begin a picture. Returns false, having begun nothing, if there is nothing to draw. */
    bool (*draw)(struct svg *svg, const json_t *document);
};

/* Return the kind of a document, or NULL. */
const struct document_kind *documents_kind(const json_t *document);

#endif
