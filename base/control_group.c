/* SPDX-License-Identifier: Apache-2.0 */
#include "base/control_group.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

static void read_of(const char *folder, const char *name, char *text, size_t bytes)
{
    char path[CONTROL_GROUP_BYTES + 64];

    snprintf(path, sizeof path, "%s/%.60s", folder, name);
    file_read_begin(path, text, bytes);
}

/* "4:cpu,cpuacct:/path"; in version 2 "0::/path". controller NULL: version 2. */
static bool find_path(const char *proc, const char *controller, char *path, size_t path_bytes)
{
    char text[16384], *lines = text, *line;
    bool found = false;

    read_of(proc, "self/cgroup", text, sizeof text);
    while (!found && lines && (line = strsep(&lines, "\n")) && lines) {
        char *controllers = strchr(line, ':');
        char *place = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!place || strlen(place) > path_bytes) /* longer paths cannot be used */
            continue;
        *place++ = '\0';
        char *rest = controllers + 1, *word;
        found = !controller && !*rest;
        while (controller && !found && (word = strsep(&rest, ",")))
            found = strcmp(word, controller) == 0;
        if (found)
            snprintf(path, path_bytes, "%s", strcmp(place, "/") ? place : "");
    }
    return found;
}

bool control_group_find(struct control_group *group, const char *controller, const char *proc,
                        const char *sys)
{
    char path[CONTROL_GROUP_BYTES - sizeof group->root];

    group->version1 = find_path(proc, controller, path, sizeof path);
    if (!group->version1 && !find_path(proc, NULL, path, sizeof path))
        return false;
    snprintf(group->root, sizeof group->root, "%.400s/fs/cgroup%s%.32s", sys,
             group->version1 ? "/" : "", group->version1 ? controller : "");
    snprintf(group->folder, sizeof group->folder, "%s%s", group->root, path);
    if (strstr(path, "/..") || !file_is_folder(group->folder))
        snprintf(group->folder, sizeof group->folder, "%s", group->root);
    return true;
}

bool control_group_up(struct control_group *group)
{
    if (strlen(group->folder) <= strlen(group->root))
        return false;
    *strrchr(group->folder, '/') = '\0';
    return true;
}

/* The numbers that a file begins with; those that are missing, or words ("max"), stay 0. */
static void read_numbers(const char *folder, const char *name, double *one, double *two)
{
    char text[128];

    read_of(folder, name, text, sizeof text);
    *one = 0;
    if (sscanf(text, two ? "%lf %lf" : "%lf", one, two) < 1)
        *one = 0;
}

unsigned control_group_cpus(const char *proc, const char *sys)
{
    static const double most = 1 << 20;
    struct control_group group;
    double least = most;

    if (!control_group_find(&group, "cpu", proc, sys))
        return 0;
    do {
        double quota, period = 0;
        if (group.version1) {
            read_numbers(group.folder, "cpu.cfs_quota_us", &quota, NULL);
            read_numbers(group.folder, "cpu.cfs_period_us", &period, NULL);
        } else {
            read_numbers(group.folder, "cpu.max", &quota, &period);
        }
        if (quota > 0 && period > 0 && quota / period < least)
            least = quota / period;
    } while (control_group_up(&group));
    return least == most ? 0 : least >= 1 ? (unsigned)least : 1;
}
