/* SPDX-License-Identifier: Apache-2.0
 * The nfs reader: NFS 3 or 4 by libnfs, without a mount or privileges, over its own connections.
 * The data set's root and its shards are URLs: nfs://server/export/folder/...
 *
 *     FREE --submit--> WAITING (for its connection) --> OPENING --> SENT (to libnfs) --> FREE
 *                                                          | timed out: ABANDONED --> FREE
 *
 * A broken connection is re-established; its reads are WAITING meanwhile, until they time out.
 * Reads that wait are in the list of what they wait for, a connection or a file, and a turn looks
 * only at connections with events or new calls, which are marked: it costs the same at any depth
 * and with any number of others. libnfs queues calls and sends them in nfs_service(). A marked
 * connection is flushed at once, so that epoll has to watch for room only when its socket is full.
 * While libnfs mounts it may close the socket and open another one with the same number, so until
 * then a connection stays marked and is registered again in every turn. Everything runs on the
 * reader's thread: libnfs calls back only from nfs_service() and nfs_destroy_context(). */
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "dataset/store_nfs.h"
#include "readers/io_pool.h"
#include "readers/plugins.h"
#include "readers/reader.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* libnfs speaks of poll()'s events. */
_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR &&
                   EPOLLHUP == POLLHUP,
               "epoll has the events of poll");

enum { CONNECTIONS_MOST = 64, FILES_MOST = 4096, LOOKS_PER_TIMEOUT = 8 };
static const uint64_t RETRY_NS = 200000000, TICK_NS = 100000000, OPEN_NS = 10000000000;

struct nfs_settings {
    uint64_t nconnect, version;
};

#define FIELD(field) offsetof(struct nfs_settings, field)
static const struct option_spec nfs_options[] = {
    {"nconnect", 0, OPTION_COUNT, FIELD(nconnect), "4", .minimum = 1, .maximum = CONNECTIONS_MOST,
     .summary = "connections to the server"},
    {"version", 0, OPTION_COUNT, FIELD(version), "0", .zero = "auto", .maximum = 4,
     .summary = "protocol version: 3 or 4; auto prefers 3"},
    {0},
};

enum read_state { READ_FREE, READ_WAITING, READ_OPENING, READ_SENT, READ_ABANDONED };

struct read_list {
    struct nfs_read *first, *last;
};

struct nfs_read {
    enum read_state state;
    struct read_list *list; /* the one it is in, and its neighbours there */
    struct nfs_read *previous, *next;
    struct read_request *request;
    struct connection *connection;
    struct handle *handle; /* NULL while waiting */
    uint32_t got;
    uint64_t submit_ns;
};

struct connection {
    struct nfs_context *context; /* NULL: none */
    bool is_marked;
    struct connection *next_marked;
    int fd;          /* as registered with epoll, with these events */
    uint32_t events; /* 0: not registered */
    struct nfs_state *nfs;
    uint32_t number;
    enum { CONNECTION_DOWN, CONNECTION_MOUNTING, CONNECTION_UP } state;
    bool is_broken;
    uint64_t retry_ns;
    struct connection *next_down;
    struct handles handles;
    struct opening {
        struct connection *connection;
        struct handle *handle;
        struct read_list reads; /* those that wait for this file: READ_OPENING */
        struct opening *next;
    } * openings;                               /* by handle */
    struct opening *first_queued, *last_queued; /* to be opened when others are */
    struct read_list waiting;                   /* READ_WAITING */
    uint32_t sent;                              /* reads that libnfs holds */
    uint32_t opens;                             /* under way */
};

struct nfs_state {
    const struct reader_config *config;
    const struct nfs_place *place; /* the mounted folder, which contains all shards */
    uint32_t opens_most;           /* 1 for NFS 4, which numbers a client's opens */
    uint32_t connection_count;
    struct connection *connections;
    struct connection *first_down, *last_down; /* in the order of retry_ns */
    /* Among connections with the fewest reads, the one whose number changed last is taken, so that
     * at a low depth few connections open files. */
    struct {
        uint32_t reads;
        uint64_t changed;
    } loads[CONNECTIONS_MOST];
    uint64_t load_changes;
    int epoll;
    struct connection *marked;
    struct nfs_read *reads, **free;
    uint32_t free_count;
    struct request_ring finished;
    uint32_t busy, abandoned;
    uint64_t look_ns;
    struct waker waker;
    char last_error[256];
};

