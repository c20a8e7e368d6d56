/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/scan.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list of shards ---- */

bool shard_list_ends(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);

    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

int shard_list_numbered(const char *name, uint64_t *number, uint64_t *of)
{
    /* Find the last "-of-" with digits on both sides. */
    const char *found = NULL;

    for (const char *at = name; (at = strstr(at, "-of-")); at++)
        if (at > name && isdigit((unsigned char)at[-1]) && isdigit((unsigned char)at[4]))
            found = at;
    if (!found)
        return -1;
    const char *digits = found;
    while (digits > name && isdigit((unsigned char)digits[-1]))
        digits--;
    if (digits == name || digits[-1] != '-' || found - digits > 9)
        return -1;
    const char *behind = found + 4;
    while (isdigit((unsigned char)*behind))
        behind++;
    if ((*behind != '\0' && *behind != '.') || behind - (found + 4) > 9)
        return -1;
    *number = strtoull(digits, NULL, 10);
    *of = strtoull(found + 4, NULL, 10);
    return (int)(digits - 1 - name);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_path(struct shard_list *list, char *path)
{
    if (!path)
        return -ENOMEM;
    if (list->count == UINT32_MAX ||
        memory_room(&list->paths, list->count, sizeof *list->paths, "shards")) {
        free(path);
        return -ENOMEM;
    }
    list->paths[list->count++] = path;
    return 0;
}

bool shard_list_never(const char *name)
{
    static const char *const ends[] = {".partial", ".idx",           ".lst",
                                       ".json",    ".iobench-index", ".iobench-hints"};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (shard_list_ends(name, ends[i]))
            return true;
    return name[0] == '.';
}

struct choosing {
    struct shard_list *list;
    const char *root, *match;
    bool (*wanted)(const char *name);
};

static int add_entry(void *context, const struct store_entry *entry)
{
    const struct choosing *choosing = context;
    const char *name = entry->name, *match = choosing->match;

    if (entry->kind == STORE_FOLDER || shard_list_never(name) ||
        (match ? fnmatch(match, name, 0) != 0 : !choosing->wanted(name)))
        return 0;
    return add_path(choosing->list, file_join(choosing->root, name));
}

/* Return whether another path, cut before one of the dots of this name, is in the list. A number
 * after the dot is that of a shard. */
static bool is_companion(const struct shard_list *list, const char *path)
{
    char *cut = strdup(path), *base = cut ? strrchr(cut, '/') : NULL, *dot;
    bool found = false;

    while (base && !found && (dot = strrchr(base, '.'))) {
        *dot = '\0';
        found = !isdigit((unsigned char)dot[1]) &&
                bsearch(&cut, list->paths, list->count, sizeof *list->paths, compare_paths);
    }
    free(cut);
    return found;
}

/* List the shards of root: a file (only that file, whatever its name) or a folder: those of its
 * files whose names match the shell pattern match or, without one, that wanted() accepts, sorted by
 * name. Never includes hidden names, drafts ("*.partial") and indexes. A shard's name with
 * ".ANYTHING" appended, but a number, is a companion: other tools name checksums and indexes so.
 * Shards numbered NAME-00000-of-00004 must be complete and of one set: a missing one is -ENOENT,
 * with its name in the reason. No shard at all: -ENOENT. Release in either case. */
static int list_shards(struct shard_list *list, const char *root, const char *match,
                       bool (*wanted)(const char *name))
{
    struct choosing choosing = {.list = list, .root = root, .match = match, .wanted = wanted};
    struct store_status status;

    *list = (struct shard_list){0};
    int code = store_stat(root, &status);
    if (code)
        return code;
    if (status.kind != STORE_FOLDER) {
        char *path = strdup(root);
        return path ? add_path(list, path) : fail(ENOMEM, "out of memory for a path");
    }
    code = store_list(root, add_entry, &choosing);
    if (code)
        return code;
    if (list->count == 0)
        return match ? fail(ENOENT, "%s: no shard in it whose name matches '%s'", root, match)
                     : fail(ENOENT, "%s: no shard of this format in it", root);
    qsort(list->paths, list->count, sizeof list->paths[0], compare_paths);
    /* Leave companions out of the sorted paths: the shards that they are of come before them. */
    const uint32_t count = list->count;
    list->count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!is_companion(list, list->paths[i]))
            list->paths[list->count++] = list->paths[i];
        else if (list->companion_count++ == 0)
            list->companion = list->paths[i];
        else
            free(list->paths[i]);
    /* Numbered shards must be one complete set. The paths are sorted, so the numbers of a set
     * ascend if written with leading zeros, as every tool does. */
    uint64_t expected = 0, first_of = 0;
    const char *first = NULL;
    int prefix = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const char *name = file_name(list->paths[i]);
        uint64_t number, of;
        int length = shard_list_numbered(name, &number, &of);
        if (length < 0)
            continue;
        if (!first) {
            first = name;
            first_of = of;
            prefix = length;
        } else if (of != first_of || length != prefix ||
                   strncmp(name, first, (size_t)prefix) != 0) {
            return fail(EINVAL,
                        "%s: holds shards of more than one set (%s and %s); choose one "
                        "with the format's option match=%.*s*",
                        root, first, name, prefix, first);
        }
        if (number > expected)
            break;
        if (number < expected || number >= of)
            return fail(EINVAL, "%s: its number is not within its set", list->paths[i]);
        expected++;
    }
    if (first && expected != first_of)
        return fail(ENOENT, "%s: shard %.*s-%05llu-of-%05llu is missing; the set is not complete",
                    root, prefix, first, (unsigned long long)expected,
                    (unsigned long long)first_of);
    return 0;
}

