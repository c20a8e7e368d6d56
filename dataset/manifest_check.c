/* SPDX-License-Identifier: Apache-2.0
 *
 * Check whether a data set is complete. A mark in the folder that the path names, or in a folder
 * above it that can contain a shard of the set, means that it is incomplete. */
#include "dataset/manifest.h"

#include "base/fail.h"
#include "base/file.h"
#include "dataset/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    /* An image of plain files before its shard is committed: SET/DRAFT/SHARD/CLASS/IMAGE */
    LEVELS = 5,
    LOOKED_AT_BYTES = 256 << 20,
    LOOKED_AT_START = 16 << 10,
};

/* Anyone may put a mark above a data set, for example into /tmp, so only a mark made by the
 * folder's owner, root or this user counts there. Uses stat(2), so the folder need not be
 * readable. */
static bool mark_counts(const char *folder, const char *mark, int level)
{
    struct store_status above, found;

    if (level == 0)
        return true;
    return store_stat(folder, &above) == 0 && store_stat(mark, &found) == 0 &&
           found.kind == STORE_FILE && !(found.mode & S_IWOTH) &&
           (found.owner == 0 || found.owner == geteuid() || found.owner == above.owner);
}

static int fail_unfinished(const char *root, const char *mark)
{
    struct manifest manifest = {0};
    char *text = NULL;
    size_t bytes;
    int code = store_load(mark, LOOKED_AT_BYTES, &text, &bytes);

    if (code == 0)
        code = manifest_parse(&manifest, text, bytes, mark);
    if (code)
        code = fail(EINPROGRESS, "%s: data set not complete: rerun the pack that makes it", root);
    else
        code = fail(EINPROGRESS, "%s: data set not complete: %u of %u shards finished; %s%.700s",
                    root, manifest.finished, manifest.shards,
                    manifest.command ? "complete it: " : "rerun the pack that makes it",
                    manifest.command ? manifest.command : "");
    manifest_release(&manifest);
    free(text);
    return code;
}

static int check_folder(const char *root, const char *folder, int level)
{
    char *mark = file_join(folder, MANIFEST_UNFINISHED), *set = file_join(folder, MANIFEST_SET);
    int code = mark && set ? 0 : -ENOMEM;

    if (code == 0 && store_exists(mark) && !store_exists(set) && mark_counts(folder, mark, level))
        code = fail_unfinished(root, mark);
    free(mark);
    free(set);
    return code;
}

/* Remove the last component of path. Returns false when nothing is left above it. */
static bool go_up(char *path)
{
    char *slash = strrchr(path, '/');

    if (!slash || slash == path)
        return false;
    *slash = '\0';
    return true;
}

/* Return the real path of root, or a server's path unchanged; NULL if it does not exist. free()
 * it. */
static char *place_of(const char *root)
{
    if (store_is_local(root))
        return realpath(root, NULL);
    char *path = strdup(root);
    for (size_t length = path ? strlen(path) : 0; length > 0 && path[length - 1] == '/';)
        path[--length] = '\0';
    return path;
}

int manifest_check_complete(const char *root)
{
    char *folder = place_of(root);
    bool go_on = folder && (store_is_folder(folder) || go_up(folder));
    int levels = store_is_local(root) ? LEVELS : 1, code = 0;

    for (int level = 0; code == 0 && go_on && level < levels; level++) {
        code = check_folder(root, folder, level);
        go_on = go_up(folder);
    }
    free(folder);
    /* A missing file is not an error here. */
    if (code == 0)
        fail_clear();
    return code;
}

/* The process that begins a set writes this line, so it is near the start. */
static bool says_synthetic(const char *path)
{
    char text[LOOKED_AT_START + 1];
    struct store_file *file;

    if (store_open(path, STORE_READ, &file))
        return false;
    ssize_t bytes = store_read_at(file, text, LOOKED_AT_START, 0);
    store_close(file, false);
    text[bytes > 0 ? bytes : 0] = '\0';
    return strstr(text, "\n" MANIFEST_SYNTHETIC "\n");
}

bool manifest_is_synthetic(const char *root)
{
    char *folder = place_of(root);
    bool is_there = folder && (store_is_folder(folder) || go_up(folder));
    char *path = is_there ? file_join(folder, MANIFEST_SET) : NULL;
    const bool is_synthetic = path && store_exists(path) && says_synthetic(path);

    free(path);
    free(folder);
    fail_clear();
    return is_synthetic;
}
