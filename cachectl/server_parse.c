/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/server.h"

#include "base/fail.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char wanted[] = "expected the output of 'cachectl status --json'";

/* Add a byte count to *sum; a null or missing value makes the sum unknown. */
static int add_bytes(const json_t *row, const char *key, bool *known, uint64_t *sum)
{
    const json_t *value = json_object_get(row, key);

    if (!value || json_is_null(value)) {
        *known = false;
        return 0;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return fail(EPROTO, "the server check: %s is not a number of bytes; %s", key, wanted);
    if (__builtin_add_overflow(*sum, (uint64_t)json_integer_value(value), sum) || *sum > INT64_MAX)
        return fail(EPROTO, "the server check: %s: the sum is out of range", key);
    return 0;
}

static int add_row(const json_t *row, struct server_look *look)
{
    bool total_known = true;
    const char *reason = json_string_value(json_object_get(row, "reason"));

    if (!json_is_object(row))
        return fail(EPROTO, "the server check: a row is not an object; %s", wanted);
    int code = add_bytes(row, "resident_bytes", &look->resident_known, &look->resident_bytes);
    if (code == 0)
        code = add_bytes(row, "total_bytes", &total_known, &look->total_bytes);
    if (code == 0)
        code = add_bytes(row, "disk_read_bytes", &look->disk_known, &look->disk_read_bytes);
    if (!total_known)
        look->resident_known = false; /* no total */
    if (reason && !look->reason[0])
        snprintf(look->reason, sizeof look->reason, "%s", reason);
    return code;
}

/* Return the number of rows, or a negative errno. */
static int add_document(const json_t *document, struct server_look *look)
{
    const size_t count = json_is_array(document) ? json_array_size(document) : 1;
    int code = 0;

    for (size_t i = 0; code == 0 && i < count; i++)
        code = add_row(json_is_array(document) ? json_array_get(document, i) : document, look);
    return code ? code : (int)count;
}

int server_parse(const char *text, struct server_look *look)
{
    static const char blanks[] = " \t\r\n";
    int rows = 0;

    *look = (struct server_look){.resident_known = true, .disk_known = true};
    for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
        json_error_t error;
        json_t *document =
            json_loads(text, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
        if (!document)
            return fail(EPROTO, "the server check: not JSON: %.80s; %s", error.text, wanted);
        int added = add_document(document, look);
        json_decref(document);
        if (added < 0)
            return added;
        rows += added;
        text += error.position;
    }
    if (rows == 0)
        return fail(EPROTO, "the server check printed nothing; %s", wanted);
    if (look->resident_known && look->resident_bytes > look->total_bytes)
        return fail(EPROTO, "the server check: resident_bytes exceeds total_bytes");
    return 0;
}
