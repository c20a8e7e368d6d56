/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/engine/engine.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/trace.h"
#include "pipeline/engine/batches.h"
#include "pipeline/engine/decoders.h"
#include "pipeline/evidence/validity.h"
#include "pipeline/loader/loader.h"
#include "trainer/trainer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- the memory that a job needs, checked before anything is allocated ---- */

struct budget {
    uint64_t records, tables, batches, decode, hints; /* bytes */
    uint64_t available;
};

/* Return the memory still available to this rank, and what limits it: its share of the machine's or
 * control group's memory, or the rest of --memory-limit, of which a network already uses
 * held_bytes. */
static struct headroom budget_headroom(const struct engine_config *config, uint64_t held_bytes)
{
    const uint64_t limit_bytes = config->job->cold.memory_limit_bytes;
    const uint64_t held = held_bytes < limit_bytes ? held_bytes : limit_bytes;
    struct headroom headroom;

    headroom_find(&headroom, "/proc", "/sys");
    headroom.available_bytes /= config->ranks ? config->ranks->place.local_ranks : 1;
    if (limit_bytes && limit_bytes - held < headroom.available_bytes) {
        headroom.available_bytes = limit_bytes - held;
        headroom.cause = "--memory-limit";
    }
    return headroom;
}

static uint64_t total_bytes(const struct budget *budget)
{
    return budget->records + budget->tables + budget->batches + budget->decode + budget->hints;
}

static int check_total(const struct budget *budget, const char *cause)
{
    char total[32], available[32], records[32], tables[32], batches[32], decode[32], bytes[32],
        hints[64] = "";

    if (total_bytes(budget) <= budget->available)
        return 0;
    if (budget->hints)
        snprintf(hints, sizeof hints, ", entry points %s",
                 bytes_text(budget->hints, bytes, sizeof bytes));
    return fail(ENOMEM,
                "this needs %s of memory (records %s, their tables %s, batches %s, decoders %s%s), "
                "and %s allows %s: give less to --memory, --shuffle, --batch-size, --prefetch or "
                "--decode-threads",
                bytes_text(total_bytes(budget), total, sizeof total),
                bytes_text(budget->records, records, sizeof records),
                bytes_text(budget->tables, tables, sizeof tables),
                bytes_text(budget->batches, batches, sizeof batches),
                bytes_text(budget->decode, decode, sizeof decode), hints, cause,
                bytes_text(budget->available, available, sizeof available));
}

/* Divide the memory, see result->memory_bytes and the following; either way fills *result as far as
 * it got. workers: decode threads; decoder_bytes: held by each one's decoder. Returns 0, or -ENOMEM
 * with a reason that gives both figures. */
