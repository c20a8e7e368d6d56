/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/train.h"

#include "base/clock.h"
#include "base/draft.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "dataset/catalog.h"
#include "pipeline/evidence/validity.h"
#include "pipeline/jobs/network_input.h"
#include "pipeline/jobs/session.h"
#include "pipeline/result/result.h"
#include "shuffle/plan.h"
#include "trainer/weights.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct training_run {
    struct session session; /* first: hooks get it as their context */
    const struct train_job *job;
    const struct train_observer *observer;
    struct train_result *result;
    struct training network;
    struct network_input learn, evaluate;
    const struct network_input *current; /* of the two */
    char *checkpoint_path;
    char settings[CHECKPOINT_SETTINGS_BYTES]; /* kept with it */
    struct file_lock lock;                    /* of its folder, on rank 0 */
    uint64_t start_ns;   /* start of the first step, moved back by the time before a resume */
    uint64_t elapsed_ns; /* that time */
    uint64_t samples;
    struct result evaluation; /* how evaluation sets are read; not reported but for */
    struct histogram evaluation_latency_ns;
};

static int train_tick(void *context, const struct result_epoch *epoch, uint64_t draws)
{
    struct training_run *training = context;
    const struct network_input *input = training->current;
    const struct train_observer *observer = training->observer;

    if (observer->progress)
        observer->progress(observer->context, epoch->epoch, input->use == INPUT_EVALUATE,
                           epoch->samples, draws, epoch->wall_ns,
                           input->counted ? input->loss / (double)input->counted : 0);
    return session_tick(&training->session);
}

static void report_stage(const struct training_run *training, const char *stage)
{
    if (training->observer->stage)
        training->observer->stage(training->observer->context, stage);
}

static int before_epoch(void *context, struct result_epoch *epoch, int code)
{
    struct training_run *training = context;

    code = session_before_epoch(&training->session, epoch, code);
    training->current = &training->learn;
    input_forget(&training->learn);
    if (training->start_ns == 0)
        training->start_ns = clock_now_ns() - training->elapsed_ns;
    return code;
}

/* ---- between epochs ---- */

/* Each rank evaluates its share; all ranks get the sums. */
static int evaluate(struct training_run *training, struct train_epoch *row)
{
    const struct engine_hooks hooks = {.tick = train_tick, .context = training};
    struct network_input *input = &training->evaluate;
    const uint64_t start_ns = clock_now_ns();

    training->current = input;
    input_forget(input);
    input->run.epoch_count = input->run.row_epochs = 0;
    input->run.epochs_run = 0;
    int code =
        ranks_meet(training->job->ranks,
                   engine_run(input->engine, 1, &hooks, &input->run, &training->evaluation), NULL);
    double sums[] = {input->loss, (double)input->counted, (double)input->correct,
                     (double)input->correct_top5};
    struct guard_counts guard = input->run.epochs[0].guard;
    if (code == 0)
        code = ranks_sum(training->job->ranks, sums, 4);
    if (code == 0)
        code = gather_guard(training->job->ranks, &guard);
    if (code)
        return code;
    if (sums[1] < 1)
        return fail(EINVAL, "%s: no sample has a label: nothing to evaluate", input->job.read.data);
    histogram_merge(&training->evaluation_latency_ns, &input->run.read_latency_ns);
    char where[48];
    snprintf(where, sizeof where, "evaluation of epoch %llu",
             (unsigned long long)row->io.epoch + 1);
    findings_tell(&input->run.findings, where, &training->result->result);
    validity_guard(&guard, where, &training->result->result);
    row->evaluated = true;
    row->evaluation_loss = sums[0] / sums[1];
    row->top1 = sums[2] / sums[1];
    row->top5 = sums[3] / sums[1];
    row->evaluation_ns = clock_now_ns() - start_ns;
    recorder_mark(training->session.recorder, "evaluation", row->io.epoch, start_ns);
    return 0;
}

