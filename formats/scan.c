/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/scan.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCAN_THREADS = 16 }; /* they wait for storage, so more than there are CPUs */
enum { INDEX_FREE_BYTES = 64 << 20 };

struct scan_team {
    const struct shard_list *list;
    scan_walk walk;
    const void *settings;
    const struct format_scan *scan;
    uint64_t total_bytes;
    uint32_t workers;
    struct counter done_bytes, inflated_records;
    struct flag stop;
};

struct scan_worker {
    struct thread thread;
    struct scan_team *team;
    uint32_t number;
    struct catalog **parts; /* of shards number, number + workers, ... */
};

int scanner_report(struct scanner *scanner, uint64_t offset)
{
    struct scan_team *team = scanner->team;

    if (flag_get(&team->stop))
        return -ECANCELED;
    if (offset <= scanner->reported)
        return 0;
    counter_add(&team->done_bytes, offset - scanner->reported);
    scanner->reported = offset;
    if (scanner->scan->progress)
        scanner->scan->progress(scanner->scan->progress_context, counter_get(&team->done_bytes),
                                team->total_bytes);
    return 0;
}

int scanner_count_inflated(struct scanner *scanner, uint64_t most_bytes)
{
    struct scan_team *team = scanner->team;
    const uint64_t data_bytes =
        team->total_bytes > INDEX_FREE_BYTES ? team->total_bytes : INDEX_FREE_BYTES;

    most_bytes = most_bytes ? most_bytes : data_bytes;
    counter_add(&team->inflated_records, 1);
    if (counter_get(&team->inflated_records) * sizeof(struct extent) <= most_bytes)
        return 0;
    return fail(
        EFBIG,
        "%s: the index of so many records is larger than %llu bytes; max-index=SIZE allows more",
        scanner->path, (unsigned long long)most_bytes);
}

/* Behind "start: " when text begins so, else text. */
static const char *skip_start(const char *text, const char *start)
{
    size_t length = strlen(start);

    return strncmp(text, start, length) == 0 && strncmp(text + length, ": ", 2) == 0
               ? text + length + 2
               : text;
}

int scanner_fault_recorded(struct scanner *scanner, int code, uint64_t offset)
{
    char reason[FAIL_REASON_BYTES];

    if (!scanner->scan->fault)
        return -code;
    snprintf(reason, sizeof reason, "%s", fail_reason());
    /* The handler is told the file and the place apart. */
    const char *what = skip_start(reason, scanner->path);
    if (what != reason && strncmp(what, "offset ", 7) == 0 && strstr(what, ": "))
        what = strstr(what, ": ") + 2;
    return scanner_fault(scanner, code, offset, what);
}

int scanner_add_all(struct scanner *scanner, const struct scan_steps *steps,
                    struct catalog *catalog)
{
    int code = 0;

    for (uint64_t offset = 0, end = 0; code == 0 && offset < scanner->file_bytes; offset = end) {
        const char *what = NULL;
        code = steps->measure(scanner, offset, &end, &what);
        if (code == 0) {
            code = catalog_add(catalog, offset, end - offset);
        } else if (code > 0) {
            code = scanner_fault(scanner, EBADMSG, offset, what);
            end = offset;
            if (code == 0)
                code = scanner_find(scanner, steps, &end);
        }
    }
    return code;
}

const uint8_t *scanner_at(struct scanner *scanner, uint64_t offset, size_t count, int *code)
{
    uint64_t window_end = scanner->window_start + scanner->window_count;
    bool dense = offset - scanner->previous < SCANNER_WINDOW_BYTES / 8;

    assert(count <= SCANNER_HEADER_BYTES && count <= scanner->file_bytes &&
           offset <= scanner->file_bytes - count);
    scanner->previous = offset;
    if (offset >= scanner->window_start && offset + count <= window_end)
        return scanner->window + (offset - scanner->window_start);
    *code = scanner_report(scanner, offset);
    if (*code)
        return NULL;
    size_t wanted = dense ? SCANNER_WINDOW_BYTES : SCANNER_HEADER_BYTES;
    ssize_t got = store_read_at(scanner->file, scanner->window, wanted, offset);
    if (got < 0 || (size_t)got < count) {
        *code = got < 0 ? (int)got
                        : fail(EIO, "%s: offset %llu: the file became shorter while it was indexed",
                               scanner->path, (unsigned long long)offset);
        return NULL;
    }
    scanner->window_start = offset;
    scanner->window_count = (size_t)got;
    return scanner->window;
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0;
}

/* Move *offset to a byte that is not 0, or to the end of the file. */
static int skip_zeros(struct scanner *scanner, uint64_t *offset)
{
    while (*offset < scanner->file_bytes) {
        int code = 0;
        scanner->previous = *offset; /* zeros have many neighbours: fill the window */
        const uint8_t *at = scanner_at(scanner, *offset, 1, &code);
        if (!at)
            return code;
        const uint8_t *end = scanner->window + scanner->window_count;
        while (end - at >= 64 && is_zero(at, 64))
            at += 64;
        while (at < end && *at == 0)
            at++;
        *offset = scanner->window_start + (uint64_t)(at - scanner->window);
        if (at < end)
            return 0;
        *offset = store_next_data(scanner->file, *offset);
    }
    return 0;
}

