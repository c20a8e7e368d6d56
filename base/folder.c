/* SPDX-License-Identifier: Apache-2.0 */
#include "base/folder.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail_name(const struct folder *folder, const char *name, const char *what)
{
    int code = errno;

    return fail(code, "%s/%s: %s: %s", folder->path, name, what, fail_errno_text(code));
}

static int check_name(const struct folder *folder, const char *name)
{
    if (*name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        return 0;
    return fail(EINVAL, "%s: '%s' is not a file name", folder->path, name);
}

/* ---- handles ---- */

static int open_at(struct folder *folder, int parent, const char *name, int flags, char *path)
{
    *folder = (struct folder){.fd = -1, .path = path};
    if (!path)
        return fail(ENOMEM, "out of memory for a path");
    folder->fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | flags);
    if (folder->fd >= 0)
        return 0;
    int code = errno;
    struct stat status;
    if ((code == ENOTDIR || code == ELOOP) &&
        fstatat(parent, name, &status, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) == 0 &&
        !S_ISDIR(status.st_mode))
        fail(ENOTDIR, "%s: is %s, expected a folder", path, file_kind_text(status.st_mode));
    else
        fail(code, "%s: cannot open the folder: %s", path, fail_errno_text(code));
    folder_close(folder);
    return -code;
}

int folder_open(struct folder *folder, const char *path)
{
    return open_at(folder, AT_FDCWD, path, 0, strdup(path));
}

int folder_open_below(struct folder *folder, const struct folder *parent, const char *name)
{
    *folder = (struct folder){.fd = -1};
    int code = check_name(parent, name);
    return code ? code
                : open_at(folder, parent->fd, name, O_NOFOLLOW, file_join(parent->path, name));
}

int folder_open_parent(struct folder *folder, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    char *parent = !slash ? strdup(".") : strndup(path, slash > path ? (size_t)(slash - path) : 1);

    *folder = (struct folder){.fd = -1};
    *name = *last && strcmp(last, ".") != 0 && strcmp(last, "..") != 0 ? last : NULL;
    int code = parent ? folder_open(folder, parent) : fail(ENOMEM, "out of memory for a path");
    free(parent);
    return code;
}

void folder_close(struct folder *folder)
{
    if (folder->fd >= 0)
        close(folder->fd);
    free(folder->path);
    *folder = (struct folder){.fd = -1};
}

int folder_make(const struct folder *folder, const char *name)
{
    int code = check_name(folder, name);

    if (code == 0 && mkdirat(folder->fd, name, 0777))
        code = fail_name(folder, name, "cannot make the folder");
    return code;
}

int folder_make_path(const char *path)
{
    char *copy = strdup(path);
    int code = 0;

    if (!copy)
        return fail(ENOMEM, "out of memory for a path");
    for (char *slash = copy + 1; code == 0; slash++) {
        char end = *slash;
        if (end != '/' && end != '\0')
            continue;
        *slash = '\0';
        if (mkdir(copy, 0777) && errno != EEXIST && errno != EISDIR)
            code = fail(errno, "%s: cannot make the folder: %s", copy, fail_errno_text(errno));
        *slash = end;
        if (end == '\0')
            break;
    }
    free(copy);
    if (code == 0 && !file_is_folder(path))
        code = fail(ENOTDIR, "%s: exists and is not a folder", path);
    return code;
}

int folder_make_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int code = folder ? folder_make_path(folder) : fail(ENOMEM, "out of memory for a path");

    free(folder);
    return code;
}

int folder_sync(const struct folder *folder)
{
    /* Some file systems cannot sync folders: their names are durable anyway. */
    if (fsync(folder->fd) && errno != EINVAL && errno != EBADF && errno != ENOTSUP)
        return fail(errno, "%s: cannot sync the folder: %s", folder->path, fail_errno_text(errno));
    return 0;
}

/* ---- listing ---- */

int folder_list(const struct folder *folder, folder_visit visit, void *context)
{
    /* A second handle, since each listing has its own position. */
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = 0;
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *found;
    struct stat status;

    if (!stream) {
        code = fail(errno, "%s: cannot read the folder: %s", folder->path, fail_errno_text(errno));
        if (fd >= 0)
            close(fd);
        return code;
    }
    for (errno = 0; code == 0 && (found = readdir(stream)); errno = 0) {
        const char *name = found->d_name;
        unsigned char type = found->d_type;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (type == DT_UNKNOWN) /* DT_WHT: removed since, not an entry */
            type = fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW)
                       ? DT_WHT
                       : (unsigned char)IFTODT(status.st_mode);
        code = visit(context, name, type);
    }
    if (code == 0 && errno)
        code = fail(errno, "%s: cannot read the folder: %s", folder->path, fail_errno_text(errno));
    closedir(stream);
    return code;
}

