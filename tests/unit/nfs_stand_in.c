/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/nfs_stand_in.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
void __lsan_ignore_object(const void *object);
#endif

enum { HOPS = 3, PATH_BYTES = 1024, BLOCK_MOST = 3000000 };

struct call {
    nfs_cb done;
    void *private;
    enum call_kind {
        MOUNT,
        STAT,
        OPEN,
        READ,
        CLOSE,
        LSTAT,
        FSTAT,
        WRITE,
        SYNC,
        LIST,
        RENAME,
        LINK,
        UNLINK,
        RMDIR,
        MKDIR,
        SPACE
    } kind;
    char path[PATH_BYTES], to[PATH_BYTES];
    int flags;
    struct nfsfh *file;
    void *buffer;
    uint64_t offset;
    size_t bytes;
};
static const char *const kinds[] = {"mount",  "stat",  "open",  "read", "close",  "lstat",
                                    "fstat",  "write", "sync",  "list", "rename", "link",
                                    "unlink", "rmdir", "mkdir", "space"};

struct nfsfh {
    int fd;
};

struct nfsdir {
    struct dirent **entries;
    int count, next;
    char path[3 * PATH_BYTES];
};

struct nfs_context {
    int fd, peer, version;
    int hops; /* sockets until it is mounted */
    char folder[PATH_BYTES], name[128];
    bool is_lost, is_silent;
    struct call calls[NFS_CALLS_MOST];
    uint32_t answered, sent, made; /* calls, by number */
    uint32_t reads;
    struct nfs_context *next;
};
static struct nfs_context *contexts;

struct nfs_stand_in nfs_stand_in;

static void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "libnfs's stand-in: not so: %s\n", what);
        abort();
    }
}
#define MUST(condition) must(condition, #condition)

static void open_pair(struct nfs_context *context)
{
    int pair[2];

    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    context->fd = pair[0];
    context->peer = pair[1];
}

struct nfs_context *nfs_init_context(void)
{
    struct nfs_context *context = calloc(1, sizeof *context);

    if (!context)
        return NULL;
    open_pair(context);
    context->next = contexts;
    contexts = context;
    nfs_stand_in.contexts++;
    return context;
}

void nfs_destroy_context(struct nfs_context *context)
{
    struct nfs_context **at = &contexts;

    while (*at != context)
        at = &(*at)->next;
    *at = context->next;
    close(context->fd);
    close(context->peer);
    while (context->answered < context->made) {
        struct call *call = &context->calls[context->answered++ % NFS_CALLS_MOST];
        call->done(-EINTR, context, NULL, call->private);
    }
    nfs_stand_in.contexts--;
    free(context);
}

void nfs_set_autoreconnect(struct nfs_context *context, int retries)
{
    (void)context;
    MUST(retries == 0);
}

void nfs_set_dircache(struct nfs_context *context, int enabled)
{
    (void)context;
    MUST(!enabled);
}

int nfs_set_version(struct nfs_context *context, int version)
{
    context->version = version;
    return 0;
}

void nfs4_set_client_name(struct nfs_context *context, const char *name)
{
    for (const struct nfs_context *other = contexts; other; other = other->next)
        MUST(strcmp(other->name, name) != 0);
    snprintf(context->name, sizeof context->name, "%s", name);
}

char *nfs_get_error(struct nfs_context *context)
{
    static char text[] = "cut";

    (void)context;
    return text;
}

int nfs_get_fd(struct nfs_context *context)
{
    return context->fd;
}

int nfs_which_events(struct nfs_context *context)
{
    nfs_stand_in.polled++;
    return POLLIN | (context->sent < context->made ? POLLOUT : 0);
}

/* The next socket of a mount has the number of the last one, and every second waits for the same
 * events. */
static void hop(struct nfs_context *context)
{
    const char byte = 0;
    int fd = context->fd;

    close(context->fd);
    close(context->peer);
    open_pair(context);
    MUST(context->fd == fd);
    if (context->hops-- % 2)
        context->sent--; /* asked again there */
    else
        MUST(write(context->peer, &byte, 1) == 1); /* answered again there */
}

static int64_t status_of(int failed, const struct stat *found, struct nfs_stat_64 *status)
{
    if (failed)
        return -errno;
    *status = (struct nfs_stat_64){.nfs_dev = found->st_dev,
                                   .nfs_ino = found->st_ino,
                                   .nfs_mode = found->st_mode,
                                   .nfs_uid = found->st_uid,
                                   .nfs_size = (uint64_t)found->st_size,
                                   .nfs_mtime = (uint64_t)found->st_mtim.tv_sec,
                                   .nfs_mtime_nsec = (uint64_t)found->st_mtim.tv_nsec,
                                   .nfs_ctime = (uint64_t)found->st_ctim.tv_sec,
                                   .nfs_ctime_nsec = (uint64_t)found->st_ctim.tv_nsec};
    return 0;
}

