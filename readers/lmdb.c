/* SPDX-License-Identifier: Apache-2.0
 * The lmdb reader: zero-copy values from liblmdb's own mapping, with the flags and the single
 * thread of Caffe, to compare page faults with reading the same extents by another reader.
 *
 * liblmdb trusts its file. So a file is opened only if it is unchanged since the page walk checked
 * it, and its size is checked again before each request.
 */
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "dataset/catalog.h"
#include "readers/io_pool.h"
#include "readers/plugins.h"

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct lmdb_settings {
    uint64_t threads;
    bool readahead;
};

#define FIELD(field) offsetof(struct lmdb_settings, field)
static const struct option_spec lmdb_options[] = {
    {"threads", 0, OPTION_COUNT, FIELD(threads), "1", .minimum = 1, .maximum = 4096,
     .summary = "threads that take page faults; Caffe uses 1"},
    {"readahead", 0, OPTION_FLAG, FIELD(readahead), "yes",
     .summary = "enable the kernel's readahead, as Caffe does; no: MDB_NORDAHEAD, as LSUN does"},
    {0},
};

struct database {
    MDB_env *environment;
    MDB_txn *transaction; /* while open, no page is reused */
    const uint8_t *base;  /* of the mapping */
};

struct lmdb_state {
    struct io_pool *pool; /* first, for the operations of io_pool.h */
    const struct catalog *catalog;
    struct database *databases; /* one per shard */
    int pagemap;
};

static int fail_lmdb(const struct shard *shard, const char *what, int code)
{
    return fail(code > 0 ? code : EBADMSG, "%s: %s: %s", shard->path, what, mdb_strerror(code));
}

