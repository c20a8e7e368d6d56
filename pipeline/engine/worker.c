/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/engine/worker.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/fault_guard.h"
#include "base/memory.h"
#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int worker_open(struct worker *worker, const struct engine_config *config, struct batches *batches)
{
    worker->config = config;
    worker->batches = batches;
    worker->scratch.capacity = config->catalog->record_bytes_max;
    worker->scratch.bytes = memory_zeroed(worker->scratch.capacity);
    if (!worker->scratch.bytes)
        return -ENOMEM;
    worker->decoder_open = true;
    return decoder_open(&worker->decoder, &config->plugins->decoder);
}

void worker_close(struct worker *worker)
{
    if (worker->decoder_open)
        decoder_close(&worker->decoder);
    free(worker->scratch.bytes);
}

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

    if (bytes == 0 || bytes > 255 ||
        (bytes <= length && memcmp(shard->path + length - bytes, sample->name, bytes) == 0))
        return code;
    fail(EBADMSG, "%.*s: %s", (int)bytes, sample->name, fail_reason());
    return code;
}

/* The time is not that of decoding. */
static void count_hint_time(struct worker *worker, uint64_t start_ns)
{
    const struct engine_config *config = worker->config;
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
    const struct engine_config *config = worker->config;
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
    if (is_stale && hinting_wants(worker->config->hinting, fetch->epoch))
        want_hint(worker, sample, source);
    if (source->wants_hint)
        make_hint(worker, source);
}

/* Returns what decoder_begin() returns; failures set a reason. */
static int decode_mapped(struct worker *worker, const struct fetch *fetch, void *row,
                         struct sample *parsed, struct batch_account *account)
{
    const struct engine_config *config = worker->config;
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
    add_hint(worker, fetch, &sample, &source);
    struct view view = view_of_record(config->job->order.seed, fetch->epoch, fetch->record);
    const uint64_t stale = worker->decoder.figures.stale;
    if (sample.image_bytes > 0)
        code = decoder_begin(&worker->decoder, &source, &view, row);
    else if (row)
        memset(row, 0, worker->decoder.traits.row_bytes);
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
            (struct unfinished){fetch, *sample, own, lost, worker->begun_ns};
    else if (lost)
        return fail(ESTALE, "%s", fault_guard_reason);
    else if (code != DECODE_FULL)
        batch_account_add(account, &own);
    if (worker->has_hint && !lost) {
        const uint64_t start_ns = clock_now_ns();
        hinting_put(worker->config->hinting, fetch->record, worker->hint, worker->hint_bytes);
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
static void note(struct worker *worker, const struct fetch *fetch, enum finding kind)
{
    fail_record(worker->config, fetch, -EBADMSG);
    findings_note(&worker->findings, kind, fetch->record, fail_reason());
}

/* Note the defects of a record that is delivered anyway. code: the result of decoding. */
static void note_oddities(struct worker *worker, const struct fetch *fetch,
                          const struct sample *sample, int code)
{
    if (worker->parses && sample->image_bytes == 0) {
        fail(EBADMSG, "no image in it");
        note(worker, fetch, FINDING_EMPTY);
    }
    if (code == DECODE_DAMAGED)
        note(worker, fetch, FINDING_IMAGE);
    if (!sample->has_odd_label)
        return;
    sample_refuse_label(sample);
    note(worker, fetch, FINDING_LABEL);
}

/* Account for a record that is decoded, or is not. Returns 0, or -errno to stop the run. */
int worker_settle(struct worker *worker, const struct fetch *fetch, const struct sample *sample,
                  int code, struct batch_account *account)
{
    const struct engine_config *config = worker->config;
    void *row = batches_row(worker->batches, fetch->address);

    *batches_label(worker->batches, fetch->address) = code < 0 ? -1 : sample->label;
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

void worker_trace(struct worker *worker, const struct fetch *fetch, uint64_t from_ns)
{
    static const struct trace_kind kind = {"decode", false, {"epoch", "record", "batch", "row"}};
    const uint64_t batch_size = worker->config->job->batch_size;

    if (worker->trace)
        trace_add(worker->trace,
                  (struct trace_span){&kind,
                                      from_ns,
                                      clock_now_ns(),
                                      {fetch->epoch, fetch->record, fetch->address / batch_size,
                                       fetch->address % batch_size}});
}

static int finish_one(struct worker *worker, uint32_t index, struct batch_account *account)
{
    const struct unfinished *one = &worker->unfinished[index];
    int code = decoder_finish(&worker->decoder, index);

    if (one->lost)
        code = fail(ESTALE, "%s", fault_guard_reason);
    else if (code)
        fail_image(&one->sample, &worker->config->catalog->shards[one->fetch->shard], code);
    if (code >= 0)
        batch_account_add(account, &one->account);
    code = worker_settle(worker, one->fetch, &one->sample, code, account);
    worker_trace(worker, one->fetch, one->begun_ns);
    return code;
}

/* Returns 0, or the first failure that is to stop the run, with its reason. */
int worker_finish(struct worker *worker, struct batch_account *account)
{
    char reason[FAIL_REASON_BYTES]; /* not held: reasons of later ones are noted */
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
int worker_end(struct worker *worker, int code, struct batch_account *account)
{
    char reason[FAIL_REASON_BYTES];

    if (code == 0 || worker->unfinished_count == 0)
        return code ? code : worker_finish(worker, account);
    snprintf(reason, sizeof reason, "%s", fail_reason());
    worker_finish(worker, account);
    return fail(-code, "%s", reason);
}

/* Decode one record into its row, or begin to. Returns 0, or -errno to stop the run. */
int worker_begin(struct worker *worker, const struct fetch *fetch, struct batch_account *account)
{
    void *row = batches_row(worker->batches, fetch->address);
    struct sample sample = {.label = -1};
    int code = fetch->code;

    worker->begun_ns = trace_now_ns(worker->trace);
    if (code == 0 && worker->parses)
        code = decode_row(worker, fetch, row, &sample, account);
    if (code == DECODE_FULL) {
        code = worker_finish(worker, account);
        if (code)
            return code;
        code = decode_row(worker, fetch, row, &sample, account);
    }
    if (code == DECODE_PENDING)
        return 0;
    code = worker_settle(worker, fetch, &sample, code, account);
    worker_trace(worker, fetch, worker->begun_ns);
    return code;
}