static int budget_make(const struct engine_config *config, const struct plan_traits *plan,
                       uint32_t workers, uint64_t batches_bytes, uint64_t decoder_bytes,
                       uint64_t held_bytes, struct result *result)
{
    const struct job *job = config->job;
    const struct catalog *catalog = config->catalog;
    const struct headroom headroom = budget_headroom(config, held_bytes);
    const uint64_t limit_bytes = job->cold.memory_limit_bytes, asked = job->read.memory_bytes;
    const uint64_t set_bytes = catalog_data_bytes(catalog);
    const bool direct = config->plugins->direct;
    const char *shuffle = config->plugins->shuffle.text;
    const unsigned long long slots = plan->slots;
    struct budget budget = {.batches = batches_bytes,
                            .decode = workers * (catalog->record_bytes_max + decoder_bytes),
                            .hints = hinting_bytes(config->hinting, catalog->record_count),
                            .available = headroom.available_bytes};
    const uint64_t fixed = total_bytes(&budget);
    char least[32], given[32], limit[32], set[32], held[32], batches[32], records[32];

    result->hints.memory_bytes = budget.hints;
    result->memory_needed_bytes = fixed;
    result->memory_available_bytes = budget.available;
    int code = check_total(&budget, headroom.cause); /* too much even without records? */
    if (code)
        return code;
    /* The memory of the records: --memory, or what they want of their share. Under --memory-limit a
     * buffered read in flight is charged twice, for its record memory and for its page cache, which
     * the kernel cannot reclaim until it is filled: the kernel kills the process instead. */
    const struct loader_memory need =
        loader_memory_needed(catalog, plan, &job->read, job->order.window);
    const uint64_t share = (budget.available - fixed) / (limit_bytes && !direct ? 4 : 2);
    bytes_text(need.least_bytes, least, sizeof least);
    bytes_text(asked ? asked : share, given, sizeof given);
    if (asked && asked < need.least_bytes)
        return fail(ENOMEM,
                    "shuffle %s holds %llu records, which needs at least %s; --memory allows %s: "
                    "give more, or a smaller shuffle",
                    shuffle, slots, least, given);
    if (!asked && share < need.least_bytes)
        return fail(ENOMEM,
                    "shuffle %s holds %llu records, which needs at least %s; their share of the "
                    "free memory is %s: use a smaller shuffle, or force it with --memory %llu",
                    shuffle, slots, least, given, (unsigned long long)need.least_bytes);
    budget.records = asked ? asked : need.wanted_bytes < share ? need.wanted_bytes : share;
    if (!asked && share < need.wanted_bytes)
        result_notice(result, "record memory is capped at a %s of the free memory",
                      share < budget.available / 2 ? "quarter" : "half");
    const struct coalesce wanted = loader_reads(catalog, UINT64_MAX, &job->read, job->order.window);
    result->memory_bytes = budget.records;
    result->reads = loader_reads(catalog, budget.records, &job->read, job->order.window);
    if (job->order.window && result->reads.window != wanted.window)
        result_notice(
            result,
            "--window %u: record memory of %s holds windows of %u records; it takes "
            "--memory %s",
            wanted.window, bytes_text(budget.records, records, sizeof records),
            result->reads.window,
            bytes_text(coalesce_memory_bytes(catalog, wanted.window, job->read.block_bytes), given,
                       sizeof given));
    budget.tables = loader_tables_bytes(&result->reads, plan, budget.records,
                                        direct ? HEAP_ALIGNMENT : LOADER_ALIGNMENT_BUFFERED) +
                    (job->output.trace ? (DECODERS_RING + workers) * sizeof(struct trace_ring) : 0);
    result->memory_needed_bytes = total_bytes(&budget);
    bytes_text(limit_bytes, limit, sizeof limit);
    if (limit_bytes && direct)
        result_notice(result,
                      "--memory-limit %s has no effect on direct reads: they do not use the page "
                      "cache",
                      limit);
    else if (limit_bytes >= set_bytes + total_bytes(&budget) + held_bytes)
        result_notice(result,
                      "--memory-limit %s has no effect: the data set of %s fits into it, and later "
                      "epochs can be read out of memory; give less than the set",
                      limit, bytes_text(set_bytes, set, sizeof set));
    /* Above the limit the kernel would kill the process without a message. */
    if (limit_bytes &&
        held_bytes + budget.batches + budget.hints + budget.records * (direct ? 1 : 2) >
            limit_bytes / 4 * 3) {
        bytes_text(held_bytes, held, sizeof held);
        return fail(ENOMEM,
                    "--memory-limit %s: %s%s%sbatches take %s and records in flight %s%s, which "
                    "leaves too little for the rest: allow more, or give less to --batch-size, "
                    "--prefetch or --memory",
                    limit, held_bytes ? "the network takes " : "", held_bytes ? held : "",
                    held_bytes ? ", " : "", bytes_text(budget.batches, batches, sizeof batches),
                    bytes_text(budget.records, records, sizeof records),
                    direct ? "" : ", and as much in the page cache");
    }
    return check_total(&budget, headroom.cause);
}

/* ---- the account of an epoch ---- */

void account_reads(struct account *account, const struct loader_figures *loader)
{
    struct result_epoch *epoch = account->epoch;
    enum { BATCHES_LEAST = 20 };

    if (loader->read_end_ns <= loader->quarter_ns || loader->quarter_ns == 0)
        return;
    epoch->read_head_ns = loader->head_ns;
    epoch->read_rest_ns = loader->read_end_ns - loader->quarter_ns;
    const uint64_t read = epoch->samples - epoch->samples / 4;
    const uint64_t taken = pace_amount(&account->taken, loader->read_end_ns) -
                           pace_amount(&account->taken, loader->quarter_ns);
    const uint64_t apart = read > taken ? read - taken : taken - read;
    if (epoch->batches < BATCHES_LEAST || apart > read / 10)
        return;
    epoch->steady_samples = read;
    epoch->steady_ns = epoch->read_rest_ns;
}

