/* SPDX-License-Identifier: Apache-2.0
 *
 * cachectl: show, drop, evict and warm the page cache. The only program here that ever needs
 * privilege, and only for `cachectl drop`; so it reads nothing from the environment, runs nothing
 * as root, and `cachectl drop` without paths does one fixed thing:
 *
 *     %bench ALL=(root) NOPASSWD: /usr/bin/cachectl drop
 */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/child.h"
#include "cachectl/residency.h"
#include "cachectl/cold.h"
#include "telemetry/probe.h"
#include "telemetry/devices.h"

#include <errno.h>
#include <fts.h>
#include <getopt.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_MISUSED = 2 };

static const char usage[] =
    "Usage: cachectl status [OPTIONS] PATH...   cached pages of the files\n"
    "       cachectl drop [OPTIONS] [PATH...]   drop the machine's caches; verify PATH is cold\n"
    "       cachectl evict [OPTIONS] PATH...    evict only these files from the cache\n"
    "       cachectl warm [OPTIONS] PATH...     read these files into the cache\n"
    "\n"
    "  -f, --files         one line per file instead of per PATH\n"
    "      --json          print JSON instead\n"
    "      --timeout=TIME  time limit of a step: 90, 10s, 5m; 0: none (default 5m)\n"
    "  -h, --help          this text\n"
    "      --version       the version\n"
    "\n"
    "PATH is a file, or a folder for all files below it. drop needs root, or permission to run\n"
    "`sudo -n cachectl drop`; without it, it evicts the files of PATH one by one.\n"
    "Exit status: 0 done (drop, evict: and verified cold), 1 failed or unverified, 2 usage "
    "error.\n";

/* ---- the files below a path, following symbolic links ---- */

struct listing {
    char **paths;
    size_t count;
    size_t unread_count; /* unreadable folders, dangling links */
    char reason[256];    /* of the first such entry */
};

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void note_unread(struct listing *listing, const char *path, int code)
{
    if (listing->unread_count++ == 0)
        snprintf(listing->reason, sizeof listing->reason, "%.180s: %s", path,
                 fail_errno_text(code));
}

/* List the path itself if it is a file or block device, or every regular file below a folder.
 * Returns 0, or a negative errno with a reason. Clear in either case. */
static int list_files(struct listing *listing, const char *path)
{
    char *const roots[] = {(char *)(uintptr_t)path, NULL};
    int code = 0;

    *listing = (struct listing){0};
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    if (!walk)
        return fail(errno, "%s: %s", path, fail_errno_text(errno));
    errno = 0;
    for (FTSENT *entry; code == 0 && (entry = fts_read(walk)); errno = 0) {
        const bool is_root = entry->fts_level == FTS_ROOTLEVEL;
        switch (entry->fts_info) {
        case FTS_DEFAULT: /* FIFOs etc. hold no data; a block device counts only if named */
            if (!is_root)
                break;
            __attribute__((fallthrough));
        case FTS_F:
            code = memory_room(&listing->paths, listing->count, sizeof *listing->paths, "files");
            if (code == 0 && !(listing->paths[listing->count] = strdup(entry->fts_path)))
                code = fail(ENOMEM, "%s: out of memory for its name", entry->fts_path);
            listing->count += code == 0;
            break;
        case FTS_DNR:
        case FTS_ERR:
        case FTS_NS:
            if (is_root)
                code = fail(entry->fts_errno, "%s: %s", entry->fts_path,
                            fail_errno_text(entry->fts_errno));
            else
                note_unread(listing, entry->fts_path, entry->fts_errno);
            break;
        case FTS_SLNONE:
            note_unread(listing, entry->fts_path, ENOENT);
            break;
        default: /* folders; a link to an ancestor is not followed */
            break;
        }
    }
    if (code == 0 && errno)
        code = fail(errno, "%s: cannot list: %s", path, fail_errno_text(errno));
    fts_close(walk);
    return code;
}

/* Count the bytes that any process has read since boot from the disks below these files that are
 * not in the list yet: each disk counts once, for the first files on it. Returns false if unknown:
 * no local disk holds the files, or it keeps no counters. */
