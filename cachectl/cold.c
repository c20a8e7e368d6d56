/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/cold.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "cachectl/evict.h"
#include "cachectl/outside.h"
#include "telemetry/guard.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Append to text; truncates. */
static void append(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + used, bytes - used, format, arguments);
    va_end(arguments);
}

/* ---- 1: drop ---- */

static bool not_permitted(int code)
{
    return code == -EACCES || code == -EPERM || code == -EROFS || code == -ENOENT;
}

static int drop_system(const struct cold_request *request, const char **how)
{
    int code = drop_caches(request->timeout_ns, request->observer);

    *how = "sync, drop_caches=3";
    if (not_permitted(code)) {
        *how = "sudo cachectl drop";
        code = drop_caches_by_sudo(request->helpers, request->timeout_ns, request->observer);
    }
    if (code == 0)
        guard_note_drop();
    return code;
}

static int drop_or_evict(const struct cold_request *request, struct cold_result *result)
{
    struct evict_figures figures;
    const char *how;
    int code = drop_system(request, &how);

    result->system_wide = code == 0;
    if (not_permitted(code)) {
        how = "eviction file by file, dentries and inodes stay";
        code = evict_files(request->paths, request->count, false, request->timeout_ns,
                           request->observer, &figures);
    }
    if (code)
        return code;
    result->dropped = true;
    append(result->method, sizeof result->method, "%s; ", how);
    return 0;
}

/* ---- 2: measure ---- */

static void name_holders(const struct residency_total *total, struct cold_result *result)
{
    struct holder holders[COLD_FILES] = {0};

    while (result->warm_count < COLD_FILES && total->worst[result->warm_count].resident_bytes) {
        size_t i = result->warm_count++;
        const struct residency_named *named = &total->worst[i];
        memcpy(result->files[i].path, named->path, sizeof named->path);
        result->files[i].resident_bytes = named->resident_bytes;
        result->files[i].dirty_bytes = named->dirty_bytes;
        holders[i] = (struct holder){
            .inode = named->inode, .device = named->device, .path = result->files[i].path};
    }
    if (result->label != RESIDENCY_WARM || !result->dropped)
        return;
    outside_find_holders(holders, result->warm_count);
    for (size_t i = 0; i < result->warm_count; i++) {
        result->files[i].holder_pid = holders[i].pid;
        memcpy(result->files[i].holder_command, holders[i].command, sizeof holders[i].command);
    }
}

static void explain(const struct residency_total *total, struct cold_result *result)
{
    char size[32];

    result->reason[0] = '\0';
    if (total->reason[0] && result->label != RESIDENCY_COLD)
        append(result->reason, sizeof result->reason, "%s%s", total->reason,
               total->unverified_count > 1 ? " (and more)" : "");
    if (result->label != RESIDENCY_WARM || !result->dropped || total->in_memory)
        return;
    for (size_t i = 0; i < result->warm_count; i++) {
        const struct cold_file *file = &result->files[i];
        append(result->reason, sizeof result->reason, "%s%s of %s resident",
               result->reason[0] ? "; " : "", bytes_text(file->resident_bytes, size, sizeof size),
               file->path);
        if (file->holder_pid)
            append(result->reason, sizeof result->reason, ", mapped by process %d (%s)",
                   file->holder_pid, file->holder_command);
        else if (file->dirty_bytes)
            append(result->reason, sizeof result->reason, ", being written");
    }
}

static int look(const struct cold_request *request, struct residency_probe *probe,
                struct residency_total *total, struct cold_result *result)
{
    const struct ranges *ranges = request->ranges;
    int code = residency_parts(probe, ranges ? ranges->paths : request->paths,
                               ranges ? ranges->count : request->count, ranges, request->timeout_ns,
                               request->observer, total);

    if (code)
        return code;
    result->label = total->state;
    result->residue_percent = total->percent;
    result->resident_bytes = total->resident_bytes;
    result->data_bytes = total->data_bytes;
    result->file_count = total->file_count;
    result->unverified_count = total->unverified_count;
    return 0;
}

/* Pages that survive a drop may be dirty, or uncommitted on a server: syncfs(2) helps. */
static int look_hard(const struct cold_request *request, struct cold_result *result)
{
    struct residency_total total;
    struct evict_figures figures;
    struct residency_probe *probe = residency_probe_create();
    int code = probe ? look(request, probe, &total, result) : -ENOMEM;

    if (code == 0 && result->dropped && total.resident_bytes && !total.in_memory) {
        const struct ranges *ranges = request->ranges;
        code = evict_files(ranges ? ranges->paths : request->paths,
                           ranges ? ranges->count : request->count, true, request->timeout_ns,
                           request->observer, &figures);
        if (code == 0)
            code = look(request, probe, &total, result);
    }
    residency_probe_destroy(probe);
    if (code)
        return code;
    name_holders(&total, result);
    explain(&total, result);
    append(result->method, sizeof result->method, "%s",
           total.methods ? residency_method_text(total.methods) : "not examined");
    return 0;
}

/* ---- */

static int conclude(int code, uint64_t start_ns, struct cold_result *result)
{
    result->total_ns += clock_now_ns() - start_ns;
    if (code == 0)
        return 0;
    result->failed = true;
    if (result->label != RESIDENCY_WARM)
        result->label = RESIDENCY_UNVERIFIED;
    snprintf(result->reason, sizeof result->reason, "%.399s", fail_reason());
    return code == -ENOMEM ? code : 0;
}

int cold_drop(const struct cold_request *request, struct cold_result *result)
{
    const uint64_t start_ns = clock_now_ns();
    int code = request->drop ? drop_or_evict(request, result) : 0;

    result->label = RESIDENCY_UNVERIFIED;
    result->drop_ns = clock_now_ns() - start_ns;
    return conclude(code, start_ns, result);
}

int cold_look(const struct cold_request *request, struct cold_result *result)
{
    const uint64_t start_ns = clock_now_ns();

    result->label = RESIDENCY_UNVERIFIED;
    return result->failed ? 0 : conclude(look_hard(request, result), start_ns, result);
}

int cold_drop_again(const struct cold_request *request, struct cold_result *result)
{
    const uint64_t start_ns = clock_now_ns();
    const char *how;

    return result->failed || !result->system_wide
               ? 0
               : conclude(drop_system(request, &how), start_ns, result);
}

int cold_make(const struct cold_request *request, struct cold_result *result)
{
    *result = (struct cold_result){0};
    int code = cold_drop(request, result);
    if (code == 0)
        code = cold_look(request, result);
    return code ? code : cold_drop_again(request, result);
}
