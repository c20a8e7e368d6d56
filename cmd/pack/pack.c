/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench pack: makes or converts a data set. iobench verify: checks every record of one: framing
 * and checksum, the sample in it, and the header or the whole of its image. Continues past faults
 * and prints each, in file order.
 */
#include "cmd/pack/packing.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/stop.h"
#include "base/thread.h"
#include "cmd/commands.h"
#include "cmd/line.h"
#include "cmd/outputs.h"
#include "cmd/pack/cursor.h"
#include "cmd/pack/source.h"
#include "dataset/sidecar.h"
#include "dataset/store.h"
#include "dataset/synthesis.h"
#include "decode/decoder.h"
#include "decode/image.h"
#include "formats/format.h"
#include "pipeline/settings/job.h"
#include "report/words.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- verify ---- */

/* Records are checked in pieces of adjacent records, several pieces at once; the faults of a piece
 * wait in a ring until earlier pieces are reported. Invariant: pieces [reported, taken) are in
 * ring[piece % PIECES], and taken <= reported + PIECES.
 */

enum { PIECES = 256, PIECE_BYTES = 16 << 20, PIECE_RECORDS = 8192 };

/* How much of an image is checked. */
enum verify_decode { VERIFY_RECORDS, VERIFY_HEADERS, VERIFY_PIXELS };

struct verify_job {
    const char *path;  /* borrowed */
    char *format;      /* "auto" or NAME[:OPTIONS] */
    int decode;        /* enum verify_decode */
    bool entry_points; /* keep the decoder's hints beside the data */
    struct image_limits limits;
    uint64_t threads;       /* 0: one per CPU */
    uint64_t io_timeout_ns; /* see store_set_timeout() */
    char *json;             /* for the calling command; "-": faults are not printed */
    const char *teller;     /* prefix of faults, which then go to stderr; NULL: standard output */
};

static const struct option_spec verify_options[] = {
    {"format", 'f', OPTION_TEXT, offsetof(struct verify_job, format), "auto",
     .metavar = "NAME[:OPTIONS]", .summary = "format of the data set"},
    {"decode", 0, OPTION_CHOICE, offsetof(struct verify_job, decode), "header", .implied = "pixels",
     .choices = (const char *const[]){"none", "header", "pixels", NULL},
     .summary = "what is checked of an image: its header, or all its pixels (--decode alone); "
                "none: records are "
                "taken whole, whatever they hold"},
    {"entry-points", 0, OPTION_FLAG, offsetof(struct verify_job, entry_points),
     .reach = OPTION_INDEXES_OPERANDS,
     .summary = "write beside the data where decoding its JPEGs can begin, which makes random "
                "crops faster"},
    IMAGE_LIMITS_ROWS(offsetof(struct verify_job, limits)),
    {"threads", 't', OPTION_COUNT, offsetof(struct verify_job, threads), "0", .maximum = 1024,
     .zero = "auto", .summary = "number of threads; auto: one per CPU"},
    {"io-timeout", 0, OPTION_DURATION, offsetof(struct verify_job, io_timeout_ns), "60s",
     .zero = "none", .summary = "time-out for a server that does not respond (nfs://)"},
    {"json", 0, OPTION_TEXT, offsetof(struct verify_job, json), .metavar = "FILE",
     .reach = OPTION_WRITES, .begins = "{\"data\": \"\", \"format\"", .implied = "-",
     .summary = "write the findings as JSON to FILE, by default to standard output"},
    {0},
};

struct verify_found {
    uint64_t record;
    char *what;
};

struct piece {
    struct verify_found *found;
    uint32_t count;
    bool done;
};

struct verify {
    const struct verify_job *job;
    struct pack_line *line;
    struct plugin_choice format;
    struct catalog *catalog;
    uint64_t start_ns, elapsed_ns;
    uint64_t faults;
    json_t *list;                  /* of the faults; NULL without json */
    struct counter records, bytes; /* checked */
    struct counter hints;          /* images that have one, with entry_points */
    char *hints_path;              /* where they are; NULL: nowhere */
    pthread_mutex_t lock;          /* of all below */
    pthread_cond_t changed;
    uint64_t taken, reported, next_record;
    bool stop;
    struct piece ring[PIECES];
};

