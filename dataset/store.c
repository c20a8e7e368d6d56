/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/store.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/option.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TREE_DEPTH = 32 };

static uint64_t timeout = UINT64_C(60000000000);

void store_set_timeout(uint64_t timeout_ns)
{
    timeout = timeout_ns;
}

uint64_t store_timeout(void)
{
    return timeout;
}

const struct store_ops *store_of(const char *path)
{
    const struct store_ops *const *row = store_registry;

    while (strncmp(path, (*row)->scheme, strlen((*row)->scheme)) != 0)
        row++;
    return *row; /* the last row accepts every path */
}

/* Return the storage of path; NULL with a reason if this build lacks it, or it cannot be written.
 */
static const struct store_ops *find(const char *path, bool writes)
{
    const struct store_ops *ops = store_of(path);

    if (!ops->missing && (!writes || ops->rename))
        return ops;
    if (ops->missing)
        fail(ENOTSUP, "%s: %s", path, ops->missing);
    else
        fail(ENOTSUP, "%s: %s is read-only", path, ops->scheme);
    return NULL;
}

bool store_is_local(const char *path)
{
    return store_of(path)->scheme[0] == '\0';
}

int store_check(const char *path)
{
    return find(path, false) ? 0 : -ENOTSUP;
}

/* ---- names ---- */

int store_stat(const char *path, struct store_status *status)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+.-";
    const struct store_ops *ops = find(path, false);
    const size_t length = strspn(path, letters);
    int code = ops ? ops->stat(path, status) : -ENOTSUP;

    /* "s3://bucket", which as a local path would be a folder "s3:". */
    if (code != -ENOENT || !store_is_local(path) || length == 0 ||
        strncmp(path + length, "://", 3) != 0)
        return code;
    struct nearest nearest = nearest_start(path);
    for (const struct store_ops *const *row = store_registry; (*row)->scheme[0]; row++)
        nearest_offer(&nearest, (*row)->scheme);
    return fail(EINVAL,
                "%s: no client for this kind of storage (known: %s); mount it and give the folder",
                path, nearest.known);
}

bool store_exists(const char *path)
{
    struct store_status status;

    return store_stat(path, &status) == 0;
}

bool store_is_folder(const char *path)
{
    struct store_status status;

    return store_stat(path, &status) == 0 && status.kind == STORE_FOLDER;
}

int store_list(const char *path, store_visit visit, void *context)
{
    const struct store_ops *ops = find(path, false);

    return ops ? ops->list(path, visit, context) : -ENOTSUP;
}

int store_rename(const char *from, const char *to)
{
    const struct store_ops *ops = find(from, true);

    assert(store_of(from) == store_of(to));
    return ops ? ops->rename(from, to) : -ENOTSUP;
}

int store_remove(const char *path)
{
    const struct store_ops *ops = find(path, true);

    return ops ? ops->remove(path) : -ENOTSUP;
}

bool store_is_same(const char *a, const char *b)
{
    struct store_status of_a, of_b;

    return store_is_local(a) == store_is_local(b) && store_stat(a, &of_a) == 0 &&
           store_stat(b, &of_b) == 0 && of_a.device == of_b.device && of_a.inode == of_b.inode;
}

bool store_is_within(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    char *copy = store_is_local(path) ? strdup(path) : NULL, *above = NULL, *slash;

    /* Where the path leads, as far as it exists: that, or a folder above it. */
    while (copy && !(above = realpath(copy, NULL)) && (slash = strrchr(copy, '/')) && slash > copy)
        *slash = '\0';
    free(copy);
    if (!above && store_is_local(path))
        above = realpath(*path == '/' ? "/" : ".", NULL);
    bool inside = store_is_same(above ? above : path, folder) ||
                  (!store_is_local(path) && strncmp(path, folder, length) == 0 &&
                   (path[length] == '/' || (length > 0 && folder[length - 1] == '/')));
    while (above && !inside && (slash = strrchr(above, '/')) && slash > above) {
        *slash = '\0';
        inside = store_is_same(above, folder);
    }
    if (above && !inside)
        inside = store_is_same("/", folder);
    free(above);
    fail_clear();
    return inside;
}

/* ---- folders ---- */

/* Return the folder that contains path, to free(): "" for a root, a server and a relative name.
 * NULL with a reason. */
