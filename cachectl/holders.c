/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/holders.h"

#include "base/file.h"
#include "base/folder.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

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

static FILE *open_of(const char *proc_root, const char *pid, const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%.200s/%.20s/%s", proc_root, pid, name);
    return file_stream_kernel(path);
}

static void name_process(const char *proc_root, const char *pid, struct holder *holder)
{
    FILE *file = open_of(proc_root, pid, "comm");

    holder->pid = atoi(pid);
    snprintf(holder->command, sizeof holder->command, "?");
    if (!file)
        return;
    if (fgets(holder->command, sizeof holder->command, file))
        holder->command[strcspn(holder->command, "\n")] = '\0';
    fclose(file);
}

static size_t search(const char *proc_root, const char *pid, struct holder *holders, size_t count)
{
    char line[4352];
    size_t found = 0;
    FILE *file = open_of(proc_root, pid, "maps");

    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < count; i++)
            if (holders[i].pid == 0 && holder_line_matches(line, &holders[i])) {
                name_process(proc_root, pid, &holders[i]);
                found++;
            }
    if (file)
        fclose(file);
    return found;
}

void holders_find(const char *proc_root, struct holder *holders, size_t count)
{
    struct folder_names names;
    size_t found = 0;

    folder_names_of(&names, proc_root);
    for (size_t i = 0; i < names.count && found < count; i++)
        if (isdigit((unsigned char)names.list[i][0]))
            found += search(proc_root, names.list[i], holders, count);
    folder_names_release(&names);
}
