/* SPDX-License-Identifier: Apache-2.0
 *
 * In version 2 a group with processes, except for the root, has no children with a memory limit
 * (cgroup-v2.rst, "No Internal Process Constraint"). So the group is created below our own if
 * possible, else beside it.
 */
#include "pipeline/evidence/memory_limit.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP_NAME "iobench.%d" /* of the PID */

/* Returns 0 or -errno without a reason. */
static int write_group(const char *group, const char *name, const char *text)
{
    struct folder folder;
    int code = folder_open(&folder, group);

    if (code)
        return code;
    int fd = folder_open_file(&folder, name, O_WRONLY, NULL);
    if (fd == -ENOENT)
        fd = folder_create_file(&folder, name); /* only in a test's tree; the kernel refuses */
    folder_close(&folder);
    if (fd < 0)
        return fd;
    code = write(fd, text, strlen(text)) < 0 ? -errno : 0;
    close(fd);
    return code;
}

/* Create or remove a group. */
static int change_group(const char *path, bool makes)
{
    struct folder parent;
    const char *name;
    int code = folder_open_parent(&parent, path, &name);

    if (code == 0)
        code = makes ? folder_make(&parent, name) : folder_remove(&parent, name, NULL);
    folder_close(&parent);
    return code;
}

static int move_to(const char *group)
{
    char pid[32];

    snprintf(pid, sizeof pid, "%d", (int)getpid());
    return write_group(group, "cgroup.procs", pid);
}

/* Remove empty groups left by processes that were killed. */
static void remove_orphans(const char *parent)
{
    struct folder folder;
    struct folder_names names = {0};
    int pid;

    if (folder_open(&folder, parent) == 0)
        folder_names_read(&names, &folder);
    for (size_t i = 0; i < names.count; i++)
        if (sscanf(names.list[i], GROUP_NAME, &pid) == 1 && kill(pid, 0) && errno == ESRCH)
            folder_remove(&folder, names.list[i], NULL);
    folder_names_release(&names);
    folder_close(&folder);
}

/* Create a child group of parent with the limit, and move this process into it. Returns 0, or
 * -errno without a reason, leaving nothing behind. */
static int make_below(struct memory_limit *limit, const char *parent, bool version1, uint64_t bytes)
{
    char number[32], words[512] = "";
    bool is_on = version1;
    int code = 0;

    if (!version1)
        file_peek(words, sizeof words, "%s/cgroup.subtree_control", parent);
    for (struct text text = text_of_string(words), each; !is_on && text_word(&text, &each);)
        is_on = text_is(each, "memory");
    if (!is_on)
        code = write_group(parent, "cgroup.subtree_control", "+memory");
    if (code)
        return code;
    remove_orphans(parent);
    snprintf(limit->group, sizeof limit->group, "%.2047s/" GROUP_NAME, parent, (int)getpid());
    code = change_group(limit->group, true);
    if (code)
        return code;
    snprintf(number, sizeof number, "%" PRIu64, bytes);
    code = write_group(limit->group, version1 ? "memory.limit_in_bytes" : "memory.max", number);
    if (code == 0 && !version1)
        write_group(limit->group, "memory.swap.max", "0"); /* absent without swap accounting */
    if (code == 0)
        code = move_to(limit->group);
    if (code)
        change_group(limit->group, false);
    return code;
}

int memory_limit_enter(struct memory_limit *limit, const struct telemetry_roots *roots,
                       uint64_t bytes)
{
    char parent[CONTROL_GROUP_BYTES], size[32];
    struct control_group own;

    *limit = (struct memory_limit){0};
    if (!control_group_find(&own, "memory", roots->proc, roots->sys))
        return fail(ENOENT, "--memory-limit: no control group counts memory");
    const bool version1 = own.version1;
    snprintf(limit->from, sizeof limit->from, "%s", own.folder);
    int code = make_below(limit, limit->from, version1, bytes);
    snprintf(parent, sizeof parent, "%s", limit->from);
    *strrchr(parent, '/') = '\0';
    if (code == 0 || (!version1 && make_below(limit, parent, version1, bytes) == 0))
        return 0;
    fail(-code,
         "--memory-limit %s: cannot create a control group in %s: %s; run as root, or in a group "
         "of your own: systemd-run --user --scope iobench ...",
         bytes_text(bytes, size, sizeof size), limit->from, fail_errno_text(code));
    *limit = (struct memory_limit){0};
    return code;
}

void memory_limit_leave(struct memory_limit *limit)
{
    if (!limit->from[0])
        return;
    move_to(limit->from);
    /* A joined thread may still be leaving the group. */
    for (int tries = 0; change_group(limit->group, false) == -EBUSY && tries < 1000; tries++)
        clock_sleep_ns(1000000);
    *limit = (struct memory_limit){0};
}
