/* SPDX-License-Identifier: Apache-2.0
 *
 * The nfs reader on a libnfs made here, which answers at once over a pair of sockets each: a turn
 * costs as many calls of libnfs with 64 connections as with one, a mount may change the socket
 * under the same number, a full socket is continued, a broken connection is made again. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fail.h"
#include "dataset/libnfs.h"
#include "readers/idlest.h"
#include "readers/reader.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CALLS_MOST = 64, DEPTH = 64, BYTES = 512, SHARD_BYTES = 1 << 20, SHARDS = 3, HOPS = 3 };

struct call {
    nfs_cb done;
    void *private;
    enum { MOUNT, STAT, OPEN, READ } kind;
    void *buffer;
    uint64_t offset;
    size_t bytes;
};

struct nfs_context {
    int fd, peer;
    int hops; /* sockets until it is mounted */
    struct call calls[CALLS_MOST];
    uint32_t answered, sent, made; /* calls, by number */
    uint32_t reads;
};

static struct server {
    uint64_t polled;     /* calls that a turn makes for a connection it looks at */
    uint32_t contexts;   /* mounted and not destroyed */
    uint32_t sends_most; /* calls that fit into a socket; 0: all */
    struct nfs_context *cut;
    struct nfs_context *latest;
    uint32_t readers; /* contexts that have served reads */
} server;

/* ---- libnfs ---- */

static void open_pair(struct nfs_context *context)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    context->fd = pair[0];
    context->peer = pair[1];
}

struct nfs_context *nfs_init_context(void)
{
    struct nfs_context *context = calloc(1, sizeof *context);

    assert_non_null(context);
    open_pair(context);
    server.contexts++;
    return context;
}

void nfs_destroy_context(struct nfs_context *context)
{
    close(context->fd);
    close(context->peer);
    while (context->answered < context->made) {
        struct call *call = &context->calls[context->answered++ % CALLS_MOST];
        call->done(-EINTR, context, NULL, call->private);
    }
    server.contexts--;
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
    server.polled++;
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
    assert_int_equal(context->fd, fd);
    if (context->hops-- % 2)
        context->sent--; /* asked again there */
    else
        assert_int_equal(write(context->peer, &byte, 1), 1); /* answered again there */
}

static void answer(struct nfs_context *context)
{
    struct call *call = &context->calls[context->answered % CALLS_MOST];
    static struct nfs_stat_64 status = {.nfs_mode = S_IFREG, .nfs_size = SHARD_BYTES};

    if (call->kind == MOUNT && context->hops > 0) {
        hop(context);
        return;
    }
    context->answered++;
    if (call->kind == READ) {
        server.readers += context->reads++ == 0;
        memset(call->buffer, (int)(call->offset / BYTES), call->bytes);
        call->done((int)call->bytes, context, call->buffer, call->private);
    } else if (call->kind == STAT) {
        status.nfs_mode = call->bytes ? S_IFDIR : S_IFREG;
        call->done(0, context, &status, call->private);
    } else {
        call->done(0, context, context, call->private);
    }
}

int nfs_service(struct nfs_context *context, int events)
{
    char byte = 0;

    server.polled++;
    if (context == server.cut) {
        server.cut = NULL;
        return -1;
    }
    const int hops = context->hops; /* a new socket is read when it is ready */
    while (events & POLLIN && context->hops == hops && read(context->fd, &byte, 1) == 1)
        answer(context);
    for (uint32_t i = 0; events & POLLOUT && context->sent < context->made; i++) {
        if (server.sends_most && i == server.sends_most)
            break;
        context->sent++;
        assert_int_equal(write(context->peer, &byte, 1), 1);
    }
    return 0;
}

