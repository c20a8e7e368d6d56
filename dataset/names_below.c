/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/names_below.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/random.h"
#include "dataset/store.h"

#include <stdlib.h>
#include <string.h>

enum { FOLDER_DEPTH = 16 };

/* Sum the hashes of a folder's names, so their order does not matter. */
struct names_walk {
    const struct folder *root; /* NULL: not served by the kernel */
    struct names_below *found;
    const char *path, *below; /* of this folder: full path, and path from the root */
    uint64_t seed, sum;
    int depth;
    bool is_dated; /* hash sizes and times, too */
};

static uint64_t hash_status(uint64_t seed, const struct store_status *status)
{
    return random_hash(random_hash(seed, status->bytes, (uint64_t)status->mtime_ns),
                       (uint64_t)status->ctime_ns, 0);
}

static bool is_passed_over(const char *name, size_t length)
{
    static const char lock[] = "lock.mdb", draft[] = ".partial";
    const size_t end = sizeof draft - 1;

    return name[0] == '.' || (length == sizeof lock - 1 && memcmp(name, lock, length) == 0) ||
           (length > end && memcmp(name + length - end, draft, end) == 0);
}

static int add_name(void *context, const struct store_entry *entry)
{
    struct names_walk *into = context;
    const char *name = entry->name;

    if (is_passed_over(name, strlen(name)))
        return 0;
    uint64_t hash = random_hash_text(into->seed, name);
    if (into->is_dated && entry->kind == STORE_FILE) {
        struct store_status status;
        char *path = entry->status ? NULL : file_join(into->path, entry->name);
        const bool known = entry->status || (path && store_stat(path, &status) == 0);
        free(path);
        hash = known ? hash_status(hash, entry->status ? entry->status : &status) : hash;
    }
    if (entry->is_link) {
        char *below = into->root && !into->found->leave
                          ? file_format_path("%s%s%s", into->below, *into->below ? "/" : "", name)
                          : NULL;
        into->found->leave |= !below || !folder_is_beneath(into->root, below);
        free(below);
    } else if (entry->kind == STORE_FOLDER && into->depth + 1 < FOLDER_DEPTH) {
        char *path = file_join(into->path, name);
        char *below = file_format_path("%s%s%s", into->below, *into->below ? "/" : "", name);
        struct names_walk inner = {.root = into->root,
                                   .found = into->found,
                                   .path = path,
                                   .below = below,
                                   .seed = hash,
                                   .is_dated = into->is_dated,
                                   .depth = into->depth + 1};
        if (path && below)
            store_list(path, add_name, &inner);
        hash += inner.sum;
        free(path);
        free(below);
    }
    into->sum += random_mix(hash);
    return 0;
}

struct names_below names_below(const char *root)
{
    struct folder folder = {.fd = -1};
    struct names_below found = {0};
    bool local = store_is_local(root) && folder_open(&folder, root) == 0;
    struct names_walk whole = {
        .root = local ? &folder : NULL, .found = &found, .path = root, .below = "", .seed = 1};

    store_list(root, add_name, &whole);
    folder_close(&folder);
    found.hash = whole.sum;
    return found;
}

uint64_t names_below_identity(const char *root)
{
    struct names_below found = {.leave = true}; /* links are not looked at */
    struct names_walk whole = {
        .found = &found, .path = root, .below = "", .seed = 1, .is_dated = true};
    struct store_status status;

    if (store_stat(root, &status))
        return 0;
    if (status.kind == STORE_FILE)
        return hash_status(1, &status);
    store_list(root, add_name, &whole);
    return random_mix(whole.sum + 1);
}

bool names_below_has(const char *below)
{
    for (int depth = 0; depth < FOLDER_DEPTH; depth++) {
        size_t length = strcspn(below, "/");
        if (length == 0 || is_passed_over(below, length))
            return false;
        if (below[length] == '\0')
            return true;
        below += length + 1;
    }
    return false;
}

const char *names_below_path(const char *root, const char *path)
{
    size_t length = strlen(root);

    while (length > 1 && root[length - 1] == '/')
        length--;
    if (strncmp(root, path, length) != 0)
        return NULL;
    if (path[length] == '\0')
        return path + length;
    if (path[length] != '/' && root[length - 1] != '/')
        return NULL;
    path += length;
    while (*path == '/')
        path++;
    return path;
}

bool names_below_stays(const char *path)
{
    for (;;) {
        size_t length = strcspn(path, "/");
        if (length == 0 || (length == 1 && path[0] == '.') ||
            (length == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        if (path[length] == '\0')
            return true;
        path += length + 1;
    }
}
