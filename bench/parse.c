/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/parse: how many records one core can parse: the framing around an image, found and checked,
 * without the CRC of the data.
 *
 *     bench/parse [FOLDER]
 *
 * Records of 100 KiB, 1,000 of them, in memory, so that each header comes from farther than most
 * caches are large. CPU time of this thread, medians over the rounds. The claim is for tar, whose
 * headers of 512 bytes have a sum each, and which has two headers a record: image and class.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/stats.h"
#include "formats/format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS = 1000, IMAGE_BYTES = 100 << 10, PASSES = 50, ROUNDS = 9 };

static int append_all(struct format_writer *writer)
{
    static const uint8_t image[IMAGE_BYTES] = {0xff, 0xd8, 0xff};
    char name[32];
    int code = 0;

    for (int i = 0; code == 0 && i < RECORDS; i++) {
        struct sample sample = {.image = image,
                                .image_bytes = IMAGE_BYTES,
                                .label = i,
                                .id = (uint64_t)i,
                                .name = name};
        sample.name_bytes = (size_t)snprintf(name, sizeof name, "class%d/image%06d.jpg", i % 10, i);
        code = format_writer_append(writer, &sample);
    }
    return code;
}

static int write_shard(const struct plugin_choice *format, const char *path)
{
    struct format_writer writer;
    int code = format_writer_open(&writer, format, path);

    if (code == 0)
        code = append_all(&writer);
    int closed = format_writer_close(&writer, code == 0);
    return code ? code : closed;
}

/* Records of one core per second, the median. */
static int measure(const struct plugin_choice *format, const struct catalog *catalog,
                   const char *bytes, double *rate)
{
    double rates[ROUNDS];
    struct format_scratch scratch = {.capacity = catalog->record_bytes_max};

    scratch.bytes = malloc(scratch.capacity);
    int code = scratch.bytes ? 0 : fail(ENOMEM, "out of memory");
    for (int round = 0; code == 0 && round < ROUNDS; round++) {
        uint64_t start_ns = clock_cpu_ns();
        for (uint64_t i = 0; code == 0 && i < (uint64_t)PASSES * RECORDS; i++) {
            const struct extent *extent = catalog_extent(catalog, i % RECORDS);
            struct sample sample = {.label = -1};
            code = format_parse(format, &catalog->shards[0], bytes + extent->offset, extent->bytes,
                                FORMAT_SKIP_CRC, &scratch, &sample);
            if (code == 0 &&
                (sample.image_bytes != IMAGE_BYTES || sample.label != (int32_t)(i % RECORDS)))
                code = fail(EBADMSG, "record %llu is not what was written", (unsigned long long)i);
        }
        rates[round] = (double)PASSES * RECORDS * 1e9 / (double)(clock_cpu_ns() - start_ns);
    }
    free(scratch.bytes);
    *rate = code ? 0 : stats_summarise(rates, ROUNDS).median;
    return code;
}

static int examine(const char *name, const char *folder, double *rate)
{
    const struct format_scan scan = {0};
    struct plugin_choice format = {0};
    struct catalog *catalog = NULL;
    char *path = NULL, *bytes = NULL;
    size_t size;
    int code = plugin_choose("format", format_registry, name, &format);

    if (code == 0)
        code = format_shard_path(format.plugin, folder, 0, 1, &path);
    if (code == 0)
        code = write_shard(&format, path);
    if (code == 0)
        code = format_catalog(&format, path, false, &scan, &catalog);
    if (code == 0)
        code = file_load(path, (size_t)RECORDS * IMAGE_BYTES * 2, &bytes, &size);
    if (code == 0)
        code = measure(&format, catalog, bytes, rate);
    if (path)
        unlink(path);
    catalog_destroy(catalog);
    plugin_release(&format);
    free(bytes);
    free(path);
    return code;
}

int main(int argc, char **argv)
{
    static const char *const formats[] = {"recordio", "shards", "tar"};
    double rate = 0;

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (examine(formats[i], argc > 1 ? argv[1] : ".", &rate)) {
            fprintf(stderr, "bench/parse: %s: %s\n", formats[i], fail_reason());
            return 1;
        }
        printf("%-9s %6.2f M records/s\n", formats[i], rate * 1e-6);
    }
    printf("claim parse_tar %.3f Mrecords/s goal >=0.3 %s\n", rate * 1e-6,
           rate >= 3e5 ? "ok" : "short");
    return 0;
}