/* ---- reporting ---- */

static void report_fault(struct verify *verify, const char *path, uint64_t offset, const char *what)
{
    const struct verify_job *job = verify->job;

    verify->faults++;
    if (!job->json || strcmp(job->json, "-") != 0) {
        if (verify->line)
            line_clear(&verify->line->line);
        fprintf(job->teller ? stderr : stdout, "%s%s: offset %" PRIu64 ": %s\n",
                job->teller ? job->teller : "", escape_shown(path), offset, escape_shown(what));
    }
    if (verify->list) /* a name need not be UTF-8 */
        json_array_append_new(verify->list,
                              json_pack("{s:o, s:I, s:o}", "file", json_text(path), "offset",
                                        (json_int_t)offset, "what", json_text(what)));
}

static int index_fault(void *context, const struct catalog_fault *fault)
{
    report_fault(context, fault->path, fault->offset, fault->what);
    return stop_check();
}

/* ---- checking ---- */

/* Keep this thread's reason as a fault of the record. Its place is reported separately, so strip it
 * from the reason. */
static int add_found(const struct verify *verify, struct piece *piece, uint64_t record)
{
    const struct extent *extent = catalog_extent(verify->catalog, record);
    const char *what = fail_reason();
    char place[FAIL_REASON_BYTES];

    if (memory_room(&piece->found, piece->count, sizeof *piece->found, "faults"))
        return -ENOMEM;
    int length = snprintf(place, sizeof place,
                          "%s: offset %llu: ", verify->catalog->shards[extent->shard].path,
                          (unsigned long long)extent->offset);
    if (length > 0 && strncmp(what, place, (size_t)length) == 0)
        what += length;
    struct verify_found *found = &piece->found[piece->count];
    *found = (struct verify_found){.record = record, .what = strdup(what)};
    if (!found->what)
        return fail(ENOMEM, "out of memory for the faults");
    piece->count++;
    return 0;
}

struct checker {
    struct cursor *cursor;
    struct plugin_choice choice;
    struct decoder decoder; /* makes hints */
};

static int check_record(struct verify *verify, struct checker *checker, uint64_t record)
{
    const struct extent *extent = catalog_extent(verify->catalog, record);
    const bool images = verify->job->decode != VERIFY_RECORDS;
    struct sample sample;
    int code = cursor_parse(checker->cursor, &verify->format,
                            FORMAT_ODD_LABELS | (images ? 0 : FORMAT_WHOLE), &sample);

    if (code == 0 && (sample.has_odd_label || sample.image_bytes == 0)) {
        pthread_mutex_lock(&verify->lock);
        code = format_remark_sample(verify->catalog, extent, &sample);
        pthread_mutex_unlock(&verify->lock);
    }
    if (code == 0 && images && sample.image_bytes > 0) {
        struct image_header header;
        if (sample.encoding == SAMPLE_ENCODED)
            code = verify->job->decode == VERIFY_PIXELS
                       ? image_verify(sample.image, sample.image_bytes, &verify->job->limits)
                       : image_header_check(sample.image, sample.image_bytes, &header);
        else if ((uint64_t)sample.width * sample.height * sample.channels != sample.image_bytes)
            code = fail(EBADMSG, "raw pixels of %u x %u x %u in %zu bytes", sample.width,
                        sample.height, sample.channels, sample.image_bytes);
    }
    if (code)
        return code;
    const struct decode_source source = decode_source_of(&sample);
    uint8_t hint[DECODE_HINT_MAX];
    if (!verify->catalog->hints || sample.encoding != SAMPLE_ENCODED)
        return 0;
    const size_t bytes = decoder_make_hint(&checker->decoder, &source, hint);
    if (bytes == 0)
        return 0;
    counter_add(&verify->hints, 1);
    return hints_put(verify->catalog->hints, record, hint, bytes);
}

