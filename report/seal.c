/* SPDX-License-Identifier: Apache-2.0 */
#include "report/seal.h"

#include "base/crc32c.h"
#include "base/fail.h"
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char KEY[] = "checksum";
enum { SEAL_BYTES = 32 };

/* Compute the checksum of a parsed document; numbers as in the text. Returns 0 or -ENOMEM. */
static int seal_of(const json_t *document, char *seal)
{
    json_t *rest = json_copy((json_t *)(uintptr_t)document);

    json_object_del(rest, KEY);
    char *text =
        rest
            ? json_to_text(rest, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(REPORT_DIGITS))
            : NULL;
    json_decref(rest);
    if (!text)
        return -ENOMEM;
    snprintf(seal, SEAL_BYTES, "crc32c %08x", crc32c(0, text, strlen(text)));
    free(text);
    return 0;
}

int seal_add(json_t *document)
{
    char seal[SEAL_BYTES];
    char *text = report_json_text(document, REPORT_DIGITS);
    json_t *as_read = text ? json_loads(text, 0, NULL) : NULL;
    int code = as_read ? seal_of(as_read, seal) : -ENOMEM;

    if (code == 0 && json_object_set_new(document, KEY, json_text(seal)))
        code = -ENOMEM;
    json_decref(as_read);
    free(text);
    return code ? fail(ENOMEM, "out of memory for JSON") : 0;
}

bool seal_is_broken(const json_t *document)
{
    const char *kept = json_string_value(json_object_get(document, KEY));
    char seal[SEAL_BYTES];

    return kept && (seal_of(document, seal) || strcmp(kept, seal) != 0);
}