static bool count_disk_reads(struct device_list *list, const char *const *paths, size_t count,
                             uint64_t *bytes)
{
    const char *sys = telemetry_roots_usual.sys;
    const uint32_t before = list->count;
    struct disk_counters counters;
    char text[512];

    *bytes = 0;
    devices_of_paths(&telemetry_roots_usual, paths, count, list);
    if (list->count == 0 || list->cut_off || list->elsewhere[0])
        return false;
    for (uint32_t i = before; i < list->count; i++) {
        const struct device *device = &list->devices[i];
        if (file_peek(text, sizeof text, "%s/dev/block/%u:%u/queue/iostats", sys,
                      device->device_major, device->device_minor) &&
            text[0] == '0')
            return false;
        if (!file_peek(text, sizeof text, "%s/dev/block/%u:%u/stat", sys, device->device_major,
                       device->device_minor) ||
            !disk_parse_stat(text_of_string(text), &counters))
            return false;
        *bytes += counters.read_sectors * DISK_SECTOR_BYTES;
    }
    return true;
}

struct call {
    bool makes_cold, files, json;
    uint64_t timeout_ns;
    int count;
    char **operands;
    struct cache_observer observer;
    struct residency_probe *probe;
    struct device_list *disks; /* below the rows so far */
    json_t *rows;
    struct residency_total sum;
    const struct listing *listing; /* of this PATH */
    uint64_t set_bytes;            /* of its files; 0: not yet known, nor is what is beneath */
    struct beneath beneath;
};

/* Progress: on a terminal one updated line; elsewhere a line every ten seconds. */
static struct {
    bool terminal, shown;
    uint64_t told_ns;
} progress_line;

static void show_cache_progress(void *context, const struct cache_progress *progress)
{
    const uint64_t now_ns = clock_now_ns();
    char share[32] = "";

    (void)context;
    if (progress->total)
        snprintf(share, sizeof share, " %.0f%%",
                 100.0 * (double)progress->done / (double)progress->total);
    if (progress_line.terminal) {
        /* Not through stderr, which escapes control characters. */
        dprintf(STDERR_FILENO, "\r%s%s, %.0f s \033[K", progress->doing, share,
                (double)progress->elapsed_ns / 1e9);
        progress_line.shown = true;
    } else if (now_ns - progress_line.told_ns >= UINT64_C(10000000000)) {
        progress_line.told_ns = now_ns;
        fprintf(stderr, "cachectl: %s%s, %.0f s\n", progress->doing, share,
                (double)progress->elapsed_ns / 1e9);
    }
}

/* Call before printing anything else. */
static void clear_progress(void)
{
    if (progress_line.shown)
        dprintf(STDERR_FILENO, "\r\033[K");
    progress_line.shown = false;
}

static int complain(void)
{
    clear_progress();
    fprintf(stderr, "cachectl: %s\n", *fail_reason() ? fail_reason() : fail_errno_text(ENOMEM));
    return EXIT_FAILED;
}

/* ---- rows ---- */

static void print_total(const char *path, const struct residency_total *total, bool count)
{
    char resident[32], size[32], percent[32], files[40] = "";

    bytes_text(total->resident_bytes, resident, sizeof resident);
    bytes_text(total->total_bytes, size, sizeof size);
    snprintf(percent, sizeof percent, "%.2f%%", total->percent);
    if (count)
        snprintf(files, sizeof files, " (%llu files)", (unsigned long long)total->file_count);
    const bool known = total->unverified_count == 0;
    printf("%12s %12s %9s  %-10s  %s%s\n", known ? resident : "-", size, known ? percent : "-",
           residency_state_text(total->state), escape_shown(path), files);
    if (total->reason[0])
        printf("%50s%s\n", "", escape_shown(total->reason));
}

/* ---- measuring ---- */