/* Only -ENOMEM stops it; every other failure is a fault. */
static int check_piece(struct verify *verify, struct checker *checker, struct piece *piece,
                       uint64_t begin, uint64_t end)
{
    for (uint64_t record = begin; record < end; record++) {
        const struct extent *extent = catalog_extent(verify->catalog, record);
        bool compressed = verify->catalog->shards[extent->shard].flags != 0;
        int code = cursor_load(checker->cursor, record);
        bool lost = code != 0;
        if (code == 0)
            code = check_record(verify, checker, record);
        if (code == -ENOMEM)
            return code;
        if (code && add_found(verify, piece, record))
            return -ENOMEM;
        counter_add(&verify->records, 1);
        counter_add(&verify->bytes, extent->bytes);
        if (lost && compressed) /* nothing after it can be inflated */
            break;
        if (flag_get(&stop_asked))
            return stop_check();
    }
    return 0;
}

/* Take the next piece: adjacent records of one shard, or a whole compressed shard. */
static struct piece *take_piece(struct verify *verify, uint64_t *begin, uint64_t *end)
{
    const struct catalog *catalog = verify->catalog;
    struct piece *piece = NULL;
    uint64_t bytes = 0;

    pthread_mutex_lock(&verify->lock);
    while (!verify->stop && verify->taken == verify->reported + PIECES)
        pthread_cond_wait(&verify->changed, &verify->lock);
    if (!verify->stop && verify->next_record < catalog->record_count) {
        const struct shard *shard =
            &catalog->shards[catalog_extent(catalog, verify->next_record)->shard];
        uint64_t last = shard->first_record + shard->record_count;
        *begin = *end = verify->next_record;
        while (*end < last &&
               (shard->flags || (bytes < PIECE_BYTES && *end - *begin < PIECE_RECORDS)))
            bytes += catalog_extent(catalog, (*end)++)->bytes;
        verify->next_record = *end;
        assert(*end > *begin && verify->taken < verify->reported + PIECES);
        piece = &verify->ring[verify->taken++ % PIECES];
    }
    pthread_mutex_unlock(&verify->lock);
    return piece;
}

static void stop_checkers(void *context)
{
    struct verify *verify = context;

    pthread_mutex_lock(&verify->lock);
    verify->stop = true;
    pthread_cond_broadcast(&verify->changed);
    pthread_mutex_unlock(&verify->lock);
}

static int run_checker(void *context, struct workers *workers, uint64_t number)
{
    struct verify *verify = context;
    struct checker checker = {.cursor = cursor_create(verify->catalog)};
    struct piece *piece;
    uint64_t begin, end;
    int code = checker.cursor ? 0 : -ENOMEM;

    (void)number;
    if (code == 0 && verify->catalog->hints)
        code =
            plugin_choose("decoder", decoder_registry, decoder_of_pixels()->name, &checker.choice);
    if (code == 0 && verify->catalog->hints)
        code = decoder_open(&checker.decoder, &checker.choice);
    while (code == 0 && (piece = take_piece(verify, &begin, &end))) {
        code = check_piece(verify, &checker, piece, begin, end);
        pthread_mutex_lock(&verify->lock);
        piece->done = true;
        pthread_mutex_unlock(&verify->lock);
        workers_wake(workers);
    }
    if (checker.decoder.ops)
        decoder_close(&checker.decoder);
    plugin_release(&checker.choice);
    cursor_destroy(checker.cursor);
    return code;
}

static int watch(void *context)
{
    struct verify *verify = context;

    pthread_mutex_lock(&verify->lock);
    /* Report the faults of all finished pieces without an unfinished one before them. */
    while (verify->reported < verify->taken && verify->ring[verify->reported % PIECES].done) {
        struct piece *piece = &verify->ring[verify->reported % PIECES];
        pthread_mutex_unlock(&verify->lock);
        for (uint32_t i = 0; i < piece->count; i++) {
            const struct extent *extent = catalog_extent(verify->catalog, piece->found[i].record);
            report_fault(verify, verify->catalog->shards[extent->shard].path, extent->offset,
                         piece->found[i].what);
            free(piece->found[i].what);
        }
        pthread_mutex_lock(&verify->lock);
        piece->count = 0;
        piece->done = false;
        verify->reported++;
        pthread_cond_broadcast(&verify->changed);
    }
    pthread_mutex_unlock(&verify->lock);
    pack_show(verify->line, counter_get(&verify->records), verify->catalog->record_count, 0,
              counter_get(&verify->bytes));
    return 0;
}