static char *parent_of(const char *path)
{
    size_t length = strlen(path), scheme = strlen(store_of(path)->scheme);

    while (length > 0 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *folder = strndup(path, length > scheme || !scheme ? length : 0);
    if (!folder)
        fail(ENOMEM, "out of memory for a path");
    return folder;
}

int store_make_folders(const char *path)
{
    const struct store_ops *ops = find(path, true);
    struct store_status status;

    if (!ops)
        return -ENOTSUP;
    int code = store_stat(path, &status);
    if (code == 0)
        return status.kind == STORE_FOLDER ? 0
                                           : fail(ENOTDIR, "%s: exists and is not a folder", path);
    if (code != -ENOENT)
        return code;
    code = store_make_parent(path);
    if (code == 0)
        code = ops->make_folder(path);
    return code == -EEXIST ? 0 : code; /* another thread created it first */
}

int store_make_parent(const char *path)
{
    char *folder = parent_of(path);
    int code = !folder ? -ENOMEM : *folder ? store_make_folders(folder) : 0;

    free(folder);
    return code;
}

int store_free_bytes(const char *path, uint64_t *bytes)
{
    const struct store_ops *ops = find(path, true);

    if (!ops)
        return -ENOTSUP;
    int code = ops->free_bytes(path, bytes);
    if (code != -ENOENT)
        return code;
    char *folder = parent_of(path);
    code = !folder                ? -ENOMEM
           : *folder              ? store_free_bytes(folder, bytes)
           : store_is_local(path) ? ops->free_bytes(".", bytes)
                                  : code;
    free(folder);
    return code;
}

/* Removing entries while listing may skip names, so collect the names first. */
struct dir_entries {
    char **list;
    size_t count;
};

static int keep_name(void *context, const struct store_entry *entry)
{
    struct dir_entries *entries = context;
    bool is_folder = entry->kind == STORE_FOLDER && !entry->is_link;

    if (memory_room(&entries->list, entries->count, sizeof *entries->list, "names"))
        return -ENOMEM;
    entries->list[entries->count] = file_format_path("%c%s", is_folder ? 'd' : 'f', entry->name);
    return entries->list[entries->count++] ? 0 : -ENOMEM;
}

static int remove_below(const char *path, int depth)
{
    struct dir_entries entries = {0};
    int code = depth < TREE_DEPTH ? store_list(path, keep_name, &entries)
                                  : fail(ELOOP, "%s: more than %d folders deep", path, TREE_DEPTH);

    for (size_t i = 0; i < entries.count; i++) {
        const char *name = entries.list[i];
        char *below = code ? NULL : file_join(path, name + 1);
        if (below && name[0] == 'd')
            code = remove_below(below, depth + 1);
        else if (below)
            code = store_remove(below);
        free(below);
        free(entries.list[i]);
    }
    free(entries.list);
    return code ? code : store_remove(path);
}

/* A server has no folder handles, so this works on paths. */
int store_remove_tree(const char *path)
{
    struct folder parent;
    const char *name;

    if (!store_is_local(path))
        return remove_below(path, 0);
    int code = folder_open_parent(&parent, path, &name);
    if (code)
        return code;
    code = name ? folder_remove_tree(&parent, name, NULL, NULL)
                : fail(EINVAL, "%s: cannot remove", path);
    folder_close(&parent);
    return code;
}

/* ---- open files ---- */

int store_open(const char *path, enum store_access access, struct store_file **file)
{
    const struct store_ops *ops = find(path, access != STORE_READ);

    *file = NULL;
    if (!ops)
        return -ENOTSUP;
    char *kept = strdup(path);
    int code = kept ? ops->open(path, access, file) : fail(ENOMEM, "out of memory for a path");
    if (code) {
        free(kept);
        *file = NULL;
        return code;
    }
    (*file)->ops = ops;
    (*file)->path = kept;
    if ((*file)->status.kind == STORE_FILE)
        return 0;
    code = fail(EINVAL, "%s: not a regular file", path);
    store_close(*file, false);
    *file = NULL;
    return code;
}

int store_trusted(const struct store_file *file, const char *root)
{
    struct store_status status;
    int code = store_stat(root, &status);

    if (code)
        return code;
    const struct stat kept = {.st_uid = file->status.owner, .st_mode = file->status.mode};
    const struct stat data = {.st_uid = status.owner};
    return file_trusted(&kept, &data, file->path);
}

ssize_t store_read_at(struct store_file *file, void *buffer, size_t bytes, uint64_t offset)
{
    return file->ops->read_at(file, buffer, bytes, offset);
}

int store_write_at(struct store_file *file, const void *buffer, size_t bytes, uint64_t offset)
{
    return file->ops->write_at(file, buffer, bytes, offset);
}

void store_advise(struct store_file *file, uint64_t offset, uint64_t bytes)
{
    if (file->ops->advise)
        file->ops->advise(file, offset, bytes);
}

uint64_t store_next_data(struct store_file *file, uint64_t offset)
{
    return file->ops->next_data ? file->ops->next_data(file, offset) : offset;
}

int store_close(struct store_file *file, bool sync)
{
    if (!file)
        return 0;
    int code = file->ops->close(file, sync);
    free(file->path);
    free(file);
    return code;
}

size_t store_peek(const char *path, void *buffer, size_t bytes)
{
    struct store_file *file;
    ssize_t got = store_open(path, STORE_READ, &file) ? 0 : store_read_at(file, buffer, bytes, 0);

    store_close(file, false);
    return got > 0 ? (size_t)got : 0;
}

int store_load(const char *path, size_t limit, char **text, size_t *bytes)
{
    struct store_file *file;
    int code = store_open(path, STORE_READ, &file);

    if (code)
        return code;
    size_t size = (size_t)file->status.bytes;
    if (file->status.bytes > limit) {
        store_close(file, false);
        return fail(EFBIG, "%s: larger than %zu bytes", path, limit);
    }
    *text = malloc(size + 1);
    ssize_t got =
        *text ? store_read_at(file, *text, size, 0) : fail(ENOMEM, "%s: out of memory", path);
    store_close(file, false);
    if (got < 0) {
        free(*text);
        return (int)got;
    }
    (*text)[got] = '\0';
    *bytes = (size_t)got;
    return 0;
}

/* ---- drafts ---- */

int store_draft(const char *path, struct store_file **file)
{
    const struct store_ops *ops = find(path, true);
    char *kept = strdup(path);
    int code = !ops    ? -ENOTSUP
               : !kept ? fail(ENOMEM, "out of memory for a path")
                       : ops->draft(path, file);

    if (code) {
        free(kept);
        return code;
    }
    (*file)->ops = ops;
    (*file)->path = kept;
    return 0;
}

int store_settle(struct store_file *file, int code)
{
    if (code)
        fail_hold();
    const int settled = file->ops->settle(file, code == 0);
    if (code)
        fail_release();
    free(file->path);
    free(file);
    return code ? code : settled;
}

/* ---- files served by the kernel ---- */

struct local_file {
    struct store_file file;
    int fd;
    struct file_draft draft; /* draft.fd is fd */
};

static int fd_of(const struct store_file *file)
{
    return ((const struct local_file *)(const void *)file)->fd;
}

static int local_fail(const char *what, const char *path)
{
    return fail(errno, "%s: %s: %s", path, what, fail_errno_text(errno));
}

struct store_status store_status_of(const struct stat *found)
{
    return (struct store_status){
        .kind = store_kind_of(found->st_mode),
        .bytes = (uint64_t)found->st_size,
        .mtime_ns =
            store_time_ns((uint64_t)found->st_mtim.tv_sec, (uint64_t)found->st_mtim.tv_nsec),
        .ctime_ns =
            store_time_ns((uint64_t)found->st_ctim.tv_sec, (uint64_t)found->st_ctim.tv_nsec),
        .device = found->st_dev,
        .inode = found->st_ino,
        .owner = found->st_uid,
        .mode = found->st_mode,
    };
}

static int local_stat(const char *path, struct store_status *status)
{
    struct stat found;

    if (stat(path, &found))
        return fail(errno, "%s: %s", path, fail_errno_text(errno));
    *status = store_status_of(&found);
    return 0;
}

/* ---- folders ---- */

struct local_listing {
    struct folder folder;
    store_visit visit;
    void *context;
};

static int visit_one(void *context, const char *name, unsigned char type)
{
    const struct local_listing *listing = context;
    struct store_entry entry = {.name = name, .kind = STORE_OTHER, .is_link = type == DT_LNK};
    struct stat status;

    if (type == DT_REG || type == DT_DIR)
        entry.kind = type == DT_REG ? STORE_FILE : STORE_FOLDER;
    else if (type == DT_LNK && fstatat(listing->folder.fd, name, &status, 0) == 0)
        entry.kind = store_kind_of(status.st_mode); /* else a dangling link */
    return listing->visit(listing->context, &entry);
}

static int local_list(const char *path, store_visit visit, void *context)
{
    struct local_listing listing = {.visit = visit, .context = context};
    int code = folder_open(&listing.folder, path);

    if (code == 0)
        code = folder_list(&listing.folder, visit_one, &listing);
    folder_close(&listing.folder);
    return code;
}

/* ---- open files ---- */

/* A name and its folder. The folder's path is the user's own; the name is opened without following
 * links. */
struct local_place {
    struct folder folder;
    char *name;
};

static int place_find(struct local_place *place, const char *path)
{
    size_t length = strlen(path);
    const char *name = NULL;

    while (length > 1 && path[length - 1] == '/')
        length--;
    char *copy = strndup(path, length);
    int code = copy ? folder_open_parent(&place->folder, copy, &name)
                    : fail(ENOMEM, "out of memory for a path");
    place->name = name ? strdup(name) : NULL;
    free(copy);
    if (code == 0 && !place->name)
        code = fail(name ? ENOMEM : EINVAL, "%s: expected the path of a file or folder", path);
    return code;
}

static void place_release(struct local_place *place)
{
    folder_close(&place->folder);
    free(place->name);
}

static int local_open(const char *path, enum store_access access, struct store_file **file)
{
    struct local_file *local = memory_zeroed(sizeof *local);
    struct stat found;
    int code = 0, fd = -ENOENT;

    if (!local)
        return -ENOMEM;
    if (access == STORE_READ) {
        fd = file_open(path, O_RDONLY | FILE_NOATIME, &found);
    } else {
        struct local_place place = {.folder.fd = -1};
        code = place_find(&place, path);
        if (code == 0 && access == STORE_EXTEND)
            fd = folder_open_file(&place.folder, place.name, O_RDWR, &found);
        if (fd >= 0 && found.st_nlink > 1)
            code = fail(EPERM, "%s: has several hard links: not written", path);
        if (code == 0 && fd == -ENOENT)
            fd = folder_create_file(&place.folder, place.name);
        place_release(&place);
        if (code == 0 && fd >= 0 && fstat(fd, &found))
            code = local_fail("cannot get its status", path);
    }
    if (code || fd < 0) {
        if (fd >= 0)
            close(fd);
        free(local);
        return code ? code : fd;
    }
    local->fd = fd;
    local->file.status = store_status_of(&found);
    *file = &local->file;
    return 0;
}

static int local_draft(const char *path, struct store_file **file)
{
    struct local_file *local = memory_zeroed(sizeof *local);
    int code = local ? file_draft_open(&local->draft, path, NULL) : -ENOMEM;

    if (code) {
        free(local);
        return code;
    }
    local->fd = local->draft.fd;
    local->file.status = store_status_of(&local->draft.made);
    *file = &local->file;
    return 0;
}

static int local_settle(struct store_file *file, bool commit)
{
    struct file_draft *draft = &((struct local_file *)(void *)file)->draft;
    int code = commit ? file_draft_commit(draft) : 0;

    file_draft_abandon(draft);
    return code;
}

static ssize_t local_read_at(struct store_file *file, void *buffer, size_t bytes, uint64_t offset)
{
    return file_read_at(fd_of(file), buffer, bytes, offset, file->path);
}

static int local_write_at(struct store_file *file, const void *buffer, size_t bytes,
                          uint64_t offset)
{
    return file_write_at(fd_of(file), buffer, bytes, offset, file->path);
}

static int local_close(struct store_file *file, bool sync)
{
    int code = sync && fsync(fd_of(file)) ? local_fail("cannot sync", file->path) : 0;

    if (close(fd_of(file)) && code == 0)
        code = local_fail("cannot close", file->path);
    return code;
}

static void local_advise(struct store_file *file, uint64_t offset, uint64_t bytes)
{
    posix_fadvise(fd_of(file), (off_t)offset, (off_t)bytes,
                  bytes ? POSIX_FADV_WILLNEED : POSIX_FADV_RANDOM);
}

static uint64_t local_next_data(struct store_file *file, uint64_t offset)
{
    off_t found = lseek(fd_of(file), (off_t)offset, SEEK_DATA);

    if (found < 0)
        return errno == ENXIO ? file->status.bytes : offset;
    return (uint64_t)found;
}

/* ---- names ---- */

static int local_rename(const char *from, const char *to)
{
    struct local_place source = {.folder.fd = -1}, target = {.folder.fd = -1};
    int code = place_find(&source, from);

    if (code == 0)
        code = place_find(&target, to);
    if (code == 0)
        code = folder_rename(&source.folder, source.name, &target.folder, target.name, true);
    if (code == 0)
        code = folder_sync(&target.folder);
    place_release(&target);
    place_release(&source);
    return code;
}

static int local_remove(const char *path)
{
    struct local_place place = {.folder.fd = -1};
    int code = place_find(&place, path);

    if (code == 0)
        code = folder_remove(&place.folder, place.name, NULL);
    place_release(&place);
    return code;
}

static int local_make_folder(const char *path)
{
    struct local_place place = {.folder.fd = -1};
    int code = place_find(&place, path);

    if (code == 0)
        code = folder_make(&place.folder, place.name);
    place_release(&place);
    return code;
}

const struct store_ops store_local = {
    .scheme = "",
    .stat = local_stat,
    .list = local_list,
    .open = local_open,
    .read_at = local_read_at,
    .write_at = local_write_at,
    .close = local_close,
    .advise = local_advise,
    .next_data = local_next_data,
    .draft = local_draft,
    .settle = local_settle,
    .rename = local_rename,
    .remove = local_remove,
    .make_folder = local_make_folder,
    .free_bytes = file_free_bytes,
};
