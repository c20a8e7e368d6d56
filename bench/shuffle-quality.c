/* SPDX-License-Identifier: Apache-2.0
 *
 * Randomness of each order on 1,281,167 records of 110 KB sorted by label, 1000 classes, batches of
 * 256, one rank, compared with simulations of the original programs. Shards are as each system
 * makes them: 1024 TFRecord files, 1000 records per tar file, 64 MB per MosaicML shard. Tolerances:
 * 2% for distinct labels per batch, 5% and 0.0005 for the chance that a neighbour has the same
 * label, both several times the spread between seeds; 6% for py1br, which leaves a tail of random
 * length in shard order.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "shuffle/quality.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RECORDS = 1281167, CLASSES = 1000, RECORD_BYTES = 110000 };

static const struct row {
    const char *name, *shuffle;
    uint32_t shards;
    double labels, same, tolerance;
} rows[] = {
    {"epoch", "epoch", 1024, 226.0, 0.0010, 0.02},
    {"tfdata", "tfdata:10000,interleave=10", 1024, 52.6, 0.032, 0.02},
    {"buffer_10000", "buffer:10000", 1024, 31.9, 0.062, 0.02},
    {"dali", "dali:1024", 1024, 5.7, 0.430, 0.02},
    {"webdataset_1000", "webdataset:1000", 1282, 10.0, 0.288, 0.02},
    {"webdataset_10000", "webdataset:10000", 1282, 52.4, 0.037, 0.02},
    {"mxnet_chunk", "mxnet-chunk:64MB", 1024, 1.6, 0.848, 0.02},
    {"corgipile_10", "corgipile:0.1,block=10MB", 1024, 211.2, 0.0017, 0.02},
    {"corgipile_1", "corgipile:0.01,block=10MB", 1024, 115.8, 0.0077, 0.02},
    {"ffcv", "ffcv:512,page=8MiB", 1024, 184.4, 0.0030, 0.02},
    {"py1s", "py1s", 2202, 2.1, 0.847, 0.02},
    {"py1br", "py1br", 2202, 183.8, 0.0029, 0.06},
    {"py1e", "py1e", 2202, 187.5, 0.0027, 0.02},
};

static int measure(const struct catalog *catalog, const char *shuffle, struct quality *quality)
{
    struct plugin_choice choice;
    int code = plugin_choose("shuffle", shuffle_registry, shuffle, &choice);

    if (code == 0) {
        const struct quality_terms terms = {
            .shuffle = &choice,
            .scope = {.catalog = catalog, .seed = 1, .ranks = 1, .batch_size = 256},
            .epochs = 2,
            .classes = CLASSES,
            .reads = {.window = 512,
                      .window_bytes = UINT64_MAX,
                      .read_bytes = 1 << 20,
                      .alignment = 4096},
        };
        code = quality_measure(&terms, quality);
    }
    plugin_release(&choice);
    return code;
}

int main(void)
{
    const uint64_t start_ns = clock_now_ns();
    char claims[sizeof rows / sizeof *rows][160];
    const size_t count = sizeof rows / sizeof *rows;

    printf("%-18s %8s %8s  %8s %8s  %7s %9s\n", "", "labels", "want", "same", "want", "s", "MiB");
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        struct quality quality;
        struct catalog *catalog = outline_create(RECORDS, row->shards, RECORD_BYTES, 0);
        int code = catalog ? measure(catalog, row->shuffle, &quality) : -1;
        catalog_destroy(catalog);
        if (code) {
            fprintf(stderr, "shuffle-quality: %s: %s\n", row->name, fail_reason());
            return 1;
        }
        const double off = fabs(quality.labels_per_batch - row->labels);
        const bool fits = off <= row->labels * row->tolerance + 0.05 &&
                          fabs(quality.same_label - row->same) <= row->same * 0.05 + 0.0005;
        printf("%-18s %8.1f %8.1f  %8.4f %8.4f  %7.2f %9.1f\n", row->name, quality.labels_per_batch,
               row->labels, quality.same_label, row->same, (double)quality.run_ns * 1e-9,
               (double)quality.buffer_bytes / (1 << 20));
        snprintf(claims[i], sizeof claims[i], "claim shuffle_quality_%s %.2f %% off goal <=%g %s",
                 row->name, off / row->labels * 100, row->tolerance * 100, fits ? "ok" : "short");
    }
    const double seconds = (double)(clock_now_ns() - start_ns) * 1e-9;
    for (size_t i = 0; i < count; i++)
        puts(claims[i]);
    printf("claim shuffle_quality_time %.1f s goal <=60 %s\n", seconds,
           seconds <= 60 ? "ok" : "short");
    return 0;
}
