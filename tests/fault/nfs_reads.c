/* SPDX-License-Identifier: Apache-2.0
 * Reads files over NFS at random for some seconds and compares with local copies.
 *   nfs_reads URL FOLDER FILES SECONDS TIMEOUT_MS [READER [LOADERS]]
 * Prints "reads N errors N" and the last reason. Status 1: bytes were wrong. */
#include "base/clock.h"
#include "base/thread.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/random.h"
#include "readers/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 16, LARGEST = 1 << 20 };

/* Take sizes and times from the local files. */
static struct catalog *make_catalog(const char *url, const char *folder, unsigned files)
{
    struct catalog *catalog = catalog_create(url, "test");

    for (unsigned i = 0; catalog && i < files; i++) {
        char *here = file_format_path("%s/%u", folder, i);
        char *there = file_format_path("%s/%u", url, i);
        if (!here || !there || catalog_begin_shard(catalog, here, NULL, 0) ||
            catalog_add(catalog, 0, catalog->shards[i].bytes))
            return NULL;
        free(catalog->shards[i].path);
        catalog->shards[i].path = there;
        free(here);
    }
    return catalog;
}

static int compare(const struct read_request *request, const char *folder)
{
    static char expected[LARGEST];
    char *path = file_format_path("%s/%u", folder, request->shard);
    FILE *file = fopen(path, "re");
    int same = file && fseek(file, (long)request->offset, SEEK_SET) == 0 &&
               fread(expected, 1, (size_t)request->result, file) == (size_t)request->result &&
               memcmp(expected, request->data, (size_t)request->result) == 0;

    if (file)
        fclose(file);
    free(path);
    return same ? 0 : -1;
}

/* Each request has its own region. A reader that has abandoned the storage refuses more reads. */
static int submit(struct reader *reader, struct read_request *request, struct random *random,
                  uint32_t region)
{
    const struct catalog *catalog = reader->config.catalog;
    uint32_t shard = (uint32_t)random_below(random, catalog->shard_count);
    uint64_t size = catalog->shards[shard].bytes, begin = random_below(random, size);
    uint64_t bytes = 1 + random_below(random, LARGEST);

    if (bytes > size - begin)
        bytes = size - begin;
    *request = (struct read_request){.shard = shard,
                                     .offset = begin,
                                     .bytes = (uint32_t)bytes,
                                     .needed = (uint32_t)bytes,
                                     .region = region,
                                     .buffer = reader->config.regions[region].iov_base};
    return reader_submit(reader, request);
}

int main(int argc, char **argv)
{
    struct plugin_choice choice;
    struct numa numa;
    struct parallel_reader_settings several = {.reader = &choice, .count = 1, .numa = &numa};
    const struct plugin_choice lanes = {.plugin = &reader_parallel.plugin, .settings = &several};
    struct iovec regions[DEPTH];
    struct read_request requests[DEPTH], *done[DEPTH];
    struct random random = random_start(7);
    struct reader reader;
    char reason[FAIL_REASON_BYTES] = "";
    unsigned refused = 0;

    if (argc < 6)
        return 2;
    struct catalog *catalog = make_catalog(argv[1], argv[2], (unsigned)atoi(argv[3]));
    char *memory = malloc((size_t)DEPTH * LARGEST);
    uint64_t end_ns = clock_now_ns() + strtoull(argv[4], NULL, 10) * 1000000000;
    if (argc > 7)
        several.count = (uint32_t)atoi(argv[7]);
    for (uint32_t i = 0; i < DEPTH; i++)
        regions[i] = (struct iovec){.iov_base = memory + (size_t)i * LARGEST, .iov_len = LARGEST};
    numa_find(&numa, "/sys");
    struct reader_config site = {.catalog = catalog,
                                 .regions = regions,
                                 .region_count = DEPTH,
                                 .depth = DEPTH,
                                 .timeout_ns = strtoull(argv[5], NULL, 10) * 1000000};
    if (!catalog || !memory ||
        plugin_choose("reader", reader_registry, argc > 6 ? argv[6] : "nfs", &choice) ||
        reader_open(&reader, several.count > 1 ? &lanes : &choice, &site)) {
        fprintf(stderr, "%s\n", fail_reason());
        return 3;
    }
    printf("engine %s\n", reader.traits.engine);
    for (uint32_t i = 0; i < DEPTH && refused == 0; i++)
        refused = submit(&reader, &requests[i], &random, i) != 0;
    while (clock_now_ns() < end_ns && refused == 0) {
        int count = reader_reap(&reader, done, DEPTH, 100000000);
        for (int i = 0; i < count && refused == 0; i++) {
            if (done[i]->result < 0)
                snprintf(reason, sizeof reason, "%s", fail_reason());
            else if (compare(done[i], argv[2]))
                return 1;
            refused = submit(&reader, done[i], &random, (uint32_t)(done[i] - requests)) != 0;
        }
    }
    if (refused)
        snprintf(reason, sizeof reason, "%s", fail_reason());
    reader_close(&reader);
    printf("reads %llu errors %llu %s\n",
           (unsigned long long)(reader.figures.requests - reader.figures.errors),
           (unsigned long long)reader.figures.errors + refused, reason);
    plugin_release(&choice);
    catalog_destroy(catalog);
    free(memory);
    return 0;
}
