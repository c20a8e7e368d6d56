/* SPDX-License-Identifier: Apache-2.0
 *
 * Version 2 lets a group that holds processes have no children with a memory limit, the root
 * excepted (cgroup-v2.rst, "No Internal Process Constraint"). So the group is made below our own
 * where that goes, else beside it.
 */
#include "pipeline/memory_limit.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/headroom.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP_NAME "iobench.%d" /* of the process's id */

/* 0 or a negative errno without a reason. */
static int put(const char *group, const char *name, const char *text)
{
    char path[640];

    snprintf(path, sizeof path, "%s/%s", group, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    int code = write(fd, text, strlen(text)) < 0 ? -errno : 0;
    close(fd);
    return code;
}

static int move_to(const char *group)
{
    char pid[32];

    snprintf(pid, sizeof pid, "%d", (int)getpid());
    return put(group, "cgroup.procs", pid);
}

static bool has_word(const char *words, const char *word)
{
    struct text text = text_of_string(words), each;

    while (text_word(&text, &each))
        if (text_is(each, word))
            return true;
    return false;
}

/* A run that was killed could not take its group away: an empty one whose process is gone. */
static void remove_orphans(const char *parent)
{
    DIR *folder = opendir(parent);
    char path[800];
    int pid;

    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (sscanf(entry->d_name, GROUP_NAME, &pid) == 1 && kill(pid, 0) && errno == ESRCH) {
            snprintf(path, sizeof path, "%.500s/%s", parent, entry->d_name);
            rmdir(path);
        }
    if (folder)
        closedir(folder);
}

/* A child of parent with the limit, and this process in it. 0 or a negative errno without a
 * reason; then nothing is left behind. */
static int make_below(struct memory_limit *limit, const char *parent, bool version1, uint64_t bytes)
{
    char number[32], words[512];
    int code = 0;

    if (!version1 && !(procfile_peek(words, sizeof words, "%s/cgroup.subtree_control", parent) &&
                       has_word(words, "memory")))
        code = put(parent, "cgroup.subtree_control", "+memory");
    if (code)
        return code;
    remove_orphans(parent);
    snprintf(limit->group, sizeof limit->group, "%.480s/" GROUP_NAME, parent, (int)getpid());
    if (mkdir(limit->group, 0755))
        return -errno;
    snprintf(number, sizeof number, "%" PRIu64, bytes);
    code = put(limit->group, version1 ? "memory.limit_in_bytes" : "memory.max", number);
    if (code == 0 && !version1)
        put(limit->group, "memory.swap.max", "0"); /* is not there without swap accounting */
    if (code == 0)
        code = move_to(limit->group);
    if (code)
        rmdir(limit->group);
    return code;
}

int memory_limit_enter(struct memory_limit *limit, const struct telemetry_roots *roots,
                       uint64_t bytes)
{
    char parent[512], size[32];
    struct headroom_group own;

    *limit = (struct memory_limit){0};
    if (!headroom_find_group(&own, roots->proc, roots->sys))
        return fail(ENOENT, "--memory-limit: no control group counts memory here");
    const bool version1 = own.version1;
    snprintf(limit->from, sizeof limit->from, "%s", own.folder);
    int code = make_below(limit, limit->from, version1, bytes);
    snprintf(parent, sizeof parent, "%s", limit->from);
    *strrchr(parent, '/') = '\0';
    if (code == 0 || (!version1 && make_below(limit, parent, version1, bytes) == 0))
        return 0;
    fail(-code,
         "--memory-limit %s: a control group cannot be made in %s: %s; run as root, or in a group "
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
    /* A thread that was joined may still be on its way out of the group. */
    for (int tries = 0; rmdir(limit->group) && errno == EBUSY && tries < 1000; tries++)
        clock_sleep_ns(1000000);
    *limit = (struct memory_limit){0};
}
