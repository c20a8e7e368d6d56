/* SPDX-License-Identifier: Apache-2.0
 *
 * lmdb_write: write a database with liblmdb (formats/lmdb_write.c); without liblmdb,
 * formats/lmdb_absent.c reports that it is missing. One thread.
 *
 * The file is written under a temporary name beside its final name and renamed when complete. Keys
 * are those of Caffe's convert_imageset, "%08d_name", so they ascend and fill the pages.
 * Uncommitted data is bounded, and the map grows with the file. */
#ifndef IOBENCH_FORMATS_LMDB_WRITE_H
#define IOBENCH_FORMATS_LMDB_WRITE_H

#include "base/draft.h"
#include "formats/caffe.h"

#include <stdbool.h>

struct lmdb_format_settings {
    char *keys;
    int flavour; /* enum caffe_flavour */
};

struct lmdb_write {
    void *environment, *transaction; /* MDB_env, MDB_txn */
    unsigned database;
    enum caffe_flavour flavour;
    uint64_t records;
    uint64_t pending_bytes;   /* of values in the transaction */
    uint64_t pending_records; /* in the transaction */
    struct file_draft draft;
};

int lmdb_writable(void); /* 0, or -ENOTSUP with a reason */
/* As struct format_ops has them. */
int lmdb_write_open(void *state, const void *settings, const char *path);
int lmdb_write_append(void *state, const struct sample *sample);
int lmdb_write_close(void *state, bool commit);

#endif
