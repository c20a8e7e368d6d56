/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/engine/decoders.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/fault_guard.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_MAX = 64 };

/* Target work per group: small enough to balance the decode threads, large enough to make the cost
 * of a lock per group negligible. */
static const uint64_t group_ns = 50000;

/* A record whose row the decoder has yet to write. */
struct unfinished {
    const struct fetch *fetch;
    struct sample sample;
    struct batch_account account; /* if the image is good */
    bool lost;                    /* its bytes were, while they were read */
};

struct worker {
    struct decoders *decoders;
    struct thread thread;
    struct decoder decoder;
    bool decoder_open;
    struct format_scratch scratch;
    uint32_t group;
    struct unfinished unfinished[GROUP_MAX];
    uint32_t unfinished_count;
    uint8_t hint[DECODE_HINT_MAX]; /* of the current record, made within the fault guard */
    size_t hint_bytes;
    bool has_hint;
    uint64_t hints_ns;        /* in the current group */
    struct findings findings; /* of this run */
};

struct decoders {
    const struct engine_config *config;
    struct loader *loader;
    struct batches *batches;
    struct loader_sink rows; /* of the batches */
    uint32_t count;
    bool parses; /* records have bytes, and a stage needs them parsed */
    struct worker *workers;
    struct worker loaders; /* for the loader's thread, if no record is parsed */
};

/* Add the digest of label and image as stored, independent of order and decoder. */
static void add_digest(struct batch_account *account, const struct sample *sample)
{
    const uint64_t image = (uint64_t)(uint32_t)sample->image_bytes << 32 |
                           crc32c(0, sample->image, sample->image_bytes);
    const uint64_t hash = random_hash(image, (uint64_t)(uint32_t)sample->label, 0);

    account->digest_sum += hash;
    account->digest_xor ^= hash;
}

/* Prefix the reason with the image's own name, if it differs from the shard's. */
static int fail_image(const struct sample *sample, const struct shard *shard, int code)
{
    const size_t length = strlen(shard->path), bytes = sample->name_bytes;
    char reason[FAIL_REASON_BYTES];

    if (bytes == 0 || bytes > 255 ||
        (bytes <= length && memcmp(shard->path + length - bytes, sample->name, bytes) == 0))
        return code;
    snprintf(reason, sizeof reason, "%s", fail_reason());
    fail(EBADMSG, "%.*s: %s", (int)bytes, sample->name, reason);
    return code;
}

struct decode_source decoders_source(const struct sample *sample)
{
    static const unsigned layouts[] = {[SAMPLE_ENCODED] = DECODE_ENCODED,
                                       [SAMPLE_RAW_HWC] = DECODE_RAW_HWC_RGB,
                                       [SAMPLE_RAW_CHW] = DECODE_RAW_CHW_BGR,
                                       [SAMPLE_RAW_HWC_BGR] = DECODE_RAW_HWC_BGR};

    return (struct decode_source){.bytes = sample->image,
                                  .length = sample->image_bytes,
                                  .layout = layouts[sample->encoding],
                                  .width = sample->width,
                                  .height = sample->height,
                                  .channels = sample->channels};
}

/* The time is not that of decoding. */
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
    /* What a format keeps there is at its beginning. */
    const size_t used = is_in_scratch(scratch, sample->name) ? sample->name_bytes : 0;

    if (!is_in_scratch(scratch, sample->image)) {
        if (sample->image_bytes > scratch->capacity - used)
            return; /* never: both are parts of the record */
        uint8_t *to = (uint8_t *)scratch->bytes + scratch->capacity - sample->image_bytes;
        source->bytes = memcpy(to, sample->image, sample->image_bytes);
    }
    source->wants_hint = true;
    count_hint_time(worker, start_ns);
}

static void make_hint(struct worker *worker, const struct decode_source *source)
{
    const uint64_t start_ns = clock_now_ns();

    worker->hint_bytes = decoder_make_hint(&worker->decoder, source, worker->hint);
    worker->has_hint = true;
    count_hint_time(worker, start_ns);
}

/* Give a decoder what helps it, or let it make that. */
static void add_hint(struct worker *worker, const struct fetch *fetch, const struct sample *sample,
                     struct decode_source *source)
{
    const struct engine_config *config = worker->decoders->config;
    const struct hints *hints = config->catalog->hints;

