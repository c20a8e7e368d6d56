/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/caffe.h"

#include "base/fail.h"
#include "dataset/catalog.h"
#include "dataset/store.h"

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <string.h>

enum {
    KEY_BYTES = 256, /* liblmdb's limit is 511; Caffe2's tool cuts at 256 */
    PENDING_RECORDS = 4096,
    PENDING_BYTES = 64 << 20,
    /* Room for the leaves, branches and free lists of one transaction. */
    MAP_SLACK_BYTES = 64 << 20,
    MAP_STEP_BYTES = 1 << 30,
};

/* liblmdb's own codes are negative, other codes are an errno. */
static int fail_lmdb(const struct lmdb_write *write, const char *what, int code)
{
    int number = code > 0                                          ? code
                 : code == MDB_MAP_FULL || code == MDB_TXN_FULL    ? ENOSPC
                 : code == MDB_BAD_VALSIZE || code == MDB_KEYEXIST ? EINVAL
                                                                   : EIO;
    return fail(number, "%s: %s: %s", write->draft.draft_path, what, mdb_strerror(code));
}

/* Begin a transaction that can hold a value of this many bytes more. */
static int begin_transaction(struct lmdb_write *write, uint64_t bytes)
{
    MDB_env *environment = write->environment;
    MDB_txn *transaction = NULL;
    MDB_envinfo now;
    MDB_stat pages;
    int code = mdb_env_info(environment, &now);

    if (code == 0)
        code = mdb_env_stat(environment, &pages);
    if (code)
        return fail_lmdb(write, "cannot get its size", code);
    const uint64_t needed =
        (now.me_last_pgno + 1) * pages.ms_psize + PENDING_BYTES + MAP_SLACK_BYTES + bytes;
    if (needed > now.me_mapsize &&
        (code = mdb_env_set_mapsize(environment, needed + MAP_STEP_BYTES)))
        return fail_lmdb(write, "cannot grow its map", code);
    code = mdb_txn_begin(environment, NULL, 0, &transaction);
    if (code)
        return fail_lmdb(write, "cannot begin a transaction", code);
    write->transaction = transaction;
    write->pending_bytes = write->pending_records = 0;
    code = mdb_dbi_open(transaction, NULL, 0, &write->database);
    return code ? fail_lmdb(write, "cannot open the database", code) : 0;
}

static int commit_pending(struct lmdb_write *write)
{
    MDB_txn *transaction = write->transaction;

    if (!transaction)
        return 0;
    write->transaction = NULL; /* freed whatever the result */
    int code = mdb_txn_commit(transaction);
    return code ? fail_lmdb(write, "cannot commit", code) : 0;
}

int lmdb_writable(void)
{
    return 0;
}

int lmdb_write_open(void *state, const void *settings, const char *path)
{
    const struct lmdb_format_settings *lmdb = settings;
    struct lmdb_write *write = state;
    MDB_env *environment = NULL;
    int code = store_is_local(path)
                   ? file_draft_open(&write->draft, path, NULL)
                   : fail(ENOTSUP,
                          "%s: liblmdb writes only through the kernel: pack into a local "
                          "folder and copy it, or choose another format",
                          path);

    if (code)
        return code;
    write->flavour = lmdb->flavour == CAFFE_AUTO ? CAFFE_DATUM : (enum caffe_flavour)lmdb->flavour;
    code = mdb_env_create(&environment);
    if (code)
        return fail_lmdb(write, "cannot create the environment", code);
    write->environment = environment;
    /* No other process knows the file yet: no lock is needed, and the draft's commit syncs it. */
    char draft[32];
    snprintf(draft, sizeof draft, "/proc/self/fd/%d",
             write->draft.fd); /* independent of its name */
    code = mdb_env_open(environment, draft, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0666);
    return code ? fail_lmdb(write, "cannot create the file", code) : 0;
}

int lmdb_write_append(void *state, const struct sample *sample)
{
    struct lmdb_write *write = state;
    const uint64_t bytes = caffe_put(write->flavour, sample, NULL);
    char key[KEY_BYTES];
    int code = 0;

    if (write->flavour == CAFFE_IMAGE && sample->encoding != SAMPLE_ENCODED)
        return fail(EINVAL, "%s: flavour image holds encoded images, not bare pixels",
                    write->draft.path);
    if (bytes == 0 || bytes > CATALOG_RECORD_BYTES_MAX)
        return fail(EINVAL, "%s: LMDB cannot hold a sample of %llu bytes", write->draft.path,
                    (unsigned long long)bytes);
    if (write->pending_records >= PENDING_RECORDS || write->pending_bytes + bytes > PENDING_BYTES)
        code = commit_pending(write);
    if (code == 0 && !write->transaction)
        code = begin_transaction(write, bytes);
    if (code)
        return code;
    size_t length = (size_t)snprintf(key, sizeof key, "%08llu", (unsigned long long)write->records);
    if (sample->name_bytes > 0) {
        const size_t left = sizeof key - length - 1;
        const size_t used = sample->name_bytes < left ? sample->name_bytes : left;
        key[length++] = '_';
        memcpy(key + length, sample->name, used);
        length += used;
    }
    MDB_val name = {.mv_size = length, .mv_data = key};
    MDB_val value = {.mv_size = bytes};
    /* From record 10^8 on keys have one more digit and no longer ascend. */
    unsigned flags = write->records < 100000000 ? MDB_RESERVE | MDB_APPEND : MDB_RESERVE;
    code = mdb_put(write->transaction, write->database, &name, &value, flags);
    if (code)
        return fail_lmdb(write, "cannot put a record", code);
    caffe_put(write->flavour, sample, value.mv_data);
    write->records++;
    write->pending_records++;
    write->pending_bytes += bytes;
    return 0;
}

int lmdb_write_close(void *state, bool commit)
{
    struct lmdb_write *write = state;
    int code = commit ? commit_pending(write) : 0;

    if (write->transaction)
        mdb_txn_abort(write->transaction);
    if (write->environment)
        mdb_env_close(write->environment);
    if (!write->draft.path)
        return code;
    if (commit && code == 0)
        return file_draft_commit(&write->draft);
    file_draft_abandon(&write->draft);
    return code;
}
