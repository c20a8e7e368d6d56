/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/engine/decoders.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "base/trace.h"
#include "formats/format.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_MAX = 64 }; /* records taken at once, or begun and not finished */

/* Target work per group: small enough to balance the decode threads, large enough to make the cost
 * of a lock per group negligible. */
static const uint64_t group_ns = 50000;

/* A record whose row the decoder has yet to write. */
struct unfinished {
    const struct fetch *fetch;
    struct sample sample;
    struct batch_account account; /* if the image is good */
    bool lost;                    /* its bytes were, while they were read */
    uint64_t begun_ns;            /* for the trace */
};

/* State of a decode thread, or of the loader's thread where it counts records itself. */
struct worker {
    struct decoders *decoders;
    struct thread thread;
    uint32_t group; /* records taken at once */
    bool parses;    /* records have bytes, and a stage needs them parsed */
    struct decoder decoder;
    bool decoder_open;
    struct format_scratch scratch;
    struct unfinished unfinished[GROUP_MAX];
    uint32_t unfinished_count;
    uint8_t hint[DECODE_HINT_MAX]; /* of the current record, made within the fault guard */
    size_t hint_bytes;
    bool has_hint;
    uint64_t hints_ns;        /* in the current group */
    struct findings findings; /* of this run */
    struct trace_ring *trace; /* of its thread; NULL: none */
    uint64_t begun_ns;        /* the current record, for the trace */
};

struct decoders {
    const struct engine_config *config;
    struct loader *loader;
    struct batches *batches;
    uint32_t count;
    bool by_threads; /* records go through the decode threads */
    struct worker *workers;
    struct worker counting; /* of the loader's thread, if they do not */
};

/* Rows of one batch that are written but not yet reported. */
struct written {
    uint64_t batch;
    uint32_t rows;
    struct batch_account account;
};

/* ---- a record ---- */

/* Prefix the reason with the image's own name, if it differs from the shard's. */
static int fail_image(const struct sample *sample, const struct shard *shard, int code)
{
    const size_t length = strlen(shard->path), bytes = sample->name_bytes;

    if (bytes == 0 || bytes > 255 ||
        (bytes <= length && memcmp(shard->path + length - bytes, sample->name, bytes) == 0))
        return code;
    fail(EBADMSG, "%.*s: %s", (int)bytes, sample->name, fail_reason());
    return code;
}

/* Count the time apart from decoding. */
static void count_hint_time(struct worker *worker, uint64_t start_ns)
{
    const struct engine_config *config = worker->decoders->config;
    const uint64_t took_ns = clock_now_ns() - start_ns;

    worker->hints_ns += took_ns;
    counter_add(&config->hinting->ns, took_ns);
    meter_add(config->meter, METER_DECODE_HINTS_NS, took_ns);
}

static bool is_in_scratch(const struct format_scratch *scratch, const void *at)
{
    return (uintptr_t)at - (uintptr_t)scratch->bytes < scratch->capacity;
}

/* A hint is made of a private copy: if a mapped file changed between two looks at it, the hint
 * would be sealed with bytes that it does not follow from. */
static void want_hint(struct worker *worker, const struct sample *sample,
                      struct decode_source *source)
{
    const uint64_t start_ns = clock_now_ns();
    const struct format_scratch *scratch = &worker->scratch;
    /* The format keeps the name, if at all, at the start of the scratch buffer. */
    const size_t used = is_in_scratch(scratch, sample->name) ? sample->name_bytes : 0;

    if (!is_in_scratch(scratch, sample->image)) {
        if (sample->image_bytes > scratch->capacity - used)
            return; /* cannot happen: both are parts of the record */
        uint8_t *to = (uint8_t *)scratch->bytes + scratch->capacity - sample->image_bytes;
        source->bytes = memcpy(to, sample->image, sample->image_bytes);
    }
    source->wants_hint = true;
    count_hint_time(worker, start_ns);
}

/* Returns what decoder_begin() returns; failures set a reason. */
static int decode_mapped(struct worker *worker, const struct fetch *fetch, void *row,
                         struct sample *parsed, struct batch_account *account)
{
    const struct engine_config *config = worker->decoders->config;
    struct sample sample;

