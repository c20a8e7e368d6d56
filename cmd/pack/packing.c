/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/packing.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "base/thread.h"
#include "cmd/pack/source.h"
#include "cmd/pack/target.h"
#include "dataset/manifest.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "report/words.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pack {
    const struct pack_job *job;
    struct pack_line *line;
    struct pack_figures *figures;
    struct source source;
    struct plugin_choice format;
    struct target target;
    struct permutation order;
    struct recode recode;
    uint64_t count, kept, threads;
    uint32_t shards, pending;
    uint32_t producers; /* per shard */
    struct flag stop;
    struct counter samples, bytes, skipped;
    struct counter recoded, unrecoded_bytes; /* images changed, and their bytes before */
    struct counter encoded;                  /* pixels that became JPEGs */
    struct counter damaged; /* images copied as they are, though cut short or of no known kind */
    pthread_mutex_t lock;   /* of all below and of target */
    uint32_t next;          /* shard to consider for the next writer */
    pthread_mutex_t first_lock; /* of the figures' first_*; never held in a system call */
};

/* Writes one shard. Producers read samples in any order; the caller's thread appends them in order.
 * A ring of slots bounds the memory.
 *
 * Invariant: places [written, claimed) are in slots place % PENDING_MOST, each being filled or
 * ready; claimed <= written + PENDING_MOST. A slot belongs to the producer that claimed its place
 * until ready, then to the writer.
 */

enum { PENDING_MOST = 32, PRODUCERS_MOST = 64 };

struct pending_sample {
    struct source_buffer memory;
    void *encoded; /* image made from the stored one */
    size_t encoded_capacity;
    struct sample sample;
    char name[24];
    bool ready, skipped;
};

struct shard_writer {
    struct pack *pack;
    pthread_mutex_t lock;
    pthread_cond_t filled; /* the writer waits for the slot of the place `written` */
    pthread_cond_t freed;  /* producers wait for slots */
    uint64_t claimed, written, end;
    uint32_t waiting; /* producers */
    bool cancelled;   /* by either side */
    struct pending_sample slots[PENDING_MOST];
};

static void cancel(struct shard_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    writer->cancelled = true;
    pthread_cond_broadcast(&writer->filled);
    pthread_cond_broadcast(&writer->freed);
    pthread_mutex_unlock(&writer->lock);
}

/* ---- producers ---- */

/* Count what the last failure tells, and keep the first reason. */
static void note_first(struct pack *pack, struct counter *counter, char first[512])
{
    counter_add(counter, 1);
    pthread_mutex_lock(&pack->first_lock);
    if (!first[0])
        snprintf(first, 512, "%s", fail_reason());
    pthread_mutex_unlock(&pack->first_lock);
}

/* Read one sample. Every format can hold an encoded image with a name. */
static int fill_slot(struct shard_writer *writer, struct recoder *recoder, void *cursor,
                     uint64_t place, struct pending_sample *slot)
{
    struct pack *pack = writer->pack;
    struct sample *sample = &slot->sample;
    uint64_t number = pack->job->shuffle ? permutation_at(&pack->order, place) : place;
    int code = source_read(&pack->source, cursor, number, &slot->memory, sample);

    if (code == 0 && sample->image_bytes == 0)
        code = fail(ENODATA, "sample %llu (%.*s) has no image", (unsigned long long)number,
                    (int)sample->name_bytes, sample->name);
    if (code == 0 && (pack->recode.side || pack->recode.raw)) {
        const size_t bytes = sample->image_bytes;
        code = recoder_apply(recoder, sample, &slot->encoded, &slot->encoded_capacity);
        if (code < 0)
            return fail(code, "sample %llu: %s", (unsigned long long)number, fail_reason());
        if (code == 1) {
            counter_add(&pack->recoded, 1);
            counter_add(&pack->unrecoded_bytes, bytes);
        }
        code = 0;
    }
    if (code == 0 && sample->encoding != SAMPLE_ENCODED) {
        code = image_to_jpeg(sample, pack->recode.quality, &slot->encoded, &slot->encoded_capacity,
                             &sample->image_bytes);
        sample->image = slot->encoded;
        sample->encoding = SAMPLE_ENCODED;
        counter_add(&pack->encoded, 1);
    }
    if (code)
        return code;
    if (sample->id == 0)
        sample->id = number;
    if (sample->name_bytes == 0) {
        sample->name = slot->name;
        sample->name_bytes =
            (size_t)snprintf(slot->name, sizeof slot->name, "%08llu", (unsigned long long)number);
    }
    /* Copying a damaged image is not a fault of pack, but nothing else may check it. Generated
     * samples need not be images. */
    struct image_header header;
    if (!pack->source.ops->generates &&
        image_header_check(sample->image, sample->image_bytes, &header)) {
        fail(EBADMSG, "%.*s: %s", (int)sample->name_bytes, sample->name, fail_reason());
        note_first(pack, &pack->damaged, pack->figures->first_damaged);
        fail_clear();
    }
    return 0;
}