    if (hints && hints->rows[fetch->record].count > 0) {
        source->hint = hints->rows[fetch->record].bytes;
        source->hint_bytes = hints->rows[fetch->record].count;
    } else if (hinting_wants(config->hinting, fetch->epoch)) {
        want_hint(worker, sample, source);
    }
}

/* Make a hint, also in place of a stale one, which decoding has shown. */
static void renew_hint(struct worker *worker, const struct fetch *fetch,
                       const struct sample *sample, struct decode_source *source, bool is_stale)
{
    if (is_stale && hinting_wants(worker->decoders->config->hinting, fetch->epoch))
        want_hint(worker, sample, source);
    if (source->wants_hint)
        make_hint(worker, source);
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
                                (config->job->decode.check_crc ? 0 : FORMAT_SKIP_CRC),
                            &worker->scratch, &sample);
    if (code)
        return code;
    *parsed = sample;
    struct decode_source source = decoders_source(&sample);
    add_hint(worker, fetch, &sample, &source);
    struct view view = view_of_record(config->job->order.seed, fetch->epoch, fetch->record);
    const uint64_t stale = worker->decoder.figures.stale;
    code = decoder_begin(&worker->decoder, &source, &view, row);
    if (code >= 0 && config->job->decode.digest)
        add_digest(account, &sample);
    if (code == DECODE_DAMAGED || code < 0)
        return fail_image(&sample, shard, code);
    if (code == 0)
        renew_hint(worker, fetch, &sample, &source, worker->decoder.figures.stale > stale);
    return code;
}

/* Decode a record, which may lie in a mapped file that other processes can truncate. */
static int decode_row(struct worker *worker, const struct fetch *fetch, void *row,
                      struct sample *sample, struct batch_account *account)
{
    struct batch_account own = {0};

    worker->has_hint = false;
    fault_guard_begin();
    int code = decode_mapped(worker, fetch, row, sample, &own);
    const bool lost = !fault_guard_end(fetch->bytes, fetch->length);
    if (code == DECODE_PENDING)
        worker->unfinished[worker->unfinished_count++] =
            (struct unfinished){fetch, *sample, own, lost};
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
    char reason[FAIL_REASON_BYTES];

    snprintf(reason, sizeof reason, "%s",
             fetch->code == -EFAULT ? fault_guard_reason
             : fetch->code          ? fail_errno_text(code)
                                    : fail_reason());
    return fail(code, "%s: offset %llu: record %llu: %s",
                config->catalog->shards[place->shard].path, (unsigned long long)place->offset,
                (unsigned long long)fetch->record, reason);
}

/* Note this thread's last reason as a finding. */
static void note(struct worker *worker, const struct fetch *fetch, enum finding kind)
{
    fail_record(worker->decoders->config, fetch, -EBADMSG);
    findings_note(&worker->findings, kind, fetch->record, fail_reason());
}

/* Note the defects of a record that is delivered anyway. code: the result of decoding. */
static void note_oddities(struct worker *worker, const struct fetch *fetch,
                          const struct sample *sample, int code)
{
    if (code == DECODE_DAMAGED)
        note(worker, fetch, FINDING_IMAGE);
    if (!sample->has_odd_label)
        return;
    fail(EBADMSG, "label %g is not a class number", sample->odd_label);
    note(worker, fetch, FINDING_LABEL);
}