/* Returns 0 if everything was checked, faults or not; a negative errno with a reason if not; -EINTR
 * after stop_ask(). Release in either case. */
static int verify_run(const struct verify_job *job, struct pack_line *line, struct verify *verify)
{
    *verify = (struct verify){.job = job,
                              .line = line,
                              .start_ns = clock_now_ns(),
                              .list = job->json ? json_array() : NULL};
    if (line)
        line->start_ns = verify->start_ns;
    store_set_timeout(job->io_timeout_ns);
    pthread_mutex_init(&verify->lock, NULL);
    pthread_cond_init(&verify->changed, NULL);
    const struct format_scan scan = {.fault = index_fault,
                                     .fault_context = verify,
                                     .progress = pack_show_look,
                                     .progress_context = line};
    int code = format_choose(job->format, job->path, &verify->format);
    if (code == 0)
        code = format_catalog(&verify->format, job->path, false, &scan, &verify->catalog);
    if (code == 0 && job->entry_points &&
        !(verify->catalog->hints = hints_create(verify->catalog->record_count)))
        code = -ENOMEM;
    if (code == 0) {
        const struct workers_job checker = {"checker", run_checker, stop_checkers, watch, verify};
        code = workers_run(&checker, job->threads ? job->threads : thread_cpu_count());
    }
    /* Save even if there are none: earlier hints are of other data. */
    if (code == 0 && verify->catalog->hints)
        code = hints_file_save(verify->catalog, verify->catalog->hints, &verify->hints_path);
    if (verify->catalog)
        format_say_remarks(verify->catalog);
    verify->elapsed_ns = clock_now_ns() - verify->start_ns;
    return code;
}

static void verify_release(struct verify *verify)
{
    for (int i = 0; i < PIECES; i++) {
        for (uint32_t k = 0; k < verify->ring[i].count; k++)
            free(verify->ring[i].found[k].what);
        free(verify->ring[i].found);
    }
    catalog_destroy(verify->catalog);
    plugin_release(&verify->format);
    pthread_cond_destroy(&verify->changed);
    pthread_mutex_destroy(&verify->lock);
    json_decref(verify->list);
    free(verify->hints_path);
}

static void print_hints(const struct verify *verify)
{
    char images[WORDS_BYTES];

    printf("entry points of %s images are in %s\n",
           words_count(counter_get(&verify->hints), images), escape_shown(verify->hints_path));
}

