/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/cold.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "cachectl/outside.h"
#include "telemetry/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- dropping the caches of the machine ---- */

enum { PATH_BYTES = 4096 };

static const char control_path[] = "/proc/sys/vm/drop_caches";

/* Return how often the kernel has dropped page caches on request; -1: it does not count. */
static long long count_drops(void)
{
    FILE *file = file_stream_kernel("/proc/vmstat");
    long long drops = -1;
    char line[128];

    while (file && drops < 0 && fgets(line, sizeof line, file))
        sscanf(line, "drop_pagecache %lld", &drops);
    if (file)
        fclose(file);
    return drops;
}

/* Shared by the waiting thread and the one inside the kernel. The last one frees it, since a thread
 * stuck in the kernel cannot be woken. */
struct drop {
    struct countdown holders;
    struct flag done;
    int fd;
    int code;
};

static void leave(struct drop *drop)
{
    if (!countdown_done(&drop->holders, 1))
        return;
    close(drop->fd);
    free(drop);
}

static void *drop_body(void *argument)
{
    struct drop *drop = argument;

    sync();
    const long long before = count_drops();
    drop->code = write(drop->fd, "3\n", 2) == 2 ? 0 : -errno;
    if (drop->code == 0 && before >= 0 && count_drops() == before)
        drop->code = -EPERM;
    flag_set(&drop->done);
    leave(drop);
    return NULL;
}

static int open_control(void)
{
    struct statfs place;
    int fd = file_open_quietly(control_path, O_WRONLY);

    if (fd < 0)
        return fail(fd, "%s: cannot open: %s", control_path, fail_errno_text(fd));
    /* A file mounted in its place accepts any text and drops nothing. */
    if (fstatfs(fd, &place) == 0 && place.f_type == PROC_SUPER_MAGIC)
        return fd;
    close(fd);
    return fail(EPERM, "%s: not the kernel's file: nothing would be dropped", control_path);
}

bool drop_is_permitted(void)
{
    int fd = open_control();

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

int drop_caches(uint64_t timeout_ns, const struct cache_observer *observer)
{
    pthread_t thread;
    int fd = open_control();

    if (fd < 0)
        return fd;
    struct drop *drop = memory_zeroed(sizeof *drop);
    if (!drop) {
        close(fd);
        return -ENOMEM;
    }
    drop->fd = fd;
    countdown_set(&drop->holders, 2);
    int code = pthread_create(&thread, NULL, drop_body, drop);
    if (code) {
        countdown_set(&drop->holders, 1);
        leave(drop);
        return fail(code, "cannot start a thread: %s", fail_errno_text(code));
    }
    pthread_detach(thread);
    const uint64_t start_ns = clock_now_ns();
    uint64_t told_ns = start_ns, pause_ns = 100000;
    while (code == 0 && !flag_get(&drop->done)) {
        const uint64_t now_ns = clock_now_ns();
        if (now_ns - told_ns >= 100000000) {
            told_ns = now_ns;
            cache_report(observer, "dropping caches", 0, 0, start_ns);
        }
        if (timeout_ns && now_ns - start_ns > timeout_ns)
            code = fail(ETIMEDOUT, "dropping caches: not done after %.0f s; raise the time limit",
                        (double)timeout_ns / 1e9);
        else
            clock_sleep_ns(pause_ns);
        if (pause_ns < 5000000)
            pause_ns *= 2;
    }
    if (code == 0 && drop->code)
        code = fail(-drop->code, "%s: cannot write: %s", control_path, fail_errno_text(drop->code));
    leave(drop);
    return code;
}

/* ---- through sudo ---- */

static int drop_by_sudo(const struct drop_helpers *helpers, uint64_t timeout_ns,
                        const struct cache_observer *observer)
{
    static const char *const sudos[] = {"/usr/bin/sudo", "/bin/sudo", "/usr/local/bin/sudo",
                                        "/run/wrappers/bin/sudo"};
    /* The program next to this one, also in a build tree; else the installed one. */
    static const char *const programs[] = {"cachectl", "cachectl/cachectl", BINDIR "/cachectl"};
    const char *sudo = helpers ? helpers->sudo : NULL,
               *cachectl = helpers ? helpers->cachectl : NULL;
    char self[PATH_BYTES], path[PATH_BYTES];
    struct child_result result;
    struct stat status;

    if (geteuid() == 0) /* nothing more to gain, and sudo would call us again forever */
        return fail(EPERM, "%s: not permitted here, not even to root", control_path);
    for (size_t i = 0; i < sizeof sudos / sizeof sudos[0] && !sudo; i++)
        if (access(sudos[i], X_OK) == 0)
            sudo = sudos[i];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(self, '/');
    for (size_t i = 0; i < sizeof programs / sizeof programs[0] && !cachectl; i++) {
        const bool is_absolute = programs[i][0] == '/';
        if (!is_absolute && !slash)
            continue;
        snprintf(path, sizeof path, "%.*s%s", is_absolute ? 0 : (int)(slash - self) + 1, self,
                 programs[i]);
        if (stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0)
            cachectl = path;
    }
    if (!sudo || !cachectl)
        return fail(ENOENT, "%s not found", sudo ? "cachectl program" : "sudo");
    const char *const argv[] = {sudo, "-n", cachectl, "drop", NULL};
    struct cache_step step = {observer, "dropping caches by sudo", clock_now_ns()};
    const struct child_task task = {
        .argv = argv, .timeout_ns = timeout_ns, .stop = cache_report_step, .context = &step};
    int code = child_run(&task, &result);
    if (code == 0 && result.status)
        code = fail(EPERM, "sudo -n %s drop: exit status %d: %.200s", cachectl, result.status,
                    result.output);
    return code;
}

/* Does the code mean that this process lacks permission, or that it cannot be done here? */
static bool drop_is_refused(int code)
{
    return code == -EACCES || code == -EPERM || code == -EROFS || code == -ENOENT;
}

int drop_system(const struct drop_helpers *helpers, uint64_t timeout_ns,
                const struct cache_observer *observer, const char **how)
{
    int code = drop_caches(timeout_ns, observer);

    *how = "sync, drop_caches=3";
    if (drop_is_refused(code)) {
        *how = "sudo cachectl drop";
        code = drop_by_sudo(helpers, timeout_ns, observer);
    }
    if (code == 0)
        guard_note_drop();
    return code;
}

/* ---- making files cold ---- */

/* Append to text; truncates. */
__attribute__((format(printf, 3, 4))) static void append_note(char *text, size_t bytes,
                                                              const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + used, bytes - used, format, arguments);
    va_end(arguments);
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
    struct evict_figures figures;
    const char *how;
    int code = 0;

    *result = (struct cold_result){.label = RESIDENCY_UNVERIFIED, .dropped = request->is_dropped};
    if (request->drop && !request->is_dropped) { /* 1: drop, else evict */
        code = drop_system(request->helpers, request->timeout_ns, request->observer, &how);
        result->system_wide = code == 0;
        if (drop_is_refused(code)) {
            how = "eviction file by file, dentries and inodes stay";
            code = cache_files(CACHE_EVICT, request->paths, request->count, request->timeout_ns,
                               request->observer, &figures);
        }
        result->dropped = code == 0;
        if (code == 0)
            append_note(result->method, sizeof result->method, "%s; ", how);
    }
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
