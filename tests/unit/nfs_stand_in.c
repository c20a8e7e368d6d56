/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/nfs_stand_in.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOPS = 3 };

struct call {
    nfs_cb done;
    void *private;
    enum { MOUNT, STAT, OPEN, READ, CLOSE } kind;
    void *buffer;
    uint64_t offset;
    size_t bytes;
};

struct nfs_context {
    int fd, peer;
    int hops; /* sockets until it is mounted */
    struct call calls[NFS_CALLS_MOST];
    uint32_t answered, sent, made; /* calls, by number */
    uint32_t reads;
};

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
    nfs_stand_in.contexts++;
    return context;
}

void nfs_destroy_context(struct nfs_context *context)
{
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
    (void)context, (void)retries;
}

void nfs_set_dircache(struct nfs_context *context, int enabled)
{
    (void)context, (void)enabled;
}

int nfs_set_version(struct nfs_context *context, int version)
{
    (void)context;
    return version == 3 ? 0 : -1;
}

void nfs4_set_client_name(struct nfs_context *context, const char *name)
{
    (void)context, (void)name;
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

static void answer(struct nfs_context *context)
{
    struct call *call = &context->calls[context->answered % NFS_CALLS_MOST];
    static struct nfs_stat_64 status = {.nfs_mode = S_IFREG, .nfs_size = NFS_FILE_BYTES};

    if (call->kind == MOUNT && context->hops > 0) {
        hop(context);
        return;
    }
    context->answered++;
    if (call->kind == READ) {
        nfs_stand_in.readers += context->reads++ == 0;
        memset(call->buffer, (int)(call->offset / NFS_BYTES), call->bytes);
        call->done((int)call->bytes, context, call->buffer, call->private);
    } else if (call->kind == STAT) {
        status.nfs_mode = call->bytes ? S_IFDIR : S_IFREG;
        status.nfs_mtime = nfs_stand_in.mtime_s;
        call->done(0, context, &status, call->private);
    } else {
        call->done(0, context, context, call->private);
    }
}

int nfs_service(struct nfs_context *context, int events)
{
    char byte = 0;

    nfs_stand_in.polled++;
    if (context == nfs_stand_in.cut) {
        nfs_stand_in.cut = NULL;
        return -1;
    }
    const int hops = context->hops; /* a new socket is read when it is ready */
    while (events & POLLIN && context->hops == hops && read(context->fd, &byte, 1) == 1)
        answer(context);
    for (uint32_t i = 0; events & POLLOUT && context->sent < context->made; i++) {
        if (nfs_stand_in.sends_most && i == nfs_stand_in.sends_most)
            break;
        context->sent++;
        MUST(write(context->peer, &byte, 1) == 1);
    }
    return 0;
}

static int make(struct nfs_context *context, struct call call)
{
    MUST(context->made - context->answered < NFS_CALLS_MOST);
    context->calls[context->made++ % NFS_CALLS_MOST] = call;
    return 0;
}

int nfs_mount_async(struct nfs_context *context, const char *name, const char *folder, nfs_cb done,
                    void *private)
{
    (void)name, (void)folder;
    context->hops = HOPS;
    return make(context, (struct call){.kind = MOUNT, .done = done, .private = private});
}

int nfs_stat64_async(struct nfs_context *context, const char *path, nfs_cb done, void *private)
{
    (void)path;
    return make(context, (struct call){.kind = STAT, .bytes = 1, .done = done, .private = private});
}

int nfs_fstat64_async(struct nfs_context *context, struct nfsfh *file, nfs_cb done, void *private)
{
    (void)file;
    return make(context, (struct call){.kind = STAT, .done = done, .private = private});
}

int nfs_open_async(struct nfs_context *context, const char *path, int flags, nfs_cb done,
                   void *private)
{
    (void)path, (void)flags;
    return make(context, (struct call){.kind = OPEN, .done = done, .private = private});
}

int nfs_open2_async(struct nfs_context *context, const char *path, int flags, int mode, nfs_cb done,
                    void *private)
{
    (void)mode;
    nfs_stand_in.opened = path;
    return nfs_open_async(context, path, flags, done, private);
}

int nfs_close_async(struct nfs_context *context, struct nfsfh *file, nfs_cb done, void *private)
{
    (void)file;
    return make(context, (struct call){.kind = CLOSE, .done = done, .private = private});
}

static int read_at(struct nfs_context *context, void *buffer, uint64_t offset, size_t bytes,
                   nfs_cb done, void *private)
{
    nfs_stand_in.latest = context;
    return make(context, (struct call){.kind = READ,
                                       .buffer = buffer,
                                       .offset = offset,
                                       .bytes = bytes,
                                       .done = done,
                                       .private = private});
}

#ifdef LIBNFS_API_V2
int nfs_pread_async(struct nfs_context *context, struct nfsfh *file, void *buffer, size_t bytes,
                    uint64_t offset, nfs_cb done, void *private)
{
    (void)file;
    return read_at(context, buffer, offset, bytes, done, private);
}
#else
int nfs_pread_async(struct nfs_context *context, struct nfsfh *file, uint64_t offset,
                    uint64_t bytes, nfs_cb done, void *private)
{
    static uint8_t buffer[NFS_BYTES]; /* of an answer: the callback copies */

    (void)file;
    return read_at(context, buffer, offset, bytes, done, private);
}
#endif