static int verify_command(const struct invocation *invocation)
{
    struct verify_job *job = invocation->settings;
    struct pack_line line = {line_start(), "indexing", "checking", "records", 0};
    struct verify verify;
    struct guard_moment start;
    struct guard_counts guard = {0};

    job->path = invocation->operands[0];
    command_on_interrupt();
    guard_begin(&start);
    int code = verify_run(job, &line, &verify);
    guard_end(&start, &guard);
    line_clear(&line.line);
    const uint64_t checked = counter_get(&verify.records), bytes = counter_get(&verify.bytes);
    const uint32_t shards = code ? 0 : verify.catalog->shard_count;
    const bool sound = verify.faults == 0;
    if (code == 0 && job->json) {
        char remarks[REMARK_KINDS][REMARK_TEXT_BYTES];
        const uint32_t remark_count = catalog_remarks(verify.catalog, remarks);
        code = json_file_write(
            job->json,
            json_pack("{s:o, s:s, s:I, s:I, s:I, s:b, s:I, s:o, s:b, s:I, s:o, s:O}", "data",
                      json_text(job->path), "format", verify.format.plugin->name, "shards",
                      (json_int_t)shards, "records", (json_int_t)checked, "record_bytes",
                      (json_int_t)bytes, "decoded", job->decode == VERIFY_PIXELS,
                      "entry_point_images", (json_int_t)counter_get(&verify.hints), "elapsed_s",
                      json_number((double)verify.elapsed_ns * 1e-9), "sound", (int)sound,
                      "fault_count", (json_int_t)verify.faults, "remarks",
                      json_texts(remark_count, REMARK_TEXT_BYTES, remarks[0]), "faults",
                      verify.list));
    }
    if (code == 0 && !(job->json && strcmp(job->json, "-") == 0)) {
        char records[WORDS_BYTES], faults[WORDS_BYTES], time[WORDS_BYTES], mib[WORDS_BYTES];
        char size[32];
        double seconds = (double)verify.elapsed_ns * 1e-9;
        words_rate(seconds > 0 ? (double)bytes / seconds / 1048576 : 0, mib);
        printf("%s: %s, %" PRIu32 " shard%s, %s records, %s, %s, %s MiB/s\n",
               escape_shown(job->path), verify.format.plugin->name, shards, shards == 1 ? "" : "s",
               words_count(checked, records), bytes_text(bytes, size, sizeof size),
               words_duration(verify.elapsed_ns, time), mib);
        if (!sound)
            printf(
                "%s fault%s%s\n", words_count(verify.faults, faults), verify.faults == 1 ? "" : "s",
                verify.faults < checked || job->decode == VERIFY_RECORDS
                    ? ""
                    : ", in all records; if they hold no images, --decode=none checks framing and "
                      "checksums alone");
        else
            printf("no faults in framing%s\n",
                   job->decode == VERIFY_PIXELS    ? ", checksums and whole images"
                   : job->decode == VERIFY_HEADERS ? ", checksums and image headers"
                                                   : " and checksums");
        if (verify.hints_path)
            print_hints(&verify);
    }
    verify_release(&verify);
    if (code)
        return command_failed(invocation);
    command_guard(&guard); /* affects the rate only, not what was found */
    return sound ? COMMAND_OK : COMMAND_FAILED;
}

const struct command command_verify = {
    .name = "verify",
    .summary = "check every record of a data set",
    .operands = "DATA",
    .operands_minimum = 1,
    .operands_maximum = 1,
    .description =
        "Reads every record of DATA and checks its framing, its checksums if the format has them, "
        "the sample and the header of its image. Prints a line with file, offset and cause for "
        "each fault, and continues. Exits with 1 if there are faults.",
    .examples = "iobench verify /mnt/imagenet/train\tframing, checksums, image headers\n"
                "iobench verify --decode /mnt/set\tall pixels too\n"
                "iobench verify --decode=none /mnt/tokens\trecords that hold no images\n"
                "iobench verify --entry-points /mnt/set\tfor faster random crops\n",
    .options = verify_options,
    .settings_size = sizeof(struct verify_job),
    .operands_exist = true,
    .operands_reach = {OPTION_READS_SET},
    .is_confined = true,
    .run = verify_command,
};

/* ---- pack ---- */

