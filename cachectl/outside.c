/* SPDX-License-Identifier: Apache-2.0
 *
 * A request is one message, and so is its reply. Another message while a command runs, or the exit
 * of the other process, stops the command.
 */
#include "cachectl/outside.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/stop.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

enum { TURN_MS = 100, REASON_BYTES = 512 };

enum request_kind { FIND_HOLDERS, RUN_COMMAND, STOP };

struct outside_request {
    uint32_t kind;
    uint32_t count; /* of files, or the index of the command */
    uint32_t wants_text;
    uint64_t timeout_ns;
    struct holder holders[OUTSIDE_FILES];
};

struct answer {
    int32_t code;
    char reason[REASON_BYTES];
    struct child_result result;
    char text[CHILD_TEXT_BYTES];
    struct holder holders[OUTSIDE_FILES];
};

static struct {
    bool is_there;
    int socket;
    const char *const *commands;
    size_t count;
} outside;

static int run_here(const char *command, const struct child_task *task, struct child_result *result)
{
    struct child_task shell = *task;

    shell.argv = (const char *const[]){"/bin/sh", "-c", command, NULL};
    return child_run(&shell, result);
}

/* ---- the child ---- */

static bool is_called_off(void *context)
{
    struct pollfd other = {.fd = *(int *)context, .events = POLLIN};

    return poll(&other, 1, 0) > 0;
}

void outside_serve(int socket, const char *const *commands, size_t count)
{
    struct outside_request request;
    ssize_t bytes;

    while ((bytes = recv(socket, &request, sizeof request, 0)) > 0) {
        struct answer answer = {0};
        bool is_sound = bytes == sizeof request;
        for (int i = 0; is_sound && i < OUTSIDE_FILES; i++) {
            struct holder *holder = &answer.holders[i];
            *holder = request.holders[i];
            is_sound = memchr(holder->path, '\0', sizeof holder->path);
            holder->pid = 0;
        }
        const struct child_task task = {.text = request.wants_text ? answer.text : NULL,
                                        .timeout_ns = request.timeout_ns,
                                        .stop = is_called_off,
                                        .context = &socket};
        if (is_sound && request.kind == FIND_HOLDERS && request.count <= OUTSIDE_FILES)
            holders_find("/proc", answer.holders, request.count);
        else if (is_sound && request.kind == RUN_COMMAND && request.count < count)
            answer.code = run_here(commands[request.count], &task, &answer.result);
        else
            continue; /* a late stop is ignored */
        if (answer.code)
            snprintf(answer.reason, sizeof answer.reason, "%s", fail_reason());
        if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer)
            return;
    }
}

/* ---- the confined process ---- */

void outside_use(int socket, const char *const *commands, size_t count)
{
    outside.is_there = true;
    outside.socket = socket;
    outside.commands = commands;
    outside.count = count;
}

/* task: polled meanwhile; NULL: just wait. */
static int ask_child(const struct outside_request *request, const struct child_task *task,
                     struct answer *answer)
{
    static const struct outside_request stop = {.kind = STOP};
    struct pollfd other = {.fd = outside.socket, .events = POLLIN};
    bool stopped = false;

    if (send(outside.socket, request, sizeof *request, MSG_NOSIGNAL) != sizeof *request)
        return fail(errno, "the helper process outside the sandbox is gone: %s",
                    fail_errno_text(errno));
    while (poll(&other, 1, TURN_MS) <= 0) {
        const bool stops = flag_get(&stop_asked) || (task && task->stop(task->context));
        if (stops && !stopped)
            stopped = send(outside.socket, &stop, sizeof stop, MSG_NOSIGNAL) == sizeof stop;
    }
    if (recv(outside.socket, answer, sizeof *answer, 0) != sizeof *answer)
        return fail(EPIPE, "the helper process outside the sandbox exited");
    answer->reason[REASON_BYTES - 1] = answer->text[CHILD_TEXT_BYTES - 1] = '\0';
    return answer->code ? fail(answer->code, "%s", answer->reason) : 0;
}

void outside_find_holders(struct holder *holders, size_t count)
{
    struct outside_request request = {.kind = FIND_HOLDERS, .count = (uint32_t)count};
    struct answer answer;

    assert(count <= OUTSIDE_FILES);
    if (!outside.is_there) {
        holders_find("/proc", holders, count);
        return;
    }
    memcpy(request.holders, holders, count * sizeof *holders);
    if (ask_child(&request, NULL, &answer) == 0)
        memcpy(holders, answer.holders, count * sizeof *holders);
}

int outside_run(const char *command, const struct child_task *task, struct child_result *result)
{
    struct outside_request request = {
        .kind = RUN_COMMAND, .wants_text = task->text != NULL, .timeout_ns = task->timeout_ns};
    struct answer answer;

    if (!outside.is_there)
        return run_here(command, task, result);
    while (request.count < outside.count && strcmp(outside.commands[request.count], command) != 0)
        request.count++;
    if (request.count == outside.count)
        return fail(EPERM, "'%s' was not registered before the sandbox was entered", command);
    int code = ask_child(&request, task, &answer);
    if (code == 0)
        *result = answer.result;
    if (task->text)
        memcpy(task->text, answer.text, CHILD_TEXT_BYTES);
    return code;
}

/* "start-end perms offset MAJOR:MINOR inode   path" (proc(5)). */
int holder_line_matches(const char *line, const struct holder *holder)
{
    unsigned device_major, device_minor;
    unsigned long long inode;
    int path_at = 0;

    if (sscanf(line, "%*x-%*x %*4s %*x %x:%x %llu %n", &device_major, &device_minor, &inode,
               &path_at) != 3 ||
        inode != holder->inode || inode == 0 || path_at == 0)
        return 0;
    if (makedev(device_major, device_minor) == holder->device)
        return 1;
    const char *name = file_name(line + path_at), *wanted = file_name(holder->path);
    size_t length = strlen(wanted);
    return length > 0 && strncmp(name, wanted, length) == 0 &&
           !isgraph((unsigned char)name[length]);
}

void holders_find(const char *proc_root, struct holder *holders, size_t count)
{
    struct folder_names names;
    char path[512], line[4352];
    size_t found = 0;

    folder_names_of(&names, proc_root);
    for (size_t i = 0; i < names.count && found < count; i++) {
        const char *pid = names.list[i];
        if (!isdigit((unsigned char)pid[0]))
            continue;
        snprintf(path, sizeof path, "%.200s/%.20s/maps", proc_root, pid);
        FILE *maps = file_stream_kernel(path);
        while (maps && fgets(line, sizeof line, maps))
            for (size_t k = 0; k < count; k++) {
                struct holder *holder = &holders[k];
                if (holder->pid || !holder_line_matches(line, holder))
                    continue;
                found++;
                holder->pid = atoi(pid);
                snprintf(path, sizeof path, "%.200s/%.20s/comm", proc_root, pid);
                file_read_begin(path, holder->command, sizeof holder->command);
                holder->command[strcspn(holder->command, "\n")] = '\0';
                if (!holder->command[0])
                    snprintf(holder->command, sizeof holder->command, "?");
            }
        if (maps)
            fclose(maps);
    }
    folder_names_release(&names);
}
