/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench pack: makes or converts a data set.
 */
#include "cmd/pack/packing.h"
#include "cmd/pack/verify.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/fail.h"
#include "cmd/commands.h"
#include "cmd/line.h"
#include "formats/format.h"
#include "report/words.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read the new set once more: its hints are of what is stored. */
static int note_entry_points(const struct pack_job *job)
{
    const struct verify_job check = {.path = job->target,
                                     .format = job->format,
                                     .entry_points = true,
                                     .threads = job->threads,
                                     .io_timeout_ns = job->io_timeout_ns,
                                     .teller = "iobench pack: "};
    struct verify_figures figures;
    char images[WORDS_BYTES];
    int code = verify_run(&check, NULL, &figures);

    if (code == 0)
        printf("entry points of %s images are in %s\n", words_count(figures.hints, images),
               escape_shown(figures.hints_path));
    free(figures.hints_path);
    return code;
}

static int pack_command(const struct invocation *invocation)
{
    struct pack_job *job = invocation->settings;
    struct pack_line line = {line_start(), "looking at the source", "packing", "samples"};
    struct plugin_choice format;
    struct pack_figures figures;
    struct guard_moment start;
    struct guard_counts guard = {0};
    char command[4096];

    job->source = invocation->operands[0];
    job->target = invocation->operands[1];
    if (plugin_choose("format", format_registry, job->format, &format))
        return command_misused(invocation);
    plugin_release(&format);
    /* Each of several processes would write the whole set. */
    const char *says;
    int started = ranks_started(&says);
    if (started != 1) {
        fail(EINVAL,
             "%s=%d: pack is one process with threads (--threads): run it once, without mpirun or "
             "srun",
             says, started);
        return ranks_speaks() ? command_failed(invocation) : command_fails_last();
    }
    command_text(invocation, command, sizeof command);
    job->command = strlen(command) < sizeof command - 1 ? command : NULL;
    command_on_interrupt();
    guard_begin(&start);
    int code = pack_run(job, &line, &figures);
    guard_end(&start, &guard);
    line_clear(&line.line);
    if (code)
        return command_failed(invocation);
    char samples[WORDS_BYTES], bytes[32];
    printf("%s: %s, %" PRIu32 " shard%s", escape_shown(job->target), job->format, figures.shards,
           figures.shards == 1 ? "" : "s");
    if (figures.shards_kept)
        printf(" (%" PRIu32 " were finished before)", figures.shards_kept);
    if (job->dry_run) {
        printf("\n%s samples would be written, about %s, from %s\n",
               words_count(figures.samples, samples),
               bytes_text(figures.needed_bytes, bytes, sizeof bytes), escape_shown(figures.source));
        printf("nothing was changed\n");
    } else {
        char skipped[WORDS_BYTES], rate[WORDS_BYTES], mib[WORDS_BYTES];
        char time[WORDS_BYTES], recoded[WORDS_BYTES], before[32];
        double seconds = (double)figures.elapsed_ns * 1e-9;
        printf("\n%s samples, %s of images, from %s\n", words_count(figures.samples, samples),
               bytes_text(figures.image_bytes, bytes, sizeof bytes), escape_shown(figures.source));
        if (job->raw)
            printf("%s images of %s are now pixels (PPM)\n", words_count(figures.recoded, recoded),
                   bytes_text(figures.unrecoded_bytes, before, sizeof before));
        else if (job->side)
            printf("%s images of %s are now JPEGs of quality %" PRIu64 ", %" PRIu64
                   " pixels on the shorter side; the others are as they were\n",
                   words_count(figures.recoded, recoded),
                   bytes_text(figures.unrecoded_bytes, before, sizeof before), job->quality,
                   job->side);
        if (job->quality != PACK_QUALITY && figures.samples > 0 && !figures.encodes)
            printf("--quality %" PRIu64 " changed nothing: no image was encoded%s\n", job->quality,
                   job->side || job->raw ? "" : "; with --side those that are larger are");
        if (figures.skipped)
            printf("%s sample%s: %s\n", words_count(figures.skipped, skipped),
                   figures.skipped == 1 ? " was left out" : "s were left out; one of them",
                   escape_shown(figures.first_skipped));
        if (figures.damaged)
            printf("%s damaged image%s copied as %s: %s\n", words_count(figures.damaged, skipped),
                   figures.damaged == 1 ? " was" : "s were",
                   figures.damaged == 1 ? "it is" : "they are; one of them",
                   escape_shown(figures.first_damaged));
        words_rate(seconds > 0 ? (double)figures.samples / seconds : 0, rate);
        words_rate(seconds > 0 ? (double)figures.image_bytes / seconds / 1048576 : 0, mib);
        printf("%s, %s samples/s, %s MiB/s\n", words_duration(figures.elapsed_ns, time), rate, mib);
    }
    command_guard(&guard); /* of the rate: what was written is as it is */
    if (job->entry_points && !job->dry_run && note_entry_points(job))
        return command_failed(invocation);
    return COMMAND_OK;
}

const struct command command_pack = {
    .name = "pack",
    .summary = "create a data set, or convert one to another format",
    .operands = "SOURCE TARGET",
    .operands_minimum = 2,
    .operands_maximum = 2,
    .description =
        "Creates the data set TARGET, a folder, from SOURCE: a data set in any format, a folder of "
        "images with one subfolder per class, a tar or zip of images (compressed or not), IDX "
        "files (MNIST), or generated images: synthetic[:count=N,seed=N,classes=N,mean=BYTES]; "
        "with workload=NAME random bytes with the sizes of that workload's samples. "
        "Labels, names and ids are kept as far as the format of TARGET can hold them. Shards are "
        "written to a hidden folder in TARGET and renamed when all are complete; after an "
        "interruption the same command writes only the missing ones. Nothing is ever replaced: a "
        "folder that holds other files is refused.",
    .examples =
        "iobench pack synthetic:count=100000 /mnt/set --shards 8\t11 GB of generated images\n"
        "iobench pack /mnt/imagenet/train /mnt/records -f recordio --shuffle\tlike im2rec\n"
        "iobench pack /mnt/imagenet/train /mnt/small --side 256 --quality 90\tless CPU to decode\n"
        "iobench pack /mnt/imagenet/train /mnt/pixels --side 256 --raw\tno decoding, more bytes\n"
        "iobench pack train.tar.gz /mnt/lmdb -f lmdb\tfrom an archive, one class per folder\n"
        "iobench pack /usr/share/datasets/fashion-mnist /tmp/set\t70,000 small real images\n",
    .options = pack_options,
    .settings_size = sizeof(struct pack_job),
    .operands_exist = true,
    .operands_reach = {OPTION_READS_SET, OPTION_MAKES_SET},
    .is_confined = true,
    .run = pack_command,
};