/* Do the call in the folder. Returns its status; *body: what it answers. */
static int64_t serve(struct nfs_context *context, struct call *call, void **body)
{
    static struct nfs_stat_64 status;
    static struct nfs_statvfs_64 space = {
        .f_bsize = 7, .f_frsize = 5, .f_bavail = 3, .f_bfree = 11, .f_blocks = 13};
    static char block[BLOCK_MOST];
    char path[3 * PATH_BYTES], to[3 * PATH_BYTES];
    struct stat found;
    int64_t done = 0;

    snprintf(path, sizeof path, "%s%s%s", nfs_stand_in.root, context->folder, call->path);
    snprintf(to, sizeof to, "%s%s%s", nfs_stand_in.root, context->folder, call->to);
    *body = &status;
    switch (call->kind) {
    case MOUNT:
        snprintf(context->folder, sizeof context->folder, "%s",
                 strcmp(call->path, "/") == 0 ? "" : call->path);
        return stat(path, &found) ? -errno : 0;
    case STAT:
        return status_of(stat(path, &found), &found, &status);
    case LSTAT:
        return status_of(lstat(path, &found), &found, &status);
    case FSTAT:
        return status_of(fstat(call->file->fd, &found), &found, &status);
    case OPEN: {
        struct nfsfh *file = calloc(1, sizeof *file);
        if (!file)
            return -ENOMEM;
#ifdef __SANITIZE_ADDRESS__
        __lsan_ignore_object(file); /* libnfs, too, keeps those of a lost connection */
#endif
        file->fd = open(path, call->flags | O_CLOEXEC, 0600);
        if (file->fd >= 0) {
            *body = file;
            return 0;
        }
        free(file);
        return -errno;
    }
    case READ:
        *body = block;
        done = pread(call->file->fd, block, call->bytes < BLOCK_MOST ? call->bytes : BLOCK_MOST,
                     (off_t)call->offset);
#ifdef LIBNFS_API_V2
        if (done > 0)
            memcpy(call->buffer, block, (size_t)done);
#endif
        return done < 0 ? -errno : done;
    case WRITE:
        done = pwrite(call->file->fd, call->buffer,
                      call->bytes < BLOCK_MOST ? call->bytes : BLOCK_MOST, (off_t)call->offset);
        return done < 0 ? -errno : done;
    case CLOSE:
        close(call->file->fd);
        free(call->file);
        return 0;
    case LIST: {
        struct nfsdir *folder = calloc(1, sizeof *folder);
        if (!folder)
            return -ENOMEM;
        snprintf(folder->path, sizeof folder->path, "%s", path);
        folder->count = scandir(path, &folder->entries, NULL, alphasort);
        if (folder->count >= 0) {
            *body = folder;
            return 0;
        }
        free(folder);
        return -errno;
    }
    case SPACE:
        *body = &space;
        return 0;
    case SYNC:
        return 0;
    case RENAME:
        return rename(path, to) ? -errno : 0;
    case LINK:
        return link(path, to) ? -errno : 0;
    case UNLINK:
        return unlink(path) ? -errno : 0;
    case RMDIR:
        return rmdir(path) ? -errno : 0;
    case MKDIR:
        return mkdir(path, (mode_t)call->flags) ? -errno : 0;
    }
    abort();
}

static bool is_troubled(const struct call *call, enum nfs_trouble trouble)
{
    return nfs_stand_in.trouble == trouble && nfs_stand_in.trouble_count > 0 &&
           strcmp(nfs_stand_in.trouble_kind, kinds[call->kind]) == 0 &&
           nfs_stand_in.trouble_count--;
}