    const struct shard *shard = &config->catalog->shards[fetch->shard];
    int code = format_parse(&config->plugins->format, shard, fetch->bytes, fetch->length,
                            format_odd_labels_flags(config->job->read.odd_labels) |
                                (config->job->decode.check_crc ? 0 : FORMAT_SKIP_CRC) |
                                (config->plugins->decoder.plugin->idle ? FORMAT_WHOLE : 0),
                            &worker->scratch, &sample);
    if (code)
        return code;
    *parsed = sample;
    struct decode_source source = decode_source_of(&sample);
    const struct hints *hints = config->catalog->hints;
    const bool wants_hint = hinting_wants(config->hinting, fetch->epoch);
    if (hints && hints->rows[fetch->record].count > 0) {
        source.hint = hints->rows[fetch->record].bytes;
        source.hint_bytes = hints->rows[fetch->record].count;
    } else if (wants_hint) {
        want_hint(worker, &sample, &source);
    }
    struct view view = view_of_record(config->job->order.seed, fetch->epoch, fetch->record);
    const uint64_t stale = worker->decoder.figures.stale;
    if (sample.image_bytes > 0)
        code = decoder_begin(&worker->decoder, &source, &view, row);
    else if (row)
        memset(row, 0, worker->decoder.traits.row_bytes);
    if (code >= 0 && config->job->decode.digest) {
        /* Digest of label and image as stored, independent of order and decoder. */
        const uint64_t image = (uint64_t)(uint32_t)sample.image_bytes << 32 |
                               crc32c(0, sample.image, sample.image_bytes);
        const uint64_t hash = random_hash(image, (uint64_t)(uint32_t)sample.label, 0);
        account->digest_sum += hash;
        account->digest_xor ^= hash;
    }
    if (code == DECODE_DAMAGED || code < 0)
        return fail_image(&sample, shard, code);
    if (code)
        return code;
    /* Also replace a hint that decoding has shown to be stale. */
    if (worker->decoder.figures.stale > stale && wants_hint)
        want_hint(worker, &sample, &source);
    if (source.wants_hint) {
        const uint64_t start_ns = clock_now_ns();
        worker->hint_bytes = decoder_make_hint(&worker->decoder, &source, worker->hint);
        worker->has_hint = true;
        count_hint_time(worker, start_ns);
    }
    return 0;
}

/* Decode a record, which may lie in a mapped file that other processes can truncate. */
static int decode_row(struct worker *worker, const struct fetch *fetch, void *row,
                      struct sample *sample, struct batch_account *account)
{
    struct batch_account own = {0};

    assert(worker->unfinished_count < GROUP_MAX);
    worker->has_hint = false;
    fault_guard_begin();
    int code = decode_mapped(worker, fetch, row, sample, &own);
    const bool lost = !fault_guard_end(fetch->bytes, fetch->length);
    if (code == DECODE_PENDING)
        worker->unfinished[worker->unfinished_count++] =
            (struct unfinished){fetch, *sample, own, lost, worker->begun_ns};
    else if (lost)
        return fail(ESTALE, "%s", fault_guard_reason);
    else if (code != DECODE_FULL)
        batch_account_add(account, &own);
    if (worker->has_hint && !lost) {
        const uint64_t start_ns = clock_now_ns();
        hinting_put(worker->decoders->config->hinting, fetch->record, worker->hint,
                    worker->hint_bytes);
        count_hint_time(worker, start_ns);
    }
    return code;
}

/* Prefix the reason with the record's file, offset and number. */
static int fail_record(const struct engine_config *config, const struct fetch *fetch, int code)
{
    const struct extent *place = catalog_extent(config->catalog, fetch->record);

    const char *reason = fetch->code == -EFAULT ? fault_guard_reason
                         : fetch->code          ? fail_errno_text(code)
                                                : fail_reason();
    return fail(code, "%s: offset %llu: record %llu: %s",
                config->catalog->shards[place->shard].path, (unsigned long long)place->offset,
                (unsigned long long)fetch->record, reason);
}

/* Note this thread's last reason as a finding. */
static void note_record(struct worker *worker, const struct fetch *fetch, enum finding kind)
{
    fail_record(worker->decoders->config, fetch, -EBADMSG);
    findings_note(&worker->findings, kind, fetch->record, fail_reason());
}