/* Measure, print and add up the files of a row. */
static int look(struct call *call, const char *path, const char *const *paths, size_t count)
{
    const struct listing *all = call->listing;
    struct residency_total total, *sum = &call->sum;
    struct stat status;
    uint64_t read_bytes;
    int code =
        residency_parts(call->probe, paths, count, NULL, call->timeout_ns, &call->observer, &total);

    if (code)
        return code;
    /* Data that is cold in the page cache may be warm in a cache below: check once for all files of
     * a PATH. */
    const bool looks_beneath = total.state == RESIDENCY_COLD && total.data_bytes;
    if (looks_beneath && !call->set_bytes) {
        for (size_t i = 0; i < all->count; i++)
            call->set_bytes += stat(all->paths[i], &status) ? 0 : (uint64_t)status.st_blocks * 512;
        if (call->set_bytes < total.data_bytes) /* a block device has none in its status */
            call->set_bytes = total.data_bytes;
        beneath_look_at((const char *const *)all->paths, all->count, call->set_bytes,
                        &call->beneath);
    }
    if (looks_beneath && call->beneath.state != RESIDENCY_COLD) {
        const double share = (double)call->beneath.resident_bytes / (double)call->set_bytes;
        total.state = call->beneath.state;
        snprintf(total.reason, sizeof total.reason, "%.*s", RESIDENCY_REASON_BYTES - 1,
                 call->beneath.reason);
        if (total.state == RESIDENCY_UNVERIFIED) {
            total.unverified_count = total.file_count;
        } else {
            total.resident_bytes = (uint64_t)(share * (double)total.data_bytes);
            total.percent = 100 * share;
        }
    }
    clear_progress();
    if (call->json) {
        const bool known = total.unverified_count == 0;
        const bool read_known = count_disk_reads(call->disks, paths, count, &read_bytes);
        json_array_append_new(
            call->rows,
            json_pack(
                "{s:o, s:s, s:I, s:I, s:o, s:o, s:I, s:o, s:I, s:s, s:o*}", "path", json_text(path),
                "state", residency_state_text(total.state), "files", (json_int_t)total.file_count,
                "total_bytes", (json_int_t)total.total_bytes, "resident_bytes",
                known ? json_integer((json_int_t)total.resident_bytes) : json_null(),
                "resident_percent", known ? json_number(total.percent) : json_null(), "dirty_bytes",
                (json_int_t)total.dirty_bytes, "disk_read_bytes",
                read_known ? json_integer((json_int_t)read_bytes) : json_null(), "unverified_files",
                (json_int_t)total.unverified_count, "method", residency_method_text(total.methods),
                "reason", total.reason[0] ? json_text(total.reason) : NULL));
    } else {
        print_total(path, &total, total.file_count != 1);
    }
    sum->file_count += total.file_count;
    sum->unverified_count += total.unverified_count;
    sum->resident_bytes += total.resident_bytes;
    sum->dirty_bytes += total.dirty_bytes;
    sum->total_bytes += total.total_bytes;
    sum->data_bytes += total.data_bytes;
    sum->methods |= total.methods;
    if (total.state == RESIDENCY_WARM || sum->state != RESIDENCY_WARM)
        sum->state = total.state == RESIDENCY_COLD ? sum->state : total.state;
    if (sum->data_bytes)
        sum->percent = 100.0 * (double)sum->resident_bytes / (double)sum->data_bytes;
    return 0;
}

static int look_at(struct call *call, const char *operand, const struct listing *listing)
{
    int code = 0;

    call->listing = listing;
    call->set_bytes = 0;
    if (!call->files)
        return look(call, operand, (const char *const *)listing->paths, listing->count);
    for (size_t i = 0; code == 0 && i < listing->count; i++) {
        const char *path = listing->paths[i];
        code = look(call, path, &path, 1);
    }
    return code;
}

/* ---- commands, called once per PATH ---- */

/* Evict or load. */
static int do_to_files(struct call *call, const char *operand, const struct listing *listing)
{
    struct evict_figures figures;
    int code = cache_files(call->makes_cold ? CACHE_EVICT_MOUNT : CACHE_WARM,
                           (const char *const *)listing->paths, listing->count, call->timeout_ns,
                           &call->observer, &figures);

    if (code == 0)
        code = look_at(call, operand, listing);
    if (code == 0 && figures.failed_count)
        code = fail(EIO, "%llu files failed; the first: %s",
                    (unsigned long long)figures.failed_count, figures.reason);
    return code;
}

static int do_drop(struct call *call, const char *operand, const struct listing *listing)
{
    struct cold_result result;
    struct beneath beneath;
    const char *const *paths = (const char *const *)listing->paths;
    const struct cold_request request = {.paths = paths,
                                         .count = listing->count,
                                         .drop = true,
                                         .timeout_ns = call->timeout_ns,
                                         .observer = &call->observer};
    int code = cold_make(&request, &result);

    if (code)
        return code;
    if (result.label == RESIDENCY_COLD && result.data_bytes) {
        beneath_look_at(paths, listing->count, result.data_bytes, &beneath);
        result.label = beneath.state;
        snprintf(result.reason, sizeof result.reason, "%s", beneath.reason);
    }
    clear_progress();
    fprintf(stderr, "cachectl: %s: %s (%s)%s%s\n", escape_shown(operand),
            residency_state_text(result.label), result.method, result.reason[0] ? ": " : "",
            escape_shown(result.reason));
    return look_at(call, operand, listing);
}

static const struct cachectl_command {
    const char *name;
    int (*one)(struct call *call, const char *operand, const struct listing *listing);
    bool makes_cold;
} commands[] = {
    {"status", look_at, false},
    {"drop", do_drop, true},
    {"evict", do_to_files, true},
    {"warm", do_to_files, false},
};

/* ---- the command line ---- */