void account_batch(struct account *account, const struct batch *batch, uint64_t taken_ns)
{
    struct result_epoch *epoch = account->epoch;

    if (epoch->batches++ == 0) {
        epoch->first_batch_ns = taken_ns - epoch->start_ns;
        epoch->first_step_ns = account->idle_ns - epoch->start_ns;
    } else {
        epoch->paced_samples += batch->account.samples;
        epoch->paced_bytes += batch->account.record_bytes;
        epoch->paced_ns = taken_ns - epoch->start_ns - epoch->first_batch_ns;
    }
    epoch->samples += batch->account.samples;
    epoch->skipped += batch->account.skipped;
    epoch->record_bytes += batch->account.record_bytes;
    epoch->digest_sum += batch->account.digest_sum;
    epoch->digest_xor ^= batch->account.digest_xor;
    pace_add(&account->taken, taken_ns, epoch->samples);
    meter_add(account->meter, METER_TRAINED_COUNT, batch->count);
}

static void tell_wait(struct account *account, uint64_t wait_ns)
{
    account->told_wait_ns += wait_ns;
    meter_add(account->meter, METER_TRAINER_BATCH_NS, wait_ns);
}

void account_idle(struct account *account, uint64_t now_ns)
{
    const uint64_t idle_ns = now_ns - account->idle_ns;
    const uint64_t owed_ns = idle_ns < account->owed_wait_ns ? idle_ns : account->owed_wait_ns;

    account->owed_wait_ns -= owed_ns;
    tell_wait(account, idle_ns - owed_ns);
    account->waited_ns += idle_ns;
    account->idle_ns = now_ns;
}

void account_order(struct account *account, uint64_t now_ns)
{
    account_idle(account, now_ns);
    account->order_ns = account->waited_ns;
}

uint64_t account_step_begin(struct account *account, uint64_t now_ns)
{
    account_idle(account, now_ns);
    const uint64_t waited_ns = account->waited_ns;
    account->waited_ns = 0;
    account->step_ns = now_ns;
    return waited_ns;
}

void account_step_goes_on(struct account *account, uint64_t now_ns)
{
    if (account->step_ns == 0)
        return;
    account->told_ns += now_ns - account->step_ns;
    meter_add(account->meter, METER_TRAINER_BUSY_NS, now_ns - account->step_ns);
    account->step_ns = now_ns;
}

void account_step(struct account *account, const struct trainer_times *times)
{
    struct result_epoch *epoch = account->epoch;

    account->step_ns = 0;
    epoch->wait_ns += times->wait_ns;
    /* The wait before the step is now known. The meter may already have counted more: only the
     * trainer knows that a device was still computing, or that a batch was ready. That time belongs
     * to the step, and must not appear twice in a timeline. */
    if (times->wait_ns > account->told_wait_ns)
        tell_wait(account, times->wait_ns - account->told_wait_ns);
    account->told_wait_ns -= times->wait_ns;
    account->owed_wait_ns = account->told_wait_ns;
    epoch->compute_ns += times->compute_ns;
    epoch->upload_ns += times->upload_ns;
    epoch->copy_ns += times->copy_ns;
    epoch->exchange_ns += times->exchange_ns;
    epoch->update_ns += times->update_ns;
    epoch->nominal_ns += times->nominal_ns;
    if (times->is_due)
        histogram_add(account->late_ns, times->late_ns);
    if (epoch->first_compute_ns == 0) {
        /* A device ends the step long after its call, which only passes the batch. */
        const uint64_t end_ns =
            epoch->first_batch_ns + times->upload_ns + times->compute_ns + times->exchange_ns;
        epoch->first_compute_ns = times->compute_ns;
        if (times->compute_ns && end_ns > epoch->first_step_ns)
            epoch->first_step_ns = end_ns;
    }
    /* The meter already knows a part of the steps' time. */
    const uint64_t busy_ns =
        times->compute_ns + times->upload_ns + times->exchange_ns + times->update_ns;
    const uint64_t told_ns = busy_ns < account->told_ns ? busy_ns : account->told_ns;
    account->told_ns -= told_ns;
    meter_add(account->meter, METER_TRAINER_BUSY_NS, busy_ns - told_ns);
}

struct engine {
    struct engine_config config;
    struct plan plan, next_plan; /* overlapping epochs alternate between the two */
    struct trainer trainer;
    struct batches *batches;
    struct loader *loader;
    struct decoders *decoders;
    void *rows;
    uint32_t workers;
    struct resume_point resume;
    struct account account;
    struct trace_ring *trace; /* of the main thread, in a run that is traced */
    uint64_t held_bytes;      /* part of --memory-limit that a network already uses */
    /* State of the current run and epoch. */
    const struct engine_hooks *hooks;
    struct result_epoch *epoch;
    uint64_t draws, next_tick_ns;
};