static void start_read(struct nfs_read *read);
static void open_queued(struct connection *connection);

static void join_list(struct read_list *list, struct nfs_read *read)
{
    read->list = list;
    read->previous = list->last;
    read->next = NULL;
    *(list->last ? &list->last->next : &list->first) = read;
    list->last = read;
}

/* Sets the state; a read that waits keeps its place only if it waits for the same again. libnfs
 * holds reads that are SENT or ABANDONED. */
static void set_state(struct nfs_read *read, enum read_state state)
{
    struct connection *connection = read->connection;
    struct nfs_state *nfs = connection->nfs;
    struct read_list *list = read->list;

    assert(state != READ_FREE || nfs->free_count < nfs->config->depth);
    connection->sent -= read->state == READ_SENT || read->state == READ_ABANDONED;
    connection->sent += state == READ_SENT || state == READ_ABANDONED;
    if (list && (state != READ_WAITING || list != &connection->waiting)) {
        *(read->previous ? &read->previous->next : &list->first) = read->next;
        *(read->next ? &read->next->previous : &list->last) = read->previous;
        read->list = NULL;
    }
    if (state == READ_WAITING && !read->list)
        join_list(&connection->waiting, read);
    read->state = state;
    if (state == READ_FREE)
        nfs->free[nfs->free_count++] = read;
}

/* Let the next turn look at it: calls were made, or files that reads wait for were released. */
static void mark(struct connection *connection)
{
    struct nfs_state *nfs = connection->nfs;

    if (connection->is_marked)
        return;
    connection->is_marked = true;
    connection->next_marked = nfs->marked;
    nfs->marked = connection;
}

static void finish_read(struct nfs_read *read, int result)
{
    struct nfs_state *nfs = read->connection->nfs;
    struct read_request *request = read->request;

    assert(request);
    request->result = result;
    request->data = request->buffer;
    request_ring_add(&nfs->finished, request);
    assert(nfs->busy > 0 && nfs->loads[read->connection->number].reads > 0);
    nfs->busy--;
    nfs->loads[read->connection->number].reads--;
    nfs->loads[read->connection->number].changed = ++nfs->load_changes;
    mark(read->connection);
    read->request = NULL;
    if (read->state == READ_SENT) {
        request->held = libnfs_writes_late; /* otherwise libnfs copies from its own memory */
        set_state(read, READ_ABANDONED);
        nfs->abandoned++;
        return;
    }
    if (read->handle)
        handles_release(&read->connection->handles, read->handle);
    set_state(read, READ_FREE);
}

/* ---- files ---- */

static void ignore(int status, struct nfs_context *context, void *body, void *private)
{
    (void)status, (void)context, (void)body, (void)private;
}

static void forget_file(void *owner, struct handle *handle)
{
    struct connection *connection = owner;

    if (connection->context && !connection->is_broken)
        nfs_close_async(connection->context, handle->remote, ignore, NULL);
}

static struct opening *opening_of(struct connection *connection, const struct handle *handle)
{
    return &connection->openings[handle - connection->handles.all];
}

/* Take the oldest file off the queue: it counts as being opened until file_opened(). */
static struct opening *take_queued(struct connection *connection)
{
    struct opening *opening = connection->first_queued;

    if (!opening)
        return NULL;
    connection->first_queued = opening->next;
    connection->opens++;
    return opening;
}

/* Continue all reads that wait for a file, or fail them with code. */
static void file_opened(struct connection *connection, struct handle *handle, int code)
{
    struct read_list *reads = &opening_of(connection, handle)->reads;
    struct nfs_read *read;

    handle->opening = false;
    assert(connection->opens > 0);
    connection->opens--;
    handle->opened = code == 0;
    while ((read = reads->first)) {
        if (nfs_link_is_lost(code)) {
            connection->is_broken = true;
            handles_release(&connection->handles, handle);
            read->handle = NULL;
            set_state(read, READ_WAITING);
        } else if (code) {
            finish_read(read, code);
        } else {
            start_read(read);
        }
    }
    handles_release(&connection->handles, handle);
    open_queued(connection);
}