/* Account for a record that is decoded, or is not. Returns 0, or -errno to stop the run. */
static int settle(struct worker *worker, const struct fetch *fetch, const struct sample *sample,
                  int code, struct batch_account *account)
{
    const struct engine_config *config = worker->decoders->config;
    void *row = batches_row(worker->decoders->batches, fetch->address);

    *batches_label(worker->decoders->batches, fetch->address) = code < 0 ? -1 : sample->label;
    if (code >= 0) {
        note_oddities(worker, fetch, sample, code);
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

static int finish_one(struct worker *worker, uint32_t index, struct batch_account *account)
{
    const struct unfinished *one = &worker->unfinished[index];
    int code = decoder_finish(&worker->decoder, index);

    if (one->lost)
        code = fail(ESTALE, "%s", fault_guard_reason);
    else if (code)
        fail_image(&one->sample, &worker->decoders->config->catalog->shards[one->fetch->shard],
                   code);
    if (code >= 0)
        batch_account_add(account, &one->account);
    return settle(worker, one->fetch, &one->sample, code, account);
}

/* Returns 0, or the first failure that is to stop the run, with its reason. */
static int finish_rows(struct worker *worker, struct batch_account *account)
{
    char reason[FAIL_REASON_BYTES];
    int first = 0;

    for (uint32_t i = 0; i < worker->unfinished_count; i++) {
        const int code = finish_one(worker, i, account);
        if (code && !first)
            snprintf(reason, sizeof reason, "%s", fail_reason());
        first = first ? first : code;
    }
    worker->unfinished_count = 0;
    return first ? fail(-first, "%s", reason) : 0;
}

/* The same after a failure, if code is one, which remains. */
static int finish_all(struct worker *worker, int code, struct batch_account *account)
{
    char reason[FAIL_REASON_BYTES];

    if (code == 0 || worker->unfinished_count == 0)
        return code ? code : finish_rows(worker, account);
    snprintf(reason, sizeof reason, "%s", fail_reason());
    finish_rows(worker, account);
    return fail(-code, "%s", reason);
}

/* Decode one record into its row, or begin to. Returns 0, or -errno to stop the run. */
static int work_on(struct worker *worker, const struct fetch *fetch, struct batch_account *account)
{
    void *row = batches_row(worker->decoders->batches, fetch->address);
    struct sample sample = {.label = -1};
    int code = fetch->code;

    if (code == 0 && worker->decoders->parses)
        code = decode_row(worker, fetch, row, &sample, account);
    if (code == DECODE_FULL) {
        code = finish_rows(worker, account);
        if (code)
            return code;
        code = decode_row(worker, fetch, row, &sample, account);
    }
    return code == DECODE_PENDING ? 0 : settle(worker, fetch, &sample, code, account);
}

/* Rows of one batch that are written but not yet reported. */
struct written {
    uint64_t batch;
    uint32_t rows;
    struct batch_account account;
};

static void announce(struct worker *worker, struct written *written)
{
    struct meter *meter = worker->decoders->config->meter;

    meter_add(meter, METER_RECORD_BYTES, written->account.record_bytes);
    meter_add(meter, METER_RECORD_COUNT, written->account.samples);
    batches_done(worker->decoders->batches, written->batch, written->rows, &written->account);
}

/* *waited_ns: for batches to open, as the trainer is behind. Rows are finished before that wait:
 * the batches that must be taken first may need them. */
static int work_on_group(struct worker *worker, struct fetch *const *fetches, uint32_t count,
                         uint64_t *waited_ns, struct written *written)
{
    const struct decoders *decoders = worker->decoders;
    const uint64_t batch_size = decoders->config->job->batch_size;

    uint64_t batch = fetches[0]->address / batch_size, first = batch * batch_size;
    int code = batches_wait_open(decoders->batches, batch, waited_ns);

    *written = (struct written){.batch = batch};
    for (uint32_t i = 0; code == 0 && i < count; i++) {
        if (fetches[i]->address - first >= batch_size) {
            if ((code = finish_rows(worker, &written->account)))
                break;
            announce(worker, written);
            batch = fetches[i]->address / batch_size;
            first = batch * batch_size;
            *written = (struct written){.batch = batch};
            code = batches_wait_open(decoders->batches, batch, waited_ns);
        }
        if (code == 0)
            code = work_on(worker, fetches[i], &written->account);
        written->rows++;
    }
    code = finish_all(worker, code, &written->account);
    if (code)
        return code;
    loader_release(decoders->loader, fetches, count);
    return 0;
}

static int worker_body(void *argument)
{
    struct worker *worker = argument;
    const struct decoders *decoders = worker->decoders;
    struct meter *meter = decoders->config->meter;
    struct fetch *fetches[GROUP_MAX];
    int taken;

    while ((taken = loader_acquire(decoders->loader, fetches, worker->group)) > 0) {
        struct written written;
        uint64_t start_ns = clock_now_ns(), waited_ns = 0;
        worker->hints_ns = 0;
        int code = work_on_group(worker, fetches, (uint32_t)taken, &waited_ns, &written);
        const uint64_t busy_ns = clock_now_ns() - start_ns - waited_ns - worker->hints_ns;
        meter_add(meter, METER_DECODE_BUSY_NS, busy_ns);
        if (code) {
            loader_cancel(decoders->loader);
            batches_cancel(decoders->batches);
            return code;
        }
        announce(worker, &written);
        if (worker->decoder.traits.pending)
            continue; /* as many as it decodes at a time */
        uint64_t fitting = group_ns * (uint32_t)taken / (busy_ns + 1);
        worker->group = fitting < 1 ? 1 : fitting > GROUP_MAX ? GROUP_MAX : (uint32_t)fitting;
    }
    return taken;
}

/* ---- the loader's sink ---- */

static uint64_t expect(void *state, uint64_t draws)
{
    const struct decoders *decoders = state;

    return decoders->rows.expect(decoders->rows.state, draws);
}

static void cancel(void *state)
{
    const struct decoders *decoders = state;

    decoders->rows.cancel(decoders->rows.state);
}

/* Records that are not parsed are only counted. Returns how many of one batch, or -errno. */
static int count_records(struct worker *worker, struct fetch *const *fetches, uint32_t count)
{
    const struct decoders *decoders = worker->decoders;
    const uint64_t batch_size = decoders->config->job->batch_size;
    struct written written = {.batch = fetches[0]->address / batch_size};
    const uint64_t end = (written.batch + 1) * batch_size;
    int32_t *labels = batches_label(decoders->batches, fetches[0]->address);
    const struct sample unknown = {.label = -1};

    if (!batches_is_open(decoders->batches, written.batch))
        return 0;
    for (; written.rows < count && fetches[written.rows]->address < end; written.rows++) {
        const struct fetch *fetch = fetches[written.rows];
        int code = fetch->code ? settle(worker, fetch, &unknown, fetch->code, &written.account) : 0;
        if (code)
            return code;
        if (fetch->code)
            continue;
        labels[written.rows] = -1;
        written.account.samples++;
        written.account.record_bytes += fetch->length;
    }
    announce(worker, &written);
    return (int)written.rows;
}

static int take(void *state, struct fetch *const *fetches, uint32_t count)
{
    struct decoders *decoders = state;
    uint32_t taken = 0;
    int code = 1;

    while (!decoders->parses && taken < count && code > 0) {
        code = count_records(&decoders->loaders, fetches + taken, count - taken);
        taken += code > 0 ? (uint32_t)code : 0;
    }
    return code < 0 ? code : (int)taken;
}

struct loader_sink decoders_sink(struct decoders *decoders)
{
    return (struct loader_sink){
        .expect = expect, .cancel = cancel, .take = take, .state = decoders};
}

/* ---- life ---- */

struct decoders *decoders_create(const struct engine_config *config, uint32_t workers,
                                 struct batches *batches)
{
    struct decoders *decoders = memory_zeroed(sizeof *decoders);

    if (!decoders)
        return NULL;
    *decoders = (struct decoders){
        .config = config, .batches = batches, .rows = batches_sink(batches), .count = workers};
    decoders->workers = memory_array(workers, sizeof *decoders->workers);
    bool good = decoders->workers != NULL;
    for (uint32_t i = 0; good && i < workers; i++) {
        struct worker *worker = &decoders->workers[i];
        worker->decoders = decoders;
        worker->decoder_open = true;
        worker->scratch.capacity = config->catalog->record_bytes_max;
        worker->scratch.bytes = memory_zeroed(worker->scratch.capacity);
        good =
            worker->scratch.bytes && decoder_open(&worker->decoder, &config->plugins->decoder) == 0;
    }
    if (good)
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

int decoders_start(struct decoders *decoders, struct loader *loader, bool no_bytes)
{
    const struct decode_settings *decode = &decoders->config->job->decode;
    const struct plugin *format = decoders->config->plugins->format.plugin; /* NULL: no bytes */

    decoders->loader = loader;
    decoders->loaders = (struct worker){.decoders = decoders,
                                        .decoder.traits = decoders->workers[0].decoder.traits};
    decoders->parses =
        !no_bytes && (decode->digest || decoders->workers[0].decoder.traits.reads_image ||
                      (decode->check_crc && !format_of(format)->records_are_images));
    for (uint32_t i = 0; i < decoders->count; i++) {
        struct worker *worker = &decoders->workers[i];
        char name[16];
        snprintf(name, sizeof name, "decode%u", i % 10000u);
        const uint32_t pending = worker->decoder.traits.pending;
        worker->group = !decoders->parses     ? GROUP_MAX
                        : !pending            ? 1
                        : pending < GROUP_MAX ? pending
                                              : GROUP_MAX;
        worker->findings = (struct findings){0};
        worker->decoder.figures = (struct decode_figures){0};
        int code = thread_start(&worker->thread, name, worker_body, worker);
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
    findings_add(findings, &decoders->loaders.findings);
}
