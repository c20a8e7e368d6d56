/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/within.h"

#include "base/fail.h"
#include "dataset/store.h"

#include <stdlib.h>
#include <string.h>

bool within_is_same(const char *a, const char *b)
{
    struct store_status of_a, of_b;

    return store_is_local(a) == store_is_local(b) && store_stat(a, &of_a) == 0 &&
           store_stat(b, &of_b) == 0 && of_a.device == of_b.device && of_a.inode == of_b.inode;
}

/* Return where a path leads, as far as it exists: that, or a folder above it. NULL without memory.
 */
static char *existing_path(const char *path)
{
    char *copy = strdup(path), *real = NULL, *slash;

    while (copy && !(real = realpath(copy, NULL)) && (slash = strrchr(copy, '/')) && slash > copy)
        *slash = '\0';
    free(copy);
    return real ? real : realpath(*path == '/' ? "/" : ".", NULL);
}

bool within_folder(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    char *above = store_is_local(path) ? existing_path(path) : NULL, *slash;
    bool inside = within_is_same(above ? above : path, folder) ||
                  (!store_is_local(path) && strncmp(path, folder, length) == 0 &&
                   (path[length] == '/' || (length > 0 && folder[length - 1] == '/')));

    while (above && !inside && (slash = strrchr(above, '/')) && slash > above) {
        *slash = '\0';
        inside = within_is_same(above, folder);
    }
    if (above && !inside)
        inside = within_is_same("/", folder);
    free(above);
    fail_clear();
    return inside;
}