static void answer_from_folder(struct nfs_context *context, struct call *call)
{
    static char text[] = "said by the server";
    char line[3 * PATH_BYTES] = "";
    void *body = text;

    if (is_troubled(call, TROUBLE_SILENCE)) {
        context->is_silent = true;
        nfs_stand_in.told("silent", 0);
        return;
    }
    const int64_t status = is_troubled(call, TROUBLE_STATUS) ? nfs_stand_in.trouble_status
                                                             : serve(context, call, &body);
    snprintf(line, sizeof line, "%s", kinds[call->kind]);
    if (call->kind == MOUNT)
        sprintf(line + strlen(line), " version %d", context->version);
    if (*call->path)
        sprintf(line + strlen(line), " %s%s%s", call->path, *call->to ? " " : "", call->to);
    if (call->kind == OPEN)
        sprintf(line + strlen(line), "%s%s%s%s", call->flags & O_WRONLY ? " to write" : "",
                call->flags & O_CREAT ? " create" : "", call->flags & O_EXCL ? " new" : "",
                call->flags & O_NOFOLLOW ? " no link" : "");
    if (call->kind == MKDIR)
        sprintf(line + strlen(line), " %o", (unsigned)call->flags);
    if (call->bytes)
        sprintf(line + strlen(line), " %zu at %llu", call->bytes, (unsigned long long)call->offset);
    nfs_stand_in.told(line, status);
    context->is_lost = is_troubled(call, TROUBLE_LOST);
    if (context->is_lost) { /* nobody gets what was opened */
        if (status == 0 && call->kind == LIST)
            nfs_closedir(context, body);
        if (status == 0 && call->kind == OPEN) {
            close(((struct nfsfh *)body)->fd);
            free(body);
        }
        return;
    }
    context->answered++;
    call->done((int)status, context, status < 0 ? text : body, call->private);
}

static void answer(struct nfs_context *context)
{
    struct call *call = &context->calls[context->answered % NFS_CALLS_MOST];
    static struct nfs_stat_64 status = {.nfs_mode = S_IFREG, .nfs_size = NFS_FILE_BYTES};

    if (call->kind == MOUNT && context->hops > 0) {
        hop(context);
        return;
    }
    if (nfs_stand_in.root) {
        answer_from_folder(context, call);
        return;
    }
    context->answered++;
    if (call->kind == READ) {
        nfs_stand_in.readers += context->reads++ == 0;
        memset(call->buffer, (int)(call->offset / NFS_BYTES), call->bytes);
        call->done((int)call->bytes, context, call->buffer, call->private);
    } else if (call->kind == STAT || call->kind == FSTAT) {
        status.nfs_mode = call->kind == STAT ? S_IFDIR : S_IFREG;
        call->done(0, context, &status, call->private);
    } else {
        call->done(0, context, context, call->private);
    }
}

int nfs_service(struct nfs_context *context, int events)
{
    char byte = 0;

    nfs_stand_in.polled++;
    if (context->is_silent)
        *nfs_stand_in.clock_ns += 40000000000;
    if (context == nfs_stand_in.cut) {
        nfs_stand_in.cut = NULL;
        return -1;
    }
    const int hops = context->hops; /* a new socket is read when it is ready */
    while (events & POLLIN && !context->is_lost && context->hops == hops &&
           read(context->fd, &byte, 1) == 1)
        answer(context);
    for (uint32_t i = 0; events & POLLOUT && context->sent < context->made; i++) {
        if (nfs_stand_in.sends_most && i == nfs_stand_in.sends_most)
            break;
        context->sent++;
        MUST(write(context->peer, &byte, 1) == 1);
    }
    return context->is_lost ? -1 : 0;
}

static int make(struct nfs_context *context, struct call call, const char *path)
{
    MUST(context->made - context->answered < NFS_CALLS_MOST);
    if (nfs_stand_in.root && is_troubled(&call, TROUBLE_UNASKED))
        return -1;
    snprintf(call.path, sizeof call.path, "%s", path);
    context->calls[context->made++ % NFS_CALLS_MOST] = call;
    return 0;
}

int nfs_mount_async(struct nfs_context *context, const char *name, const char *folder, nfs_cb done,
                    void *private)
{
    MUST(nfs_stand_in.root == NULL || strcmp(name, "box") == 0);
    context->hops = HOPS;
    return make(context, (struct call){.kind = MOUNT, .done = done, .private = private}, folder);
}

/* Calls on a path; on an open file. */
#define ON_PATH(name, KIND)                                                                        \
    int name(struct nfs_context *context, const char *path, nfs_cb done, void *private)            \
    {                                                                                              \
        return make(context, (struct call){.kind = KIND, .done = done, .private = private}, path); \
    }
#define ON_FILE(name, KIND)                                                                      \
    int name(struct nfs_context *context, struct nfsfh *file, nfs_cb done, void *private)        \
    {                                                                                            \
        return make(context,                                                                     \
                    (struct call){.kind = KIND, .file = file, .done = done, .private = private}, \
                    "");                                                                         \
    }
#define TO_PATH(name, KIND)                                                              \
    int name(struct nfs_context *context, const char *path, const char *to, nfs_cb done, \
             void *private)                                                              \
    {                                                                                    \
        struct call call = {.kind = KIND, .done = done, .private = private};             \
        snprintf(call.to, sizeof call.to, "%s", to);                                     \
        return make(context, call, path);                                                \
    }
