/* SPDX-License-Identifier: Apache-2.0
 *
 * Documents: figures as JSON by their rows (pipeline/result/result.h), files of JSON and text, and
 * results read back. A file has one line per object member and arrays of plain values on one line,
 * so a table of numbers has one line per row.
 */
#include "report/report.h"

#include "base/crc32c.h"
#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_BYTES = 96 };

void report_null(json_t *object, const char *key, const char *reason)
{
    const size_t length = strlen(key), end = strlen("_reason");
    char name[KEY_BYTES + 8];

    json_object_set_new(object, key, json_null());
    if (length > end && strcmp(key + length - end, "_reason") == 0)
        return;
    snprintf(name, sizeof name, "%s_reason", key);
    json_put_text(object, name, reason[0] ? reason : "not measured");
}

/* Add KEY, KEY_low95, KEY_high95, KEY_min and KEY_max. */
static void put_stats(json_t *object, const char *key, const struct stats_summary *stats)
{
    const struct {
        const char *suffix;
        double value;
    } parts[] = {{"", stats->median},
                 {"_low95", stats->low},
                 {"_high95", stats->high},
                 {"_min", stats->minimum},
                 {"_max", stats->maximum}};
    char name[KEY_BYTES];

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(name, sizeof name, "%s%s", key, parts[i].suffix);
        if (isfinite(parts[i].value))
            json_put_number(object, name, parts[i].value);
        else
            report_null(object, name, "not a finite number");
    }
}

static void put_figure(json_t *object, const struct figure *row, const void *of)
{
    const void *at = (const char *)of + row->offset;
    const uint64_t *count = at;
    const char *reason = row->reason_at ? (const char *)of + row->reason_at : row->unknown;
    const char *key = row->key, *within = strchr(key, '.');
    double real = NAN;
    bool known = true;
    json_t *value = NULL;
    char text[40];

    assert(strlen(key) < KEY_BYTES);
    if (within) {
        char name[KEY_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)(within - key), key);
        if (!json_object_get(object, name))
            json_object_set_new(object, name, json_object());
        object = json_object_get(object, name);
        key = within + 1;
    }
    switch (row->type) {
    case FIGURE_COUNT:
        known = *count > 0;
        value = json_integer((json_int_t)*count);
        break;
    case FIGURE_ORDINAL:
        value = json_integer((json_int_t)*count + 1);
        break;
    case FIGURE_NUMBER:
        known = *(const uint32_t *)at > 0;
        value = json_integer(*(const uint32_t *)at);
        break;
    case FIGURE_TIME:
        known = *count > 0;
        value = json_real((double)*count / 1e9);
        break;
    case FIGURE_REAL:
        real = *(const double *)at;
        known = real > 0;
        value = json_number(real);
        break;
    case FIGURE_DERIVED:
        real = row->value(at);
        known = isfinite(real);
        value = json_number(real);
        break;
    case FIGURE_FLAG:
        value = json_boolean(*(const bool *)at);
        break;
    case FIGURE_TEXT:
        known = *(const char *)at;
        value = json_text(at);
        break;
    case FIGURE_STATS:
        known = ((const struct stats_summary *)at)->count > 0;
        reason = reason ? reason : "no complete run";
        break;
    case FIGURE_LIMIT:
        value = json_text(summary_limit_name(*(const enum result_limit *)at));
        break;
    case FIGURE_DIGEST:
        snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, count[0], count[1]);
        value = json_text(text);
        break;
    }
    if (row->known_at)
        known = *((const bool *)of + row->known_at) && (known || row->type != FIGURE_STATS);
    const bool is_real = row->type == FIGURE_REAL || row->type == FIGURE_DERIVED;
    if ((reason && !known) || (is_real && !isfinite(real))) {
        json_decref(value);
        report_null(object, key, reason && !known ? reason : "not a finite number");
    } else if (row->type == FIGURE_STATS) {
        put_stats(object, key, at);
    } else {
        json_object_set_new(object, key, value);
    }
}

void report_figures(json_t *object, const struct figure *rows, size_t count, const void *of)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].key)
            put_figure(object, &rows[i], of);
}

void report_figures_load(const json_t *object, const struct figure *rows, size_t count, void *of)
{
    for (size_t i = 0; i < count; i++) {
        const double value = rows[i].key ? load_number(object, rows[i].key) : NAN;
        const double known = fmin(fmax(0, value), 0x1p62); /* files are untrusted; of NAN it is 0 */
        void *at = (char *)of + rows[i].offset;
        switch (rows[i].key ? rows[i].type : FIGURE_TEXT) {
        case FIGURE_COUNT:
            *(uint64_t *)at = (uint64_t)known;
            break;
        case FIGURE_ORDINAL:
            *(uint64_t *)at = (uint64_t)known - 1;
            break;
        case FIGURE_NUMBER:
            *(uint32_t *)at = (uint32_t)fmin(known, UINT32_MAX);
            break;
        case FIGURE_TIME:
            *(uint64_t *)at = (uint64_t)llround(fmin(known, 9e9) * 1e9);
            break;
        case FIGURE_REAL:
            *(double *)at = value;
            break;
        case FIGURE_FLAG:
            *(bool *)at = load_true(object, rows[i].key);
            break;
        default:
            break;
        }
    }
}