static int produce(void *argument)
{
    struct shard_writer *writer = argument;
    struct recoder recoder;
    void *cursor;
    int code = source_cursor_open(&writer->pack->source, &cursor);

    if (code == 0)
        code = recoder_open(&recoder, &writer->pack->recode);
    else
        recoder = (struct recoder){0};

    while (code == 0) {
        pthread_mutex_lock(&writer->lock); /* claim a place */
        while (!writer->cancelled && writer->claimed < writer->end &&
               writer->claimed >= writer->written + PENDING_MOST) {
            writer->waiting++;
            pthread_cond_wait(&writer->freed, &writer->lock);
            writer->waiting--;
        }
        const bool is_over = writer->cancelled || writer->claimed == writer->end;
        const uint64_t place = writer->claimed;
        writer->claimed += !is_over;
        assert(writer->claimed <= writer->written + PENDING_MOST);
        pthread_mutex_unlock(&writer->lock);
        if (is_over)
            break;
        struct pending_sample *slot = &writer->slots[place % PENDING_MOST];
        code = fill_slot(writer, &recoder, cursor, place, slot);
        slot->skipped = code != 0;
        if (code && writer->pack->job->on_error == PACK_SKIP && code != -ENOMEM) {
            note_first(writer->pack, &writer->pack->skipped, writer->pack->figures->first_skipped);
            code = 0;
        }
        if (code)
            break;
        pthread_mutex_lock(&writer->lock);
        slot->ready = true;
        if (place == writer->written)
            pthread_cond_signal(&writer->filled);
        pthread_mutex_unlock(&writer->lock);
    }
    if (code)
        cancel(writer);
    recoder_close(&recoder);
    if (cursor)
        source_cursor_close(&writer->pack->source, cursor);
    return code;
}

enum { RECORD_OVERHEAD_BYTES = 1024 };

const struct option_spec pack_options[] = {
    {"format", 'f', OPTION_TEXT, offsetof(struct pack_job, format), "shards",
     .metavar = "NAME[:OPTIONS]", .section = "What is made",
     .summary = "format of the data set to create"},
    {"shards", 's', OPTION_COUNT, offsetof(struct pack_job, shards), "0",
     .summary = "number of shards; auto: by --shard-size", .maximum = 1e6, .zero = "auto"},
    {"shard-size", 0, OPTION_SIZE, offsetof(struct pack_job, shard_bytes), "256m",
     .summary = "approximate size of a shard", .minimum = 4096},
    {"shuffle", 0, OPTION_COUNT, offsetof(struct pack_job, shuffle), "0", .metavar = "SEED",
     .implied = "1", .zero = "none", .summary = "write the samples in a random order"},
    {"limit", 0, OPTION_COUNT, offsetof(struct pack_job, limit), "0", .zero = "all",
     .summary = "use only the first N samples"},
    {"quality", 0, OPTION_COUNT, offsetof(struct pack_job, quality), "95", .minimum = 1,
     .maximum = 100, .summary = "JPEG quality for raw pixels and --side"},
    {"side", 0, OPTION_COUNT, offsetof(struct pack_job, side), "0", .metavar = "PIXELS",
     .zero = "none", .maximum = 16384,
     .summary = "encode larger images again, with this shorter side"},
    {"raw", 0, OPTION_FLAG, offsetof(struct pack_job, raw),
     .summary = "store pixels (PPM); with --side, those of the smaller images"},
    {"entry-points", 0, OPTION_FLAG, offsetof(struct pack_job, entry_points),
     .summary = "then verify TARGET and write beside it where decoding its JPEGs can begin"},
    {"dry-run", 0, OPTION_FLAG, offsetof(struct pack_job, dry_run),
     .summary = "show what would be created; change nothing"},
    {"from", 0, OPTION_TEXT, offsetof(struct pack_job, from), "auto", .metavar = "NAME[:OPTIONS]",
     .section = "Source", .summary = "kind of SOURCE: a format, archive, idx or synthetic"},
    {"on-error", 0, OPTION_CHOICE, offsetof(struct pack_job, on_error), "stop",
     .choices = (const char *const[]){"stop", "skip", NULL}, .metavar = "stop|skip",
     .summary = "on a damaged sample: stop, or skip and count it"},
    {"odd-labels", 0, OPTION_CHOICE, offsetof(struct pack_job, odd_labels), "refuse",
     .choices = format_odd_labels_names,
     .summary = "labels that are not integers: dropped, rounded, or refused as damage"},
    {"threads", 't', OPTION_COUNT, offsetof(struct pack_job, threads), "0", .section = "How",
     .maximum = 1024, .zero = "auto", .summary = "number of threads; auto: one per CPU"},
    {"io-timeout", 0, OPTION_DURATION, offsetof(struct pack_job, io_timeout_ns), "60s",
     .zero = "none", .summary = "time-out for a server that does not respond (nfs://)"},
    {0},
};

