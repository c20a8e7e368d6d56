/* SPDX-License-Identifier: Apache-2.0 */
#include "report/summary.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/profiles/profiles.h"
#include "base/stats.h"
#include "report/words.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_RUN_NS = 1000000000, HEADS_MOST = 1000 };
static const double DRIFT_MAX = 0.02, SPREAD_MAX = 0.10, CEILING_SHARE = 0.5, CPU_SHARE = 0.75;

const char *summary_limit_name(enum result_limit limit)
{
    static const char *const names[] = {
        [RESULT_LIMIT_STORAGE] = "storage",
        [RESULT_LIMIT_DECODE] = "decode",
        [RESULT_LIMIT_UPLOAD] = "upload",
        [RESULT_LIMIT_TRAINER] = "trainer",
        [RESULT_LIMIT_EXCHANGE] = "exchange",
        [RESULT_LIMIT_ORDER] = "order",
        [RESULT_LIMIT_PAGE_CACHE] = "page_cache",
        [RESULT_LIMIT_RATE] = "rate",
        [RESULT_LIMIT_HARNESS] = "harness",
        [RESULT_LIMIT_QUOTA] = "cpu_quota",
        [RESULT_LIMIT_CPU] = "cpu",
    };

    return names[limit];
}

const char *summary_cache_name(enum result_cache cache)
{
    static const char *const names[] = {
        [RESULT_CACHE_COLD] = "cold",
        [RESULT_CACHE_BYPASSED] = "page cache bypassed",
        [RESULT_CACHE_DATA_COLD] = "data cold, metadata warm",
        [RESULT_CACHE_CLIENT_COLD] = "client cold, server unverified",
        [RESULT_CACHE_UNVERIFIED] = "unverified",
        [RESULT_CACHE_WARM] = "warm",
    };

    return names[cache];
}

/* ---- collecting ---- */

/* Values of one kind, one for each run: epochs of a run resemble each other, and are no more
 * evidence than one. */
enum summary_kind {
    RUN_SAMPLES,
    RUN_BYTES,
    RUN_AU,
    RUN_MLPERF,
    RUN_STEADY,
    RUN_STORAGE,
    FIRST_HEAD,
    FIRST_SAMPLES,
    FIRST_BYTES,
    FIRST_AU,
    LATER_SAMPLES,
    LATER_BYTES,
    LATER_AU,
    KINDS
};

struct collection {
    double *values; /* of each kind `capacity` */
    size_t capacity, count[KINDS];
    uint64_t limited_ns[RESULT_LIMIT_HARNESS + 1]; /* how long each stage was the bottleneck */
};

static double *values_of(const struct collection *collection, enum summary_kind kind)
{
    return collection->values + kind * collection->capacity;
}

static void note_value(struct collection *collection, enum summary_kind kind, double value)
{
    assert(collection->count[kind] < collection->capacity); /* one value of each run */
    if (isfinite(value))
        values_of(collection, kind)[collection->count[kind]++] = value;
}

static void collect_run(const struct result_run *run, struct summary *summary,
                        struct collection *collection)
{
    struct result_epoch later = {0}, storage = {0};