void shard_list_release(struct shard_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    free(list->companion);
    *list = (struct shard_list){0};
}

size_t shard_list_peek(const char *root, bool (*wanted)(const char *name), void *start,
                       size_t bytes, bool *is_named)
{
    struct shard_list list;
    size_t got = 0;

    /* A missing shard or a second set does not matter here; only the list does. */
    list_shards(&list, root, NULL, wanted);
    *is_named = list.count > 0 && wanted(file_name(list.paths[0]));
    if (list.count > 0)
        got = store_peek(list.paths[0], start, bytes);
    shard_list_release(&list);
    return got;
}

/* ---- a shard's records by its index ----
 *
 * An index may belong to another file, or to a part of this one, so it is used only if its records
 * cover the shard without a gap and those probed across it exist. */

enum {
    LINE_BYTES = 256,
    BUFFER_BYTES = 256 * 1024,
    ROWS_MORE = 1 << 24, /* than the shard has room for: it may be truncated */
    PROBES = 64,
};

struct index_row {
    uint64_t offset, bytes;
};

struct lines {
    struct store_file *file;
    uint64_t offset; /* file offset of the end of the buffer */
    size_t start, end;
    char buffer[BUFFER_BYTES + 1];
};

/* Return the next line without its newline. NULL past the last line, or if a line is too long or
 * cannot be read: then part of the file was not consumed. */
static char *next_line(struct lines *lines)
{
    char *line = lines->buffer + lines->start;
    char *newline = memchr(line, '\n', lines->end - lines->start);

    if (!newline) {
        lines->end -= lines->start;
        memmove(lines->buffer, line, lines->end);
        line = lines->buffer;
        lines->start = 0;
        ssize_t got =
            store_read_at(lines->file, line + lines->end, BUFFER_BYTES - lines->end, lines->offset);
        if (got < 0)
            return NULL;
        lines->offset += (uint64_t)got;
        lines->end += (size_t)got;
        newline = memchr(line, '\n', lines->end);
        if (!newline && lines->end > 0 && lines->offset == lines->file->status.bytes)
            newline = line + lines->end; /* the last line has no newline */
    }
    if (!newline || newline - line > LINE_BYTES)
        return NULL;
    *newline = '\0';
    lines->start = (size_t)(newline - lines->buffer) + 1;
    if (lines->start > lines->end)
        lines->start = lines->end;
    return line;
}

/* Read the rows of the file. Returns their count, at most limit; 0 if there is no such file or it
 * does not have two columns. free() *rows in either case. */
static uint64_t read_rows(const char *path, const struct scan_steps *steps, uint64_t limit,
                          struct index_row **rows)
{
    struct lines *lines = memory_zeroed(sizeof *lines);
    uint64_t count = 0;
    bool right = lines && store_open(path, STORE_READ, &lines->file) == 0;