static int make(struct nfs_context *context, struct call call)
{
    assert_true(context->made - context->answered < CALLS_MOST);
    context->calls[context->made++ % CALLS_MOST] = call;
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

int nfs_close_async(struct nfs_context *context, struct nfsfh *file, nfs_cb done, void *private)
{
    (void)context, (void)file, (void)done, (void)private;
    return 0;
}

static int read_at(struct nfs_context *context, void *buffer, uint64_t offset, size_t bytes,
                   nfs_cb done, void *private)
{
    server.latest = context;
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
    static uint8_t buffer[BYTES]; /* of an answer: the callback copies */

    (void)file;
    return read_at(context, buffer, offset, bytes, done, private);
}
#endif

/* ---- the reader ---- */

static struct rig {
    struct catalog *catalog;
    struct plugin_choice choice;
    struct reader reader;
    struct iovec region;
    struct read_request requests[DEPTH];
} rig;

static void open_reader(const char *reader)
{
    server = (struct server){0};
    rig.catalog = catalog_create("nfs://there/set", "test");
    for (uint32_t i = 0; i < SHARDS; i++) {
        char path[64];
        snprintf(path, sizeof path, "nfs://there/set/%u", i);
        const struct store_status status = {.kind = STORE_FILE, .bytes = SHARD_BYTES};
        assert_int_equal(catalog_begin_shard(rig.catalog, path, &status, 0), 0);
        assert_int_equal(catalog_add(rig.catalog, 0, SHARD_BYTES), 0);
    }
    rig.region = (struct iovec){.iov_base = calloc(DEPTH, BYTES), .iov_len = DEPTH * BYTES};
    const struct reader_config config = {.catalog = rig.catalog,
                                         .regions = &rig.region,
                                         .region_count = 1,
                                         .depth = DEPTH,
                                         .bytes_max = BYTES,
                                         .timeout_ns = PATIENCE_NS};
    assert_int_equal(plugin_choose("reader", reader_registry, reader, &rig.choice), 0);
    if (reader_open(&rig.reader, &rig.choice, &config))
        fail_msg("%s", fail_reason());
}

static void close_reader(void)
{
    reader_close(&rig.reader);
    plugin_release(&rig.choice);
    catalog_destroy(rig.catalog);
    free(rig.region.iov_base);
}

static void submit(uint32_t index)
{
    struct read_request *request = &rig.requests[index];

    *request = (struct read_request){.shard = index % SHARDS,
                                     .offset = (uint64_t)index * BYTES,
                                     .bytes = BYTES,
                                     .needed = BYTES,
                                     .buffer = (uint8_t *)rig.region.iov_base + index * BYTES};
    assert_int_equal(reader_submit(&rig.reader, request), 0);
}

static void reap(uint32_t count)
{
    struct read_request *done[DEPTH];
    uint64_t until_ns = clock_now_ns() + PATIENCE_NS;

    while (count > 0 && clock_now_ns() < until_ns) {
        int got = reader_reap(&rig.reader, done, DEPTH, PATIENCE_NS);
        assert_true(got >= 0);
        for (int i = 0; i < got; i++) {
            assert_int_equal(done[i]->result, BYTES);
            assert_int_equal(*(uint8_t *)done[i]->data, (uint8_t)(done[i] - rig.requests));
        }
        count -= (uint32_t)got;
    }
    assert_int_equal(count, 0);
}

/* ---- tests ---- */

/* Return libnfs's calls for 100 single reads, one after the other. */
static uint64_t calls_of(const char *reader)
{
    open_reader(reader);
    for (uint32_t i = 0; i < DEPTH; i++) {
        submit(i);
        reap(1);
    }
    server.polled = 0;
    for (uint32_t i = 0; i < 100; i++) {
        submit(i % DEPTH);
        reap(1);
    }
    uint64_t calls = server.polled;
    close_reader();
    return calls;
}

static void test_idle_connections_cost_nothing(void **unused)
{
    (void)unused;
    uint64_t one = calls_of("nfs:1,version=3");
    assert_int_equal(calls_of("nfs:64,version=3"), one);
    assert_in_range(one, 100, 600);
}

static void test_reads_spread(void **unused)
{
    (void)unused;
    open_reader("nfs:64,version=3");
    for (uint32_t i = 0; i < DEPTH; i++)
        submit(i);
    reap(DEPTH);
    assert_int_equal(server.readers, 64);
    close_reader();
}

static void test_full_socket(void **unused)
{
    (void)unused;
    open_reader("nfs:1,version=3");
    server.sends_most = 1;
    for (uint32_t i = 0; i < DEPTH / 2; i++)
        submit(i);
    reap(DEPTH / 2);
    close_reader();
}

static void test_broken_connection(void **unused)
{
    (void)unused;
    open_reader("nfs:2,version=3");
    uint32_t contexts = server.contexts;
    for (uint32_t i = 0; i < SHARDS * 2; i++)
        submit(i);
    reap(SHARDS * 2);
    for (uint32_t i = 0; i < DEPTH / 2; i++)
        submit(i);
    server.cut = server.latest;
    reap(DEPTH / 2);
    assert_null(server.cut);
    assert_int_equal(server.contexts, contexts);
    close_reader();
}

static void test_idlest(void **unused)
{
    enum { MEMBERS = 5, READS = 40 };
    struct idlest idlest;
    uint32_t reads[MEMBERS] = {0}, total = 0;

    (void)unused;
    assert_int_equal(idlest_create(&idlest, MEMBERS, READS), 0);
    for (uint32_t turn = 0; turn < 10000; turn++) {
        uint32_t member = turn * 2654435761u % 7919 % MEMBERS;
        if (total < READS && (turn * 40503u >> 9) % 5 < 3) {
            uint32_t taken = idlest_take(&idlest);
            for (uint32_t i = 0; i < MEMBERS; i++)
                assert_true(reads[taken] <= reads[i]);
            reads[taken]++;
            total++;
        } else if (reads[member] > 0) {
            idlest_give(&idlest, member);
            reads[member]--;
            total--;
        }
    }
    idlest_destroy(&idlest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idlest),
        cmocka_unit_test(test_idle_connections_cost_nothing),
        cmocka_unit_test(test_reads_spread),
        cmocka_unit_test(test_full_socket),
        cmocka_unit_test(test_broken_connection),
    };

    alarm(PATIENCE_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
