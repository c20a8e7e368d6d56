/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/probe.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files and their text ---- */

enum { PATH_BYTES = 4096, SIZE_MAX_BYTES = 64 << 20, ROOM_BYTES = 4096 };

const struct telemetry_roots telemetry_roots_usual = {.proc = "/proc", .sys = "/sys"};

int procfile_open(struct procfile *file, const char *format, ...)
{
    char path[PATH_BYTES], *text = NULL;
    size_t bytes = 0;
    va_list arguments;

    *file = (struct procfile){.fd = -1};
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    int code = file_load(path, SIZE_MAX_BYTES, &text, &bytes);
    free(text);
    if (code)
        return code;
    file->buffer_bytes = 2 * bytes + ROOM_BYTES;
    file->buffer = memory_array(file->buffer_bytes, 1);
    if (!file->buffer)
        return -ENOMEM;
    file->fd = file_open(path, O_RDONLY, NULL);
    return file->fd < 0 ? file->fd : 0;
}

void procfile_close(struct procfile *file)
{
    /* A zeroed procfile has no buffer, and descriptor 0 is not ours. */
    if (file->buffer && file->fd >= 0)
        close(file->fd);
    free(file->buffer);
    *file = (struct procfile){.fd = -1};
}

int procfile_read(struct procfile *file, struct text *text)
{
    size_t used = 0;

    if (!file->buffer || file->fd < 0)
        return -ENODEV;
    while (used < file->buffer_bytes) {
        ssize_t got = pread(file->fd, file->buffer + used, file->buffer_bytes - used, (off_t)used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    if (used == file->buffer_bytes)
        while (used > 0 && file->buffer[used - 1] != '\n')
            used--;
    *text = text_of(file->buffer, used);
    return 0;
}

struct text text_of(const char *bytes, size_t count)
{
    return (struct text){bytes, bytes + count};
}

struct text text_of_string(const char *string)
{
    return text_of(string, strlen(string));
}

bool text_until(struct text *text, char mark, struct text *part)
{
    assert(text->at <= text->end);
    if (text->at == text->end)
        return false;
    const char *found = memchr(text->at, mark, (size_t)(text->end - text->at));
    *part = (struct text){text->at, found ? found : text->end};
    text->at = found ? found + 1 : text->end;
    return true;
}

bool text_line(struct text *text, struct text *line)
{
    return text_until(text, '\n', line);
}

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\n';
}

bool text_word(struct text *text, struct text *word)
{
    while (text->at < text->end && is_blank(*text->at))
        text->at++;
    word->at = text->at;
    while (text->at < text->end && !is_blank(*text->at))
        text->at++;
    word->end = text->at;
    return word->at < word->end;
}

bool text_u64(struct text *text, uint64_t *value)
{
    struct text rest = *text, word;
    uint64_t sum = 0;

    if (!text_word(&rest, &word))
        return false;
    for (const char *at = word.at; at < word.end; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (digit > 9 || __builtin_mul_overflow(sum, UINT64_C(10), &sum) ||
            __builtin_add_overflow(sum, digit, &sum))
            return false;
    }
    *value = sum;
    *text = rest;
    return true;
}

unsigned text_numbers(struct text *text, uint64_t *values, unsigned most)
{
    unsigned count = 0;

    while (count < most && text_u64(text, &values[count]))
        count++;
    return count;
}

bool text_starts(struct text text, const char *prefix)
{
    size_t length = strlen(prefix);

    return (size_t)(text.end - text.at) >= length && memcmp(text.at, prefix, length) == 0;
}

bool text_is(struct text text, const char *string)
{
    return (size_t)(text.end - text.at) == strlen(string) && text_starts(text, string);
}

bool text_skip(struct text *text, const char *prefix)
{
    if (!text_starts(*text, prefix))
        return false;
    text->at += strlen(prefix);
    return true;
}

char *text_copy(struct text text, char *copy, size_t copy_bytes)
{
    size_t length = (size_t)(text.end - text.at);

    if (length >= copy_bytes)
        length = copy_bytes - 1;
    if (length)
        memcpy(copy, text.at, length);
    copy[length] = '\0';
    return copy;
}

/* ---- probes ---- */

int probe_open(struct probe *probe, const struct plugin_choice *choice,
               const struct probe_site *site)
{
    *probe = (struct probe){.ops = (const struct probe_ops *)choice->plugin};
    probe->settings = choice->settings;
    probe->metrics.probe = choice->plugin->name;
    probe->state = memory_zeroed(choice->plugin->state_size + 1);
    if (!probe->state)
        return -ENOMEM;
    int code = probe->ops->open(probe, site);
    assert(code <= 0);
    if (code == 0 && probe->metrics.count == 0)
        code = fail(ENOENT, "nothing to count");
    return code;
}

void probe_close(struct probe *probe)
{
    if (probe->state && probe->ops->close)
        probe->ops->close(probe);
    free(probe->state);
    for (uint32_t i = 0; i < probe->file_count; i++)
        procfile_close(&probe->files[i]);
    free(probe->files);
    free(probe->metrics.metrics);
    *probe = (struct probe){0};
}

void probe_sample(struct probe *probe, uint64_t *values)
{
    for (uint32_t i = 0; i < probe->metrics.count; i++)
        values[i] = PROBE_MISSING;
    probe->ops->sample(probe, values);
}

int probe_add_file(struct probe *probe, const char *format, ...)
{
    char path[4096];
    va_list arguments;

    if (memory_room(&probe->files, probe->file_count, sizeof *probe->files, "counter files"))
        return -ENOMEM;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    struct procfile *file = &probe->files[probe->file_count];
    int code = procfile_open(file, "%s", path);
    if (code)
        procfile_close(file); /* some drivers have files that fail to read */
    else
        probe->file_count++;
    return code;
}

struct metric *metric_add(struct metric_list *list, const char *part, const char *quantity,
                          enum metric_kind kind, uint32_t scale)
{
    if (memory_room(&list->metrics, list->count, sizeof *list->metrics, "metrics"))
        return NULL;
    assert(strlen(quantity) < METRIC_QUANTITY_BYTES);
    struct metric *metric = &list->metrics[list->count++];
    *metric =
        (struct metric){.probe = list->probe, .kind = kind, .bits = 64, .scale = scale ? scale : 1};
    snprintf(metric->part, sizeof metric->part, "%s", part);
    snprintf(metric->quantity, sizeof metric->quantity, "%s", quantity);
    return metric;
}

int metric_add_rows(struct metric_list *list, const char *part, const struct metric_row *rows)
{
    for (; rows->quantity; rows++)
        if (!metric_add(list, part, rows->quantity, rows->kind, rows->scale))
            return -ENOMEM;
    return 0;
}

uint64_t *metric_put_rows(const struct metric_row *rows, const void *counters, uint64_t *values)
{
    for (; rows->quantity; rows++)
        memcpy(values++, (const char *)counters + rows->offset, sizeof *values);
    return values;
}

uint64_t *metric_skip_rows(const struct metric_row *rows, uint64_t *values)
{
    for (; rows->quantity; rows++)
        values++;
    return values;
}