/* ---- files ---- */

enum { INDENT = 2, ROW_DIGITS = 6 };

struct printer {
    FILE *stream;
    size_t flags; /* flags for single values */
    bool failed;
};

/* in_row: among the plain values of a line. */
static void print_value(struct printer *printer, const json_t *value, int depth, bool in_row)
{
    FILE *stream = printer->stream;
    const char *key, *comma = "";
    json_t *member;
    size_t i;

    if (json_is_object(value)) {
        fputc('{', stream);
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            /* our own keys need no escaping */
            fprintf(stream, "%s\n%*s\"%s\": ", comma, (depth + 1) * INDENT, "", key);
            print_value(printer, member, depth + 1, false);
            comma = ",";
        }
        if (*comma)
            fprintf(stream, "\n%*s", depth * INDENT, "");
        fputc('}', stream);
    } else if (json_is_array(value)) {
        bool is_plain = true;
        json_array_foreach(value, i, member)
        {
            is_plain = is_plain && !json_is_object(member) && !json_is_array(member);
        }
        fputc('[', stream);
        json_array_foreach(value, i, member)
        {
            fputs(comma, stream);
            if (!is_plain)
                fprintf(stream, "\n%*s", (depth + 1) * INDENT, "");
            print_value(printer, member, depth + 1, is_plain);
            comma = is_plain ? ", " : ",";
        }
        if (!is_plain)
            fprintf(stream, "\n%*s", depth * INDENT, "");
        fputc(']', stream);
    } else if (in_row && json_is_real(value)) {
        fprintf(stream, "%.*g", ROW_DIGITS, json_real_value(value));
    } else {
        char *text = json_to_text(value, printer->flags);
        if (text)
            fputs(text, stream);
        else
            printer->failed = true;
        free(text);
    }
}

char *report_json_text(const json_t *value, int digits)
{
    struct text_stream stream;
    char *text = NULL;
    size_t bytes;

    if (text_stream_open(&stream) == 0) {
        struct printer printer = {.stream = stream.stream,
                                  .flags = JSON_REAL_PRECISION((size_t)digits)};
        print_value(&printer, value, 0, false);
        if (json_check() == 0 && !printer.failed && text_stream_take(&stream, &text, &bytes) == 0)
            return text;
        text_stream_close(&stream);
    }
    fail(ENOMEM, "out of memory for JSON");
    return NULL;
}

const char report_acceptance_mark[] = "# Made by iobench size: acceptance\n";
const char report_page_mark[] = "<!-- iobench study -->\n";

int report_write_file(const char *path, const char *text, size_t bytes)
{
    const struct picture_mark mark = replaced_mark(text, bytes);
    const size_t before = bytes - mark.tail;
    struct file_draft draft;

    if (file_is_stream(path)) {
        const int fd = file_open_stream(path);
        int code = fd < 0 ? fd : 0;
        while (bytes && code == 0) {
            ssize_t count = write(fd, text, bytes);
            if (count < 0 && errno != EINTR)
                code = fail(errno, "%s: cannot write: %s", path, fail_errno_text(errno));
            text += count > 0 ? count : 0;
            bytes -= count > 0 ? (size_t)count : 0;
        }
        if (fd >= 0)
            close(fd);
        return code;
    }
    int code = file_draft_remove_stale(path, NULL);
    if (code == -EACCES) /* a folder that cannot be listed can be written to */
        code = 0;
    if (code)
        return code;
    fail_clear();
    code = file_draft_open(&draft, path, NULL);
    if (code == 0)
        code = replaced_check(path, text, bytes);
    if (code == 0)
        code = file_write_at(draft.fd, text, before, 0, path);
    if (code == 0)
        code = file_write_at(draft.fd, mark.bytes, mark.length, before, path);
    if (code == 0)
        code = file_write_at(draft.fd, text + before, mark.tail, before + mark.length, path);
    if (code == 0)
        code = file_draft_commit(&draft);
    file_draft_abandon(&draft);
    return code;
}

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
    const char *kept = json_string_value(json_object_get(document, KEY));
    char seal[SEAL_BYTES];
    int code = load_check_version(name, document);

    if (code == 0 && kept && (seal_of(document, seal) || strcmp(kept, seal) != 0))
        return fail(EBADMSG, "%s: checksum mismatch: changed since iobench wrote it", name);
    return code;
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