/* Sum up the epoch over the ranks, evaluate if it is time, and save. */
static int between_epochs(void *context, struct result_epoch *epoch)
{
    struct training_run *training = context;
    struct train_result *result = training->result;
    const struct train_job *job = training->job;
    const struct network_input *input = &training->learn;
    struct ranks *ranks = job->ranks;
    struct train_epoch *row = &result->epochs[result->epoch_count];
    double sums[] = {input->loss, (double)input->counted, (double)input->correct,
                     (double)epoch->samples};

    *row = (struct train_epoch){
        .io = *epoch,
        .rate = recipe_rate(&training->network.config.recipe, training->network.step - 1)};
    assert(result->epoch_count < job->job.epochs);
    int code = ranks_sum(ranks, sums, 4);
    if (code)
        return code;
    struct result_rank *all = gather_epoch(ranks, &row->io);
    code = all ? result_compare(all, ranks->place.ranks, &row->ranks) : -ENOMEM;
    const uint64_t wall_ns =
        code ? 0 : gather_epoch_ns(&all->total, sizeof *all, ranks->place.ranks);
    if (wall_ns)
        row->samples_per_s = sums[3] * 1e9 / (double)wall_ns;
    free(all);
    if (code)
        return code;
    if (sums[1] > 0) {
        row->loss = sums[0] / sums[1];
        row->accuracy = sums[2] / sums[1];
    }
    training->samples += (uint64_t)sums[3];
    code = keep_hints(&training->session, 0);
    if (code == 0) /* for the evaluation, and for the checkpoint, from which all ranks resume */
        code = training_average_statistics(&training->network);
    const bool is_last = epoch->epoch + 1 == job->job.epochs;
    if (code == 0 && job->evaluation_data &&
        (is_last || (epoch->epoch + 1) % job->evaluate_every == 0))
        code = evaluate(training, row);
    if (code)
        return code;
    row->elapsed_ns = clock_now_ns() - training->start_ns;
    result->epoch_count++;
    if (row->evaluated && job->target > 0 && row->top1 >= job->target) {
        result->reached = true;
        result->reached_ns = row->elapsed_ns;
    }
    if (training->checkpoint_path && ranks->place.rank == 0) {
        struct training_position position = {.epoch = row->io.epoch + 1,
                                             .elapsed_ns = row->elapsed_ns,
                                             .samples = training->samples};
        const uint64_t start_ns = clock_now_ns();
        memcpy(position.settings, training->settings, sizeof position.settings);
        code = training_save(&training->network, training->checkpoint_path, &position);
        recorder_mark(training->session.recorder, "checkpoint", row->io.epoch, start_ns);
    }
    code = ranks_meet(ranks, code, NULL);
    if (code == 0 && training->observer->epoch)
        training->observer->epoch(training->observer->context, result, row);
    return code ? code : result->reached;
}

/* ---- the network ---- */