    for (char *line; right && (line = next_line(lines));) {
        const char *second = strchr(line, steps->index.separator);
        char *end;
        right = second && isdigit((unsigned char)second[1]) && count < limit &&
                memory_room(rows, count, sizeof **rows, "rows") == 0;
        if (!right)
            break;
        const uint64_t number = strtoull(second + 1, &end, 10);
        (*rows)[count++] = steps->index.has_keys
                               ? (struct index_row){.offset = number}
                               : (struct index_row){strtoull(line, NULL, 10), number};
        right = end[strspn(end, "\r")] == '\0';
    }
    right = right && lines->start == lines->end && lines->offset == lines->file->status.bytes;
    if (lines)
        store_close(lines->file, false);
    free(lines);
    return right ? count : 0;
}

/* Return the path of the index beside path: with its extension replaced if it has one of those
 * listed, else with ".idx" appended. free() it. */
static char *index_path(const char *path, const struct scan_steps *steps)
{
    size_t length = strlen(path);

    for (const char *const *extension = steps->index.extensions; *extension; extension++) {
        if (shard_list_ends(path, *extension)) {
            length -= strlen(*extension);
            break;
        }
    }
    return file_format_path("%.*s.idx", (int)length, path);
}

static int compare_rows(const void *a, const void *b)
{
    const struct index_row *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool is_plausible(struct scanner *scanner, const struct scan_steps *steps,
                         const struct index_row *rows, uint64_t count)
{
    const uint64_t probes = count < PROBES ? count : PROBES;
    uint64_t end = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (rows[i].offset != end || rows[i].bytes < steps->index.record_bytes ||
            rows[i].bytes > scanner->file_bytes - end)
            return false;
        end += rows[i].bytes;
    }
    if (count == 0 || end != scanner->file_bytes)
        return false;
    for (uint64_t probe = 0; probe < probes; probe++) {
        const struct index_row *row = &rows[probes > 1 ? probe * (count - 1) / (probes - 1) : 0];
        const char *what;
        uint64_t record_end;
        if (steps->measure(scanner, row->offset, &record_end, &what) ||
            record_end != row->offset + row->bytes)
            return false;
    }
    return true;
}

/* Add the records of a shard as its index lists them. Returns 1, 0 if there is no usable index, or
 * an error: also that of the scan, if the index shows that the shard was truncated between two
 * records, which makes it look complete. Where faults are wanted the index is not used: verifying
 * checks every header. */
static int add_indexed(struct scanner *scanner, const struct scan_steps *steps,
                       struct catalog *catalog)
{
    char *path = index_path(scanner->path, steps);
    const uint64_t limit = scanner->file_bytes / steps->index.record_bytes + ROWS_MORE;
    struct index_row *rows = NULL;
    const uint64_t count = path ? read_rows(path, steps, limit, &rows) : 0;

    /* MXNet's readers sort them too, since shuffled files are common. */
    bool is_sorted = true;
    for (uint64_t i = 1; i < count; i++)
        is_sorted &= rows[i].offset >= rows[i - 1].offset;
    if (steps->index.has_keys && !is_sorted)
        qsort(rows, count, sizeof *rows, compare_rows);
    for (uint64_t i = 0; steps->index.has_keys && i < count; i++) {
        const uint64_t end = i + 1 < count ? rows[i + 1].offset : scanner->file_bytes;
        rows[i].bytes = end > rows[i].offset ? end - rows[i].offset : 0;
    }
    /* A shard that was truncated between two records: a record of its index begins where the shard
     * ends. If the next shard has no index, this one may cover both and proves nothing. */
    uint64_t beyond = 0;
    bool at_end = false;
    for (uint64_t i = 0; i < count; i++) {
        beyond += rows[i].offset >= scanner->file_bytes;
        at_end |= rows[i].offset == scanner->file_bytes;
    }
    char *next = at_end && scanner->next ? index_path(scanner->next, steps) : NULL;
    char what[96];
    int code = 0;
    if (at_end && (!scanner->next || (next && store_exists(next)))) {
        snprintf(what, sizeof what,
                 "the file ends here, its .idx lists %llu more record%s: truncated",
                 (unsigned long long)beyond, beyond == 1 ? "" : "s");
        code = scanner_fault(scanner, EBADMSG, scanner->file_bytes, what);
    }
    free(next);
    const bool use =
        code == 0 && !scanner->scan->fault && is_plausible(scanner, steps, rows, count);
    for (uint64_t i = 0; use && code == 0 && i < count; i++)
        code = catalog_add(catalog, rows[i].offset, rows[i].bytes);
    free(rows);
    free(path);
    return code ? code : use;
}

