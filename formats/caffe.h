/* SPDX-License-Identifier: Apache-2.0
 *
 * caffe: parse and write a value of an image LMDB: Caffe's Datum, Caffe2's TensorProtos, or the
 * image file itself (LSUN); and write a database of such values. Values: pure, any thread.
 *
 * Source: caffe.proto (Datum: channels 1, height 2, width 3, data 4, label 5, float_data 6, encoded
 * 7) and caffe2.proto (TensorProtos: protos 1; TensorProto: dims 1, data_type 2, float_data 3,
 * int32_data 4, byte_data 5, string_data 6, int64_data 10). A raw Datum holds planes, blue first; a
 * raw tensor of make_image_db (OpenCV) holds rows of pixels, also blue first. */
#ifndef IOBENCH_FORMATS_CAFFE_H
#define IOBENCH_FORMATS_CAFFE_H

#include "base/draft.h"
#include "base/sample.h"

#include <stdbool.h>
#include <stdint.h>

enum caffe_flavour {
    CAFFE_AUTO, /* reading: detected from the first bytes of each value; writing: Datum */
    CAFFE_DATUM,
    CAFFE_TENSORS,
    CAFFE_IMAGE,         /* has no label */
    CAFFE_TENSORS_INT64, /* CAFFE_TENSORS whose label is an INT64 */
};

/* Returns 0, or -EBADMSG or -ENOTSUP with a reason. The image is borrowed from value. */
int caffe_parse(enum caffe_flavour flavour, const void *value, size_t bytes, struct sample *sample);

/* Write the value of a sample. Returns its number of bytes; to NULL: only that. */
size_t caffe_put(enum caffe_flavour flavour, const struct sample *sample, uint8_t *to);

/* ---- a database: with liblmdb (formats/lmdb_write.c); without, this is said (formats/registry.c)
 * ----
 *
 * The file is written under a temporary name beside its final name and renamed when complete. Keys
 * are those of Caffe's convert_imageset, "%08d_name", so they ascend and fill the pages.
 * Uncommitted data is bounded, and the map grows with the file. One thread. */

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