/* Account for a record that is decoded, or is not. Returns 0, or -errno to stop the run. */
static int settle_record(struct worker *worker, const struct fetch *fetch,
                         const struct sample *sample, int code, struct batch_account *account)
{
    const struct engine_config *config = worker->decoders->config;
    void *row = batches_row(worker->decoders->batches, fetch->address);

    *batches_label(worker->decoders->batches, fetch->address) = code < 0 ? -1 : sample->label;
    if (code >= 0) {
        /* Defects of a record that is delivered anyway. */
        if (worker->parses && sample->image_bytes == 0) {
            fail(EBADMSG, "no image in it");
            note_record(worker, fetch, FINDING_EMPTY);
        }
        if (code == DECODE_DAMAGED)
            note_record(worker, fetch, FINDING_IMAGE);
        if (sample->has_odd_label) {
            sample_refuse_label(sample);
            note_record(worker, fetch, FINDING_LABEL);
        }
        account->samples++;
        account->record_bytes += fetch->length;
        return 0;
    }
    code = fail_record(config, fetch, code);
    if (config->job->read.on_error != JOB_ERROR_SKIP)
        return code;
    account->skipped++;
    findings_note(&worker->findings, FINDING_SKIPPED, fetch->record, fail_reason());
    if (row)
        memset(row, 0, worker->decoder.traits.row_bytes);
    return 0;
}

/* Trace a record that is decoded since from_ns. */
static void trace_record(struct worker *worker, const struct fetch *fetch, uint64_t from_ns)
{
    static const struct trace_kind kind = {"decode", false, {"epoch", "record", "batch", "row"}};
    const uint64_t batch_size = worker->decoders->config->job->batch_size;

    if (worker->trace)
        trace_add(worker->trace,
                  (struct trace_span){&kind,
                                      from_ns,
                                      clock_now_ns(),
                                      {fetch->epoch + 1, fetch->record, fetch->address / batch_size,
                                       fetch->address % batch_size}});
}

/* Finish the records that were begun. A failure in `code` is returned and keeps its reason. Returns
 * the first failure that must stop the run, or 0. */
static int finish_records(struct worker *worker, int code, struct batch_account *account)
{
    char reason[FAIL_REASON_BYTES]; /* not held: reasons of later ones are noted */

    if (worker->unfinished_count == 0)
        return code;
    snprintf(reason, sizeof reason, "%s", fail_reason());
    for (uint32_t i = 0; i < worker->unfinished_count; i++) {
        const struct unfinished *one = &worker->unfinished[i];
        int one_code = decoder_finish(&worker->decoder, i);
        if (one->lost)
            one_code = fail(ESTALE, "%s", fault_guard_reason);
        else if (one_code)
            fail_image(&one->sample, &worker->decoders->config->catalog->shards[one->fetch->shard],
                       one_code);
        if (one_code >= 0)
            batch_account_add(account, &one->account);
        one_code = settle_record(worker, one->fetch, &one->sample, one_code, account);
        trace_record(worker, one->fetch, one->begun_ns);
        if (one_code && !code)
            snprintf(reason, sizeof reason, "%s", fail_reason());
        code = code ? code : one_code;
    }
    worker->unfinished_count = 0;
    return code ? fail(code, "%s", reason) : 0;
}

/* Decode one record into its row, or begin to. Returns 0, or -errno to stop the run. */
static int begin_record(struct worker *worker, const struct fetch *fetch,
                        struct batch_account *account)
{
    void *row = batches_row(worker->decoders->batches, fetch->address);
    struct sample sample = {.label = -1};
    int code = fetch->code;

    worker->begun_ns = trace_now_ns(worker->trace);
    if (code == 0 && worker->parses)
        code = decode_row(worker, fetch, row, &sample, account);
    if (code == DECODE_FULL) {
        code = finish_records(worker, 0, account);
        if (code)
            return code;
        code = decode_row(worker, fetch, row, &sample, account);
    }
    if (code == DECODE_PENDING)
        return 0;
    code = settle_record(worker, fetch, &sample, code, account);
    trace_record(worker, fetch, worker->begun_ns);
    return code;
}

/* ---- a decode thread ---- */

