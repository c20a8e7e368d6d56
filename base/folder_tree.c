/* SPDX-License-Identifier: Apache-2.0
 *
 * Removal of a tree: one walk only checks, a second removes. The second checks each name again, so
 * whatever appeared in between stays. */
#include "base/folder.h"

#include "base/fail.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TREE_DEPTH = 32 };

struct removal {
    folder_is_ours is_ours;
    void *context;
    bool remove; /* second walk */
};

/* Not by st_dev: on overlay a file has that of its layer, and its folder another. */
static bool is_mount(const struct folder *parent, const char *name)
{
    struct statx of;

    return statx(parent->fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &of) ||
           of.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static int check_entry(const struct removal *removal, const struct folder *parent, const char *name,
                       const char *below, const struct stat *status)
{
    const char *why = NULL;

    if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode))
        why = file_kind_text(status->st_mode);
    else if (S_ISREG(status->st_mode) && status->st_nlink > 1)
        why = "a file with a second name";
    else if (status->st_uid != geteuid())
        why = "a file of another user";
    else if (is_mount(parent, name))
        why = "on another file system";
    else if (removal->is_ours && !removal->is_ours(removal->context, below, status))
        why = "not made by this program";
    return why ? fail(EPERM, "%s/%s: is %s: it stays; remove it yourself", parent->path, name, why)
               : 0;
}

static int walk(const struct removal *removal, const struct folder *parent, const char *name,
                const char *below, int depth);

static int walk_folder(const struct removal *removal, const struct folder *parent, const char *name,
                       const char *below, int depth)
{
    struct folder_names names = {0};
    struct folder folder;
    int code = depth < TREE_DEPTH ? folder_open_below(&folder, parent, name)
                                  : fail(ELOOP, "%s/%s: more than %d folders deep: it stays",
                                         parent->path, name, TREE_DEPTH);

    if (code)
        return code;
    code = folder_names_read(&names, &folder);
    for (size_t i = 0; i < names.count; i++) {
        char *inner =
            code ? NULL : file_format_path("%s%s%s", below, *below ? "/" : "", names.list[i]);
        if (code == 0)
            code = inner ? walk(removal, &folder, names.list[i], inner, depth + 1) : -ENOMEM;
        free(inner);
    }
    folder_names_release(&names);
    folder_close(&folder);
    return code;
}

static int walk(const struct removal *removal, const struct folder *parent, const char *name,
                const char *below, int depth)
{
    struct stat status;
    int code = folder_stat(parent, name, &status);

    if (code == 0)
        code = check_entry(removal, parent, name, below, &status);
    if (code == 0 && S_ISDIR(status.st_mode))
        code = walk_folder(removal, parent, name, below, depth);
    if (code == 0 && removal->remove)
        code = folder_remove(parent, name, &status);
    return code;
}

int folder_remove_tree(const struct folder *parent, const char *name, folder_is_ours is_ours,
                       void *context)
{
    struct removal removal = {.is_ours = is_ours, .context = context};
    int code = walk(&removal, parent, name, "", 0);

    removal.remove = true;
    return code ? code : walk(&removal, parent, name, "", 0);
}
