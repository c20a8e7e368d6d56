/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/target.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "dataset/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int target_open(struct target *target, const char *path, const struct plugin_choice *format,
                uint32_t shards)
{
    *target = (struct target){.path = path, .shards = shards};
    target->shard_paths = memory_array(shards, sizeof *target->shard_paths);
    target->finished = memory_array(shards, sizeof *target->finished);
    if (!target->shard_paths || !target->finished)
        return -ENOMEM;
    for (uint32_t i = 0; i < shards; i++) {
        int code = format_of(format->plugin)->shard_path(path, i, shards, &target->shard_paths[i]);
        if (code < 0)
            return code;
    }
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    target->inside =
        strncmp(target->shard_paths[0], path, length) == 0 &&
        strspn(target->shard_paths[0] + length, "/") != strlen(target->shard_paths[0] + length);
    target->manifest_path = file_format_path(
        target->inside ? "%.*s/.iobench-unfinished" : "%.*s.unfinished", (int)length, path);
    return target->manifest_path ? 0 : -ENOMEM;
}

void target_release(struct target *target)
{
    for (uint32_t i = 0; target->shard_paths && i < target->shards; i++)
        free(target->shard_paths[i]);
    free(target->shard_paths);
    free(target->finished);
    free(target->manifest_path);
    *target = (struct target){0};
}

static int take_name(void *context, const struct store_entry *entry)
{
    char **found = context;

    if (strcmp(entry->name, "lost+found") == 0)
        return 0;
    *found = strdup(entry->name);
    return 1;
}

/* A name in the folder that is not there by itself on every file system; NULL when it is empty.
 * free() it. */
static char *first_name(const char *folder)
{
    char *found = NULL;

    store_list(folder, take_name, &found);
    return found;
}

int target_check_free(const struct target *target)
{
    if (!store_exists(target->path))
        return 0;
    if (!store_is_folder(target->path))
        return fail(EEXIST, "%s: is a file; name a folder for the data set", target->path);
    char *name = first_name(target->path);
    if (!name)
        return 0;
    int code = fail(EEXIST, "%s: is not empty (%s); --force replaces a data set that is there",
                    target->path, name);
    free(name);
    return code;
}

/* ---- replacing a data set ---- */

static int ignore_fault(void *context, const struct catalog_fault *fault)
{
    (void)context, (void)fault;
    return 0;
}

static void remove_beside(const char *shard, const char *end, const char *other)
{
    size_t length = strlen(shard), end_length = strlen(end);

    if (length < end_length || strcmp(shard + length - end_length, end) != 0)
        return;
    char *path = file_format_path("%.*s%s", (int)(length - end_length), shard, other);
    if (path)
        store_discard(path);
    free(path);
}

static int remove_shards(const char *path, const struct plugin *format)
{
    struct plugin_choice choice;
    struct format_scan scan = {.fault = ignore_fault};
    struct catalog *catalog = NULL;
    int code = plugin_choose("format", format_registry, format->name, &choice);

    if (code == 0)
        code = format_catalog(&choice, path, false, &scan, &catalog);
    for (uint32_t i = 0; code == 0 && i < catalog->shard_count; i++) {
        const char *shard = catalog->shards[i].path;
        code = store_remove(shard);
        code = code == -ENOENT ? 0 : code;
        remove_beside(shard, ".rec", ".idx");
        remove_beside(shard, "", ".idx");
        remove_beside(shard, "data.mdb", "lock.mdb");
    }
    catalog_destroy(catalog);
    plugin_release(&choice);
    return code;
}

int target_clear(const struct target *target)
{
    char *sidecar = file_join(target->path, ".iobench-index");

    if (sidecar)
        store_discard(sidecar);
    free(sidecar);
    store_discard(target->manifest_path);
    target_remove_drafts(target);
    if (target_check_free(target) == 0)
        return 0;
    const struct plugin *format = format_detect(target->path);
    if (!format)
        return fail(EEXIST, "%s: is not empty and no data set: remove what is in it", target->path);
    int code = remove_shards(target->path, format);
    if (code)
        return code;
    store_remove_tree(target->path, false); /* folders that are empty now */
    /* What else is there stays, unless the folder itself is to be put in its place. */
    char *name = target->inside ? NULL : first_name(target->path);
    if (name)
        code =
            fail(ENOTEMPTY, "%s: holds more than a data set (%s): remove it", target->path, name);
    free(name);
    return code;
}

void target_remove_drafts(const struct target *target)
{
    for (uint32_t i = 0; i < target->shards; i++) {
        char *draft =
            target->finished[i] ? NULL : file_format_path("%s.partial", target->shard_paths[i]);
        if (draft && store_exists(draft)) /* a name of ours; a folder where shards are folders */
            store_remove_tree(draft, true);
        free(draft);
    }
}

int target_check_room(const struct target *target, uint64_t bytes)
{
    char wanted[32], there[32];
    uint64_t free_bytes = 0;
    int code = store_free_bytes(target->path, &free_bytes);

    if (code == 0 && free_bytes < bytes)
        code = fail(ENOSPC, "%s: needs about %s, and %s are free there", target->path,
                    bytes_text(bytes, wanted, sizeof wanted),
                    bytes_text(free_bytes, there, sizeof there));
    return code;
}