void pack_show_look(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct pack_line *line = context;
    char bar[LINE_PART_BYTES], left[LINE_PART_BYTES], text[sizeof line->line.last];

    if (!line || !line->line.shown)
        return;
    line->start_ns = line->start_ns ? line->start_ns : clock_now_ns();
    snprintf(text, sizeof text, "%s %s%s", line->looking, line_bar(bar, done_bytes, total_bytes),
             line_left(left, done_bytes, total_bytes, clock_now_ns() - line->start_ns));
    line_show(&line->line, text);
}

void pack_show(struct pack_line *line, uint64_t done, uint64_t total, uint64_t kept, uint64_t bytes)
{
    char bar[LINE_PART_BYTES], left[LINE_PART_BYTES], rate[WORDS_BYTES], mib[WORDS_BYTES];
    char text[sizeof line->line.last];

    assert(kept <= done);
    if (!line || !line->line.shown)
        return;
    const uint64_t elapsed_ns = clock_now_ns() - line->start_ns;
    const double seconds = (double)elapsed_ns * 1e-9;
    words_rate(seconds > 0 ? (double)(done - kept) / seconds : 0, rate);
    words_rate(seconds > 0 ? (double)bytes / seconds / 1048576 : 0, mib);
    snprintf(text, sizeof text, "%s %s%s%s%s%s%s %s MiB/s%s", line->working,
             line_bar(bar, done, total), line->unit ? " " : "", line->unit ? rate : "",
             line->unit ? " " : "", line->unit ? line->unit : "", line->unit ? "/s" : "", mib,
             line_left(left, done - kept, total - kept, elapsed_ns));
    line_show(&line->line, text);
}

static uint64_t shard_begin(const struct pack *pack, uint32_t shard)
{
    assert(pack->shards > 0 && shard <= pack->shards);
    return (uint64_t)((unsigned __int128)pack->count * shard / pack->shards);
}

/* ---- planning ---- */

/* Pixels take several times the bytes of the images that the source counts: look at some. */
static int estimate_pixels(struct pack *pack)
{
    enum { LOOK_AT = 16 };
    struct source_traits *traits = &pack->source.traits;
    struct source_buffer buffer = {0};
    uint64_t looked = 0, sum = 0, bytes;
    struct sample sample;
    void *cursor;

    int code = source_cursor_open(&pack->source, &cursor);
    for (uint64_t i = 0; code == 0 && i < LOOK_AT && !traits->in_order; i++) {
        if (source_read(&pack->source, cursor, pack->count * i / LOOK_AT, &buffer, &sample) ||
            recode_pixel_bytes(&pack->recode, &sample, &bytes))
            continue; /* the writers report it */
        sum += bytes;
        looked++;
    }
    if (cursor)
        source_cursor_close(&pack->source, cursor);
    source_buffer_release(&buffer);
    if (looked)
        traits->image_bytes = traits->count * (sum / looked);
    return code;
}

