/* SPDX-License-Identifier: Apache-2.0 */
#include "report/load.h"

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/file.h"
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- seal ---- */

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

json_t *seal_add(json_t *document)
{
    char seal[SEAL_BYTES];
    char *text = json_check() == 0 && document ? report_json_text(document, REPORT_DIGITS) : NULL;
    json_t *as_read = text ? json_loads(text, 0, NULL) : NULL;

    if (!as_read || seal_of(as_read, seal) || json_object_set_new(document, KEY, json_text(seal))) {
        json_decref(document);
        document = NULL;
        fail(ENOMEM, "out of memory for JSON");
    }
    json_decref(as_read);
    free(text);
    return document;
}

/* Does the document have a wrong checksum? */
static bool seal_is_broken(const json_t *document)
{
    const char *kept = json_string_value(json_object_get(document, KEY));
    char seal[SEAL_BYTES];

    return kept && (seal_of(document, seal) || strcmp(kept, seal) != 0);
}

/* ---- reading ---- */

int load_check_version(const char *name, const json_t *document)
{
    const double version = load_number(document, "schema_version");

    return version == SCHEMA_VERSION
               ? 0
               : fail(EINVAL, "%s: schema version %g, this program reads %d%s", name, version,
                      SCHEMA_VERSION, version < SCHEMA_VERSION ? " (docs/from-0.2.md)" : "");
}

int load_check_seal(const char *name, const json_t *document)
{
    int code = load_check_version(name, document);

    if (code)
        return code;
    if (seal_is_broken(document))
        return fail(EBADMSG, "%s: checksum mismatch: changed since iobench wrote it", name);
    return 0;
}

int load_check(const char *name, const json_t *document)
{
    const char *schema = load_text(document, "schema");
    const json_t *jobs = json_object_get(document, "jobs");

    if (!schema || strcmp(schema, "iobench-result") != 0)
        return fail(EINVAL, "%s: not an iobench result (written with --json FILE)", name);
    int code = load_check_seal(name, document);
    if (code)
        return code;
    if (!json_is_array(jobs) || json_array_size(jobs) == 0)
        return fail(EINVAL, "%s: no jobs", name);
    for (size_t i = 0; i < json_array_size(jobs); i++)
        if (!json_is_object(json_array_get(jobs, i)))
            return fail(EINVAL, "%s: job %zu is not an object", name, i);
    return 0;
}

json_t *load_any(const char *name, const char *text, size_t bytes)
{
    json_error_t error;
    json_t *document = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);

    if (!document)
        fail(EINVAL, "%s:%d: %s", name, error.line, error.text);
    return document;
}

json_t *load_file(const char *path)
{
    char *text = NULL;
    size_t bytes = 0;

    if (file_load(path, LOAD_BYTES_MAX, &text, &bytes))
        return NULL;
    json_t *document = load_any(path, text, bytes);
    free(text);
    return document;
}

json_t *load_document(const char *path)
{
    json_t *document = load_file(path);

    if (document && load_check(path, document)) {
        json_decref(document);
        return NULL;
    }
    return document;
}

int load_refuse_copy(const char *name, const json_t *document, const char *other_name,
                     const json_t *other)
{
    return json_equal(document, other)
               ? fail(EEXIST, "%s: the same result as %s; it cannot count twice", name, other_name)
               : 0;
}

const json_t *load_member(const json_t *object, const char *path)
{
    char key[64];

    while (object && *path) {
        size_t length = strcspn(path, ".");
        if (length >= sizeof key)
            return NULL;
        memcpy(key, path, length);
        key[length] = '\0';
        object = json_object_get(object, key);
        path += length + (path[length] == '.');
    }
    return object;
}

double load_number(const json_t *object, const char *path)
{
    const json_t *member = load_member(object, path);

    return json_is_number(member) ? json_number_value(member) : NAN;
}

const char *load_text(const json_t *object, const char *path)
{
    return json_string_value(load_member(object, path));
}

const char *load_word(const json_t *object, const char *path)
{
    const char *text = load_text(object, path);

    return text ? text : "";
}

bool load_true(const json_t *object, const char *path)
{
    return json_is_true(load_member(object, path));
}

const char *load_degraded(const json_t *job)
{
    const char *reason = load_text(job, "degraded_reason");

    if (!load_true(job, "degraded"))
        return NULL;
    return reason && *reason ? reason : "samples were skipped";
}

static bool is_same_text(const json_t *a, const json_t *b, const char *path)
{
    const char *one = load_text(a, path), *other = load_text(b, path);

    return one && other && strcmp(one, other) == 0;
}

enum load_data load_compare_data(const json_t *a, const json_t *b)
{
    if (!load_text(a, "dataset.identity") || !load_text(b, "dataset.identity"))
        return LOAD_DATA_UNKNOWN; /* of an earlier version */
    if (is_same_text(a, b, "dataset.identity"))
        return LOAD_DATA_SAME;
    return is_same_text(a, b, "dataset.path") && is_same_text(a, b, "place.host")
               ? LOAD_DATA_REPLACED
               : LOAD_DATA_UNKNOWN;
}
