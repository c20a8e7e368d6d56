/* SPDX-License-Identifier: Apache-2.0
 * The lmdb reader: the values of a database out of liblmdb's own map, with the flags and on the
 * one thread that Caffe uses, so that what page faults cost can be compared with reading the
 * same extents by another reader.
 *
 * liblmdb trusts its file, and a fault on a page that cannot be read ends the program by SIGBUS.
 * So only a file that is just as it was when the walk over its pages checked it is opened, and
 * its size is looked at again before each request; a damaged device remains a danger that the
 * other readers do not have.
 */
#include "readers/plugins.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct lmdb_settings {
    bool touch, readahead;
};

static const struct option_spec lmdb_options[] = {
    {.name = "touch",
     .type = OPTION_FLAG,
     .offset = offsetof(struct lmdb_settings, touch),
     .fallback = "yes",
     .summary = "take the page faults in the reader; no: whoever decodes takes them"},
    {.name = "readahead",
     .type = OPTION_FLAG,
     .offset = offsetof(struct lmdb_settings, readahead),
     .fallback = "yes",
     .summary = "let the kernel read ahead, as Caffe does; no: MDB_NORDAHEAD, as LSUN does"},
    {0},
};

struct database {
    MDB_env *environment;
    MDB_txn *transaction; /* while it lives, no page of it is used again */
    const uint8_t *base;  /* of the map */
    int fd;               /* liblmdb's */
};

struct lmdb_state {
    const struct catalog *catalog;
    struct database *databases; /* one a shard */
    struct read_request **done;
    uint32_t head, count, depth;
    bool touch;
};

static int fail_lmdb(const struct shard *shard, const char *what, int code)
{
    return fail(code > 0 ? code : EBADMSG, "%s: %s: %s", shard->path, what, mdb_strerror(code));
}

/* liblmdb must not see a file that the walk over its pages has not. */
static int check_unchanged(const struct shard *shard)
{
    struct stat now;

    if (stat(shard->path, &now))
        return fail(errno, "%s: %s", shard->path, fail_errno_text(errno));
    if ((uint64_t)now.st_size != shard->bytes ||
        now.st_mtim.tv_sec * INT64_C(1000000000) + now.st_mtim.tv_nsec != shard->mtime_ns)
        return fail(ESTALE, "%s: changed since it was indexed", shard->path);
    return 0;
}

static bool is_sample(const MDB_val *key)
{
    return !(key->mv_size == 7 && memcmp(key->mv_data, "__len__", 7) == 0) &&
           !(key->mv_size == 8 && memcmp(key->mv_data, "__keys__", 8) == 0);
}

/* mdb_env_info() does not tell where the map is. The first value is the first record of the
 * shard, whose place in the file the catalog knows. */
static int find_base(struct database *database, const struct shard *shard,
                     const struct extent *first)
{
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    MDB_dbi main_database;
    int code = mdb_dbi_open(database->transaction, NULL, 0, &main_database);

    if (code == 0)
        code = mdb_cursor_open(database->transaction, main_database, &cursor);
    if (code)
        return fail_lmdb(shard, "cannot open the database", code);
    do
        code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    while (code == 0 && !is_sample(&key));
    mdb_cursor_close(cursor);
    if (code)
        return fail_lmdb(shard, "cannot find its first value", code);
    uintptr_t place = (uintptr_t)value.mv_data - first->offset;
    if (value.mv_size != first->bytes || place % (uintptr_t)sysconf(_SC_PAGESIZE))
        return fail(ESTALE, "%s: its first value is not where the index has it", shard->path);
    database->base = (const uint8_t *)value.mv_data - first->offset;
    return 0;
}

static int open_database(struct database *database, const struct catalog *catalog,
                         const struct shard *shard, unsigned flags)
{
    MDB_envinfo now;
    MDB_stat pages;
    int code = check_unchanged(shard);

    if (code)
        return code;
    code = mdb_env_create(&database->environment);
    if (code == 0)
        code = mdb_env_open(database->environment, shard->path,
                            flags | MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS, 0);
    if (code == 0)
        code = mdb_env_info(database->environment, &now);
    if (code == 0)
        code = mdb_env_stat(database->environment, &pages);
    if (code)
        return fail_lmdb(shard, "cannot open", code);
    if ((now.me_last_pgno + 1) * pages.ms_psize > shard->bytes)
        return fail(EBADMSG, "%s: the file is shorter than its meta page says", shard->path);
    code = mdb_env_get_fd(database->environment, &database->fd);
    if (code == 0)
        code = mdb_txn_begin(database->environment, NULL, MDB_RDONLY, &database->transaction);
    if (code)
        return fail_lmdb(shard, "cannot begin to read", code);
    return shard->record_count
               ? find_base(database, shard, catalog_extent(catalog, shard->first_record))
               : 0;
}

