/* SPDX-License-Identifier: Apache-2.0
 *
 * What a catalog costs: memory for a record, and the time to load it from its sidecar (read,
 * CRC, every extent checked against its shard). Warm: the sidecar was just written. The goal is
 * that of 100 million records in 2 s; --long makes so many, else 10 million stand for them.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/stats.h"
#include "dataset/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARDS = 1000, RECORD_BYTES = 112640, ROUNDS = 5 };

static uint64_t resident_bytes(void)
{
    unsigned long long whole = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "re");

    if (statm && fscanf(statm, "%llu %llu", &whole, &resident) != 2)
        resident = 0;
    if (statm)
        fclose(statm);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Shards without blocks on disk: only their size and time matter here. */
static int make_catalog(const char *folder, uint64_t records, struct catalog **made)
{
    struct catalog *catalog = *made = catalog_create(folder, "bench");
    int code = catalog ? 0 : -1;

    for (uint32_t shard = 0; code == 0 && shard < SHARDS; shard++) {
        char *path = file_format_path("%s/bench-%05u-of-%05u", folder, shard, SHARDS);
        int fd = path ? open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600) : -1;
        uint64_t count = records / SHARDS;
        if (fd < 0 || ftruncate(fd, (off_t)(count * RECORD_BYTES)))
            code = fail(EIO, "%s: cannot make the shard", path);
        if (code == 0)
            code = catalog_begin_shard(catalog, path, NULL, 0);
        for (uint64_t i = 0; code == 0 && i < count; i++)
            code = catalog_add(catalog, i * RECORD_BYTES, RECORD_BYTES - i % 4096);
        if (fd >= 0)
            close(fd);
        free(path);
    }
    return code ? code : catalog_seal(catalog);
}

struct figures {
    double build_s, save_s, load_s[ROUNDS], record_bytes;
};

static int measure(const char *folder, uint64_t records, struct figures *figures)
{
    struct catalog *catalog;
    char *path = sidecar_path(folder, SIDECAR_BESIDE);
    uint64_t start_ns = clock_now_ns();
    int code = make_catalog(folder, records, &catalog);

    figures->build_s = (double)(clock_now_ns() - start_ns) / 1e9;
    start_ns = clock_now_ns();
    if (code == 0)
        code = sidecar_save(catalog, path, 0);
    figures->save_s = (double)(clock_now_ns() - start_ns) / 1e9;
    catalog_destroy(catalog);
    for (int round = 0; code == 0 && round < ROUNDS; round++) {
        uint64_t before = resident_bytes();
        start_ns = clock_now_ns();
        code = sidecar_load(path, folder, "bench", 0, &catalog);
        figures->load_s[round] = (double)(clock_now_ns() - start_ns) / 1e9;
        figures->record_bytes = (double)(resident_bytes() - before) / (double)records;
        if (code == 0)
            catalog_destroy(catalog);
    }
    unlink(path);
    free(path);
    return code;
}

static void remove_folder(const char *folder)
{
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        char *path = file_format_path("%s/bench-%05u-of-%05u", folder, shard, SHARDS);
        if (path)
            unlink(path);
        free(path);
    }
    rmdir(folder);
}

int main(int argc, char **argv)
{
    bool whole = argc > 1 && strcmp(argv[1], "--long") == 0;
    uint64_t records = whole ? 100000000 : 10000000;
    const char *below = getenv("TMPDIR");
    char *folder = file_format_path("%s/iobench-catalog-XXXXXX", below ? below : "/tmp");
    struct figures figures = {0};

    if (!folder || !mkdtemp(folder)) {
        fprintf(stderr, "cannot make a folder for the bench\n");
        return 1;
    }
    int code = measure(folder, records, &figures);
    remove_folder(folder);
    free(folder);
    if (code) {
        fprintf(stderr, "%s\n", fail_reason());
        return 1;
    }
    struct stats_summary load = stats_summarise(figures.load_s, ROUNDS);
    double goal_s = 2.0 * (double)records / 1e8;
    printf("%llu records in %u shards: built in %.2f s, saved in %.2f s, loaded in %.3f s "
           "(%.3f .. %.3f)\n",
           (unsigned long long)records, SHARDS, figures.build_s, figures.save_s, load.median,
           load.minimum, load.maximum);
    printf("claim catalog_memory %.2f bytes/record goal <=16 %s\n", figures.record_bytes,
           figures.record_bytes < 16.005 ? "ok" : "short");
    printf("claim catalog_load %.1f Mrecords/s goal >=50 %s\n", (double)records / load.median / 1e6,
           load.median <= goal_s ? "ok" : "short");
    return 0;
}