static int choose_shards(const struct pack *pack, uint32_t *shards)
{
    const struct pack_job *job = pack->job;
    char *path = NULL;
    int most = format_shard_path(pack->format.plugin, job->target, 0, 0, &path);

    free(path);
    if (most < 0)
        return most;
    if (job->shards > pack->count)
        return fail(EINVAL, "%llu samples cannot fill %llu shards", (unsigned long long)pack->count,
                    (unsigned long long)job->shards);
    if (most > 0 && job->shards > (uint64_t)most)
        return fail(EINVAL, "a data set of format %s has at most %d shard%s, not %llu",
                    pack->format.plugin->name, most, most == 1 ? "" : "s",
                    (unsigned long long)job->shards);
    uint64_t wanted = job->shards;
    if (wanted == 0) {
        uint64_t bytes = (uint64_t)((double)pack->source.traits.image_bytes * (double)pack->count /
                                    (double)pack->source.traits.count);
        wanted = (bytes + job->shard_bytes - 1) / job->shard_bytes;
        wanted = wanted > pack->count ? pack->count : wanted;
        wanted = wanted < 1 ? 1 : wanted > 1000000 ? 1000000 : wanted;
        if (most > 0 && wanted > (uint64_t)most)
            wanted = (uint64_t)most;
    }
    *shards = (uint32_t)wanted;
    return 0;
}

/* Check that the source is not inside the target, so it is never removed, and that what is written
 * below the source adds neither images nor classes to it. */
static int check_apart(const struct pack_job *job, const struct format_ops *format)
{
    struct store_status status;

    if (store_stat(job->source, &status)) { /* generated, or an error to come */
        fail_clear();
        return 0;
    }
    if (store_is_same(job->source, job->target))
        return fail(EINVAL, "%s: source and target are the same", job->target);
    if (store_is_within(job->source, job->target))
        return fail(EINVAL, "%s: the source is inside the target", job->source);
    if (format->records_are_images && store_is_within(job->target, job->source))
        return fail(EINVAL,
                    "%s: is inside the source, which would then contain each image twice; name a "
                    "folder outside %s",
                    job->target, job->source);
    /* Each folder of plain files is a class: one more and the classes after it get other numbers.
     */
    const bool is_inside = store_is_within(job->target, job->source);
    const struct plugin *source = is_inside ? format_detect(job->source) : NULL;
    fail_clear();
    if (source && format_of(source)->records_are_images)
        return fail(EINVAL,
                    "%s: is inside the source, whose folders are its classes, and would be one "
                    "more; name a folder outside %s",
                    job->target, job->source);
    return 0;
}

/* Compute what remains to be done, and check the free space. */
static int plan_work(struct pack *pack)
{
    const struct source_traits *traits = &pack->source.traits;

    pack->kept = pack->pending = 0;
    for (uint32_t i = 0; i < pack->shards; i++) {
        if (pack->target.finished[i])
            pack->kept += shard_begin(pack, i + 1) - shard_begin(pack, i);
        else
            pack->pending++;
    }
    pack->figures->shards = pack->shards;
    pack->figures->shards_kept = pack->shards - pack->pending;
    pack->figures->needed_bytes =
        (pack->count - pack->kept) * (traits->image_bytes / traits->count + RECORD_OVERHEAD_BYTES);
    return target_check_room(&pack->target, pack->figures->needed_bytes);
}

static int prepare_pack(struct pack *pack)
{
    const struct pack_job *job = pack->job;
    const struct source_traits *traits = &pack->source.traits;
    const struct source_config config = {.threads = pack->threads,
                                         .skip = job->on_error == PACK_SKIP,
                                         .quality = job->quality,
                                         .odd_labels = job->odd_labels,
                                         .progress = pack_show_look,
                                         .progress_context = pack->line};
    int code = plugin_choose("format", format_registry, job->format, &pack->format);

    if (code == 0)
        code = plugin_usable(pack->format.plugin);
    if (code == 0)
        code = format_check_writable(pack->format.plugin);
    if (code == 0)
        code = check_apart(job, format_of(pack->format.plugin));
    if (code == 0)
        code = source_open(&pack->source, job->from, job->source, &config);
    if (code)
        return code;
    memcpy(pack->figures->source, traits->what, sizeof traits->what);
    pack->count = traits->count;
    if (job->limit && job->limit < pack->count)
        pack->count = job->limit;
    if (job->raw)
        code = estimate_pixels(pack);
    if (code == 0 && job->shuffle && traits->in_order)
        code = fail(EINVAL,
                    "%s: %s can only be read from front to back, not shuffled: pack it "
                    "first, then shuffle the result",
                    job->source, traits->what);
    if (code == 0)
        code = choose_shards(pack, &pack->shards);
    if (code)
        return code;
    /* Hash everything that determines the output. Not on_error: a finished shard is the same either
     * way. */
    const char *const texts[] = {pack->format.text, pack->source.choice.text, job->source};
    uint64_t plan = random_hash(traits->fingerprint, pack->count, pack->shards);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (const char *byte = texts[i]; *byte; byte++)
            plan = random_hash(plan, (uint8_t)*byte, i);
    plan = random_hash(plan, job->quality, job->shuffle);
    if (job->side || job->raw)
        plan = random_hash(plan, job->side, 1 + job->raw);
    if (job->odd_labels != FORMAT_ODD_REFUSE)
        plan = random_hash(plan, (uint64_t)job->odd_labels, 0);
    /* A copy of generated images counts, too. */
    const struct target_request request = {
        .path = job->target,
        .format = &pack->format,
        .shards = pack->shards,
        .plan = plan,
        .start_over = job->start_over,
        .command = job->command,
        .is_synthetic = (pack->source.ops->generates || manifest_is_synthetic(pack->job->source))};
    code = target_open(&pack->target, &request);
    return code ? code : plan_work(pack);
}