static void on_stat(int status, struct nfs_context *context, void *body, void *private)
{
    struct opening *opening = private;
    const struct nfs_stat_64 *now = body;
    const struct shard *shard =
        &opening->connection->nfs->config->catalog->shards[opening->handle->shard];

    (void)context;
    if (status == 0 && (now->nfs_size != shard->bytes ||
                        store_time_ns(now->nfs_mtime, now->nfs_mtime_nsec) != shard->mtime_ns))
        status = -ESTALE;
    file_opened(opening->connection, opening->handle, status);
}

static void on_open(int status, struct nfs_context *context, void *body, void *private)
{
    struct opening *opening = private;

    if (status < 0) {
        file_opened(opening->connection, opening->handle, status);
        return;
    }
    opening->handle->remote = body;
    if (nfs_fstat64_async(context, body, on_stat, opening))
        file_opened(opening->connection, opening->handle, -EINTR);
}

/* Open as many files of the queue as may be opened at once. */
static void open_queued(struct connection *connection)
{
    struct nfs_state *nfs = connection->nfs;

    while (!connection->is_broken && connection->opens < nfs->opens_most &&
           connection->first_queued) {
        struct opening *opening = take_queued(connection);
        const struct shard *shard = &nfs->config->catalog->shards[opening->handle->shard];
        if (nfs_open_async(connection->context, nfs_place_below(nfs->place, shard->path), O_RDONLY,
                           on_open, opening))
            file_opened(connection, opening->handle, -EINTR);
    }
}

/* ---- reads ---- */

static void on_read(int status, struct nfs_context *context, void *body, void *private)
{
    struct nfs_read *read = private;
    struct connection *connection = read->connection;

    (void)context;
    if (read->state == READ_ABANDONED) {
        handles_release(&connection->handles, read->handle);
        assert(connection->nfs->abandoned > 0);
        connection->nfs->abandoned--;
        set_state(read, READ_FREE);
        return;
    }
    struct read_request *request = read->request;
    set_state(read, READ_OPENING); /* libnfs no longer holds it */
    if (nfs_link_is_lost(status)) {
        connection->is_broken = true;
        handles_release(&connection->handles, read->handle);
        read->handle = NULL;
        set_state(read, READ_WAITING);
    } else if (status < 0) {
        finish_read(read, status);
    } else {
        libnfs_take((char *)request->buffer + read->got, body, (size_t)status);
        read->got += (uint32_t)status;
        if (read->got >= request->needed) {
            finish_read(read, (int)read->got);
        } else if (status == 0) {
            finish_read(read, -ESTALE);
        } else {
            request->short_reads++;
            start_read(read);
        }
    }
}

/* Open the read's file or send the read; its connection is up. */
static void start_read(struct nfs_read *read)
{
    struct connection *connection = read->connection;
    struct read_request *request = read->request;

    mark(connection);
    if (!read->handle) {
        read->handle = handles_acquire(&connection->handles, request->shard);
        if (!read->handle) { /* all in use: wait for a release */
            set_state(read, READ_WAITING);
            return;
        }
    }
    set_state(read, READ_OPENING);
    struct handle *handle = read->handle;
    if (!handle->opened) {
        struct opening *opening = opening_of(connection, handle);
        if (handle->opening) {
            join_list(&opening->reads, read);
            return;
        }
        *opening = (struct opening){.connection = connection, .handle = handle};
        join_list(&opening->reads, read);
        handles_acquire(&connection->handles, handle->shard); /* until it is open */
        handle->opening = true;
        *(connection->first_queued ? &connection->last_queued->next : &connection->first_queued) =
            opening;
        connection->last_queued = opening;
        open_queued(connection);
        return;
    }
    set_state(read, READ_SENT);
    if (libnfs_pread_async(connection->context, read->handle->remote,
                           (char *)request->buffer + read->got, request->bytes - read->got,
                           request->offset + read->got, on_read, read))
        on_read(-EINTR, connection->context, NULL, read);
}

