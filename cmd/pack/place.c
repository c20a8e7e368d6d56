/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/place.h"

#include "base/fail.h"
#include "base/file.h"
#include "dataset/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int place_open(struct place *place, const char *path)
{
    *place = (struct place){
        .path = strdup(path), .is_local = store_is_local(path), .folder = {.fd = -1}};
    if (!place->path)
        return fail(ENOMEM, "out of memory for a path");
    int code = place->is_local ? folder_open(&place->folder, path) : 0;
    if (code)
        place_close(place);
    return code;
}

void place_close(struct place *place)
{
    if (place->path && place->is_local)
        folder_close(&place->folder);
    free(place->path);
    *place = (struct place){.folder = {.fd = -1}};
}

/* ---- local names ---- */

/* Open the folder that contains name, component by component. *last: its last component; NULL for
 * "". */
static int open_parent(const struct place *place, const char *name, struct folder *folder,
                       const char **last)
{
    const char *slash;
    int code = 0;

    *last = *name ? name : NULL;
    *folder = (struct folder){.fd = fcntl(place->folder.fd, F_DUPFD_CLOEXEC, 0),
                              .path = strdup(place->path)};
    if (folder->fd < 0 || !folder->path)
        code = fail(folder->fd < 0 ? errno : ENOMEM, "%s: %s", place->path,
                    fail_errno_text(folder->fd < 0 ? errno : ENOMEM));
    while (code == 0 && (slash = strchr(name, '/'))) {
        struct folder below = {.fd = -1};
        char *part = strndup(name, (size_t)(slash - name));
        code = part ? folder_open_below(&below, folder, part)
                    : fail(ENOMEM, "out of memory for a path");
        free(part);
        folder_close(folder);
        *folder = below;
        *last = name = slash + 1;
    }
    if (code)
        folder_close(folder);
    return code;
}

/* The same for name itself, a folder. */
static int open_folder(const struct place *place, const char *name, struct folder *folder)
{
    struct folder parent;
    const char *last;
    int code = open_parent(place, name, &parent, &last);

    *folder = (struct folder){.fd = -1};
    if (code)
        return code;
    if (!last) {
        *folder = parent;
        return 0;
    }
    code = folder_open_below(folder, &parent, last);
    folder_close(&parent);
    return code;
}

static int look_here(const struct place *place, const char *name, struct place_entry *entry)
{
    struct folder parent;
    struct stat found;
    const char *last;
    int code = open_parent(place, name, &parent, &last);

    if (code)
        return code;
    code = last                       ? folder_stat(&parent, last, &found)
           : fstat(parent.fd, &found) ? fail(errno, "%s: %s", place->path, fail_errno_text(errno))
                                      : 0;
    folder_close(&parent);
    if (code == 0)
        *entry = (struct place_entry){
            .kind = S_ISREG(found.st_mode)   ? PLACE_FILE
                    : S_ISDIR(found.st_mode) ? PLACE_FOLDER
                                             : PLACE_OTHER,
            .bytes = (uint64_t)found.st_size,
            .mtime_ns = found.st_mtim.tv_sec * INT64_C(1000000000) + found.st_mtim.tv_nsec,
            .names = found.st_nlink,
            .owner = found.st_uid,
            .made = found,
        };
    return code;
}

static int make_here(const struct place *place, const char *name, bool is_private)
{
    struct folder parent, made;
    const char *last;
    int code = open_parent(place, name, &parent, &last);

    if (code)
        return code;
    code = folder_make(&parent, last);
    if (code == 0 && is_private) {
        code = folder_open_below(&made, &parent, last);
        if (code == 0 && fchmod(made.fd, 0700))
            code = fail(errno, "%s: cannot set its mode: %s", made.path, fail_errno_text(errno));
        folder_close(&made);
    }
    folder_close(&parent);
    return code;
}

static int move_here(const struct place *place, const char *from, const char *to)
{
    struct folder source, target = {.fd = -1};
    const char *name, *new_name;
    int code = open_parent(place, from, &source, &name);

    if (code)
        return code;
    code = open_parent(place, to, &target, &new_name);
    if (code == 0) {
        code = folder_rename(&source, name, &target, new_name, false);
        folder_close(&target);
    }
    folder_close(&source);
    return code;
}

static int load_here(const struct place *place, const char *name, size_t limit, char **text,
                     size_t *bytes)
{
    struct folder parent;
    struct stat found, owner;
    const char *last;
    ssize_t got = 0;
    int code = open_parent(place, name, &parent, &last);

    if (code)
        return code;
    int fd = folder_open_file(&parent, last, O_RDONLY, &found);
    char *path = file_join(place->path, name);
    code = fd < 0 ? fd : path ? 0 : -ENOMEM;
    if (code == 0 && fstat(parent.fd, &owner))
        code = fail(errno, "%s: %s", parent.path, fail_errno_text(errno));
    if (code == 0)
        code = file_trusted(&found, &owner, path);
    if (code == 0 && (uint64_t)found.st_size > limit)
        code = fail(EFBIG, "%s: larger than %zu bytes", path, limit);
    if (code == 0) {
        *text = malloc((size_t)found.st_size + 1);
        got = *text ? file_read_at(fd, *text, (size_t)found.st_size, 0, path)
                    : fail(ENOMEM, "%s: out of memory", path);
        code = got < 0 ? (int)got : 0;
        if (code)
            free(*text);
    }
    if (code == 0) {
        *bytes = (size_t)got;
        (*text)[got] = '\0';
    }
    if (fd >= 0)
        close(fd);
    free(path);
    folder_close(&parent);
    return code;
}

