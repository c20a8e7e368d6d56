/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/nfs: what a read costs the reader nfs, by connections and by reads in flight.
 *
 * A libnfs made for tests answers at once, over a socket pair for each connection, so nearly all of
 * the CPU time is that of looking for connections that are ready, and of the sockets. The time for
 * one read must depend neither on how many connections wait idle, nor on how many reads are in
 * flight: both may be more only by what the caches miss. CPU time of this thread, medians over
 * alternating rounds.
 */
#include "tests/unit/nfs_stand_in.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/stats.h"
#include "readers/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH = NFS_CALLS_MOST, READS = 20000, ROUNDS = 9 };

static const struct way {
    const char *reader, *name;
    uint32_t in_flight;
} ways[] = {
    {"nfs:1,version=3", "1 connection, 1 read in flight", 1},
    {"nfs:64,version=3", "64 connections, 1 read in flight", 1},
    {"nfs:64,version=3", "64 connections, 64 reads in flight", DEPTH},
};
enum { WAYS = sizeof ways / sizeof *ways };

static int submit(struct reader *reader, struct read_request *request, uint8_t *buffer)
{
    *request = (struct read_request){
        .bytes = NFS_BYTES, .needed = NFS_BYTES, .buffer = buffer, .offset = NFS_BYTES};
    return reader_submit(reader, request);
}

/* Keep in_flight reads under way until `reads` have ended. */
static int read_so_many(struct reader *reader, uint8_t *memory, uint32_t in_flight, uint32_t reads)
{
    struct read_request requests[DEPTH], *done[DEPTH];
    uint32_t submitted = 0, ended = 0;
    int code = 0;

    for (; code == 0 && submitted < in_flight; submitted++)
        code = submit(reader, &requests[submitted], memory + (size_t)submitted * NFS_BYTES);
    while (code == 0 && ended < submitted) {
        int got = reader_reap(reader, done, DEPTH, 10000000000);
        code = got < 0 ? got : got == 0 ? fail(ETIMEDOUT, "no read ends") : 0;
        for (int i = 0; code == 0 && i < got; i++) {
            ended++;
            code = done[i]->result < 0 ? (int)done[i]->result : 0;
            reader_release(reader, done[i]);
            if (code == 0 && submitted < reads) {
                code = submit(reader, done[i], done[i]->buffer);
                submitted++;
            }
        }
    }
    return code;
}

static int measure(const struct way *way, const struct catalog *catalog, uint8_t *memory,
                   double *ns)
{
    struct iovec region = {.iov_base = memory, .iov_len = (size_t)DEPTH * NFS_BYTES};
    const struct reader_config config = {.catalog = catalog,
                                         .regions = &region,
                                         .region_count = 1,
                                         .depth = DEPTH,
                                         .timeout_ns = UINT64_C(10000000000)};
    struct plugin_choice choice = {0};
    struct reader reader = {0};
    int code = plugin_choose("reader", reader_registry, way->reader, &choice);

    if (code == 0)
        code = reader_open(&reader, &choice, &config);
    if (code == 0) {
        code = read_so_many(&reader, memory, DEPTH, READS / 10); /* mounts all, opens the file */
        uint64_t start_ns = clock_cpu_ns();
        if (code == 0)
            code = read_so_many(&reader, memory, way->in_flight, READS);
        *ns = (double)(clock_cpu_ns() - start_ns) / READS;
        reader_close(&reader);
    }
    plugin_release(&choice);
    return code;
}

static void claim(const char *name, const double *more, const double *less)
{
    double ratios[ROUNDS];

    for (int i = 0; i < ROUNDS; i++)
        ratios[i] = more[i] / less[i];
    double ratio = stats_summarise(ratios, ROUNDS).median;
    printf("claim %s %.3f x goal <=1.25 %s\n", name, ratio, ratio <= 1.25 ? "ok" : "short");
}

int main(void)
{
    const struct store_status status = {.kind = STORE_FILE, .bytes = NFS_FILE_BYTES};
    struct catalog *catalog = catalog_create("nfs://there/set", "bench");
    uint8_t *memory = calloc(DEPTH, NFS_BYTES);
    double ns[WAYS][ROUNDS];
    int code = !catalog || !memory ? fail(ENOMEM, "out of memory")
                                   : catalog_begin_shard(catalog, "nfs://there/set/0", &status, 0);

    if (code == 0)
        code = catalog_add(catalog, 0, NFS_FILE_BYTES);
    for (int round = 0; code == 0 && round < ROUNDS; round++)
        for (int i = 0; code == 0 && i < WAYS; i++)
            code = measure(&ways[i], catalog, memory, &ns[i][round]);
    if (code)
        fprintf(stderr, "bench/nfs: %s\n", fail_reason());
    for (int i = 0; code == 0 && i < WAYS; i++)
        printf("%-34s %6.0f ns a read\n", ways[i].name, stats_summarise(ns[i], ROUNDS).median);
    if (code == 0) {
        claim("nfs_by_connections", ns[1], ns[0]);
        claim("nfs_by_depth", ns[2], ns[1]);
    }
    catalog_destroy(catalog);
    free(memory);
    return code ? 1 : 0;
}