    for (uint32_t i = 0; i < run->epoch_count; i++) {
        const struct result_epoch *epoch = &run->epochs[i];
        if (i == 0) {
            note_value(collection, FIRST_SAMPLES, result_epoch_samples_per_s(epoch));
            note_value(collection, FIRST_BYTES, result_epoch_bytes_per_s(epoch));
            note_value(collection, FIRST_AU, result_epoch_au_percent(epoch));
            note_value(collection, FIRST_HEAD, result_epoch_head_ratio(epoch));
            summary->first_record_bytes += epoch->record_bytes;
            summary->device_bytes += epoch->device.bytes;
            summary->device_known = summary->device_known && epoch->device.known;
        } else {
            result_epoch_add(&later, epoch);
        }
        if (result_epoch_is_from_memory(epoch, i == 0, &run->cold))
            summary->memory_record_bytes += epoch->record_bytes;
        result_epoch_add(&summary->all, epoch);
        collection->limited_ns[epoch->limit] += epoch->wall_ns;
        if (epoch->limit == RESULT_LIMIT_STORAGE)
            result_epoch_add(&storage, epoch);
    }
    if (run->epoch_count > 1) {
        note_value(collection, LATER_SAMPLES, result_epoch_samples_per_s(&later));
        note_value(collection, LATER_BYTES, result_epoch_bytes_per_s(&later));
        note_value(collection, LATER_AU, result_epoch_au_percent(&later));
    }
    if (storage.wall_ns)
        note_value(collection, RUN_STORAGE,
                   (double)storage.request_bytes * 1e9 / (double)storage.wall_ns);
    summary->runs++;
    note_value(collection, RUN_SAMPLES, result_run_samples_per_s(run));
    note_value(collection, RUN_BYTES, result_run_bytes_per_s(run));
    note_value(collection, RUN_AU, result_run_au_percent(run));
    note_value(collection, RUN_MLPERF, result_run_mlperf_au_percent(run));
    note_value(collection, RUN_STEADY, result_run_steady_samples_per_s(run));
    histogram_merge(&summary->read_latency_ns, &run->read_latency_ns);
    for (int i = 0; i < RESULT_EPOCH_KINDS; i++)
        histogram_merge(&summary->epoch_latency_ns[i], &run->epoch_latency_ns[i]);
    summary->read_errors += run->read_errors;
    summary->short_reads += run->short_reads;
    if (run->cold.state > summary->cache)
        summary->cache = run->cold.state;
    if (run->cold.pages == RESIDENCY_UNVERIFIED)
        summary->residue_known = false;
    summary->residue_percent = fmax(summary->residue_percent, run->cold.residue_percent);
}

/* ---- sentences ---- */

static double share(uint64_t part, double whole)
{
    return whole > 0 ? 100 * (double)part / whole : 0;
}

static void make_limit(const struct result *result, const struct collection *collection,
                       struct summary *summary)
{
    const struct result_epoch *all = &summary->all;
    const struct result_waits *waits = &all->waits;
    const double wall = (double)all->wall_ns, workers = wall * result->threads;
    struct summary_shares *shares = &summary->shares;
    char *text = summary->limit_sentence, allowed[32], asked[32];
    const size_t size = sizeof summary->limit_sentence;

    *shares = (struct summary_shares){
        .loader_storage = share(waits->loader_storage_ns, wall),
        .loader_memory = share(waits->loader_memory_ns, wall),
        .decode_input = share(waits->decode_input_ns, workers),
        .decode_slot = share(waits->decode_slot_ns, workers),
        .decode_busy = share(waits->decode_busy_ns, workers),
        .decode_hints = share(waits->decode_hints_ns, workers),
        .trainer_input = share(waits->trainer_input_ns, wall),
        .trainer_upload = share(all->upload_ns, wall),
        .trainer_compute = share(all->compute_ns, wall),
        .trainer_exchange = share(all->exchange_ns, wall),
        .trainer_order = share(all->order_ns, wall),
    };
    for (int i = 0; i <= RESULT_LIMIT_HARNESS; i++)
        if (collection->limited_ns[i] > collection->limited_ns[summary->limit])
            summary->limit = (enum result_limit)i;
    switch (summary->limit) {
    case RESULT_LIMIT_RATE:
        snprintf(text, size, "--limit-rate: %s/s allowed, %s/s read",
                 bytes_text(result->job->read.rate_limit_bytes, allowed, sizeof allowed),
                 bytes_text(all->wall_ns ? (uint64_t)((double)all->request_bytes * 1e9 / wall) : 0,
                            asked, sizeof asked));
        break;
    case RESULT_LIMIT_STORAGE:
    case RESULT_LIMIT_PAGE_CACHE:
        snprintf(
            text, size,
            "%s: decode threads stalled on records %.0f%% of the time, the loader on reads %.0f%%",
            summary->limit == RESULT_LIMIT_STORAGE
                ? "storage"
                : "the page cache, not storage: most bytes came from memory",
            shares->decode_input, shares->loader_storage);
        break;
    case RESULT_LIMIT_DECODE:
        snprintf(
            text, size,
            "decoding: decode threads were busy %.0f%% of the time and storage waited for them",
            shares->decode_busy);
        break;
    case RESULT_LIMIT_UPLOAD:
        snprintf(text, size, "upload: the device waited %.0f%% of the time for batches in transfer",
                 shares->trainer_upload);
        break;
    case RESULT_LIMIT_TRAINER:
        snprintf(
            text, size,
            "the trainer: storage kept up; the trainer stalled on batches only %.1f%% of the time",
            shares->trainer_input);
        break;
    case RESULT_LIMIT_EXCHANGE:
        snprintf(text, size, "gradient exchange between ranks: %.0f%% of the time, compute %.0f%%",
                 shares->trainer_exchange, shares->trainer_compute);
        break;
    case RESULT_LIMIT_QUOTA:
    case RESULT_LIMIT_CPU:
        snprintf(text, size, "%s, not storage: a thread waited for a CPU %.0f%% of the time",
                 summary->limit == RESULT_LIMIT_QUOTA ? "CPU quota" : "CPUs",
                 fmax(summary->all.guard.throttled_percent, summary->all.guard.delayed_percent));
        break;
    case RESULT_LIMIT_ORDER:
        snprintf(
            text, size,
            "the sample order, not storage: the trainer waited %.0f%% of the time until it was "
            "made",
            shares->trainer_order);
        break;
    case RESULT_LIMIT_HARNESS:
        snprintf(text, size,
                 "the program itself: nothing was read, decoded or trained, this is its ceiling");
        break;
    }
}