static void announce(const struct worker *worker, const struct written *written)
{
    struct meter *meter = worker->decoders->config->meter;

    meter_add(meter, METER_RECORD_BYTES, written->account.record_bytes);
    meter_add(meter, METER_RECORD_COUNT, written->account.samples);
    batches_done(worker->decoders->batches, written->batch, written->rows, &written->account);
}

static int decode_body(void *argument)
{
    struct worker *worker = argument;
    const struct decoders *decoders = worker->decoders;
    const uint64_t batch_size = worker->decoders->config->job->batch_size;
    struct fetch *fetches[GROUP_MAX];
    int taken;

    while ((taken = loader_acquire(decoders->loader, fetches, worker->group)) > 0) {
        struct written written = {.batch = fetches[0]->address / batch_size};
        const uint64_t start_ns = clock_now_ns();
        uint64_t waited_ns = 0; /* for batches to open, as the trainer is behind */
        worker->hints_ns = 0;
        int code = batches_wait_open(worker->decoders->batches, written.batch, &waited_ns);
        for (int i = 0; code == 0 && i < taken; i++) {
            if (fetches[i]->address - written.batch * batch_size >= batch_size) {
                /* Rows are finished before that wait: the batches that must be taken first may need
                 * them. */
                if ((code = finish_records(worker, 0, &written.account)))
                    break;
                announce(worker, &written);
                written = (struct written){.batch = fetches[i]->address / batch_size};
                code = batches_wait_open(worker->decoders->batches, written.batch, &waited_ns);
            }
            if (code == 0)
                code = begin_record(worker, fetches[i], &written.account);
            written.rows++;
        }
        code = finish_records(worker, code, &written.account);
        if (code == 0)
            loader_release(decoders->loader, fetches, (uint32_t)taken);
        const uint64_t busy_ns = clock_now_ns() - start_ns - waited_ns - worker->hints_ns;
        meter_add(decoders->config->meter, METER_DECODE_BUSY_NS, busy_ns);
        if (code) {
            loader_cancel(decoders->loader);
            batches_cancel(decoders->batches);
            return code;
        }
        announce(worker, &written);
        if (worker->decoder.traits.pending)
            continue; /* as many as it decodes at a time */
        const uint64_t fitting = group_ns * (uint32_t)taken / (busy_ns + 1);
        worker->group = fitting < 1 ? 1 : fitting > GROUP_MAX ? GROUP_MAX : (uint32_t)fitting;
    }
    return taken;
}

/* ---- the loader's sink ---- */

/* Records that are not parsed are only counted. Returns how many of one batch, or -errno. */
static int count_records(struct worker *worker, struct fetch *const *fetches, uint32_t count)
{
    const uint64_t batch_size = worker->decoders->config->job->batch_size;
    struct written written = {.batch = fetches[0]->address / batch_size};
    const uint64_t end = (written.batch + 1) * batch_size;
    int32_t *labels = batches_label(worker->decoders->batches, fetches[0]->address);
    const struct sample unknown = {.label = -1};

    if (!batches_is_open(worker->decoders->batches, written.batch))
        return 0;
    for (; written.rows < count && fetches[written.rows]->address < end; written.rows++) {
        const struct fetch *fetch = fetches[written.rows];
        if (fetch->code) {
            int code = settle_record(worker, fetch, &unknown, fetch->code, &written.account);
            if (code)
                return code;
            continue;
        }
        labels[written.rows] = -1;
        written.account.samples++;
        written.account.record_bytes += fetch->length;
    }
    for (uint32_t i = 0; worker->trace && i < written.rows; i++)
        trace_record(worker, fetches[i], clock_now_ns());
    announce(worker, &written);
    return (int)written.rows;
}

int decoders_take(void *taker, struct fetch *const *fetches, uint32_t count)
{
    struct decoders *decoders = taker;
    uint32_t taken = 0;
    int code = 1;

    while (!decoders->by_threads && taken < count && code > 0) {
        code = count_records(&decoders->counting, fetches + taken, count - taken);
        taken += code > 0 ? (uint32_t)code : 0;
    }
    return code < 0 ? code : (int)taken;
}

/* ---- life ---- */

struct decoders *decoders_create(const struct engine_config *config, uint32_t workers,
                                 struct batches *batches)
{
    struct decoders *decoders = memory_zeroed(sizeof *decoders);
    int code = 0;