static int open_network(struct training_run *training)
{
    const struct train_job *job = training->job;
    struct train_result *result = training->result;
    struct recipe *recipe = &result->recipe;
    const uint32_t ranks = job->ranks->place.ranks;
    uint64_t draws;
    const struct network_input *learn = &training->learn;
    int code = engine_draws(&learn->job, &learn->plugins, learn->catalog, &draws);

    if (code)
        return code;
    result->records = training->learn.catalog->record_count;
    result->accumulate = job->training.accumulate;
    const uint64_t samples = job->job.batch_size * result->accumulate; /* of an update */
    const uint64_t steps_per_epoch = (draws + samples - 1) / samples;
    *recipe = recipe_choose(job->recipe, job->training.network, samples * ranks, job->job.epochs,
                            steps_per_epoch);
    if (job->rate >= 0)
        recipe->rate = job->rate;
    if (job->momentum >= 0)
        recipe->momentum = job->momentum;
    if (job->weight_decay >= 0)
        recipe->weight_decay = job->weight_decay;
    if (job->label_smoothing >= 0)
        recipe->label_smoothing = job->label_smoothing;
    if (job->clip_norm >= 0)
        recipe->clip_norm = job->clip_norm;
    if (job->warmup_epochs >= 0)
        recipe->warmup_steps = (uint64_t)(job->warmup_epochs * (double)steps_per_epoch);
    result->result.memory_before_bytes = memory_resident_bytes();
    struct training_config config = job->training;
    config.batch_size = (uint32_t)job->job.batch_size;
    config.ranks = job->ranks;
    config.rank_timeout_ns = job->job.rank_timeout_ns;
    config.seed = job->job.order.seed;
    config.memory_bytes = job->job.cold.memory_limit_bytes;
    config.learns = config.late = true;
    config.tick = (struct tick){session_tick, &training->session};
    config.recipe = *recipe;
    report_stage(training, "preparing the network");
    code = training_open(&training->network, &config);
    if (code)
        return code;
    result->zero_gammas = job->initial_weights ? 0 : training->network.zero_gammas;
    result->cost = graph_cost(training->network.graph);
    const struct exchange *exchange = &training->network.exchange;
    result->number_bytes = exchange_number_bytes(exchange);
    if (ranks > 1) {
        training->learn.gradient_bytes = exchange_sent_bytes(
            exchange, job->ranks, (double)training->network.graph->parameter_floats);
        snprintf(result->exchange, sizeof result->exchange, "%s", exchange->ops->plugin.name);
        snprintf(result->wire, sizeof result->wire, "%s", exchange_wire_name(exchange));
    }
    snprintf(result->backend, sizeof result->backend, "%s", training->network.choice.plugin->name);
    result->activation_bytes = training_activation_bytes(&training->network);
    snprintf(result->precision, sizeof result->precision, "%s",
             training_precision(&training->network));
    /* Every rank reads the file. A notice says so: curves that begin with trained weights say
     * little about a recipe. */
    code = job->final_weights ? file_draft_check(job->final_weights) : 0;
    if (code || !job->initial_weights)
        return code;
    code = training_import(&training->network, job->initial_weights);
    if (code == 0)
        result_notice(&result->result, "training started from the weights in %s",
                      job->initial_weights);
    return code;
}

/* ---- the checkpoint ---- */

/* Note each setting that is another than in a checkpoint; what that does not name is not compared.
 */
static void note_differences(const char *before, const char *now, struct result *result)
{
    for (const char *line = now; *line;) {
        const int option_bytes = (int)strcspn(line, " "), line_bytes = (int)strcspn(line, "\n");
        const char *value = line + option_bytes + 1;
        const int bytes = line_bytes - option_bytes - 1;
        const char *old = before; /* the line of the same option */
        while (*old && strncmp(old, line, (size_t)option_bytes + 1) != 0) {
            old += strcspn(old, "\n");
            old += *old == '\n';
        }
        const int old_bytes = (int)strcspn(old, "\n") - option_bytes - 1;
        old += *old ? option_bytes + 1 : 0;
        if (*old && (old_bytes != bytes || strncmp(old, value, (size_t)bytes) != 0)) {
            char was[256];
            snprintf(was, sizeof was, "%.*s", old_bytes, old);
            result_notice(result, "resumed with another setting: %.*s %.*s, was %s", option_bytes,
                          line, bytes, value, escape_shown(was));
        }
        line += line_bytes + (line[line_bytes] == '\n');
    }
}