static int add_name(void *context, const char *name, unsigned char type)
{
    struct folder_names *names = context;

    (void)type;
    if (memory_room(&names->list, names->count, sizeof *names->list, "names"))
        return -ENOMEM;
    char *copy = strdup(name);
    if (!copy)
        return fail(ENOMEM, "out of memory for a name");
    names->list[names->count++] = copy;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_names(struct folder_names *names)
{
    if (names->count)
        qsort(names->list, names->count, sizeof *names->list, compare_names);
}

int folder_names_read(struct folder_names *names, const struct folder *folder)
{
    *names = (struct folder_names){0};
    int code = folder_list(folder, add_name, names);

    if (code)
        folder_names_release(names);
    sort_names(names);
    return code;
}

int folder_names_of(struct folder_names *names, const char *path)
{
    struct folder folder;

    *names = (struct folder_names){0};
    int code = folder_open(&folder, path);
    if (code == 0)
        code = folder_names_read(names, &folder);
    folder_close(&folder);
    return code;
}

void folder_names_release(struct folder_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i]);
    free(names->list);
    *names = (struct folder_names){0};
}

/* ---- names ---- */

int folder_stat(const struct folder *folder, const char *name, struct stat *status)
{
    int code = check_name(folder, name);

    if (code == 0 && fstatat(folder->fd, name, status, AT_SYMLINK_NOFOLLOW))
        code = fail(errno, "%s/%s: %s", folder->path, name, fail_errno_text(errno));
    return code;
}

int folder_open_file(const struct folder *folder, const char *name, int flags, struct stat *status)
{
    int code = check_name(folder, name);

    if (code)
        return code;
    char *path = file_join(folder->path, name);
    code = path ? file_open_at(folder->fd, name, flags | O_NOFOLLOW, path, status) : -ENOMEM;
    free(path);
    return code;
}

int folder_create_file(const struct folder *folder, const char *name)
{
    int code = check_name(folder, name);

    if (code)
        return code;
    int fd = openat(folder->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0)
        return fd;
    /* The name is mostly a draft's or a lock's, which the user never gave: name the folder
     * instead. */
    code = errno;
    return code == EEXIST ? fail_name(folder, name, "cannot make the file")
                          : fail(code, "%s: cannot make a file in this folder: %s", folder->path,
                                 fail_errno_text(code));
}

bool folder_is_beneath(const struct folder *folder, const char *below)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, folder->fd, below, &how, sizeof how);

    if (fd >= 0)
        close((int)fd);
    else
        shortage_note(errno, folder->path);
    return fd >= 0;
}

int folder_remove(const struct folder *folder, const char *name, const struct stat *made)
{
    struct stat now;
    int code = folder_stat(folder, name, &now);

    if (code)
        return code;
    if (made && (now.st_dev != made->st_dev || now.st_ino != made->st_ino))
        return fail(ESTALE, "%s/%s: another process replaced it: not removed", folder->path, name);
    if (unlinkat(folder->fd, name, S_ISDIR(now.st_mode) ? AT_REMOVEDIR : 0))
        return fail_name(folder, name, "cannot remove");
    return 0;
}

/* ---- renaming ---- */

/* Without RENAME_NOREPLACE: link(2) the new name, which never replaces one. Without links too, and
 * for folders: claim the name with an empty file or folder, which the rename then replaces. */
static int rename_by_claim(const struct folder *from, const char *name, const struct folder *to,
                           const char *new_name)
{
    struct stat status;
    int code = folder_stat(from, name, &status);

    if (code)
        return code;
    bool is_folder = S_ISDIR(status.st_mode);
    if (!is_folder && linkat(from->fd, name, to->fd, new_name, 0) == 0)
        return folder_remove(from, name, &status);
    if (!is_folder && errno == EEXIST)
        return fail_name(to, new_name, "cannot rename to it");
    int claim = is_folder ? folder_make(to, new_name) : folder_create_file(to, new_name);
    if (claim < 0)
        return claim;
    if (!is_folder)
        close(claim);
    code = folder_stat(to, new_name, &status);
    if (code == 0 && renameat(from->fd, name, to->fd, new_name)) {
        code = fail_name(from, name, "cannot rename");
        folder_remove(to, new_name, &status);
    }
    return code;
}