ON_PATH(nfs_stat64_async, STAT)
ON_PATH(nfs_lstat64_async, LSTAT)
ON_PATH(nfs_opendir_async, LIST)
ON_PATH(nfs_unlink_async, UNLINK)
ON_PATH(nfs_rmdir_async, RMDIR)
ON_PATH(nfs_statvfs64_async, SPACE)
ON_FILE(nfs_fstat64_async, FSTAT)
ON_FILE(nfs_fsync_async, SYNC)
ON_FILE(nfs_close_async, CLOSE)
TO_PATH(nfs_rename_async, RENAME)
TO_PATH(nfs_link_async, LINK)

int nfs_mkdir2_async(struct nfs_context *context, const char *path, int mode, nfs_cb done,
                     void *private)
{
    return make(context,
                (struct call){.kind = MKDIR, .flags = mode, .done = done, .private = private},
                path);
}

int nfs_open_async(struct nfs_context *context, const char *path, int flags, nfs_cb done,
                   void *private)
{
    return make(context,
                (struct call){.kind = OPEN, .flags = flags, .done = done, .private = private},
                path);
}

int nfs_open2_async(struct nfs_context *context, const char *path, int flags, int mode, nfs_cb done,
                    void *private)
{
    MUST(mode == 0666);
    return nfs_open_async(context, path, flags, done, private);
}

struct nfsdirent *nfs_readdir(struct nfs_context *context, struct nfsdir *folder)
{
    static struct nfsdirent entry;
    char path[3 * PATH_BYTES];
    struct stat status;

    (void)context;
    if (folder->next == folder->count)
        return NULL;
    char *name = folder->entries[folder->next++]->d_name;
    snprintf(path, sizeof path, "%.2048s/%s", folder->path, name);
    MUST(lstat(path, &status) == 0 || errno == ENOENT);
    for (char *at = name; (at = strchr(at, '|'));)
        *at = '/';
    entry = (struct nfsdirent){.name = name,
                               .inode = status.st_ino,
                               .mode = status.st_mode,
                               .size = (uint64_t)status.st_size,
                               .mtime.tv_sec = status.st_mtim.tv_sec,
                               .mtime_nsec = (uint32_t)status.st_mtim.tv_nsec,
                               .ctime.tv_sec = status.st_ctim.tv_sec,
                               .ctime_nsec = (uint32_t)status.st_ctim.tv_nsec,
                               .uid = status.st_uid,
                               .dev = status.st_dev};
    return &entry;
}

void nfs_closedir(struct nfs_context *context, struct nfsdir *folder)
{
    (void)context;
    for (int i = 0; i < folder->count; i++)
        free(folder->entries[i]);
    free(folder->entries);
    free(folder);
}

static int read_or_write(struct nfs_context *context, enum call_kind kind, struct nfsfh *file,
                         void *buffer, uint64_t offset, size_t bytes, nfs_cb done, void *private)
{
    nfs_stand_in.latest = context;
    return make(context,
                (struct call){.kind = kind,
                              .file = file,
                              .buffer = buffer,
                              .offset = offset,
                              .bytes = bytes,
                              .done = done,
                              .private = private},
                "");
}

#ifdef LIBNFS_API_V2
int nfs_pread_async(struct nfs_context *context, struct nfsfh *file, void *buffer, size_t bytes,
                    uint64_t offset, nfs_cb done, void *private)
{
    return read_or_write(context, READ, file, buffer, offset, bytes, done, private);
}

int nfs_pwrite_async(struct nfs_context *context, struct nfsfh *file, const void *buffer,
                     size_t bytes, uint64_t offset, nfs_cb done, void *private)
{
    return read_or_write(context, WRITE, file, (void *)(uintptr_t)buffer, offset, bytes, done,
                         private);
}
#else
int nfs_pread_async(struct nfs_context *context, struct nfsfh *file, uint64_t offset,
                    uint64_t bytes, nfs_cb done, void *private)
{
    static uint8_t buffer[NFS_BYTES]; /* of an answer: the callback copies */

    return read_or_write(context, READ, file, buffer, offset, bytes, done, private);
}

int nfs_pwrite_async(struct nfs_context *context, struct nfsfh *file, uint64_t offset,
                     uint64_t bytes, const void *buffer, nfs_cb done, void *private)
{
    return read_or_write(context, WRITE, file, (void *)(uintptr_t)buffer, offset, bytes, done,
                         private);
}
#endif