static int resume(struct training_run *training)
{
    const struct train_job *job = training->job;
    const struct train_result *result = training->result;
    const struct recipe *recipe = &result->recipe;
    const struct order_settings *order = &result->job.order;
    struct training_position position;

    if (!job->checkpoint)
        return job->resume ? fail(EINVAL, "--resume needs --checkpoint DIR") : 0;
    int code = folder_make_path(job->checkpoint);
    training->checkpoint_path = code ? NULL : file_join(job->checkpoint, "last.checkpoint");
    if (!training->checkpoint_path)
        return code ? code : -ENOMEM;
    code = file_draft_check(training->checkpoint_path);
    if (code)
        return code;
    /* Two trainings that save to one folder would replace each other's checkpoints. */
    if (job->ranks->place.rank == 0) {
        char *path = file_join(job->checkpoint, ".iobench-lock");
        code = path ? file_lock_acquire(&training->lock, path) : -ENOMEM;
        free(path);
    }
    if (code)
        return code;
    /* Write what a training depends on besides its data, a line "option value" each, so that a
     * resumed one can tell how it differs from one that was never interrupted. */
    snprintf(training->settings, sizeof training->settings,
             "backend %s\nprecision %s\nranks %u\nbatch-size %" PRIu64 "\naccumulate %u\n"
             "epochs %" PRIu64 "\nrecipe %s\nlr %.12g\nmomentum %.12g\nweight-decay %.12g\n"
             "label-smoothing %.12g\nwarmup-steps %" PRIu64 "\nclip-norm %.12g\n"
             "partition %s\ndataset.identity %016" PRIx64 "\nshuffle %.200s\ndecode %.300s\n",
             result->backend, result->precision, job->ranks->place.ranks, job->job.batch_size,
             result->accumulate, job->job.epochs, recipe->kind == BACKEND_LARS ? "lars" : "sgd",
             recipe->rate, recipe->momentum, recipe->weight_decay, recipe->label_smoothing,
             recipe->warmup_steps, recipe->clip_norm, plan_partition_names[order->partition],
             result->result.data_identity, result->result.shuffle,
             training->learn.plugins.decoder.text);
    /* A forgotten option must not replace days of training, nor --restart what is no checkpoint. */
    if (!job->resume && !job->restart && file_exists(training->checkpoint_path))
        return fail(EEXIST,
                    "%s: a checkpoint exists: add --resume, or --restart to replace it, or name "
                    "another folder",
                    training->checkpoint_path);
    if (!job->resume)
        return checkpoint_check_replaced(training->checkpoint_path);
    code = training_load(&training->network, training->checkpoint_path, &position);
    if (code)
        return code;
    const uint64_t steps_per_epoch = training->result->recipe.steps / job->job.epochs;
    if (training->network.step != position.epoch * steps_per_epoch)
        return fail(EINVAL,
                    "%s: made with %llu updates in %llu epochs, and this data set gives %llu per "
                    "epoch: the learning rate would not continue where it was; resume with the "
                    "same data set and limits",
                    training->checkpoint_path, (unsigned long long)training->network.step,
                    (unsigned long long)position.epoch, (unsigned long long)steps_per_epoch);
    note_differences(position.settings, training->settings, &training->result->result);
    training->result->first_epoch = position.epoch;
    training->samples = position.samples;
    training->elapsed_ns = position.elapsed_ns;
    if (position.epoch >= job->job.epochs)
        return fail(EINVAL, "%s: all %llu epochs are done: give more --epochs",
                    training->checkpoint_path, (unsigned long long)position.epoch);
    return 0;
}

/* ---- start to end ---- */