enum { OPTION_JSON = 256, OPTION_TIMEOUT, OPTION_VERSION };

int main(int argc, char **argv)
{
    static const struct option options[] = {{"files", no_argument, NULL, 'f'},
                                            {"json", no_argument, NULL, OPTION_JSON},
                                            {"timeout", required_argument, NULL, OPTION_TIMEOUT},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, OPTION_VERSION},
                                            {0}};
    const struct cachectl_command *command = NULL;
    struct call call = {.timeout_ns = UINT64_C(300000000000),
                        .observer = {.progress = show_cache_progress}};

    startup_undo_inherited();
    if (escape_streams(&stdout, &stderr)) {
        fputs("cachectl: out of memory\n", stderr);
        return EXIT_FAILED;
    }
    progress_line.terminal = isatty(2);
    progress_line.told_ns = clock_now_ns();
    /* Its output would leak names and sizes of files that the caller may not see. */
    if (getauxval(AT_SECURE)) {
        fputs("cachectl: must not be set-uid or set-gid, or have file capabilities; use sudo, see "
              "cachectl(1)\n",
              stderr);
        return EXIT_MISUSED;
    }
    for (int letter; (letter = getopt_long(argc, argv, "fh", options, NULL)) != -1;)
        switch (letter) {
        case 'f':
            call.files = true;
            break;
        case OPTION_JSON:
            call.json = true;
            break;
        case OPTION_TIMEOUT:
            if (option_parse_duration(optarg, &call.timeout_ns) == 0)
                break;
            complain();
            return EXIT_MISUSED;
        case 'h':
            fputs(usage, stdout);
            return EXIT_OK;
        case OPTION_VERSION:
            puts("cachectl " PACKAGE_VERSION);
            return EXIT_OK;
        default:
            fputs("Try 'cachectl --help'.\n", stderr);
            return EXIT_MISUSED;
        }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0] && optind < argc; i++)
        if (strcmp(commands[i].name, argv[optind]) == 0)
            command = &commands[i];
    if (!command) {
        fprintf(stderr, "cachectl: %s%s\n%s", optind < argc ? "unknown command " : "no command",
                optind < argc ? escape_shown(argv[optind]) : "", usage);
        return EXIT_MISUSED;
    }
    call.count = argc - optind - 1;
    call.operands = argv + optind + 1;
    if (call.count == 0 && command->one == do_drop) {
        const char *how;
        int code = drop_system(NULL, call.timeout_ns, &call.observer, &how);
        clear_progress();
        return code ? complain() : EXIT_OK;
    }
    if (call.count == 0) {
        fprintf(stderr, "cachectl: %s: no PATH\nTry 'cachectl --help'.\n", command->name);
        return EXIT_MISUSED;
    }
    bool failed = false;
    call.makes_cold = command->makes_cold;
    call.rows = json_array();
    call.probe = residency_probe_create();
    call.disks = memory_zeroed(sizeof *call.disks);
    if (!call.rows || !call.probe || !call.disks)
        return complain();
    if (!call.json)
        printf("%12s %12s %9s  %-10s  %s\n", "RESIDENT", "SIZE", "PERCENT", "STATE", "PATH");
    for (int i = 0; i < call.count; i++) {
        struct listing listing;
        int code = list_files(&listing, call.operands[i]);
        if (code == 0 && command->makes_cold && listing.count == 0)
            code = fail(ENODATA, "%s: no files; is its file system mounted?", call.operands[i]);
        if (code == 0)
            code = command->one(&call, call.operands[i], &listing);
        if (code == 0 && listing.unread_count)
            code = fail(EACCES, "%zu folders or links could not be followed; the first: %s",
                        listing.unread_count, listing.reason);
        if (code)
            failed = complain() != EXIT_OK;
        for (size_t k = 0; k < listing.count; k++)
            free(listing.paths[k]);
        free(listing.paths);
    }
    if (call.json) {
        char *text = json_to_text(call.rows, JSON_INDENT(2));
        if (text)
            puts(text);
        else
            failed = complain() != EXIT_OK;
        free(text);
    } else if (call.count > 1 || call.files) {
        print_total("total", &call.sum, true);
    }
    fflush(stdout);
    if (escape_output_error()) {
        fprintf(stderr, "cachectl: standard output: %s\n", fail_errno_text(escape_output_error()));
        failed = true;
    }
    if (call.sum.unverified_count || (command->makes_cold && call.sum.state != RESIDENCY_COLD))
        failed = true;
    json_decref(call.rows);
    free(call.disks);
    residency_probe_destroy(call.probe);
    return failed ? EXIT_FAILED : EXIT_OK;
}