/* Return the scope of this job's plans. */
static struct plan_scope scope_of(const struct job *job, const struct catalog *catalog)
{
    return (struct plan_scope){
        .catalog = catalog,
        .seed = job->order.seed,
        .rank = (uint32_t)job->order.rank,
        .ranks = (uint32_t)job->order.ranks,
        .partition = (enum plan_partition)job->order.partition,
        .remainder = (enum plan_remainder)job->order.remainder,
        .batch_size = (uint32_t)job->batch_size,
    };
}

/* Count the draws of an epoch resumed at `point`. */
static int count_draws(const struct job *job, struct plan *plan, const struct resume_point *point,
                       uint64_t *draws)
{
    const uint64_t limit = order_rank_samples(&job->order);
    int code = plan_begin(plan, point->epoch);

    if (code)
        return code;
    *draws = plan_draws(plan);
    *draws -= *draws < point->sample ? *draws : point->sample;
    if (limit && *draws > limit)
        *draws = limit;
    return 0;
}

int engine_draws(const struct job *job, const struct job_plugins *plugins,
                 const struct catalog *catalog, uint64_t *draws)
{
    struct plan_scope scope = scope_of(job, catalog);
    struct plan plan;

    scope.memory_bytes = memory_available_bytes();
    int code = plan_open(&plan, &plugins->shuffle, &scope);

    if (code == 0)
        code = count_draws(job, &plan, &(struct resume_point){0}, draws);
    plan_close(&plan);
    return code;
}

int engine_reach(struct engine *engine, struct reach *reach)
{
    const struct engine_config *config = &engine->config;
    int fd = file_open_quietly(config->catalog->shards[0].path, O_RDONLY);
    const uint64_t ahead = fd < 0 ? 0 : read_ahead_bytes("/sys", fd);

    if (fd >= 0)
        close(fd);
    /* Twice the read-ahead: the kernel reads as far again when a read meets its mark. 128 KiB if it
     * is unknown. */
    return reach_make(reach, &engine->plan, &engine->resume,
                      order_rank_samples(&config->job->order), 2 * (ahead ? ahead : 128 << 10));
}