/* Find the data to train on, and those to evaluate with. */
static int find_sets(struct training_run *training)
{
    const struct train_job *job = training->job;
    struct network_input *learn = &training->learn, *evaluate = &training->evaluate;
    struct result *result = &training->result->result;
    const uint32_t ranks = job->ranks->place.ranks;
    const uint64_t start_ns = clock_now_ns();
    int code = input_find(learn, &job->job, job->job.read.data, INPUT_LEARN, job->training.side,
                          job->ranks, result);

    if (code == 0)
        result_describe(result, job->job.read.data, learn->plugins.format.plugin->name,
                        learn->catalog);
    training->result->job.order.rank = learn->job.order.rank;
    training->result->job.order.ranks = learn->job.order.ranks;
    training->result->job.order.remainder = learn->job.order.remainder;
    if (code == 0 && job->evaluation_data) {
        const struct result *found = &training->evaluation;
        code = input_find(evaluate, &job->job, job->evaluation_data, INPUT_EVALUATE,
                          job->training.side, job->ranks, &training->evaluation);
        /* Report what is wrong with the set. Its order, decoder and counts are not those of the
         * job. */
        for (uint32_t i = 0; i < found->notice_count; i++)
            result_notice(result, "--eval-data: %s", found->notices[i]);
        if (found->degraded_reason[0])
            result_degraded(result, "--eval-data: %.200s", found->degraded_reason);
        if (found->index_faults)
            result_degraded(result, "--eval-data: the index omits %llu damaged places",
                            (unsigned long long)found->index_faults);
        const uint64_t samples = code ? 0 : evaluate->catalog->record_count;
        training->result->evaluation_records = samples;
        /* Samples are divided among the ranks, whatever the order of the training set. */
        if (code == 0 && samples < ranks)
            code = fail(
                EINVAL, "--eval-data %s: %u ranks exceed its %llu sample%s; use fewer ranks",
                job->evaluation_data, ranks, (unsigned long long)samples, samples == 1 ? "" : "s");
        const struct catalog *one = learn->catalog, *other = evaluate->catalog;
        if (code == 0 && one->record_count == other->record_count &&
            one->shard_count == other->shard_count && one->shard_count > 0 &&
            one->shards[0].bytes == other->shards[0].bytes &&
            one->shards[0].mtime_ns == other->shards[0].mtime_ns && /* or a copy with its times */
            memcmp(one->records, other->records, one->record_count * sizeof *one->records) == 0)
            result_notice(result, "evaluated on the training set: its accuracy says nothing about "
                                  "other images");
    }
    recorder_mark(training->session.recorder, "index", 0, start_ns);
    learn->meter = evaluate->meter = recorder_meter(training->session.recorder);
    learn->recorder = training->session.recorder; /* an evaluation is one phase */
    if (job->job.decode.entry_points)
        learn->hinting = &training->session.hinting;
    return code;
}

static void report_cold(void *context, const struct cache_progress *progress)
{
    const struct training_run *training = context;

    if (training->observer->cold)
        training->observer->cold(training->observer->context, progress->elapsed_ns);
}

static int learn(struct training_run *training)
{
    const struct engine_hooks hooks = {.before = before_epoch,
                                       .after = session_after_epoch,
                                       .tick = train_tick,
                                       .between = between_epochs,
                                       .context = training};
    const uint64_t epochs = training->job->job.epochs - training->result->first_epoch;
    const struct cache_observer observer = {.progress = report_cold, .context = training};
    struct result_run *run = &training->learn.run;
    struct reach reach;
    struct session *session = &training->session;
    int code = session_meet(session, engine_reach(training->learn.engine, &reach));

    run->valid = true;
    if (code == 0) {
        const uint64_t start_ns = clock_now_ns();
        recorder_begin_run(session->recorder, run->number);
        code = witness_make_cold(session->witness, &training->learn.plugins, session->ranks, &reach,
                                 &observer, run);
        recorder_mark(session->recorder, "drop", 0, start_ns);
    }
    reach_clear(&reach);
    if (code)
        return code;
    report_stage(training, "first step");
    code = engine_run(training->learn.engine, epochs, &hooks, run, &training->result->result);
    if (code)
        code = keep_hints(&training->session, code);
    run->epoch_latency_ns[RESULT_EPOCH_EVALUATION] = training->evaluation_latency_ns;
    return code;
}

static int write_weights(void *context)
{
    struct training_run *training = context;

    return training_export(&training->network, training->job->final_weights);
}