/* ---- connections ---- */

/* Start the reads that wait for the connection, the oldest first. */
static void start_waiting(struct connection *connection)
{
    struct nfs_read *read;

    while (!connection->is_broken && (read = connection->waiting.first)) {
        start_read(read);
        if (read == connection->waiting.first)
            break; /* all files are in use */
    }
}

static void lost(struct connection *connection, const char *why)
{
    snprintf(connection->nfs->last_error, sizeof connection->nfs->last_error, "%s",
             why ? why : "no reason given");
    connection->is_broken = true;
}

static void on_mount(int status, struct nfs_context *context, void *body, void *private)
{
    struct connection *connection = private;

    if (status < 0) {
        lost(connection, body ? body : nfs_get_error(context));
        return;
    }
    connection->state = CONNECTION_UP;
    start_waiting(connection);
}

/* Its reads are WAITING again and its files must be reopened. */
static void disconnect(struct connection *connection)
{
    struct handles *handles = &connection->handles;

    /* Callbacks must start nothing, files are not closed one by one. */
    connection->is_broken = true;
    connection->state = CONNECTION_DOWN;
    if (connection->context)
        nfs_destroy_context(connection->context);
    connection->context = NULL;
    for (struct opening *opening; (opening = take_queued(connection));)
        file_opened(connection, opening->handle, -EINTR);
    for (uint32_t i = 0; handles->all && i < handles->capacity; i++) {
        handles->all[i].remote = NULL;
        handles->all[i].opened = false;
    }
    connection->is_broken = false;
}

/* Connect again at retry_ns: no connection added before has a later one. */
static void retry_at(struct connection *connection, uint64_t retry_ns)
{
    struct nfs_state *nfs = connection->nfs;

    connection->retry_ns = retry_ns;
    connection->next_down = NULL;
    *(nfs->first_down ? &nfs->last_down->next_down : &nfs->first_down) = connection;
    nfs->last_down = connection;
}