static int lmdb_open(void *state, const void *chosen, const struct reader_site *site,
                     struct reader_traits *traits)
{
    const struct lmdb_settings *settings = chosen;
    const struct catalog *catalog = site->catalog;
    struct lmdb_state *lmdb = state;
    int code = 0;

    if (strcmp(catalog->format, "lmdb") != 0)
        return fail(EINVAL, "%s: the lmdb reader reads format lmdb, not %s; choose another reader",
                    catalog->root, catalog->format);
    lmdb->catalog = catalog;
    lmdb->depth = site->depth;
    lmdb->touch = settings->touch;
    lmdb->done = memory_array(site->depth, sizeof(struct read_request *));
    lmdb->databases = memory_array(catalog->shard_count, sizeof *lmdb->databases);
    if (!lmdb->done || !lmdb->databases)
        return -ENOMEM;
    for (uint32_t i = 0; code == 0 && i < catalog->shard_count; i++)
        code = open_database(&lmdb->databases[i], catalog, &catalog->shards[i],
                             settings->readahead ? 0 : MDB_NORDAHEAD);
    traits->lends = true;
    snprintf(traits->engine, sizeof traits->engine, "liblmdb %d.%d.%d, %s", MDB_VERSION_MAJOR,
             MDB_VERSION_MINOR, MDB_VERSION_PATCH,
             settings->touch ? "pages faulted in by one thread"
                             : "pages faulted in by whoever decodes");
    return code;
}

static void lmdb_close(void *state)
{
    struct lmdb_state *lmdb = state;

    for (uint32_t i = 0; lmdb->databases && i < lmdb->catalog->shard_count; i++) {
        if (lmdb->databases[i].transaction)
            mdb_txn_abort(lmdb->databases[i].transaction);
        if (lmdb->databases[i].environment)
            mdb_env_close(lmdb->databases[i].environment);
    }
    free(lmdb->databases);
    free(lmdb->done);
}

static void touch_pages(const uint8_t *first, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile uint8_t seen = *first;

    for (const uint8_t *at = first - (uintptr_t)first % page + page; at < first + bytes; at += page)
        seen = *at;
    (void)seen;
}

static int lmdb_submit(void *state, struct read_request *request)
{
    struct lmdb_state *lmdb = state;
    const struct database *database = &lmdb->databases[request->shard];
    struct stat now;

    lmdb->done[(lmdb->head + lmdb->count++) % lmdb->depth] = request;
    if (fstat(database->fd, &now)) {
        request->result = -errno;
        return 0;
    }
    uint64_t size = (uint64_t)now.st_size;
    uint64_t left = request->offset < size ? size - request->offset : 0;
    uint32_t bytes = left < request->bytes ? (uint32_t)left : request->bytes;
    if (bytes < request->needed || bytes == 0) {
        request->result = -ESTALE;
        return 0;
    }
    request->data = database->base + request->offset;
    request->result = (int)bytes;
    if (lmdb->touch)
        touch_pages(request->data, bytes);
    return 0;
}

static int lmdb_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct lmdb_state *lmdb = state;
    uint32_t count = lmdb->count < max ? lmdb->count : max;

    (void)wait_ns;
    for (uint32_t i = 0; i < count; i++)
        done[i] = lmdb->done[(lmdb->head + i) % lmdb->depth];
    lmdb->head = (lmdb->head + count) % lmdb->depth;
    lmdb->count -= count;
    return (int)count;
}

/* The loan lasts as long as the transaction. */
static void lmdb_release(void *state, struct read_request *request)
{
    (void)state, (void)request;
}

const struct reader_ops reader_lmdb = {
    .plugin = {.name = "lmdb",
               .summary = "lends LMDB's values out of liblmdb's map, as Caffe reads them",
               .options = lmdb_options,
               .settings_size = sizeof(struct lmdb_settings),
               .state_size = sizeof(struct lmdb_state)},
    .open = lmdb_open,
    .close = lmdb_close,
    .submit = lmdb_submit,
    .reap = lmdb_reap,
    .release = lmdb_release,
};