/* Gather the epochs of all ranks into the only run of the result. */
static int conclude(struct training_run *training)
{
    struct train_result *result = training->result;
    struct result_run *run = &training->learn.run;
    int code = gather_run(training->job->ranks, training->job->job.epochs, run);

    result->result.runs = memory_array(1, sizeof *result->result.runs);
    if (!result->result.runs)
        code = -ENOMEM;
    if (code)
        return code;
    result->job.epochs = run->epochs_run;
    /* A network that has diverged computes as fast as one that learns. */
    const double guessing = log(training->job->training.classes);
    const double loss = result->epoch_count ? result->epochs[result->epoch_count - 1].loss : 0;
    if (loss > 2 * guessing)
        result_notice(&result->result,
                      "the training diverged: the loss of the last epoch is %.4g, that of guessing "
                      "%.2g: use a lower rate",
                      loss, guessing);
    session_judge(&training->session, run);
    if (!run->valid)
        result_invalid(&result->result, "%s", run->invalid_reason);
    result->result.runs[0] = *run;
    result->result.run_count = 1;
    *run = (struct result_run){0};
    return 0;
}

int train_run(const struct train_job *job, const struct train_observer *observer,
              struct train_result *result)
{
    struct training_run *training = memory_zeroed(sizeof *training); /* larger than a small stack */

    *result = (struct train_result){.job = job->job};
    result->job.runs = 1;
    result->result = (struct result){.job = &result->job, .valid = true};
    int code = ranks_meet(job->ranks, training ? 0 : -ENOMEM, NULL);
    if (!training || code) {
        free(training);
        return code;
    }
    struct session *session = &training->session;
    *session =
        (struct session){.job = &result->job, .ranks = job->ranks, .result = &result->result};
    training->job = job;
    training->observer = observer;
    training->result = result;
    training->lock.fd = -1;
    code = session_open(session, 0);
    if (code == 0)
        code = find_sets(training);
    if (code == 0)
        code = session_watch(session, training->learn.catalog, &training->learn.plugins);
    if (code == 0)
        code = session_meet(session, open_network(training));
    if (code == 0)
        code = session_meet(session, resume(training));
    /* Every rank reads the file, on its node: an older checkpoint in a folder of that name there
     * would be trained with the others' gradients. */
    if (code == 0 && (job->resume || job->initial_weights)) {
        uint32_t other;
        code = ranks_compare(job->ranks, training->network.loaded, &other);
        if (code == 0 && other)
            code = fail(EINVAL,
                        "%s: rank %u on %s found other weights there than rank 0 on %s: all need "
                        "the same file",
                        job->resume ? training->checkpoint_path : job->initial_weights, other,
                        job->ranks->peers[other].host, job->ranks->peers[0].host);
    }
    if (code == 0) {
        const uint64_t first = result->first_epoch;
        code = input_open(&training->learn, &training->network, first, job->job.epochs - first,
                          &result->result);
        if (code == 0 && job->evaluation_data)
            code = input_open(&training->evaluate, &training->network, 0, 1, &training->evaluation);
        result->epochs = memory_array(job->job.epochs, sizeof *result->epochs);
        code = session_meet(session, code || result->epochs ? code : -ENOMEM);
    }
    if (code == 0)
        code = learn(training);
    code = ranks_meet(job->ranks, code, NULL);
    if (code == 0 && job->final_weights && job->ranks->place.rank == 0) {
        /* The others wait: a slow disk may take longer than they tolerate. */
        char what[256];
        snprintf(what, sizeof what, "the weights %.200s are being written", job->final_weights);
        code = ranks_meet(job->ranks, ranks_do(job->ranks, what, write_weights, training), NULL);
    } else if (code == 0) {
        code = ranks_meet(job->ranks, 0, NULL);
    }
    if (code == 0)
        code = ranks_meet(job->ranks, conclude(training), NULL);
    if (code == 0)
        code = gather_notices(job->ranks, &result->result);
    fail_hold();
    input_close(&training->evaluate);
    input_close(&training->learn);
    training->network.failed = code != 0;
    training_close(&training->network);
    session_close(session, code);
    file_lock_release(&training->lock);
    free(training->checkpoint_path);
    free(training);
    fail_release();
    return code;
}

void train_destroy(struct train_result *result)
{
    free(result->epochs);
    result_destroy(&result->result);
}