/* Send the calls made and wait for what libnfs waits for. Returns false if the connection broke. */
static bool flush(struct connection *connection)
{
    const bool is_mounting = connection->state != CONNECTION_UP;
    uint32_t events = (uint32_t)nfs_which_events(connection->context);

    /* While it mounts, POLLOUT would tell libnfs that the socket is connected. */
    if (events & EPOLLOUT && !is_mounting) {
        if (nfs_service(connection->context, POLLOUT) < 0)
            return false;
        events = (uint32_t)nfs_which_events(connection->context);
    }
    /* A closed socket has left the epoll set, and its number may be in use again. */
    struct epoll_event event = {.events = events, .data.ptr = connection};
    const int fd = nfs_get_fd(connection->context), epoll = connection->nfs->epoll;
    if (!is_mounting && fd == connection->fd && events == connection->events)
        return true;
    connection->fd = fd;
    connection->events = events;
    if (fd < 0 || epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0)
        return true; /* without a socket libnfs will open one, or the mount times out */
    return errno == ENOENT && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Look once at each marked connection; what that marks is for the next call. */
static void look_at_marked(struct nfs_state *nfs)
{
    struct connection *connection = nfs->marked;

    nfs->marked = NULL;
    for (struct connection *next; connection; connection = next) {
        next = connection->next_marked;
        if (connection->state == CONNECTION_UP)
            start_waiting(connection);
        if (connection->context && !connection->is_broken && !flush(connection))
            lost(connection, nfs_get_error(connection->context));
        if (connection->is_broken) {
            disconnect(connection);
            retry_at(connection, clock_now_ns() + RETRY_NS);
        }
        connection->is_marked = false; /* calls made here were flushed */
        if (connection->context && connection->state != CONNECTION_UP)
            mark(connection);
    }
}

static void serve(struct nfs_state *nfs, uint64_t wait_ns)
{
    const uint64_t now_ns = clock_now_ns();
    struct epoll_event events[CONNECTIONS_MOST + 1];

    for (struct connection *down; (down = nfs->first_down) && now_ns >= down->retry_ns;) {
        nfs->first_down = down->next_down;
        mark(down);
        down->context = nfs_new_context(nfs->place);
        if (!down->context) {
            down->is_broken = true;
            continue;
        }
        down->state = CONNECTION_MOUNTING;
        if (nfs_mount_async(down->context, nfs->place->server, nfs->place->folder, on_mount, down))
            lost(down, nfs_get_error(down->context));
    }
    look_at_marked(nfs);
    const int ready =
        epoll_wait(nfs->epoll, events, CONNECTIONS_MOST + 1, (int)((wait_ns + 999999) / 1000000));
    for (int i = 0; i < ready; i++) {
        struct connection *connection = events[i].data.ptr;
        if (!connection) {
            waker_silence(&nfs->waker);
            continue;
        }
        mark(connection);
        if (nfs_service(connection->context, (int)events[i].events) < 0)
            lost(connection, nfs_get_error(connection->context));
    }
    look_at_marked(nfs);
}

/* ---- the family's calls ---- */

static int nfs_reader_submit(void *state, struct read_request *request)
{
    struct nfs_state *nfs = state;

    if (nfs->free_count == 0 && nfs->busy == 0)
        return fail(ETIMEDOUT, "server not responding: the last %u reads timed out",
                    nfs->abandoned);
    if (nfs->free_count == 0)
        return -EAGAIN;
    uint32_t number = 0;
    for (uint32_t i = 1; i < nfs->connection_count; i++)
        if (nfs->loads[i].reads < nfs->loads[number].reads ||
            (nfs->loads[i].reads == nfs->loads[number].reads &&
             nfs->loads[i].changed > nfs->loads[number].changed))
            number = i;
    nfs->loads[number].reads++;
    nfs->loads[number].changed = ++nfs->load_changes;
    struct connection *idlest = &nfs->connections[number];
    struct nfs_read *read = nfs->free[--nfs->free_count];
    *read = (struct nfs_read){
        .request = request, .connection = idlest, .submit_ns = request->submit_ns};
    set_state(read, READ_WAITING);
    nfs->busy++;
    if (idlest->state == CONNECTION_UP && !idlest->is_broken)
        start_read(read);
    return 0;
}

static int nfs_reader_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct nfs_state *nfs = state;
    uint64_t now_ns = clock_now_ns();
    const uint64_t until_ns = wait_ns < UINT64_MAX - now_ns ? now_ns + wait_ns : UINT64_MAX;

    for (;;) {
        uint64_t left_ns = until_ns - now_ns < TICK_NS ? until_ns - now_ns : TICK_NS;
        const bool asked = waker_was_asked(&nfs->waker);
        serve(nfs, nfs->finished.count || asked ? 0 : left_ns);
        now_ns = clock_now_ns();
        const uint64_t timeout_ns = nfs->config->timeout_ns;
        const bool looks = timeout_ns && now_ns >= nfs->look_ns;
        if (looks)
            nfs->look_ns = now_ns + timeout_ns / LOOKS_PER_TIMEOUT + 1;
        for (uint32_t i = 0; looks && i < nfs->config->depth; i++)
            if (nfs->reads[i].request && now_ns - nfs->reads[i].submit_ns > timeout_ns)
                finish_read(&nfs->reads[i], -ETIMEDOUT);
        if (nfs->finished.count > 0 || now_ns >= until_ns || asked || waker_was_asked(&nfs->waker))
            break;
    }
    return (int)request_ring_take(&nfs->finished, done, max);
}

/* ---- life ---- */

static int nfs_reader_open(void *state, const void *chosen, const struct reader_config *config,
                           struct reader_traits *traits)
{
    const struct nfs_settings *settings = chosen;
    struct nfs_state *nfs = state;
    struct epoll_event waking = {.events = EPOLLIN}; /* data.ptr NULL: the waker */

