/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths that match a pattern. Not by glob(3): glibc's aborts the program when out of memory.
 */
#include "base/folder.h"

#include "base/file.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct level {
    const char *pattern; /* of one component */
    struct folder_names names;
};

static int keep_match(void *context, const char *name, unsigned char type)
{
    struct level *level = context;

    (void)type;
    return fnmatch(level->pattern, name, FNM_PERIOD) == 0 ? folder_names_add(&level->names, name)
                                                          : 0;
}

/* A folder that is missing or unreadable has no match in it. */
static int list_matches(struct level *level, const char *path)
{
    struct folder folder;
    int code = folder_open(&folder, path);

    if (code == 0)
        code = folder_list(&folder, keep_match, level);
    folder_close(&folder);
    return code == -ENOENT || code == -ENOTDIR || code == -EACCES || code == -ELOOP ? 0 : code;
}

/* Find the first component with a wildcard and its length. */
static const char *find_wildcard(const char *pattern, size_t *bytes)
{
    const char *at = strpbrk(pattern, "*?[");

    while (at && at > pattern && at[-1] != '/')
        at--;
    *bytes = at ? strcspn(at, "/") : 0;
    return at;
}

/* The first `done` bytes of the pattern have no wildcard. */
static int add_matches(struct folder_names *found, const char *pattern, size_t done)
{
    size_t bytes;
    const char *wild = find_wildcard(pattern + done, &bytes);

    if (!wild)
        return file_exists(pattern) ? folder_names_add(found, pattern) : 0;
    const int before = (int)(wild - pattern);
    char path[PATH_MAX], component[NAME_MAX + 1];
    struct level level = {.pattern = component};
    if (bytes >= sizeof component || strlen(pattern) >= sizeof path)
        return 0; /* no name is that long */
    snprintf(component, sizeof component, "%.*s", (int)bytes, wild);
    snprintf(path, sizeof path, "%.*s", before, pattern);
    int code = list_matches(&level, before ? path : ".");
    for (size_t i = 0; code == 0 && i < level.names.count; i++) {
        const char *name = level.names.list[i];
        if (snprintf(path, sizeof path, "%.*s%s%s", before, pattern, name, wild + bytes) < PATH_MAX)
            code = add_matches(found, path, (size_t)before + strlen(name));
    }
    folder_names_release(&level.names);
    return code;
}

int folder_names_matching(struct folder_names *names, const char *pattern)
{
    *names = (struct folder_names){0};
    int code = add_matches(names, pattern, 0);

    if (code)
        folder_names_release(names);
    folder_names_sort(names);
    return code;
}