int engine_create(const struct engine_config *config, struct result *result, struct engine **made)
{
    struct engine *engine = *made = memory_zeroed(sizeof *engine);
    const struct job *job = config->job;
    const struct job_plugins *plugins = config->plugins;
    const bool overlaps = job->order.overlap_epochs;
    const uint32_t buffers = (uint32_t)(job->prefetch_batches ? job->prefetch_batches : 1) + 1;
    struct plan_scope scope = scope_of(job, config->catalog);
    const uint64_t batch_size = job->batch_size, records = config->catalog->record_count;
    const uint32_t ranks = config->ranks ? config->ranks->place.ranks : 1;
    struct decoder_traits decoder;

    if (!engine)
        return -ENOMEM;
    engine->config = *config;
    config = &engine->config;
    int code = job_resume(job, &engine->resume);
    if (job->cold.memory_limit_bytes && config->trainer)
        engine->held_bytes = memory_resident_bytes();
    scope.memory_bytes =
        budget_headroom(config, engine->held_bytes).available_bytes / (overlaps ? 2 : 1);
    if (code == 0)
        code = plan_open(&engine->plan, &plugins->shuffle, &scope);
    if (code == 0 && overlaps)
        code = plan_open(&engine->next_plan, &plugins->shuffle, &scope);
    if (code == 0)
        code = decoders_traits(&plugins->decoder, &decoder);
    if (code)
        return code;
    engine->workers = job->decode.threads ? (uint32_t)job->decode.threads
                      : config->ranks     ? config->ranks->place.cpus
                                          : thread_cpu_count();
    result->slots = engine->plan.traits.slots;
    result->threads = engine->workers;
    /* Check all memory before allocating any. */
    code = budget_make(config, &engine->plan.traits, engine->workers,
                       decoder.row_bytes * batch_size * buffers, decoder.held_bytes,
                       engine->held_bytes, result);
    if (code || job->dry_run)
        return code;
    if (config->hinting)
        code = hinting_open(config->hinting, records, engine->resume.epoch);
    if (config->trainer)
        engine->trainer = *config->trainer;
    else if (code == 0)
        code = trainer_open(&engine->trainer, &plugins->trainer,
                            &(struct trainer_config){
                                .batch_size = (uint32_t)batch_size,
                                .row_bytes = decoder.row_bytes,
                                .seed = job->order.seed,
                                .ranks = config->ranks,
                                .rank_timeout_ns = job->rank_timeout_ns,
                                .open_load = job->open_load / ranks,
                                .tick = config->tick,
                            });
    /* A network is compiled for each size of a batch: the whole ones and an epoch's last. */
    if (code == 0 && engine->trainer.ops->prepare) {
        uint64_t draws;
        code = count_draws(job, &engine->plan, &engine->resume, &draws);
        if (code == 0 && draws >= batch_size)
            code = trainer_prepare(&engine->trainer, (uint32_t)batch_size);
        if (code == 0 && draws % batch_size)
            code = trainer_prepare(&engine->trainer, (uint32_t)(draws % batch_size));
    }
    if (code)
        return code;
    /* Get the trainer's memory for rows, and fault in, off the clock, each batch that a set of this
     * size can fill. */
    const size_t batch_bytes = decoder.row_bytes * batch_size;
    if (batch_bytes && !(engine->rows = trainer_allocate(&engine->trainer, batch_bytes * buffers)))
        return -ENOMEM;
    for (uint32_t i = 0; engine->rows && i < buffers; i++) {
        memset((char *)engine->rows + i * batch_bytes, 0,
               (records < batch_size ? records : batch_size) * decoder.row_bytes);
        if ((code = tick_ask(config->tick)))
            return code;
    }
    /* Cap the memory of all decode threads for huge images at a share of what is left. */
    bump_limit_together(budget_headroom(config, engine->held_bytes).available_bytes /
                        (job->cold.memory_limit_bytes ? 8 : 4));
    engine->batches = batches_create(&(struct batches_config){
        .batch_size = (uint32_t)batch_size,
        .buffers = buffers,
        .row_bytes = decoder.row_bytes,
        .meter = config->meter,
        .rows = engine->rows,
    });
    if (!engine->batches)
        return -ENOMEM;
    engine->decoders = decoders_create(config, engine->workers, engine->batches);
    if (!engine->decoders)
        return -ENOMEM;
    struct loader_sink sink = batches_sink(engine->batches);
    sink.take = decoders_take;
    sink.taker = engine->decoders;
    engine->loader = loader_create(&(struct loader_config){
        .catalog = config->catalog,
        .reader = &plugins->reader,
        .reader_falls_back = plugins->reader_is_auto,
        .plan = &engine->plan,
        .next_plan = overlaps ? &engine->next_plan : NULL,
        .sink = sink,
        .read = &job->read,
        .order = &job->order,
        .memory_bytes = result->memory_bytes,
        .resume_epoch = engine->resume.epoch,
        .resume_draw = engine->resume.sample,
        .alignment = plugins->direct ? HEAP_ALIGNMENT : LOADER_ALIGNMENT_BUFFERED,
        .meter = config->meter,
        .recorder = config->recorder,
    });
    engine->account.meter = config->meter;
    return engine->loader ? 0 : -ENOMEM;
}

void engine_destroy(struct engine *engine)
{
    if (!engine)
        return;
    decoders_destroy(engine->decoders);
    loader_destroy(engine->loader);
    batches_destroy(engine->batches);
    if (engine->rows)
        trainer_release(&engine->trainer, engine->rows);
    if (!engine->config.trainer)
        trainer_close(&engine->trainer);
    plan_close(&engine->plan);
    plan_close(&engine->next_plan);
    free(engine);
}

static void cancel_all(struct engine *engine)
{
    loader_cancel(engine->loader);
    batches_cancel(engine->batches);
}

/* ---- an epoch ---- */

static const uint64_t tick_ns = 100000000;

/* Bring the epoch's time up to date; call the hook if a tick is due. */
static int tick_epoch(void *context)
{
    struct engine *engine = context;
    const struct engine_hooks *hooks = engine->hooks;
    const uint64_t now_ns = clock_now_ns();

    engine->epoch->wall_ns = now_ns - engine->epoch->start_ns;
    account_step_goes_on(&engine->account, now_ns);
    if (now_ns < engine->next_tick_ns)
        return 0;
    engine->next_tick_ns = now_ns + tick_ns;
    return hooks->tick ? hooks->tick(hooks->context, engine->epoch, engine->draws) : 0;
}

/* A batch waits for the trainer, from its last row on; a step is what the trainer does. */
static const struct trace_kind traced_batch = {"batch", true, {"epoch", "batch", "samples"}};
static const struct trace_kind traced_step = {"step", false, {"epoch", "batch", "samples"}};

