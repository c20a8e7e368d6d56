/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/shard_list.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "dataset/store.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

bool shard_list_ends(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);

    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

int shard_list_numbered(const char *name, uint64_t *number, uint64_t *of)
{
    /* Find the last "-of-" with digits on both sides. */
    const char *found = NULL;

    for (const char *at = name; (at = strstr(at, "-of-")); at++)
        if (at > name && isdigit((unsigned char)at[-1]) && isdigit((unsigned char)at[4]))
            found = at;
    if (!found)
        return -1;
    const char *digits = found;
    while (digits > name && isdigit((unsigned char)digits[-1]))
        digits--;
    if (digits == name || digits[-1] != '-' || found - digits > 9)
        return -1;
    const char *behind = found + 4;
    while (isdigit((unsigned char)*behind))
        behind++;
    if ((*behind != '\0' && *behind != '.') || behind - (found + 4) > 9)
        return -1;
    *number = strtoull(digits, NULL, 10);
    *of = strtoull(found + 4, NULL, 10);
    return (int)(digits - 1 - name);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_path(struct shard_list *list, char *path)
{
    if (!path)
        return -ENOMEM;
    if (list->count == UINT32_MAX ||
        memory_room(&list->paths, list->count, sizeof *list->paths, "shards")) {
        free(path);
        return -ENOMEM;
    }
    list->paths[list->count++] = path;
    return 0;
}

bool shard_list_never(const char *name)
{
    static const char *const ends[] = {".partial", ".idx",           ".lst",
                                       ".json",    ".iobench-index", ".iobench-hints"};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (shard_list_ends(name, ends[i]))
            return true;
    return name[0] == '.';
}

struct choosing {
    struct shard_list *list;
    const char *root, *match;
    bool (*wanted)(const char *name);
};

static int add_entry(void *context, const struct store_entry *entry)
{
    const struct choosing *choosing = context;
    const char *name = entry->name, *match = choosing->match;

    if (entry->kind == STORE_FOLDER || shard_list_never(name) ||
        (match ? fnmatch(match, name, 0) != 0 : !choosing->wanted(name)))
        return 0;
    return add_path(choosing->list, file_join(choosing->root, name));
}

/* Return whether another path, cut before one of the dots of this name, is in the list. A number
 * behind the dot is that of a shard. */
static bool is_companion(const struct shard_list *list, const char *path)
{
    char *cut = strdup(path), *base = cut ? strrchr(cut, '/') : NULL, *dot;
    bool found = false;

    while (base && !found && (dot = strrchr(base, '.'))) {
        *dot = '\0';
        found = !isdigit((unsigned char)dot[1]) &&
                bsearch(&cut, list->paths, list->count, sizeof *list->paths, compare_paths);
    }
    free(cut);
    return found;
}

int shard_list_open(struct shard_list *list, const char *root, const char *match,
                    bool (*wanted)(const char *name))
{
    struct choosing choosing = {.list = list, .root = root, .match = match, .wanted = wanted};
    struct store_status status;

    *list = (struct shard_list){0};
    int code = store_stat(root, &status);
    if (code)
        return code;
    if (status.kind != STORE_FOLDER) {
        char *path = strdup(root);
        return path ? add_path(list, path) : fail(ENOMEM, "out of memory for a path");
    }
    code = store_list(root, add_entry, &choosing);
    if (code)
        return code;
    if (list->count == 0)
        return match ? fail(ENOENT, "%s: no shard in it whose name matches '%s'", root, match)
                     : fail(ENOENT, "%s: no shard of this format in it", root);
    qsort(list->paths, list->count, sizeof list->paths[0], compare_paths);
    /* Leave companions out of the sorted paths: the shards that they are of come before them. */
    const uint32_t count = list->count;
    list->count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!is_companion(list, list->paths[i]))
            list->paths[list->count++] = list->paths[i];
        else if (list->companion_count++ == 0)
            list->companion = list->paths[i];
        else
            free(list->paths[i]);
    /* Numbered shards must be one complete set. The paths are sorted, so the numbers of a set
     * ascend if written with leading zeros, as every tool does. */
    uint64_t expected = 0, first_of = 0;
    const char *first = NULL;
    int prefix = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const char *name = file_name(list->paths[i]);
        uint64_t number, of;
        int length = shard_list_numbered(name, &number, &of);
        if (length < 0)
            continue;
        if (!first) {
            first = name;
            first_of = of;
            prefix = length;
        } else if (of != first_of || length != prefix ||
                   strncmp(name, first, (size_t)prefix) != 0) {
            return fail(EINVAL,
                        "%s: holds shards of more than one set (%s and %s); choose one "
                        "with the format's option match=%.*s*",
                        root, first, name, prefix, first);
        }
        if (number > expected)
            break;
        if (number < expected || number >= of)
            return fail(EINVAL, "%s: its number is not within its set", list->paths[i]);
        expected++;
    }
    if (first && expected != first_of)
        return fail(ENOENT, "%s: shard %.*s-%05llu-of-%05llu is missing; the set is not complete",
                    root, prefix, first, (unsigned long long)expected,
                    (unsigned long long)first_of);
    return 0;
}

void shard_list_release(struct shard_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    free(list->companion);
    *list = (struct shard_list){0};
}

size_t shard_list_peek(const char *root, bool (*wanted)(const char *name), void *start,
                       size_t bytes, bool *is_named)
{
    struct shard_list list;
    size_t got = 0;

    /* A missing shard or a second set does not matter here; only the list does. */
    shard_list_open(&list, root, NULL, wanted);
    *is_named = list.count > 0 && wanted(file_name(list.paths[0]));
    if (list.count > 0)
        got = store_peek(list.paths[0], start, bytes);
    shard_list_release(&list);
    return got;
}