    if (!decoders)
        return NULL;
    *decoders = (struct decoders){.config = config, .batches = batches, .count = workers};
    decoders->workers = memory_array(workers, sizeof *decoders->workers);
    if (!decoders->workers)
        code = -ENOMEM;
    for (uint32_t i = 0; code == 0 && i < workers; i++) {
        struct worker *worker = &decoders->workers[i];
        worker->decoders = decoders;
        worker->scratch.capacity = config->catalog->record_bytes_max;
        worker->scratch.bytes = memory_zeroed(worker->scratch.capacity);
        code = worker->scratch.bytes ? decoder_open(&worker->decoder, &config->plugins->decoder)
                                     : -ENOMEM;
        worker->decoder_open = worker->scratch.bytes;
    }
    if (code == 0)
        return decoders;
    decoders_destroy(decoders);
    return NULL;
}

void decoders_destroy(struct decoders *decoders)
{
    if (!decoders)
        return;
    for (uint32_t i = 0; decoders->workers && i < decoders->count; i++) {
        if (decoders->workers[i].decoder_open)
            decoder_close(&decoders->workers[i].decoder);
        free(decoders->workers[i].scratch.bytes);
    }
    free(decoders->workers);
    free(decoders);
}

int decoders_traits(const struct plugin_choice *choice, struct decoder_traits *traits)
{
    struct decoder decoder;

    int code = decoder_open(&decoder, choice);
    *traits = decoder.traits;
    traits->engine = NULL;
    decoder_close(&decoder);
    return code;
}

const char *decoders_engine(const struct decoders *decoders)
{
    const char *engine = decoders->workers[0].decoder.traits.engine;

    return engine ? engine : "";
}

const char *decoders_notice(const struct decoders *decoders)
{
    for (uint32_t i = 0; i < decoders->count; i++) {
        const char *notice = decoders->workers[i].decoder.traits.notice;
        if (notice && notice[0])
            return notice;
    }
    return "";
}

bool decoders_look(const struct job *job, const struct job_plugins *plugins)
{
    const struct plugin *format = plugins->format.plugin; /* NULL: no bytes */

    return job->decode.digest || !plugins->decoder.plugin->idle ||
           (job->decode.check_crc && format && !format_of(format)->records_are_images);
}

int decoders_start(struct decoders *decoders, struct loader *loader, bool no_bytes,
                   struct trace *trace)
{
    const struct engine_config *config = decoders->config;
    const bool looks = decoders_look(config->job, config->plugins);
    const struct decoder_traits *traits = &decoders->workers[0].decoder.traits;

    const uint32_t pending = traits->pending < GROUP_MAX ? traits->pending : GROUP_MAX;

    decoders->loader = loader;
    decoders->counting = (struct worker){.decoders = decoders,
                                         .decoder.traits = *traits,
                                         .trace = trace_ring(trace, LOADER_RING, "loader")};
    decoders->by_threads = config->by_threads || looks;
    for (uint32_t i = 0; i < decoders->count; i++) {
        struct worker *worker = &decoders->workers[i];
        char name[16];
        snprintf(name, sizeof name, "decode%u", i % 10000u);
        worker->parses = looks && !no_bytes;
        worker->trace = trace_ring(trace, DECODERS_RING + i, name);
        worker->findings = (struct findings){0};
        worker->decoder.figures = (struct decode_figures){0};
        worker->group = !worker->parses ? GROUP_MAX : !pending ? 1 : pending;
        int code = thread_start(&worker->thread, name, decode_body, worker);
        if (code)
            return code;
    }
    return 0;
}

int decoders_join(struct decoders *decoders)
{
    int code = 0;

    for (uint32_t i = 0; i < decoders->count; i++)
        code = thread_join_next(&decoders->workers[i].thread, code);
    return code;
}

void decoders_figures(struct decoders *decoders, struct decode_figures *decode,
                      struct findings *findings)
{
    *decode = (struct decode_figures){0};
    *findings = (struct findings){0};
    for (uint32_t i = 0; i < decoders->count; i++) {
        const struct worker *worker = &decoders->workers[i];
        findings_add(findings, &worker->findings);
        decode_figures_add(decode, &worker->decoder.figures);
    }
    findings_add(findings, &decoders->counting.findings);
}