/* ---- by its headers ---- */

enum { SCAN_THREADS = 16 }; /* they wait for storage, so there may be more threads than CPUs */
enum { INDEX_FREE_BYTES = 64 << 20 };

struct shard_scan {
    const struct shard_list *list;
    scan_walk walk;
    const void *settings;
    const struct format_scan *scan;
    uint64_t total_bytes;
    uint32_t workers;
    struct catalog **parts; /* one catalog per shard; NULL: all in ... */
    struct catalog *catalog;
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
    int code = steps->index.separator ? add_indexed(scanner, steps, catalog) : 0;

    if (code)
        return code < 0 ? code : 0;
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
        struct catalog *part = all->catalog;
        if (all->parts)
            part = all->parts[i] = catalog_create("", "");
        code = part ? walk_shard(all, (uint32_t)i, all->parts ? &quiet : all->scan, window, part)
                    : -ENOMEM;
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
    struct shard_scan all = {
        .list = list, .walk = walk, .settings = settings, .scan = scan, .catalog = catalog};
    const uint32_t count = list->count;

    for (uint32_t i = 0; i < list->companion_count; i++)
        if (catalog_remark(catalog, REMARK_COMPANION, "%s", list->companion))
            return -ENOMEM;
    for (uint32_t i = 0; i < list->count; i++) {
        struct store_status status;
        if (store_stat(list->paths[i], &status) == 0)
            all.total_bytes += status.bytes;
    }
    all.workers = scan->fault || count < 2 ? 1 : count < SCAN_THREADS ? count : SCAN_THREADS;
    if (all.workers == 1)
        return scan_some(&all, NULL, 0);
    const struct workers_job job = {"scan", scan_some, scan_stop, scan_report, &all};
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
    int code = list_shards(&list, root, match, wanted);

    if (code == 0)
        code = scan_shards(&list, walk, settings, scan, catalog);
    shard_list_release(&list);
    return code;
}

/* ---- writing ---- */

enum { SINK_BYTES = 1 << 20 };

int sink_open(struct sink *sink, const char *path)
{
    *sink = (struct sink){0};
    sink->buffer = memory_zeroed(SINK_BYTES);
    if (!sink->buffer)
        return -ENOMEM;
    return store_draft(path, &sink->file);
}

int sink_open_index(struct sink *sink, const char *path, const struct scan_steps *steps)
{
    char *beside = index_path(path, steps);
    int code = beside ? sink_open(sink, beside) : -ENOMEM;

    free(beside);
    return code;
}

static int flush(struct sink *sink)
{
    assert(sink->used <= SINK_BYTES);
    int code = store_write_at(sink->file, sink->buffer, sink->used, sink->written_bytes);

    if (code == 0) {
        sink->written_bytes += sink->used;
        sink->used = 0;
    }
    return code;
}

int sink_write(struct sink *sink, const void *bytes, size_t count)
{
    int code = 0;

    assert(sink->buffer && sink->used <= SINK_BYTES);
    if (count > SINK_BYTES - sink->used)
        code = flush(sink);
    if (code == 0 && count >= SINK_BYTES) {
        code = store_write_at(sink->file, bytes, count, sink->written_bytes);
        if (code == 0)
            sink->written_bytes += count;
    } else if (code == 0 && count > 0) {
        memcpy(sink->buffer + sink->used, bytes, count);
        sink->used += count;
    }
    return code;
}

int sink_printf(struct sink *sink, const char *format, ...)
{
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line)
        return fail(EOVERFLOW, "%s: a line is too long", sink->file->path);
    return sink_write(sink, line, (size_t)length);
}

int sink_close(struct sink *sink, bool commit)
{
    int code = 0;

    if (sink->file)
        code = store_settle(sink->file, commit ? flush(sink) : -ECANCELED);
    free(sink->buffer);
    sink->buffer = NULL;
    sink->file = NULL;
    return commit ? code : 0;
}