static int pack_command(const struct invocation *invocation)
{
    struct pack_job *job = invocation->settings;
    struct pack_line line = {line_start(), "looking at the source", "packing", "samples", 0};
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
    command_guard(&guard); /* affects the rate only, not what was written */
    if (!job->entry_points || job->dry_run)
        return COMMAND_OK;
    /* Read the new set once more: its hints are of what is stored. */
    const struct verify_job check = {.path = job->target,
                                     .format = job->format,
                                     .entry_points = true,
                                     .threads = job->threads,
                                     .io_timeout_ns = job->io_timeout_ns,
                                     .teller = "iobench pack: "};
    struct verify verify;
    code = verify_run(&check, NULL, &verify);
    if (code == 0)
        print_hints(&verify);
    verify_release(&verify);
    return code ? command_failed(invocation) : COMMAND_OK;
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

/* ---- the data set of `iobench run` without --data ----
 *
 * An existing set is complete, or pack completes it after an interruption. While another process
 * generates it, this one waits.
 */

/* One CPU generates this many in about ten seconds and decodes them in about five, so that small
 * and large machines take equally long. */
enum { SAMPLES_A_CPU = 5000, SAMPLES_LEAST = 1000, FREE_SHARE = 4 };

/* Wait at most an hour for another process that generates the set. */
enum { WAIT_STEP_NS = 250000000, WAIT_TRIES = 4 * 3600 };

/* Return the number of samples that fit into a share of the free space, limited by the CPUs. */
static int choose_count(const char *folder, uint64_t *count)
{
    uint64_t free_bytes;
    char text[32];
    int code = file_free_bytes(folder, &free_bytes);

    if (code)
        return code;
    *count = (uint64_t)SAMPLES_A_CPU * thread_cpu_count();
    uint64_t fitting = free_bytes / FREE_SHARE / synthesis_imagenet.mean_bytes;
    if (*count > fitting)
        *count = fitting;
    if (*count < SAMPLES_LEAST)
        return fail(ENOSPC,
                    "%s: only %s free, too little for a synthetic data set: use --data, or set "
                    "XDG_CACHE_HOME to a larger file system",
                    folder, bytes_text(free_bytes, text, sizeof text));
    return 0;
}

/* Return whether there is a readable set of this name. Keeps the current failure reason. */
static bool is_there(const char *path)
{
    fail_hold();
    bool found = file_exists(path) && format_detect(path) != NULL;
    fail_release();
    return found;
}

static int generate(const char *folder, const char *path, const char *format)
{
    char source[64], words[WORDS_BYTES], bytes[32];
    struct pack_line line = {.line = line_start(), .working = "generating data"};
    struct pack_job job = {0};
    uint64_t count;
    int code = choose_count(folder, &count);

    if (code)
        return code;
    snprintf(source, sizeof source, "%s:count=%llu", source_generator()->name,
             (unsigned long long)count);
    char *command = file_format_path("iobench pack %s %s --format %s", source, path, format);
    if (!command || option_defaults(pack_options, &job) ||
        option_set(pack_options, &job, "format", format, "--format")) {
        code = -EINVAL;
        goto end;
    }
    bytes_text(count * synthesis_imagenet.mean_bytes, bytes, sizeof bytes);
    fprintf(stderr,
            "iobench: no --data: generating %s synthetic images (%s) in %s\niobench: this is done "
            "once; you may remove them at any time\n",
            words_count(count, words), bytes, escape_shown(path));
    job.source = source;
    job.target = path;
    job.command = command;
    job.start_over = true; /* the number that fits may have changed */
    /* While another process generates the same set, wait until it succeeds or fails. */
    struct pack_figures figures;
    code = pack_run(&job, &line, &figures);
    if (code == -EBUSY)
        fprintf(stderr, "iobench: waiting: %s\n", fail_reason());
    for (int i = 0; code == -EBUSY && i < WAIT_TRIES && !is_there(job.target); i++) {
        clock_sleep_ns(WAIT_STEP_NS);
        code = pack_run(&job, &line, &figures);
    }
    code = code && is_there(job.target) ? 0 : code;
    line_clear(&line.line);
end:
    option_release(pack_options, &job);
    free(command);
    return code;
}

int synthetic_prepare(struct job *job)
{
    const char *format = strcmp(job->read.format, "auto") == 0
                             ? option_find(pack_options, "format")->fallback
                             : job->read.format;
    char *folder = file_cache_path(""), name[96];

    if (!folder)
        return fail(EINVAL,
                    "no folder for a synthetic data set: use --data, or set XDG_CACHE_HOME to "
                    "an absolute path");
    /* With NAME:OPTIONS of its format as a file name. */
    snprintf(name, sizeof name, "synthetic-%s", format);
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '-')
            *at = '-';
    char *path = file_join(folder, name);
    int code = path ? folder_make_path(folder) : -EINVAL;

    if (path && code)
        fail(code, "%s; use --data, or set XDG_CACHE_HOME to a folder of yours", fail_reason());
    if (code == 0 && !is_there(path)) {
        if (job->dry_run)
            code = fail(ENOENT, "without --data a synthetic set would be generated in %s", path);
        else
            code = generate(folder, path, format);
    }
    if (code == 0)
        code = option_set(job_options, job, "data", path, "--data");
    free(path);
    free(folder);
    return code;
}