int scanner_find(struct scanner *scanner, const struct scan_steps *steps, uint64_t *offset)
{
    const uint32_t step = steps->alignment, count = steps->head_bytes;
    uint64_t at = bytes_align_down(*offset, step) + step;
    int code = 0;

    *offset = scanner->file_bytes;
    for (uint64_t searched = 0; searched < SCANNER_SEARCH_BYTES; at += step, searched += step) {
        if (at >= scanner->file_bytes || scanner->file_bytes - at < count)
            return 0;
        const uint8_t *head = scanner_at(scanner, at, count, &code);
        if (!head)
            return code;
        if (is_zero(head, count)) {
            uint64_t other = at + count;
            if ((code = skip_zeros(scanner, &other)))
                return code;
            at = bytes_align_down(other - count, step); /* the next head has that byte */
        } else if (steps->begins(scanner, at, head)) {
            *offset = at;
            return 0;
        }
    }
    return 0;
}

/* Walk one shard with a window that is used again for the next. */
static int walk_shard(struct scan_team *team, uint32_t number, const struct format_scan *scan,
                      uint8_t *window, struct catalog *catalog)
{
    const struct shard_list *list = team->list;
    const char *path = list->paths[number];
    struct scanner scanner = {.path = path,
                              .next = number + 1 < list->count ? list->paths[number + 1] : NULL,
                              .scan = scan,
                              .team = team,
                              .window = window};
    int code = store_open(path, STORE_READ, &scanner.file);

    if (code)
        return scanner_fault_recorded(&scanner, -code, 0);
    const struct store_status *status = &scanner.file->status;
    if (status->kind != STORE_FILE)
        code = fail(EINVAL, "%s: not a regular file", path);
    scanner.file_bytes = code ? 0 : status->bytes;
    if (code == 0)
        code = catalog_begin_shard(catalog, path, status, 0);
    if (code == 0 && scanner.file_bytes == 0)
        code = scanner_fault(&scanner, ENODATA, 0, "the file is empty");
    else if (code == 0)
        code = team->walk(team->settings, &scanner, catalog);
    if (code == 0)
        code = scanner_report(&scanner, scanner.file_bytes);
    store_close(scanner.file, false);
    return code;
}

static int scan_worker(void *argument)
{
    struct scan_worker *worker = argument;
    struct scan_team *team = worker->team;
    /* The progress and the faults are the caller's, so only its own thread tells them. */
    struct format_scan quiet = {0};
    uint8_t *window = memory_zeroed(SCANNER_WINDOW_BYTES);
    int code = window ? 0 : -ENOMEM;

    for (uint32_t i = worker->number; code == 0 && i < team->list->count; i += team->workers) {
        worker->parts[i] = catalog_create("", "");
        code = worker->parts[i] ? walk_shard(team, i, worker->number == 0 ? team->scan : &quiet,
                                             window, worker->parts[i])
                                : -ENOMEM;
    }
    free(window);
    if (code)
        flag_set(&team->stop);
    return code;
}

/* The caller's thread is worker 0. Another worker's -ECANCELED is not the cause. */
static int scan_together(struct scan_team *team, struct catalog **parts)
{
    struct scan_worker *workers = memory_array(team->workers, sizeof *workers);
    int code = 0;

    if (!workers)
        return -ENOMEM;
    for (uint32_t i = 0; i < team->workers; i++)
        workers[i] = (struct scan_worker){.team = team, .number = i, .parts = parts};
    for (uint32_t i = 1; code == 0 && i < team->workers; i++)
        code = thread_start(&workers[i].thread, "scan", scan_worker, &workers[i]);
    if (code)
        flag_set(&team->stop);
    else
        code = scan_worker(&workers[0]);
    for (uint32_t i = 1; i < team->workers; i++) {
        bool cause_known = code && code != -ECANCELED;
        char reason[FAIL_REASON_BYTES];
        snprintf(reason, sizeof reason, "%s", fail_reason());
        int joined = thread_join(&workers[i].thread);
        if (cause_known)
            fail(-code, "%s", reason); /* joining may have replaced it */
        else if (joined)
            code = joined;
    }
    free(workers);
    return code;
}

static int scan_parts(struct scan_team *team, struct catalog *catalog)
{
    uint32_t count = team->list->count;
    struct catalog **parts = memory_array(count, sizeof *parts);

    if (!parts)
        return -ENOMEM;
    int code = scan_together(team, parts);
    for (uint32_t i = 0; i < count; i++) {
        if (code == 0)
            code = catalog_append(catalog, parts[i]);
        catalog_destroy(parts[i]);
    }
    free(parts);
    return code;
}

static int scan_one_by_one(struct scan_team *team, struct catalog *catalog)
{
    uint8_t *window = memory_zeroed(SCANNER_WINDOW_BYTES);
    int code = window ? 0 : -ENOMEM;

    for (uint32_t i = 0; code == 0 && i < team->list->count; i++)
        code = walk_shard(team, i, team->scan, window, catalog);
    free(window);
    return code;
}

int scan_shards(const struct shard_list *list, scan_walk walk, const void *settings,
                const struct format_scan *scan, struct catalog *catalog)
{
    struct scan_team team = {.list = list, .walk = walk, .settings = settings, .scan = scan};

    for (uint32_t i = 0; i < list->count; i++) {
        struct store_status status;
        if (store_stat(list->paths[i], &status) == 0)
            team.total_bytes += status.bytes;
    }
    team.workers = list->count < SCAN_THREADS ? list->count : SCAN_THREADS;
    if (scan->fault || team.workers < 2)
        return scan_one_by_one(&team, catalog);
    return scan_parts(&team, catalog);
}