int folder_rename(const struct folder *from, const char *name, const struct folder *to,
                  const char *new_name, bool replace)
{
    struct stat status;
    int code = check_name(from, name);

    if (code == 0)
        code = check_name(to, new_name);
    if (code)
        return code;
    if (!replace) {
        if (renameat2(from->fd, name, to->fd, new_name, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP)
            return rename_by_claim(from, name, to, new_name);
        return fail_name(to, new_name, "cannot rename to it");
    }
    if (fstatat(to->fd, new_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(status.st_mode) &&
        !S_ISDIR(status.st_mode))
        return fail(EEXIST, "%s/%s: is %s: only a regular file is replaced; name another", to->path,
                    new_name, file_kind_text(status.st_mode));
    if (renameat(from->fd, name, to->fd, new_name))
        return fail_name(to, new_name, "cannot rename to it");
    return 0;
}

/* ---- paths that match a pattern ---- */

/* The first `done` bytes of the pattern have no wildcard. Not by glob(3): glibc's aborts the
 * program when out of memory. */
static int add_matches(struct folder_names *found, const char *pattern, size_t done)
{
    const char *wild = strpbrk(pattern + done, "*?["); /* the first component with a wildcard */

    if (!wild)
        return file_exists(pattern) ? add_name(found, pattern, 0) : 0;
    while (wild > pattern + done && wild[-1] != '/')
        wild--;
    const size_t bytes = strcspn(wild, "/");
    const int before = (int)(wild - pattern);
    char path[PATH_MAX], component[NAME_MAX + 1];
    struct folder_names names;
    if (bytes >= sizeof component || strlen(pattern) >= sizeof path)
        return 0; /* no name is that long */
    snprintf(component, sizeof component, "%.*s", (int)bytes, wild);
    snprintf(path, sizeof path, "%.*s", before, pattern);
    int code = folder_names_of(&names, before ? path : ".");
    if (code == -ENOENT || code == -ENOTDIR || code == -EACCES || code == -ELOOP)
        code = 0; /* a folder that is missing or unreadable has no match in it */
    for (size_t i = 0; code == 0 && i < names.count; i++) {
        const char *name = names.list[i];
        if (fnmatch(component, name, FNM_PERIOD) == 0 &&
            snprintf(path, sizeof path, "%.*s%s%s", before, pattern, name, wild + bytes) < PATH_MAX)
            code = add_matches(found, path, (size_t)before + strlen(name));
    }
    folder_names_release(&names);
    return code;
}

int folder_names_matching(struct folder_names *names, const char *pattern)
{
    *names = (struct folder_names){0};
    int code = add_matches(names, pattern, 0);

    if (code)
        folder_names_release(names);
    sort_names(names);
    return code;
}

/* ---- removal of a tree ---- */

/* One walk only checks, a second removes; the second checks each name again, so whatever appeared
 * in between stays. */

enum { TREE_DEPTH = 32 };

struct removal {
    folder_is_ours is_ours;
    void *context;
    bool remove; /* second walk */
};

static int walk(const struct removal *removal, const struct folder *parent, const char *name,
                const char *below, int depth)
{
    const char *why = NULL;
    struct stat status;
    struct statx of;
    int code = folder_stat(parent, name, &status);

    if (code)
        return code;
    const bool is_folder = S_ISDIR(status.st_mode);
    if (!S_ISREG(status.st_mode) && !is_folder)
        why = file_kind_text(status.st_mode);
    else if (!is_folder && status.st_nlink > 1)
        why = "a file with several hard links";
    else if (status.st_uid != geteuid())
        why = "a file of another user";
    else if (statx(parent->fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &of) ||
             of.stx_attributes & STATX_ATTR_MOUNT_ROOT)
        /* Not by st_dev: on overlay a file has that of its layer, its folder another. */
        why = "on another file system";
    else if (removal->is_ours && !removal->is_ours(removal->context, below, &status))
        why = "not made by this program";
    if (why)
        return fail(EPERM, "%s/%s: is %s: not removed; remove it yourself", parent->path, name,
                    why);
    if (is_folder) {
        struct folder_names names = {0};
        struct folder folder;
        code = depth < TREE_DEPTH ? folder_open_below(&folder, parent, name)
                                  : fail(ELOOP, "%s/%s: more than %d folders deep: not removed",
                                         parent->path, name, TREE_DEPTH);
        if (code)
            return code;
        code = folder_names_read(&names, &folder);
        for (size_t i = 0; code == 0 && i < names.count; i++) {
            char *inner = file_format_path("%s%s%s", below, *below ? "/" : "", names.list[i]);
            code = inner ? walk(removal, &folder, names.list[i], inner, depth + 1) : -ENOMEM;
            free(inner);
        }
        folder_names_release(&names);
        folder_close(&folder);
    }
    return code == 0 && removal->remove ? folder_remove(parent, name, &status) : code;
}

int folder_remove_tree(const struct folder *parent, const char *name, folder_is_ours is_ours,
                       void *context)
{
    struct removal removal = {.is_ours = is_ours, .context = context};
    int code = walk(&removal, parent, name, "", 0);

    removal.remove = true;
    return code ? code : walk(&removal, parent, name, "", 0);
}