/* If the run could not start, code is why. */
static int before_epoch(const struct engine *engine, struct result_epoch *epoch, int code)
{
    const struct engine_hooks *hooks = engine->hooks;

    return hooks->before ? hooks->before(hooks->context, epoch, code) : code;
}

/* Return for how long each stage has waited so far. */
static struct result_waits waits_of(struct engine *engine)
{
    const struct loader_waits loader = loader_waits(engine->loader);
    const struct hinting *hinting = engine->config.hinting;

    return (struct result_waits){
        .loader_storage_ns = loader.storage_ns,
        .loader_memory_ns = loader.memory_ns,
        .decode_input_ns = loader.records_ns,
        .decode_slot_ns = batches_open_wait_ns(engine->batches),
        .decode_hints_ns = hinting ? counter_get(&hinting->ns) : 0,
    };
}

static double seconds_between(const struct timeval *from, const struct timeval *to)
{
    return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_usec - from->tv_usec) * 1e-6;
}

/* Wait until the reads have ended, and add figures known only then. before: the epoch. */
static void end_account(struct engine *engine, const struct rusage *before)
{
    struct account *account = &engine->account;
    struct result_epoch *epoch = account->epoch;
    struct loader_figures loader;
    struct rusage after;

    getrusage(RUSAGE_SELF, &after);
    epoch->cpu_user_s = seconds_between(&before->ru_utime, &after.ru_utime);
    epoch->cpu_system_s = seconds_between(&before->ru_stime, &after.ru_stime);
    if (loader_epoch_figures(engine->loader, &loader)) {
        epoch->requests = loader.requests;
        epoch->request_bytes = loader.request_bytes;
        epoch->shuffle_ns = loader.plan_ns;
        epoch->order_ns = loader.plan_ns < account->order_ns ? loader.plan_ns : account->order_ns;
        epoch->storage_idle_ns = loader.idle_ns;
        if (loader.read_start_ns && loader.read_end_ns > loader.read_start_ns) {
            epoch->read_samples = epoch->samples + loader.spare;
            epoch->read_ns = loader.read_end_ns - loader.read_start_ns;
        }
        account_reads(account, &loader);
        if (loader.read_end_ns)
            recorder_mark(engine->config.recorder, "drain", epoch->epoch, loader.read_end_ns);
    }
    epoch->limit =
        result_epoch_limit(epoch, engine->workers, !engine->config.plugins->reader.plugin->idle);
}

