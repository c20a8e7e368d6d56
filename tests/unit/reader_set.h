/* SPDX-License-Identifier: Apache-2.0
 * A few shards of random bytes on a real disk, and a reader open on them. */
#ifndef IOBENCH_TESTS_READER_SET_H
#define IOBENCH_TESTS_READER_SET_H

#include "dataset/catalog.h"
#include "readers/reader.h"

enum { SET_SHARDS = 5, SET_LARGEST = 256 * 1024, SET_PARTS = 3 };

struct reader_set {
    char folder[64];
    struct catalog *catalog;
    uint8_t *content[SET_SHARDS];
};
extern struct reader_set set;
extern const uint32_t set_sizes[SET_SHARDS]; /* the last one is empty; none ends page-aligned */

int set_up(void **unused);
int tear_down(void **unused);
char *set_path(uint32_t shard); /* free() it */
void set_write(uint32_t shard);
void set_index(void); /* index the set again */

struct run {
    struct reader reader;
    struct plugin_choice choice;
    struct iovec region; /* SET_LARGEST bytes for each request */
    struct read_request *requests;
    struct iovec *parts; /* SET_PARTS per request, behind the region */
    uint32_t depth;
};

/* Return 0, or the code of reader_open(). Always call run_close(). */
int run_open(struct run *run, const char *reader, uint32_t depth, uint64_t timeout_ns);
extern bool set_in_order; /* as run_open() says of the reads of each shard */
void run_close(struct run *run);

/* Prepare request number index for bytes [begin, begin + bytes) of a shard, widened to the
 * reader's alignment. If the reader scatters, requests with an odd index have parts, which make up
 * their buffer. */
struct read_request *run_request(struct run *run, uint32_t index, uint32_t shard, uint64_t begin,
                                 uint64_t bytes);
/* Submit it and wait for it. Returns its result. */
int run_read(struct run *run, struct read_request *request);

#endif
