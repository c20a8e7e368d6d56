/* SPDX-License-Identifier: Apache-2.0 */
#include "report/documents.h"

#include "base/fail.h"
#include "report/load.h"
#include "report/seal.h"

#include <errno.h>
#include <string.h>

enum { DOCUMENT_VERSION = 1 };

static const struct document_kind *const kinds[] = {&document_infer, &document_checkpoint,
                                                    &document_net};

const struct document_kind *documents_kind(const json_t *document)
{
    const char *schema = load_text(document, "schema");

    for (size_t i = 0; schema && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(schema, kinds[i]->schema) == 0)
            return kinds[i];
    return NULL;
}

int documents_check(const char *name, const json_t *document)
{
    const double version = load_number(document, "schema_version");

    if (!(version == DOCUMENT_VERSION))
        return fail(EINVAL, "%s: schema version %g, this program reads %d", name, version,
                    DOCUMENT_VERSION);
    if (seal_is_broken(document))
        return fail(EBADMSG, "%s: checksum mismatch: changed since iobench wrote it", name);
    return 0;
}

json_t *documents_pick(const struct document_kind *kind, const json_t *document)
{
    json_t *picked = json_object();

    json_object_set_new(picked, "schema", json_string(kind->schema));
    for (const char *const *key = kind->picked; *key; key++)
        json_object_set(picked, *key, json_object_get(document, *key));
    return picked;
}
