/* SPDX-License-Identifier: Apache-2.0
 *
 * tar_write: write a WebDataset shard, with the calls of format.h's writer: ustar headers, and a
 * pax header before a name that does not fit. One thread per state.
 *
 * The key of a sample is its name up to the first dot, or its number in the shard if it has no name
 * that can be one. No two samples of a shard have one key: readers would take neighbours for one
 * sample, and tar would extract one file over the other. Times and owners are 0: the same samples
 * give the same bytes. */
#ifndef IOBENCH_FORMATS_TAR_WRITE_H
#define IOBENCH_FORMATS_TAR_WRITE_H

#include "base/sample.h"
#include "formats/key_set.h"
#include "formats/sink.h"

#include <stdbool.h>

enum { TAR_WRITE_KEY_BYTES = 1024 };

struct tar_write {
    struct sink sink;
    uint64_t records;
    char key[TAR_WRITE_KEY_BYTES + 1];
    struct key_set keys;
};

int tar_write_open(void *state, const void *settings, const char *path);
int tar_write_append(void *state, const struct sample *sample);
int tar_write_close(void *state, bool commit);
int tar_write_path(const char *folder, uint32_t shard, uint32_t shards, char **path);

#endif