static void advise(struct summary *summary, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void advise(struct summary *summary, const char *format, ...)
{
    va_list arguments;

    if (summary->advice_count == SUMMARY_ADVICE)
        return;
    va_start(arguments, format);
    vsnprintf(summary->advice[summary->advice_count++], SUMMARY_ADVICE_BYTES, format, arguments);
    va_end(arguments);
}

/* Doubts about the figure, and suggestions for obtaining a better one. */
static void make_advice(const struct result *result, struct summary *summary)
{
    const struct job *job = result->job;
    double median = summary->samples_per_s.median;

    if (summary->limit == RESULT_LIMIT_HARNESS)
        return;
    if (summary->mean_run_ns < SHORT_RUN_NS)
        advise(summary, "a run took only %.0f ms, too short to trust: use more data or --epochs",
               (double)summary->mean_run_ns * 1e-6);
    if (summary->bursts)
        advise(summary,
               "the first quarter of each run was read %.0f%% faster than the rest, as from a "
               "throttled device with burst credit or a device cache: short runs overestimate; use "
               "longer runs (more data, --epochs), or the steady rate",
               100 * (summary->head_ratio.median - 1));
    bool from_storage = summary->device_known &&
                        (double)summary->device_bytes >= 0.98 * (double)summary->first_record_bytes;
    if (job->cold.drop_caches == JOB_DROP_NO && summary->cache > RESULT_CACHE_BYPASSED &&
        !from_storage)
        advise(summary, "caches were not dropped, so this may be the speed of memory: to measure "
                        "storage add --drop-caches, and --server-drop-cmd for a server");
    else if (summary->cache == RESULT_CACHE_CLIENT_COLD)
        advise(
            summary,
            "this may be the speed of the server's memory: drop its caches with --server-drop-cmd, "
            "and verify with --server-check-cmd 'ssh SERVER cachectl status --json PATH'");
    else if (job->cold.drop_caches != JOB_DROP_NO && summary->cache == RESULT_CACHE_DATA_COLD)
        advise(summary, "opening files needed no storage: to drop dentries and inodes too, run as "
                        "root or permit 'sudo -n cachectl drop' (cachectl(1))");
    if (summary->runs >= 2 && median > 0 &&
        (summary->samples_per_s.maximum - summary->samples_per_s.minimum) / median > SPREAD_MAX)
        advise(summary,
               "the runs differ by %.0f%%: check for other load on this machine and storage, or "
               "raise --runs",
               100 * (summary->samples_per_s.maximum - summary->samples_per_s.minimum) / median);
    if (summary->drifts)
        advise(summary,
               "the runs drift by %+.0f%% from first to last (p %.2g): the system is not "
               "stationary, and the interval does not hold; find out what changes",
               100 * summary->drift.drift, summary->drift.p);
    if (result->ceiling_samples_per_s > 0 && median > CEILING_SHARE * result->ceiling_samples_per_s)
        advise(summary,
               "this is more than half the program's own ceiling (%.0f samples/s): storage may be "
               "faster than shown",
               result->ceiling_samples_per_s);
    if (summary->limit == RESULT_LIMIT_STORAGE && job->read.iodepth)
        advise(summary,
               "to find the limit of storage: --iodepth auto (now %llu), a larger --%s, or more "
               "clients (mpirun, srun, --ranks)",
               (unsigned long long)job->read.iodepth, result->reads.window == 1 ? "window" : "bs");
    else if (summary->limit == RESULT_LIMIT_STORAGE && result->iodepth)
        advise(summary, "a larger queue depth gains nothing here; more clients (mpirun, srun, "
                        "--ranks) show whether the storage or this machine is at its limit");
    if (summary->limit == RESULT_LIMIT_RATE)
        advise(summary, "this is the allowed rate; omit --limit-rate to measure storage");
    if (summary->limit == RESULT_LIMIT_PAGE_CACHE && job->cold.drop_caches != JOB_DROP_NO)
        advise(summary, "later epochs were read from memory: to read them from storage, set "
                        "--memory-limit below the size of the set, or use --direct");
    if (summary->limit == RESULT_LIMIT_DECODE) {
        /* Busy decode threads compute, but for those that wait for a GPU: time in which they had no
         * CPU is not decoding. */
        const double busy_s = (double)summary->all.waits.decode_busy_ns * 1e-9;
        const double cpu_s = summary->all.cpu_user_s + summary->all.cpu_system_s;
        if (!result->decoder_engine[0] && cpu_s < CPU_SHARE * busy_s)
            advise(summary,
                   "decode threads were busy for %.3g s, but the process got only %.3g s of CPU: "
                   "other processes, the hypervisor or a CPU limit (cgroup) had the rest, so this "
                   "is not what these CPUs decode",
                   busy_s, cpu_s);
        advise(summary,
               "storage is faster: measure it with 'iobench run --decode none', or add CPUs (now "
               "%u decode threads)",
               result->threads);
    }
    if (summary->limit == RESULT_LIMIT_UPLOAD)
        advise(summary, "the device cannot take batches faster: check its PCIe link with "
                        "nvidia-smi -q, and ahead=N of the backend");
    if (summary->limit == RESULT_LIMIT_TRAINER && job->trainer)
        advise(summary, "storage is faster: measure it with 'iobench run --trainer none', or "
                        "replay more GPUs (--trainer replay:h200,gpus=8)");
}

int summary_make(const struct result *result, struct summary *summary)
{
    struct collection collection = {.capacity = result->run_count + 1};
    const bool until = result->session.is_until; /* the runs were ended by --runs auto */

    collection.values = memory_array(collection.capacity, KINDS * sizeof *collection.values);
    *summary = (struct summary){.device_known = true, .residue_known = true};
    if (!collection.values)
        return -ENOMEM;
    for (uint32_t i = 0; i < result->run_count; i++)
        if (result->runs[i].epochs_run == result->job->epochs)
            collect_run(&result->runs[i], summary, &collection);
    summary->all.skipped += result->index_faults;
    summary->device_known = summary->device_known && summary->runs;
    summary->residue_known = summary->residue_known && summary->runs;
    summary->trains = summary->all.compute_ns > 0;
    summary->decodes = result->decodes;
    summary->mean_run_ns = summary->runs ? summary->all.wall_ns / summary->runs : 0;

    if (collection.count[RUN_STEADY] < summary->runs)
        collection.count[RUN_STEADY] = 0; /* every run must have reached a steady state */
    const struct {
        enum summary_kind kind;
        struct stats_summary *stats;
    } summaries[] = {{RUN_SAMPLES, &summary->samples_per_s},
                     {RUN_BYTES, &summary->bytes_per_s},
                     {RUN_STORAGE, &summary->storage_bytes_per_s},
                     {RUN_AU, &summary->au_percent},
                     {RUN_MLPERF, &summary->mlperf_au_percent},
                     {RUN_STEADY, &summary->steady_samples_per_s},
                     {FIRST_SAMPLES, &summary->first.samples_per_s},
                     {FIRST_BYTES, &summary->first.bytes_per_s},
                     {FIRST_AU, &summary->first.au_percent},
                     {LATER_SAMPLES, &summary->later.samples_per_s},
                     {LATER_BYTES, &summary->later.bytes_per_s},
                     {LATER_AU, &summary->later.au_percent}};
    for (size_t i = 0; i < sizeof summaries / sizeof *summaries; i++)
        *summaries[i].stats = (until ? stats_summarise_until : stats_summarise)(
            values_of(&collection, summaries[i].kind), collection.count[summaries[i].kind]);
    const double *heads = values_of(&collection, FIRST_HEAD);
    const size_t head_count = collection.count[FIRST_HEAD];
    summary->head_ratio = stats_summarise(heads, head_count);
    assert(collection.count[RUN_SAMPLES] == summary->runs);
    summary->drift = trend_test(values_of(&collection, RUN_SAMPLES), collection.count[RUN_SAMPLES]);
    summary->drifts = summary->drift.p < 0.05 && fabs(summary->drift.drift) > DRIFT_MAX;
    make_limit(result, &collection, summary);

    if (summary->limit == RESULT_LIMIT_STORAGE && head_count) {
        /* A burst counts if it is large, or all runs agree on it by the one-sided t test of
         * logarithms. */
        const size_t count = head_count < HEADS_MOST ? head_count : HEADS_MOST;
        double ones[HEADS_MOST];
        for (size_t i = 0; i < count; i++)
            ones[i] = 1;
        const struct paired paired = paired_test(ones, heads, count, 1, false);
        summary->bursts =
            count < 3 ? paired.ratio > 1.15 : paired.ratio > 1.04 && paired.p / 2 < 0.05;
    }
    free(collection.values);
    if (summary->runs)
        make_advice(result, summary);
    /* Compare the ranks over all complete runs. */
    struct result_rank *all = memory_array(result->ranks, sizeof *all);
    uint32_t count = 0;
    if (!all)
        return -ENOMEM;
    for (uint32_t i = 0; i < result->run_count; i++) {
        const struct result_run *run = &result->runs[i];
        if (run->epochs_run != result->job->epochs || run->rank_count != result->ranks)
            continue;
        for (uint32_t k = 0; k < run->rank_count; k++) {
            struct result_epoch sum = all[k].total;
            result_epoch_add(&sum, &run->ranks[k].total);
            sum.limit = run->ranks[k].total.limit;
            all[k] = run->ranks[k];
            all[k].total = sum;
        }
        count = run->rank_count;
    }
    int code = count > 1 ? result_compare(all, count, &summary->ranks) : 0;
    free(all);
    return code;
}

/* ---- MLPerf Storage ---- */

/* Rules 3.0: 3.1.2 dataset, 2.1.17 runs, 3.3.2 AU, 3.6.2 what CLOSED may change. */
enum { STEPS_LEAST = 500, MEMORY_TIMES = 5, RUNS = 6, PREFETCH_MOST = 2, THREADS_MOST = 32 };

static const char *const rule_names[] = {
    [MLPERF_WORKLOAD] = "workload", [MLPERF_DATASET] = "dataset", [MLPERF_RUNS] = "runs",
    [MLPERF_EPOCHS] = "epochs",     [MLPERF_AU] = "au",           [MLPERF_STEP] = "step",
    [MLPERF_READS] = "reads",
};

static void copy(const struct ini *ini, const char *key, char *to, size_t bytes)
{
    const char *text = profiles_text(ini, "workload", key);

    snprintf(to, bytes, "%s", text ? text : "");
}

int mlperf_workload_load(const char *name, struct mlperf_workload *workload)
{
    struct ini ini;
    int code = profiles_load("workload", name, NULL, &ini);

    *workload = (struct mlperf_workload){0};
    if (code == 0) {
        copy(&ini, "title", workload->title, sizeof workload->title);
        copy(&ini, "network", workload->network, sizeof workload->network);
        copy(&ini, "accelerator", workload->accelerator, sizeof workload->accelerator);
        copy(&ini, "submission", workload->submission, sizeof workload->submission);
        workload->batch = (uint64_t)profiles_number(&ini, "workload", "batch");
        workload->epochs = (uint64_t)profiles_number(&ini, "workload", "epochs");
        workload->step_s = profiles_number(&ini, "workload", "step-s");
        workload->au_percent = profiles_number(&ini, "workload", "au-percent");
        workload->sample_bytes = profiles_number(&ini, "data", "sample-bytes");
    }
    ini_release(&ini);
    return code;
}

static void rule(struct mlperf *judgement, enum mlperf_rule_name name, bool met, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

static void rule(struct mlperf *judgement, enum mlperf_rule_name name, bool met, const char *format,
                 ...)
{
    struct mlperf_rule *at = &judgement->rules[name];
    va_list arguments;

    assert(name < MLPERF_RULES);
    at->met = met;
    va_start(arguments, format);
    vsnprintf(at->text, sizeof at->text, format, arguments);
    va_end(arguments);
}

void mlperf_judge(const struct mlperf_facts *facts, struct mlperf *judgement)
{
    const struct mlperf_workload *workload = &judgement->workload;
    const double step = facts->step_s / workload->step_s;
    const double by_steps = STEPS_LEAST * (double)workload->batch * facts->accelerators;
    const double by_memory = (double)facts->hosts * (double)facts->memory_bytes * MEMORY_TIMES /
                             fmax(workload->sample_bytes, 1);
    char has[WORDS_BYTES], needs[WORDS_BYTES];

    judgement->samples_needed = ceil(fmax(by_steps, by_memory));
    const bool met = (double)facts->samples >= judgement->samples_needed;
    bytes_text((uint64_t)((double)facts->samples * workload->sample_bytes), has, sizeof has);
    bytes_text((uint64_t)(judgement->samples_needed * workload->sample_bytes), needs, sizeof needs);
    rule(judgement, MLPERF_DATASET, met && facts->is_whole, "dataset %s %s %s (%s)%s", has,
         met ? ">=" : "<", needs,
         by_steps > by_memory ? "500 steps" : "5 x the memory of the hosts",
         facts->is_whole ? "" : ", not read whole");
    rule(judgement, MLPERF_WORKLOAD, strcmp(workload->submission, "closed") == 0,
         "%s is %s workload of v3.0", workload->title,
         strcmp(workload->submission, "closed") == 0 ? "a" : "not a");
    rule(judgement, MLPERF_RUNS, facts->runs == RUNS, "%u of %d runs", facts->runs, RUNS);
    rule(judgement, MLPERF_EPOCHS, facts->epochs == workload->epochs, "%llu of %llu epochs",
         (unsigned long long)facts->epochs, (unsigned long long)workload->epochs);
    rule(judgement, MLPERF_AU, facts->lowest_au_percent >= workload->au_percent,
         "AU %.1f%% %s %g%%", facts->lowest_au_percent,
         facts->lowest_au_percent >= workload->au_percent ? ">=" : "<", workload->au_percent);
    rule(judgement, MLPERF_STEP, step > 0.999 && step < 1.001 && facts->accelerators >= 1,
         "a batch of %.4g of an accelerator's, step %.4g s of %.4g s", facts->accelerators,
         facts->step_s, workload->step_s);
    rule(judgement, MLPERF_READS,
         facts->prefetch <= PREFETCH_MOST && facts->threads <= THREADS_MOST,
         "%llu batches ahead of at most %d, %llu threads of at most %d",
         (unsigned long long)facts->prefetch, PREFETCH_MOST, (unsigned long long)facts->threads,
         THREADS_MOST);
}

int mlperf_check(const struct result *result, struct mlperf *judgement)
{
    const struct job *job = result->job;
    double nominal_ns = 0, batches = 0, lowest = INFINITY;

    for (uint32_t i = 0; i < result->run_count; i++) {
        const double percent = result_run_mlperf_au_percent(&result->runs[i]);
        /* The first of several runs does not count; an AU that is unknown is not met. */
        if (i >= (result->run_count > 1) && !(percent >= lowest))
            lowest = percent;
        for (uint32_t k = 0; k < result->runs[i].epoch_count; k++) {
            const struct result_epoch *epoch = &result->runs[i].epochs[k];
            nominal_ns += (double)epoch->nominal_ns * result->ranks;
            batches += (double)epoch->samples / (double)job->batch_size;
        }
    }
    *judgement = (struct mlperf){0};
    int code = mlperf_workload_load(job->workload, &judgement->workload);
    if (code)
        return code;
    const struct mlperf_facts facts = {
        .accelerators =
            (double)result->ranks * (double)job->batch_size / (double)judgement->workload.batch,
        .hosts = result->nodes ? result->nodes : 1,
        .memory_bytes = result->environment.memory_bytes,
        .samples = result->records,
        .is_whole = !order_rank_samples(&job->order) && job->order.ranks == result->ranks,
        .epochs = job->epochs,
        .prefetch = job->prefetch_batches,
        .threads = result->threads,
        .step_s = batches > 0 ? nominal_ns / batches * 1e-9 : 0,
        .runs = result->run_count,
        .lowest_au_percent = lowest,
    };
    mlperf_judge(&facts, judgement);
    return 0;
}

/* ---- words ---- */

const char *mlperf_sentence(const struct mlperf *judgement, char *text)
{
    size_t used = (size_t)snprintf(text, MLPERF_TEXT_BYTES,
                                   "%s: would not be a submission: ", judgement->workload.title);
    bool any = false;

    for (int i = 0; i < MLPERF_RULES && used < MLPERF_TEXT_BYTES; i++) {
        if (judgement->rules[i].met)
            continue;
        used += (size_t)snprintf(text + used, MLPERF_TEXT_BYTES - used, "%s%s", any ? "; " : "",
                                 judgement->rules[i].text);
        any = true;
    }
    if (!any)
        used = (size_t)snprintf(text, MLPERF_TEXT_BYTES, "%s: meets the rules that are checked",
                                judgement->workload.title);
    if (used < MLPERF_TEXT_BYTES)
        snprintf(text + used, MLPERF_TEXT_BYTES - used,
                 ". In no case an MLPerf result: those are measured by MLPerf's own program");
    return text;
}

/* Return the next GPU with a published rate of this network, and its rate; NULL: no more. */
static const struct profile_shipped *next_gpu(const struct profile_shipped *row,
                                              const char *network, char *title, size_t bytes,
                                              double *rate)
{
    for (; row->family; row++) {
        struct ini ini;
        if (strcmp(row->family, "gpu") != 0)
            continue;
        *rate = 0;
        if (profiles_parse(row->name, row->text, &ini) == 0) {
            const char *name = profiles_text(&ini, "gpu", "title");
            *rate = profiles_number(&ini, network, "samples-per-s");
            snprintf(title, bytes, "%s", name ? name : row->name);
        }
        ini_release(&ini);
        if (*rate > 0)
            return row;
    }
    return NULL;
}

const char *mlperf_feeds(const struct mlperf *judgement, double samples_per_s, char *text)
{
    const struct mlperf_workload *workload = &judgement->workload;
    const double emulated = (double)workload->batch / workload->step_s;
    const struct profile_shipped *row = profile_shipped;
    char count[WORDS_BYTES], each[WORDS_BYTES], title[32];
    double rate;
    size_t used = (size_t)snprintf(text, MLPERF_TEXT_BYTES,
                                   "%s emulated %s of %s samples/s; real GPUs, at their best "
                                   "published rates: ",
                                   words_rate(samples_per_s / emulated, count),
                                   workload->accelerator, words_rate(emulated, each));
    bool any = false;

    while (used < MLPERF_TEXT_BYTES &&
           (row = next_gpu(row, workload->network, title, sizeof title, &rate))) {
        used += (size_t)snprintf(text + used, MLPERF_TEXT_BYTES - used, "%s%s %s of %s",
                                 any ? ", " : "", words_rate(samples_per_s / rate, count), title,
                                 words_rate(rate, each));
        any = true;
        row++;
    }
    if (!any && used < MLPERF_TEXT_BYTES)
        snprintf(text + used, MLPERF_TEXT_BYTES - used, "none are known");
    return text;
}

json_t *mlperf_json(const struct mlperf *judgement, double samples_per_s)
{
    const struct mlperf_workload *workload = &judgement->workload;
    const double emulated = (double)workload->batch / workload->step_s;
    const struct profile_shipped *row = profile_shipped;
    json_t *rules = json_object(), *gpus = json_array();
    bool met = true;
    char title[32];
    double rate;

    for (; (row = next_gpu(row, workload->network, title, sizeof title, &rate)); row++)
        json_array_append_new(gpus, json_pack("{s:o, s:o, s:o}", "gpu", json_text(title), "count",
                                              json_number(samples_per_s / rate),
                                              "gpu_samples_per_s", json_number(rate)));
    for (int i = 0; i < MLPERF_RULES; i++) {
        met = met && judgement->rules[i].met;
        json_object_set_new(rules, rule_names[i],
                            json_pack("{s:b, s:o}", "met", judgement->rules[i].met, "text",
                                      json_text(judgement->rules[i].text)));
    }
    return json_pack("{s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "workload",
                     json_text(workload->title), "mlperf_result", 0, "meets_checked_rules", met,
                     "rules", rules, "samples_needed", json_number(judgement->samples_needed),
                     "emulated_accelerators", json_number(samples_per_s / emulated),
                     "emulated_samples_per_s", json_number(emulated), "real_gpus", gpus);
}