/* last: number of the run's last epoch. */
static int run_epoch(struct engine *engine, struct result_epoch *epoch, uint64_t last)
{
    const struct job *job = engine->config.job;
    struct recorder *recorder = engine->config.recorder;
    struct account *account = &engine->account;
    struct trainer_times times;
    struct guard_moment start;
    struct rusage usage;
    int made;

    engine->epoch = epoch;
    engine->draws = 0;
    /* Sample while no rank of the node reads: before all ranks start and after all have ended. */
    recorder_sample(recorder);
    int code = before_epoch(engine, epoch, 0);
    if (code)
        return code;
    guard_begin(&start);
    account->epoch = epoch;
    getrusage(RUSAGE_SELF, &usage);
    epoch->start_ns = account->idle_ns = clock_now_ns();
    account->waited_ns = account->order_ns = 0;
    account->taken = (struct pace){0};
    pace_add(&account->taken, epoch->start_ns, 0);
    const struct result_waits before = waits_of(engine);
    /* Start the reads. Overlapping epochs are all requested at once, after the barrier of the first
     * one and with its clock running. */
    if (!job->order.overlap_epochs)
        loader_begin(engine->loader, epoch->epoch, epoch->epoch);
    else if (epoch->epoch == engine->resume.epoch)
        loader_begin(engine->loader, epoch->epoch, last);
    engine->next_tick_ns = epoch->start_ns + tick_ns;
    do { /* until the loader has made the epoch's order */
        made = batches_wait_epoch(engine->batches, epoch->epoch - engine->resume.epoch,
                                  &engine->draws);
        account_order(account, clock_now_ns());
        code = made == 0 ? tick_epoch(engine) : made < 0 ? made : 0;
    } while (made == 0 && code == 0);
    const uint64_t batches = (engine->draws + job->batch_size - 1) / job->batch_size;
    /* No tick after the last step, where the epoch's clock stops. */
    while (code == 0 && epoch->batches < batches && (code = tick_epoch(engine)) == 0) {
        struct batch batch;
        code = batches_take(engine->batches, &batch); /* waits for a limited time */
        const uint64_t taken_ns = clock_now_ns();
        if (code <= 0) {
            account_idle(account, taken_ns);
            continue;
        }
        const struct trainer_batch given = {.rows = batch.rows,
                                            .labels = batch.labels,
                                            .count = batch.count,
                                            .epoch = epoch->epoch,
                                            .step = batch.step,
                                            .last = epoch->batches + 1 == batches,
                                            .waited_ns = account_step_begin(account, taken_ns),
                                            .ready_ns = batch.ready_ns,
                                            .tick = {tick_epoch, engine}};
        code = trainer_step(&engine->trainer, &given, &times);
        const uint64_t end_ns = engine->trainer.ops->step ? clock_now_ns() : taken_ns;
        account->idle_ns = end_ns;
        struct trace_span span = {
            &traced_batch, batch.ready_ns, taken_ns, {epoch->epoch + 1, batch.number, batch.count}};
        trace_add(engine->trace, span);
        span.kind = &traced_step, span.from_ns = taken_ns, span.to_ns = end_ns;
        trace_add(engine->trace, span);
        batches_give(engine->batches);
        account_batch(account, &batch, taken_ns);
        account_step(account, &times);
    }
    if (code == 0) { /* steps still in flight */
        do {
            code = trainer_finish(&engine->trainer, &times);
            account_step(account, &times);
        } while (code == 1);
    }
    /* Both readings are taken while the clock runs, so no stage waits longer than its threads had
     * time. */
    const struct result_waits now = waits_of(engine);
    epoch->wall_ns = clock_now_ns() - epoch->start_ns;
    epoch->waits = (struct result_waits){
        .loader_storage_ns = now.loader_storage_ns - before.loader_storage_ns,
        .loader_memory_ns = now.loader_memory_ns - before.loader_memory_ns,
        .decode_input_ns = now.decode_input_ns - before.decode_input_ns,
        .decode_slot_ns = now.decode_slot_ns - before.decode_slot_ns,
        .decode_hints_ns = now.decode_hints_ns - before.decode_hints_ns,
        .trainer_input_ns = epoch->wait_ns,
    };
    /* A decode thread either waits, or makes hints, or decodes. */
    epoch->waits.decode_busy_ns = engine->workers * epoch->wall_ns - epoch->waits.decode_input_ns -
                                  epoch->waits.decode_slot_ns - epoch->waits.decode_hints_ns;
    guard_end(&start, &epoch->guard);
    if (code == 0 && guard_check_clock(&epoch->guard))
        code =
            fail(EPROTO, "epoch %llu: %.200s", (unsigned long long)epoch->epoch + 1, fail_reason());
    if (code == 0)
        code = invariants_epoch(epoch, engine->draws, job->batch_size, engine->workers);
    if (code)
        cancel_all(engine);
    end_account(engine, &usage);
    if (engine->hooks->after)
        code = engine->hooks->after(engine->hooks->context, epoch, code);
    recorder_sample(recorder);
    recorder_mark(recorder, "epoch", epoch->epoch, epoch->start_ns);
    return code;
}

/* ---- a run ---- */

/* Join all threads. Returns the first failure, not the ones that followed from it. */
static int join_threads(struct engine *engine, int code)
{
    char reason[FAIL_REASON_BYTES];

    snprintf(reason, sizeof reason, "%s", fail_reason());
    if (code)
        cancel_all(engine);
    else
        loader_finish(engine->loader);
    int decoders_code = decoders_join(engine->decoders);
    char decoders_reason[FAIL_REASON_BYTES];
    snprintf(decoders_reason, sizeof decoders_reason, "%s", fail_reason());
    int loader_code = loader_join(engine->loader);

    if (loader_code && loader_code != -ECANCELED)
        return loader_code;
    if (decoders_code && decoders_code != -ECANCELED)
        return fail(decoders_code, "%s", decoders_reason);
    return code ? fail(code, "%s", reason) : 0;
}

