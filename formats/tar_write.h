/* SPDX-License-Identifier: Apache-2.0
 *
 * tar_write: a shard of WebDataset being written, as format.h's writer calls: ustar headers, and a
 * pax header in front of a name that does not fit. One thread a state.
 *
 * The key of a sample is its name without an extension, its number in the shard when it has none;
 * neighbours get different keys. Times and owners are 0: the same samples give the same bytes.
 */
#ifndef IOBENCH_FORMATS_TAR_WRITE_H
#define IOBENCH_FORMATS_TAR_WRITE_H

#include "dataset/sample.h"
#include "formats/sink.h"

#include <stdbool.h>

enum { TAR_WRITE_KEY_BYTES = 1024 };

struct tar_write {
    struct sink sink;
    uint64_t records;
    char key[TAR_WRITE_KEY_BYTES + 1], last_key[TAR_WRITE_KEY_BYTES + 1];
};

int tar_write_open(void *state, const void *settings, const char *path);
int tar_write_append(void *state, const struct sample *sample);
int tar_write_close(void *state, bool commit);
int tar_write_path(const char *folder, uint32_t shard, uint32_t shards, char **path);

#endif