/* Under the fault guard: a file truncated meanwhile is an error, not a SIGBUS. */
static int open_mapped(struct database *database, const struct catalog *catalog,
                       const struct shard *shard, unsigned flags)
{
    const struct extent *first =
        shard->record_count ? catalog_extent(catalog, shard->first_record) : NULL;
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    MDB_dbi main_database;
    MDB_envinfo now;
    MDB_stat pages;
    struct stat status;
    char path[32];

    /* liblmdb must not see a file that the page walk has not checked: it gets the checked
     * descriptor, not the name. */
    int fd = file_open(shard->path, O_RDONLY, &status);
    if (fd < 0)
        return fd;
    const struct store_status now_there = store_status_of(&status);
    if (now_there.bytes != shard->bytes || now_there.mtime_ns != shard->mtime_ns) {
        close(fd);
        return fail(ESTALE, "%s: changed since it was indexed", shard->path);
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int code = mdb_env_create(&database->environment);
    if (code == 0)
        code = mdb_env_open(database->environment, path,
                            flags | MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS, 0);
    close(fd);
    if (code == 0)
        code = mdb_env_info(database->environment, &now);
    if (code == 0)
        code = mdb_env_stat(database->environment, &pages);
    if (code)
        return fail_lmdb(shard, "cannot open", code);
    if ((now.me_last_pgno + 1) * pages.ms_psize > shard->bytes)
        return fail(EBADMSG, "%s: the file is shorter than its meta page says", shard->path);
    code = mdb_txn_begin(database->environment, NULL, MDB_RDONLY, &database->transaction);
    if (code)
        return fail_lmdb(shard, "cannot begin a read transaction", code);
    if (!first)
        return 0;
    /* mdb_env_info() does not return the mapping's address. Derive it from the first value, which
     * is the shard's first record, whose offset the catalog knows; layout counts those before it.
     */
    code = mdb_dbi_open(database->transaction, NULL, 0, &main_database);
    if (code == 0)
        code = mdb_cursor_open(database->transaction, main_database, &cursor);
    if (code)
        return fail_lmdb(shard, "cannot open the database", code);
    for (uint64_t left = shard->layout + 1; code == 0 && left > 0;) {
        code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        left -= code == 0 && catalog_is_sample_key(key.mv_data, key.mv_size);
    }
    mdb_cursor_close(cursor);
    if (code)
        return fail_lmdb(shard, "cannot find the first value", code);
    uintptr_t place = (uintptr_t)value.mv_data - first->offset;
    if (value.mv_size != first->bytes || place % (uintptr_t)sysconf(_SC_PAGESIZE))
        return fail(ESTALE, "%s: the first value is not where the index says", shard->path);
    database->base = (const uint8_t *)value.mv_data - first->offset;
    return 0;
}

/* Uses a second descriptor: liblmdb does not expose its own. */
static void lmdb_task(struct io_task *task)
{
    struct stat now;

    if (fstat(task->handle->fd, &now)) {
        task->result = -errno;
        return;
    }
    uint64_t size = (uint64_t)now.st_size;
    uint64_t left = task->offset < size ? size - task->offset : 0;
    borrow_pages(task, task->buffer, left < task->bytes ? (uint32_t)left : task->bytes);
}

static bool lmdb_task_at_once(void *state, struct io_task *task)
{
    return borrow_resident(((struct lmdb_state *)state)->pagemap, task, task->buffer);
}

static int lmdb_open(void *state, const void *chosen, const struct reader_config *config,
                     struct reader_traits *traits)
{
    const struct lmdb_settings *settings = chosen;
    const struct catalog *catalog = config->catalog;
    struct lmdb_state *lmdb = state;
    struct io_pool_settings pool_settings = {.config = config,
                                             .threads = (uint32_t)settings->threads,
                                             .work = lmdb_task,
                                             .at_once = lmdb_task_at_once,
                                             .state = state};
    int code = 0;

    lmdb->pagemap = zero_copy_open();
    const char *name = reader_lmdb.plugin.name; /* of the format, too */
    if (strcmp(catalog->format, name) != 0)
        return fail(EINVAL, "%s: the %s reader reads format %s, not %s; choose another reader",
                    catalog->root, name, name, catalog->format);
    lmdb->catalog = catalog;
    lmdb->databases = memory_array(catalog->shard_count, sizeof *lmdb->databases);
    if (!lmdb->databases)
        return -ENOMEM;
    for (uint32_t i = 0; code == 0 && i < catalog->shard_count; i++) {
        fault_guard_begin();
        code = open_mapped(&lmdb->databases[i], catalog, &catalog->shards[i],
                           settings->readahead ? 0 : MDB_NORDAHEAD);
        if (!fault_guard_end(NULL, 0))
            code = fail(ESTALE, "%s: %s", catalog->shards[i].path, fault_guard_reason);
    }
    if (code == 0)
        code = io_pool_create(&lmdb->pool, &pool_settings, &traits->alignment);
    if (code)
        return code;
    traits->zero_copy = true;
    snprintf(traits->engine, sizeof traits->engine, "liblmdb %d.%d.%d, pages faulted in by %u %s",
             MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH, io_pool_threads(lmdb->pool),
             io_pool_threads(lmdb->pool) == 1 ? "thread" : "threads");
    return 0;
}

static void lmdb_close(void *state)
{
    struct lmdb_state *lmdb = state;

    io_pool_destroy(lmdb->pool);
    if (lmdb->pagemap >= 0)
        close(lmdb->pagemap);
    for (uint32_t i = 0; lmdb->databases && i < lmdb->catalog->shard_count; i++) {
        if (lmdb->databases[i].transaction)
            mdb_txn_abort(lmdb->databases[i].transaction);
        if (lmdb->databases[i].environment)
            mdb_env_close(lmdb->databases[i].environment);
    }
    free(lmdb->databases);
}

static int lmdb_submit(void *state, struct read_request *request)
{
    struct lmdb_state *lmdb = state;

    request->buffer = (void *)(uintptr_t)(lmdb->databases[request->shard].base + request->offset);
    return io_pool_submit(lmdb, request);
}

const struct reader_ops reader_lmdb = {
    .plugin = {.name = "lmdb",
               .summary = "zero-copy reads from liblmdb's own mapping, as Caffe does",
               .options = lmdb_options,
               .settings_size = sizeof(struct lmdb_settings),
               .state_size = sizeof(struct lmdb_state)},
    .open = lmdb_open,
    .close = lmdb_close,
    .submit = lmdb_submit,
    .reap = io_pool_reap,
    .wake = io_pool_wake,
    .release = io_pool_release,
};