static int append_here(const struct place *place, const char *name, const char *text)
{
    struct folder parent;
    struct stat found = {0};
    const char *last;
    int code = open_parent(place, name, &parent, &last);

    if (code)
        return code;
    int fd = folder_open_file(&parent, last, O_RDWR, &found);
    if (fd == -ENOENT)
        fd = folder_create_file(&parent, last);
    code =
        fd < 0 ? fd : file_write_at(fd, text, strlen(text), (uint64_t)found.st_size, place->path);
    if (code == 0 && fsync(fd))
        code = fail(errno, "%s/%s: cannot sync: %s", place->path, name, fail_errno_text(errno));
    if (fd >= 0)
        close(fd);
    folder_close(&parent);
    return code;
}

struct visiting {
    place_visit visit;
    void *context;
};

static int visit_here(void *context, const char *name, unsigned char type)
{
    const struct visiting *visiting = context;

    (void)type;
    return visiting->visit(visiting->context, name);
}

static int visit_there(void *context, const struct store_entry *entry)
{
    const struct visiting *visiting = context;

    return visiting->visit(visiting->context, entry->name);
}

/* ---- local or server ---- */

static char *path_of(const struct place *place, const char *name)
{
    return file_format_path("%s%s%s", place->path, *name ? "/" : "", name);
}

int place_look(const struct place *place, const char *name, struct place_entry *entry)
{
    struct store_status status;

    if (place->is_local)
        return look_here(place, name, entry);
    char *path = path_of(place, name);
    int code = path ? store_stat(path, &status) : -ENOMEM;
    free(path);
    if (code == 0)
        *entry = (struct place_entry){.kind = status.kind == STORE_FILE     ? PLACE_FILE
                                              : status.kind == STORE_FOLDER ? PLACE_FOLDER
                                                                            : PLACE_OTHER,
                                      .bytes = status.bytes,
                                      .mtime_ns = status.mtime_ns,
                                      .names = 1};
    return code;
}

int place_has(const struct place *place, const char *name)
{
    struct place_entry entry;
    int code = place_look(place, name, &entry);

    return code == -ENOENT ? 0 : code ? code : 1;
}

int place_list(const struct place *place, const char *name, place_visit visit, void *context)
{
    struct visiting visiting = {visit, context};
    struct folder folder;

    if (place->is_local) {
        int code = open_folder(place, name, &folder);
        if (code == 0)
            code = folder_list(&folder, visit_here, &visiting);
        folder_close(&folder);
        return code;
    }
    char *path = path_of(place, name);
    int code = path ? store_list(path, visit_there, &visiting) : -ENOMEM;
    free(path);
    return code;
}

static int make(const struct place *place, const char *name, bool is_private)
{
    if (place->is_local)
        return make_here(place, name, is_private);
    char *path = path_of(place, name);
    int code = path ? store_make_folders(path) : -ENOMEM;
    free(path);
    return code;
}

int place_make_private(const struct place *place, const char *name)
{
    return make(place, name, true);
}

int place_make(const struct place *place, const char *name)
{
    return make(place, name, false);
}

int place_move(const struct place *place, const char *from, const char *to)
{
    if (place->is_local)
        return move_here(place, from, to);
    char *old = path_of(place, from), *new = path_of(place, to);
    int code = !old || !new        ? -ENOMEM
               : store_exists(new) ? fail(EEXIST, "%s: exists and is not replaced", new)
                                   : store_rename(old, new);
    free(old);
    free(new);
    return code;
}

int place_remove(const struct place *place, const char *name, const struct place_entry *entry)
{
    struct folder parent;
    const char *last;

    if (!place->is_local) {
        char *path = path_of(place, name);
        int code = path ? store_remove(path) : -ENOMEM;
        free(path);
        return code;
    }
    int code = open_parent(place, name, &parent, &last);
    if (code == 0) {
        code = folder_remove(&parent, last, &entry->made);
        folder_close(&parent);
    }
    return code;
}

int place_remove_tree(const struct place *place, const char *name)
{
    struct folder parent;
    const char *last;

    if (!place->is_local) {
        char *path = path_of(place, name);
        int code = path ? store_remove_tree(path) : -ENOMEM;
        free(path);
        return code;
    }
    int code = open_parent(place, name, &parent, &last);
    if (code == 0) {
        code = folder_remove_tree(&parent, last, NULL, NULL);
        folder_close(&parent);
    }
    return code;
}

int place_remove_itself(const struct place *place)
{
    struct folder parent;
    struct stat made;
    const char *name;

    if (!place->is_local)
        return store_remove(place->path);
    int code = folder_open_parent(&parent, place->path, &name);
    if (code)
        return code;
    code = fstat(place->folder.fd, &made) || !name
               ? fail(EINVAL, "%s: cannot be removed", place->path)
               : folder_remove(&parent, name, &made);
    folder_close(&parent);
    return code;
}

int place_load(const struct place *place, const char *name, size_t limit, char **text,
               size_t *bytes)
{
    if (place->is_local)
        return load_here(place, name, limit, text, bytes);
    char *path = path_of(place, name);
    int code = path ? store_load(path, limit, text, bytes) : -ENOMEM;
    free(path);
    return code;
}

int place_append(const struct place *place, const char *name, const char *text)
{
    struct store_file *file;

    if (place->is_local)
        return append_here(place, name, text);
    char *path = path_of(place, name);
    int code = path ? store_open(path, STORE_EXTEND, &file) : -ENOMEM;
    free(path);
    if (code)
        return code;
    code = store_write_at(file, text, strlen(text), file->status.bytes);
    int closed = store_close(file, code == 0);
    return code ? code : closed;
}

int place_sync(const struct place *place, const char *name)
{
    struct folder folder;

    if (!place->is_local) /* names on a server are durable when it has answered */
        return 0;
    int code = open_folder(place, name, &folder);
    if (code == 0)
        code = folder_sync(&folder);
    folder_close(&folder);
    return code;
}
