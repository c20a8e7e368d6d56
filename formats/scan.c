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

enum { SCAN_THREADS = 16 }; /* they wait for storage, so there may be more threads than CPUs */
enum { INDEX_FREE_BYTES = 64 << 20 };

struct shard_scan {
    const struct shard_list *list;
    scan_walk walk;
    const void *settings;
    const struct format_scan *scan;
    uint64_t total_bytes;
    uint32_t workers;
    struct catalog **parts; /* one catalog per shard */
    struct counter done_bytes, inflated_records;
    struct flag stop;
};

int scanner_report(struct scanner *scanner, uint64_t offset)
{
    struct shard_scan *all = scanner->all;

    if (flag_get(&all->stop))
        return -ECANCELED;
    if (offset <= scanner->reported)
        return 0;
    counter_add(&all->done_bytes, offset - scanner->reported);
    scanner->reported = offset;
    if (scanner->scan->progress)
        scanner->scan->progress(scanner->scan->progress_context, counter_get(&all->done_bytes),
                                all->total_bytes);
    return 0;
}

int scanner_count_inflated(struct scanner *scanner, uint64_t most_bytes)
{
    struct shard_scan *all = scanner->all;
    const uint64_t data_bytes =
        all->total_bytes > INDEX_FREE_BYTES ? all->total_bytes : INDEX_FREE_BYTES;

    most_bytes = most_bytes ? most_bytes : data_bytes;
    counter_add(&all->inflated_records, 1);
    if (counter_get(&all->inflated_records) * sizeof(struct extent) <= most_bytes)
        return 0;
    return fail(EFBIG, "%s: the index of all records exceeds %llu bytes; raise max-index=SIZE",
                scanner->path, (unsigned long long)most_bytes);
}

int scanner_fault_recorded(struct scanner *scanner, int code, uint64_t offset)
{
    char reason[FAIL_REASON_BYTES];

    if (!scanner->scan->fault)
        return -code;
    snprintf(reason, sizeof reason, "%s", fail_reason());
    /* The handler gets file and offset as separate values. */
    const char *what = reason;
    const size_t length = strlen(scanner->path);
    if (strncmp(reason, scanner->path, length) == 0 && strncmp(reason + length, ": ", 2) == 0)
        what += length + 2;
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
        end = offset;
        code = steps->measure(scanner, offset, &end, &what);
        if (code == 0) {
            code = catalog_add(catalog, offset, end - offset);
        } else if (code > 0) {
            const uint64_t reached = end;
            code = scanner_fault(scanner, EBADMSG, offset, what);
            end = reached > offset ? reached - 1 : offset;
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

/* Advance *offset to the next non-zero byte, or to the end of the file. */
static int skip_zeros(struct scanner *scanner, uint64_t *offset)
{
    while (*offset < scanner->file_bytes) {
        int code = 0;
        scanner->previous = *offset; /* zeros come in long runs: fill the window */
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

    assert(step > 0 && (step & (step - 1)) == 0);
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
            at = bytes_align_down(other - count, step); /* the next head contains that byte */
        } else if (steps->begins(scanner, at, head)) {
            *offset = at;
            return 0;
        }
    }
    return 0;
}

/* Walk one shard; its window is reused for the next shard. */
static int walk_shard(struct shard_scan *all, uint32_t number, const struct format_scan *scan,
                      uint8_t *window, struct catalog *catalog)
{
    const struct shard_list *list = all->list;
    const char *path = list->paths[number];
    struct scanner scanner = {.path = path,
                              .next = number + 1 < list->count ? list->paths[number + 1] : NULL,
                              .scan = scan,
                              .all = all,
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
    if (code == 0)
        code = all->walk(all->settings, &scanner, catalog);
    if (code == 0 && scanner.file_bytes == 0)
        code = catalog_remark(catalog, REMARK_EMPTY_SHARD, "%s", path);
    if (code == 0)
        code = scanner_report(&scanner, scanner.file_bytes);
    store_close(scanner.file, false);
    return code;
}

/* Worker n scans shards n, n + workers, ... */
static int scan_some(void *context, struct workers *workers, uint64_t number)
{
    struct shard_scan *all = context;
    const struct format_scan quiet = {0}; /* the caller's thread reports progress */
    uint8_t *window = memory_zeroed(SCANNER_WINDOW_BYTES);
    int code = window ? 0 : -ENOMEM;

    (void)workers;
    for (uint64_t i = number; code == 0 && i < all->list->count; i += all->workers) {
        all->parts[i] = catalog_create("", "");
        code =
            all->parts[i] ? walk_shard(all, (uint32_t)i, &quiet, window, all->parts[i]) : -ENOMEM;
    }
    free(window);
    return code;
}

static void scan_stop(void *context)
{
    flag_set(&((struct shard_scan *)context)->stop);
}

static int scan_report(void *context)
{
    const struct shard_scan *all = context;

    if (all->scan->progress)
        all->scan->progress(all->scan->progress_context, counter_get(&all->done_bytes),
                            all->total_bytes);
    return 0;
}

int scan_shards(const struct shard_list *list, scan_walk walk, const void *settings,
                const struct format_scan *scan, struct catalog *catalog)
{
    struct shard_scan all = {.list = list, .walk = walk, .settings = settings, .scan = scan};

    for (uint32_t i = 0; i < list->companion_count; i++)
        if (catalog_remark(catalog, REMARK_COMPANION, "%s", list->companion))
            return -ENOMEM;
    for (uint32_t i = 0; i < list->count; i++) {
        struct store_status status;
        if (store_stat(list->paths[i], &status) == 0)
            all.total_bytes += status.bytes;
    }
    all.workers = list->count < SCAN_THREADS ? list->count : SCAN_THREADS;
    if (scan->fault || all.workers < 2) {
        uint8_t *window = memory_zeroed(SCANNER_WINDOW_BYTES);
        int code = window ? 0 : -ENOMEM;
        for (uint32_t i = 0; code == 0 && i < all.list->count; i++)
            code = walk_shard(&all, i, all.scan, window, catalog);
        free(window);
        return code;
    }
    const struct workers_job job = {"scan", scan_some, scan_stop, scan_report, &all};
    uint32_t count = all.list->count;
    all.parts = memory_array(count, sizeof *all.parts);
    if (!all.parts)
        return -ENOMEM;
    int code = workers_run(&job, all.workers);
    for (uint32_t i = 0; i < count; i++) {
        if (code == 0)
            code = catalog_append(catalog, all.parts[i]);
        catalog_destroy(all.parts[i]);
    }
    free(all.parts);
    return code;
}

int scan_folder(const char *root, const char *match, bool (*wanted)(const char *name),
                scan_walk walk, const void *settings, const struct format_scan *scan,
                struct catalog *catalog)
{
    struct shard_list list;
    int code = shard_list_open(&list, root, match, wanted);

    if (code == 0)
        code = scan_shards(&list, walk, settings, scan, catalog);
    shard_list_release(&list);
    return code;
}
