/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/apart.h"

#include "base/fail.h"
#include "base/file.h"
#include "dataset/manifest.h"
#include "dataset/sidecar.h"
#include "formats/format.h"
#include "formats/shard_list.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* In a folder with data of that format; below it only images count. */
static bool takes(const struct format_ops *format, const char *name, bool is_below)
{
    return format->takes && (!is_below || format->records_are_images) && !shard_list_never(name) &&
           format->takes(name);
}

static bool any_takes(const char *name)
{
    for (const struct plugin *const *row = format_registry; *row; row++)
        if (takes(format_of(*row), name, false))
            return true;
    return false;
}

/* Was the folder made by 'iobench pack', or indexed? */
static bool is_marked(const char *folder)
{
    static const char *const names[] = {MANIFEST_SET, MANIFEST_UNFINISHED};
    char *path = sidecar_path(folder, SIDECAR_BESIDE);
    bool is_there = path && file_exists(path);

    free(path);
    for (int i = 0; i < 2 && !is_there; i++) {
        path = file_join(folder, names[i]);
        is_there = path && file_exists(path);
        free(path);
    }
    return is_there;
}

static int check_folder(const char *folder, const char *name, bool is_below, const char *path)
{
    const struct plugin *format = format_detect(folder);

    if (!format)
        fail_clear(); /* unfinished, or of a format that an option names: of any */
    if (format ? !takes(format_of(format), name, is_below) : is_below || !any_takes(name))
        return 0;
    return fail(EINVAL,
                "%s: is inside the data set %s, of which it would become a part; name a file "
                "outside, or another suffix",
                path, folder);
}

int format_check_apart(const char *path, const char *set)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char known[PATH_MAX] = "", folder[PATH_MAX];
    char *parent = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int code = parent ? 0 : fail(ENOMEM, "out of memory");

    if (code || !any_takes(name) || !realpath(parent, folder)) {
        free(parent);
        return code; /* without a folder, writing fails and says why */
    }
    free(parent);
    if (!set || !realpath(set, known))
        known[0] = '\0';
    for (bool is_below = false; code == 0 && folder[0]; is_below = true) {
        if (strcmp(folder, known) == 0 || is_marked(folder))
            code = check_folder(folder, name, is_below, path);
        *strrchr(folder, '/') = '\0';
    }
    return code;
}