/* ---- writing ---- */

/* Write the samples at places [begin, end) as a shard. Returns 0, -ECANCELED without a reason if
 * pack->stop was set, or a negative errno; then nothing is left of the shard. */
static int write_shard(struct pack *pack, const char *path, uint64_t begin, uint64_t end)
{
    struct shard_writer *writer = memory_zeroed(sizeof *writer);
    struct thread *producers = memory_array(PRODUCERS_MOST, sizeof *producers);
    int code = -ENOMEM;

    if (writer && producers) {
        writer->pack = pack;
        writer->claimed = writer->written = begin;
        writer->end = end;
        pthread_mutex_init(&writer->lock, NULL);
        pthread_cond_init(&writer->filled, NULL);
        pthread_cond_init(&writer->freed, NULL);
        struct format_writer output;
        char reason[FAIL_REASON_BYTES];
        uint32_t count = pack->producers < PRODUCERS_MOST ? pack->producers : PRODUCERS_MOST;
        code = format_writer_open(&output, &pack->format, path);
        for (uint32_t i = 0; code == 0 && i < count; i++)
            code = thread_start(&producers[i], "producer", produce, writer);
        while (code == 0 && writer->written < writer->end) {
            struct pending_sample *slot = &writer->slots[writer->written % PENDING_MOST];
            pthread_mutex_lock(&writer->lock);
            while (!slot->ready && !writer->cancelled)
                pthread_cond_wait(&writer->filled, &writer->lock);
            bool ready = slot->ready && !writer->cancelled;
            pthread_mutex_unlock(&writer->lock);
            if (!ready || flag_get(&pack->stop)) {
                code = -ECANCELED;
                break;
            }
            if (!slot->skipped) {
                code = format_writer_append(&output, &slot->sample);
                counter_add(&pack->bytes, slot->sample.image_bytes);
            }
            counter_add(&pack->samples, 1);
            pthread_mutex_lock(&writer->lock);
            slot->ready = false;
            writer->written++;
            /* A wake-up costs more than a small sample: one for many slots. */
            if (writer->waiting && writer->claimed - writer->written <= PENDING_MOST / 2)
                pthread_cond_broadcast(&writer->freed);
            pthread_mutex_unlock(&writer->lock);
        }
        if (code)
            cancel(writer);
        /* A writer that waited in vain has no reason: the failed producer has it. */
        snprintf(reason, sizeof reason, "%s", fail_reason());
        for (uint32_t i = 0; i < count; i++) {
            int failed = thread_join(&producers[i]);
            if (failed && code == -ECANCELED) {
                code = failed;
                snprintf(reason, sizeof reason, "%s", fail_reason());
            }
        }
        int closed = format_writer_close(&output, code == 0);
        if (code == 0)
            code = closed;
        else
            code = code == -ECANCELED ? code : fail(code, "%s", reason);

        for (int i = 0; i < PENDING_MOST; i++) {
            source_buffer_release(&writer->slots[i].memory);
            free(writer->slots[i].encoded);
        }
        pthread_cond_destroy(&writer->filled);
        pthread_cond_destroy(&writer->freed);
        pthread_mutex_destroy(&writer->lock);
    }
    free(producers);
    free(writer);
    return code;
}