int engine_run(struct engine *engine, uint64_t epochs, const struct engine_hooks *hooks,
               struct result_run *run, struct result *result)
{
    if (engine->config.ranks) /* earlier phases may take any time */
        engine->config.ranks->rank_timeout_ns = engine->config.job->rank_timeout_ns;
    engine->hooks = hooks;
    batches_reset(engine->batches);
    assert(epochs > 0);
    engine->account.late_ns = &run->batch_late_ns;
    const bool traces = engine->config.job->output.trace && run->number == 0 &&
                        !(engine->config.ranks && engine->config.ranks->place.rank);
    struct trace *trace = traces ? trace_create(DECODERS_RING + engine->workers) : NULL;
    int code = traces && !trace ? -ENOMEM : 0;
    if (trace)
        result->trace = trace;
    engine->trace = trace_ring(trace, TRAINER_RING, "trainer");
    if (code == 0)
        code = loader_start(engine->loader, trace_ring(trace, LOADER_RING, "loader"));
    if (code)
        return before_epoch(engine, &run->epochs[0], code);
    const struct reader_traits *traits = loader_traits(engine->loader);
    snprintf(result->reader_engine, sizeof result->reader_engine, "%s", traits->engine);
    snprintf(result->decoder_engine, sizeof result->decoder_engine, "%s",
             decoders_engine(engine->decoders));
    if (traits->notice[0] && run->number == 0)
        result_notice(result, "%s", traits->notice);
    if (engine->config.job->decode.digest && traits->no_bytes)
        code = fail(EINVAL, "--digest: reader %s delivers no bytes to digest",
                    engine->config.plugins->reader.plugin->name);
    if (code == 0 && engine->config.job->decode.entry_points && traits->no_bytes)
        code = fail(EINVAL, "--entry-points: reader %s delivers no images",
                    engine->config.plugins->reader.plugin->name);
    if (code == 0)
        code = decoders_start(engine->decoders, engine->loader, traits->no_bytes, trace);
    const bool is_ready = code == 0;
    if (!is_ready)
        code = before_epoch(engine, &run->epochs[0], code);
    for (uint64_t i = 0; is_ready && code == 0 && i < epochs; i++) {
        struct result_epoch epoch = {.epoch = engine->resume.epoch + i};
        code = run_epoch(engine, &epoch, engine->resume.epoch + epochs - 1);
        result_epoch_name_source(&epoch, i == 0, &run->cold,
                                 engine->config.job->read.rate_limit_bytes);
        if (i == 0) /* kept for inspection, but not counted, if the run completes no epoch */
            run->epochs[run->epoch_count] = epoch;
        if (code == 0) {
            result_run_add(run, &epoch);
            if (hooks->between)
                code = hooks->between(hooks->context, &epoch);
        }
    }
    code = join_threads(engine, code < 0 ? code : 0);
    if (trace && trace_lost(trace))
        result_notice(result,
                      "--trace: %llu spans are lost, the first of each thread, which keeps its "
                      "last %d",
                      (unsigned long long)trace_lost(trace), TRACE_SPANS);

    const struct loader_totals totals = loader_totals(engine->loader);
    run->read_latency_ns = totals.reader->latency_ns;
    memcpy(run->epoch_latency_ns, totals.latency_ns, sizeof run->epoch_latency_ns);
    run->read_errors = totals.reader->errors;
    run->short_reads = totals.reader->short_reads;
    run->memory_peak_bytes = totals.memory_peak_bytes;
    /* The saturation depth found by --iodepth auto is reported once. */
    const struct depth *depth = totals.depth;
    const bool is_searched = engine->config.job->read.iodepth == 0 && result->iodepth == 0;
    char knee[32], best[32];
    result->iodepth = depth->is_found ? depth->knee : 0;
    if (is_searched && depth->is_found)
        result_notice(result,
                      "iodepth auto: storage saturates at %u reads in flight (%s/s there, %s/s "
                      "at best)",
                      depth->knee, bytes_text((uint64_t)depth->knee_bytes_per_s, knee, sizeof knee),
                      bytes_text((uint64_t)depth->best_bytes_per_s, best, sizeof best));
    else if (is_searched && run->number == 0)
        result_notice(result,
                      "iodepth auto: no saturation depth found, storage was the bottleneck for too "
                      "short a time; %u reads were in flight at the end",
                      depth->now);
    if (totals.windows_cut && run->number == 0)
        result_notice(result,
                      "%llu windows were cut below %u records by large records: more "
                      "--memory keeps them whole",
                      (unsigned long long)totals.windows_cut, result->reads.window);
    decoders_figures(engine->decoders, &run->decode, &run->findings);
    if (decoders_notice(engine->decoders)[0])
        result_notice(result, "%s", decoders_notice(engine->decoders));
    trainer_memory(&engine->trainer, &result->trainer_memory);
    if (trainer_notice(&engine->trainer)[0])
        result_notice(result, "%s", trainer_notice(&engine->trainer));
    return code;
}