    nfs->config = config;
    int code = waker_open(&nfs->waker);
    if (code)
        return code;
    nfs->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (nfs->epoll < 0)
        return fail(errno, "epoll_create1: %s", fail_errno_text(errno));
    if (epoll_ctl(nfs->epoll, EPOLL_CTL_ADD, nfs->waker.fd, &waking))
        return fail(errno, "epoll_ctl: %s", fail_errno_text(errno));
    if (settings->version == 1 || settings->version == 2)
        return fail(EINVAL, "NFS version %d is not supported: use 3, 4 or auto",
                    (int)settings->version);
    code = nfs_place_find(config->catalog->root, (int)settings->version, &nfs->place);
    for (uint32_t i = 0; code == 0 && i < config->catalog->shard_count; i++)
        if (!nfs_place_holds(nfs->place, config->catalog->shards[i].path))
            code = fail(EINVAL, "%s is not in %s", config->catalog->shards[i].path,
                        config->catalog->root);
    if (code)
        return code;
    nfs->opens_most = nfs->place->version == 4 ? 1 : UINT32_MAX;
    nfs->reads = memory_array(config->depth, sizeof *nfs->reads);
    nfs->free = memory_array(config->depth, sizeof *nfs->free);
    nfs->connections = memory_array(settings->nconnect, sizeof *nfs->connections);
    if (request_ring_open(&nfs->finished, config->depth) || !nfs->reads || !nfs->free ||
        !nfs->connections)
        return -ENOMEM;
    for (uint32_t i = config->depth; i-- > 0;)
        nfs->free[nfs->free_count++] = &nfs->reads[i];
    while (nfs->connection_count < settings->nconnect) {
        struct connection *connection = &nfs->connections[nfs->connection_count];
        connection->nfs = nfs;
        connection->number = nfs->connection_count++; /* close() releases it from here on */
        retry_at(connection, 0);
        code = handles_create(&connection->handles, config->catalog, HANDLES_REMOTE,
                              config->depth > FILES_MOST ? config->depth : FILES_MOST, 0);
        if (code)
            return code;
        connection->handles.forget = forget_file;
        connection->handles.owner = connection;
        connection->openings =
            memory_array(connection->handles.capacity, sizeof *connection->openings);
        if (!connection->openings)
            return -ENOMEM;
    }
    snprintf(traits->engine, sizeof traits->engine, "libnfs, NFS %d over %u connections",
             nfs->place->version, nfs->connection_count);
    const uint64_t patience_ns =
        config->timeout_ns && config->timeout_ns < OPEN_NS ? config->timeout_ns : OPEN_NS;
    const uint64_t until_ns = clock_now_ns() + patience_ns;
    for (uint32_t i = 0; i < nfs->connection_count;) {
        if (nfs->connections[i].state == CONNECTION_UP) {
            i++;
            continue;
        }
        serve(nfs, TICK_NS);
        i = 0;
        if (clock_now_ns() > until_ns)
            return fail(EHOSTUNREACH, "nfs://%s%s cannot be reached: %s", nfs->place->server,
                        nfs->place->folder, nfs->last_error[0] ? nfs->last_error : "no answer");
    }
    return 0;
}

static void nfs_reader_close(void *state)
{
    struct nfs_state *nfs = state;

    for (uint32_t i = 0; i < nfs->connection_count; i++) {
        struct connection *connection = &nfs->connections[i];
        /* Calls that are under way or queued end as lost when their connection is destroyed. */
        if (connection->opens > 0 || connection->sent > 0 || connection->first_queued)
            disconnect(connection);
        handles_destroy(&connection->handles); /* closes files if connected */
        disconnect(connection);
        free(connection->openings);
    }
    if (nfs->epoll > 0)
        close(nfs->epoll);
    waker_close(&nfs->waker);
    free(nfs->connections);
    free(nfs->reads);
    free(nfs->free);
    free(nfs->finished.entries);
}

static void nfs_reader_wake(void *state)
{
    waker_wake(&((struct nfs_state *)state)->waker);
}

const struct reader_ops reader_nfs = {
    .plugin = {.name = "nfs",
               .summary = "NFS by libnfs: no mount, no privileges, its own connections",
               .options = nfs_options,
               .settings_size = sizeof(struct nfs_settings),
               .state_size = sizeof(struct nfs_state)},
    .scheme = "nfs://",
    .bypasses_cache = true,
    .open = nfs_reader_open,
    .close = nfs_reader_close,
    .submit = nfs_reader_submit,
    .reap = nfs_reader_reap,
    .wake = nfs_reader_wake,
};