static int run_writer(void *context, struct workers *workers, uint64_t number)
{
    struct pack *pack = context;
    int code = 0;

    (void)workers, (void)number;
    while (code == 0 && !flag_get(&pack->stop)) {
        pthread_mutex_lock(&pack->lock);
        while (pack->next < pack->shards && pack->target.finished[pack->next])
            pack->next++;
        const uint32_t shard = pack->next;
        char *path = NULL;
        if (shard < pack->shards) {
            pack->next++;
            code = target_shard_begin(&pack->target, shard, &path);
        }
        pthread_mutex_unlock(&pack->lock);
        if (shard == pack->shards)
            break;
        if (code == 0)
            code = write_shard(pack, path, shard_begin(pack, shard), shard_begin(pack, shard + 1));
        pthread_mutex_lock(&pack->lock);
        if (code == 0)
            code = target_shard_done(&pack->target, shard);
        pthread_mutex_unlock(&pack->lock);
        free(path);
    }
    return code == -ECANCELED ? 0 : code;
}

static void stop_writers(void *context)
{
    struct pack *pack = context;

    flag_set(&pack->stop);
}

static int watch(void *context)
{
    struct pack *pack = context;

    if (flag_get(&stop_asked))
        flag_set(&pack->stop);
    pack_show(pack->line, pack->kept + counter_get(&pack->samples), pack->count, pack->kept,
              counter_get(&pack->bytes));
    return 0;
}

int pack_run(const struct pack_job *job, struct pack_line *line, struct pack_figures *figures)
{
    struct pack *pack = memory_zeroed(sizeof *pack);

    *figures = (struct pack_figures){0};
    if (!pack)
        return -ENOMEM;
    store_set_timeout(job->io_timeout_ns);
    pack->job = job;
    pack->line = line;
    pack->recode = (struct recode){(uint32_t)job->side, job->raw, (int)job->quality};
    pack->figures = figures;
    pack->threads = job->threads ? job->threads : thread_cpu_count();
    pthread_mutex_init(&pack->lock, NULL);
    pthread_mutex_init(&pack->first_lock, NULL);

    int code = prepare_pack(pack);
    if (code)
        goto end;
    const struct source_traits *traits = &pack->source.traits;
    if (job->dry_run) {
        figures->samples = pack->count - pack->kept;
        figures->image_bytes = figures->samples * (traits->image_bytes / traits->count);
        goto end;
    }
    code = target_begin(&pack->target);
    if (code == 0)
        code = plan_work(pack); /* another pack may have resumed it meanwhile */
    const uint64_t start_ns = clock_now_ns();
    if (line)
        line->start_ns = start_ns;
    if (code == 0) {
        uint64_t writers = traits->in_order                ? 1
                           : pack->pending < pack->threads ? pack->pending
                                                           : pack->threads;
        const struct workers_job writer = {"writer", run_writer, stop_writers, watch, pack};
        pack->producers =
            traits->in_order || writers == 0 ? 1 : (uint32_t)(pack->threads / writers);
        pack->order = permutation_start(job->shuffle, pack->count);
        code = workers_run(&writer, writers);
    }
    if (code == 0 && pack->kept + counter_get(&pack->samples) < pack->count)
        code = fail(EINTR, "%s: interrupted; repeat the same command to resume", job->target);
    /* An empty set is no success; nor may the same command resume it. */
    if (code == 0 && pack->kept == 0 && counter_get(&pack->skipped) == pack->count) {
        code = fail(ENODATA, "%s: none of %llu samples could be packed; one of them: %s",
                    job->source, (unsigned long long)pack->count, figures->first_skipped);
        memset(pack->target.finished, 0, pack->shards * sizeof *pack->target.finished);
    }
    if (code == 0)
        code = target_finish(&pack->target);
    else
        target_leave(&pack->target);
    figures->skipped = counter_get(&pack->skipped);
    figures->samples = counter_get(&pack->samples) - figures->skipped;
    figures->skipped += traits->skipped;
    figures->image_bytes = counter_get(&pack->bytes);
    figures->damaged = counter_get(&pack->damaged);
    figures->recoded = counter_get(&pack->recoded);
    figures->unrecoded_bytes = counter_get(&pack->unrecoded_bytes);
    figures->encodes =
        traits->encodes || counter_get(&pack->encoded) > 0 || (figures->recoded > 0 && !job->raw);
    figures->elapsed_ns = clock_now_ns() - start_ns;
    if (!figures->first_skipped[0])
        memcpy(figures->first_skipped, traits->first_skipped, sizeof figures->first_skipped);
end:
    target_release(&pack->target);
    source_close(&pack->source);
    plugin_release(&pack->format);

    pthread_mutex_destroy(&pack->lock);
    pthread_mutex_destroy(&pack->first_lock);
    free(pack);
    return code;
}
