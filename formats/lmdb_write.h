/* SPDX-License-Identifier: Apache-2.0
 *
 * lmdb_write: a database being written by liblmdb: formats/lmdb_write.c, or where liblmdb is
 * not there formats/lmdb_absent.c, which says so. One thread.
 *
 * The file is written beside its name and renamed when it is complete. Keys are those of Caffe's
 * convert_imageset, "%08d_name", so they rise and pages are filled; what is not yet committed
 * stays within a bound, and the map grows as the file does.
 */
#ifndef IOBENCH_FORMATS_LMDB_WRITE_H
#define IOBENCH_FORMATS_LMDB_WRITE_H

#include "base/draft.h"
#include "formats/caffe.h"

#include <stdbool.h>

struct lmdb_write {
    void *environment, *transaction; /* MDB_env, MDB_txn */
    unsigned database;
    enum caffe_flavour flavour;
    uint64_t records;
    uint64_t pending_bytes;   /* of values in the transaction */
    uint64_t pending_records; /* likewise */
    struct file_draft draft;
};

int lmdb_write_open(struct lmdb_write *write, enum caffe_flavour flavour, const char *path);
int lmdb_write_append(struct lmdb_write *write, const struct sample *sample);
int lmdb_write_close(struct lmdb_write *write, bool commit);

#endif
