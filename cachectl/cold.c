/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/cold.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "cachectl/evict.h"
#include "cachectl/outside.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append_note(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Append to text; truncates. */
static void append_note(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + used, bytes - used, format, arguments);
    va_end(arguments);
}

/* 1: drop, else evict. */
static int drop(const struct cold_request *request, struct cold_result *result)
{
    struct evict_figures figures;
    const char *how;
    int code = drop_system(request->helpers, request->timeout_ns, request->observer, &how);

    result->system_wide = code == 0;
    if (drop_is_refused(code)) {
        how = "eviction file by file, dentries and inodes stay";
        code = cache_files(CACHE_EVICT, request->paths, request->count, request->timeout_ns,
                           request->observer, &figures);
    }
    result->dropped = code == 0;
    if (code == 0)
        append_note(result->method, sizeof result->method, "%s; ", how);
    return code;
}

/* 2: measure. Pages that survive a drop may be dirty, or uncommitted on a server: syncfs(2) helps.
 */
static int measure_cold(const struct cold_request *request, struct cold_result *result)
{
    struct holder holders[RESIDENCY_WORST] = {0};
    struct residency_total total = {0};
    struct evict_figures figures;
    struct residency_probe *probe = residency_probe_create();
    const size_t room = sizeof result->reason;
    char size[32], *reason = result->reason;
    size_t count = 0;
    int code = probe ? 0 : -ENOMEM;

    for (int turn = 0; code == 0 && turn < 2; turn++) {
        if (turn && (!result->dropped || !total.resident_bytes || total.in_memory))
            break;
        if (turn)
            code = cache_files(CACHE_EVICT_MOUNT, request->paths, request->count,
                               request->timeout_ns, request->observer, &figures);
        if (code == 0)
            code = residency_parts(probe, request->paths, request->count, request->ranges,
                                   request->timeout_ns, request->observer, &total);
        result->label = total.state;
    }
    residency_probe_destroy(probe);
    if (code)
        return code;
    result->residue_percent = total.percent;
    result->resident_bytes = total.resident_bytes;
    result->data_bytes = total.data_bytes;
    result->unverified_count = total.unverified_count;
    append_note(result->method, sizeof result->method, "%s",
                total.methods ? residency_method_text(total.methods) : "not examined");
    if (total.reason[0] && result->label != RESIDENCY_COLD)
        append_note(reason, room, "%s%s", total.reason,
                    total.unverified_count > 1 ? " (and more)" : "");
    if (result->label != RESIDENCY_WARM || !result->dropped || total.in_memory)
        return 0;
    /* Name the most resident files, and who holds them after a drop. */
    for (; count < RESIDENCY_WORST && total.worst[count].resident_bytes; count++) {
        const struct residency_named *file = &total.worst[count];
        holders[count] = (struct holder){.inode = file->inode, .device = file->device};
        snprintf(holders[count].path, sizeof holders[count].path, "%s", file->path);
    }
    outside_find_holders(holders, count);
    for (size_t i = 0; i < count; i++) {
        const struct residency_named *file = &total.worst[i];
        append_note(reason, room, "%s%s of %s resident", reason[0] ? "; " : "",
                    bytes_text(file->resident_bytes, size, sizeof size), file->path);
        if (holders[i].pid)
            append_note(reason, room, ", mapped by process %d (%s)", holders[i].pid,
                        holders[i].command);
        else if (file->dirty_bytes)
            append_note(reason, room, ", being written");
    }
    return 0;
}

int cold_make(const struct cold_request *request, struct cold_result *result)
{
    const uint64_t start_ns = clock_now_ns();
    const char *how;

    *result = (struct cold_result){.label = RESIDENCY_UNVERIFIED, .dropped = request->is_dropped};
    int code = request->drop && !request->is_dropped ? drop(request, result) : 0;
    result->drop_ns = clock_now_ns() - start_ns;
    if (code == 0)
        code = measure_cold(request, result);
    if (code == 0 && result->system_wide) /* 3: drop what the measurement loaded */
        code = drop_system(request->helpers, request->timeout_ns, request->observer, &how);
    if (code && result->label != RESIDENCY_WARM)
        result->label = RESIDENCY_UNVERIFIED;
    if (code)
        snprintf(result->reason, sizeof result->reason, "%.399s", fail_reason());
    result->total_ns = clock_now_ns() - start_ns;
    return code == -ENOMEM ? code : 0;
}
