/* SPDX-License-Identifier: Apache-2.0
 *
 * tfrecord_write: TFRecord shards that hold tf.train.Examples, and their indexes: writing them. */
#ifndef IOBENCH_FORMATS_TFRECORD_WRITE_H
#define IOBENCH_FORMATS_TFRECORD_WRITE_H

#include "formats/example.h"
#include "formats/sink.h"

#include <zlib.h>

/* Return the path of the index beside a shard. free() it. */
char *tfrecord_index_path(const char *path);

struct tfrecord_writer {
    struct sink sink, idx;
    struct example_keys keys;
    uint8_t *head; /* of the Example being written */
    z_stream stream;
    bool stream_open;
    uint8_t *packed; /* NULL: not compressed */
};

int tfrecord_shard_open(void *state, const void *settings, const char *path);
int tfrecord_shard_append(void *state, const struct sample *sample);
int tfrecord_shard_close(void *state, bool commit);

#endif
