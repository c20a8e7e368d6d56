/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/train.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "dataset/catalog.h"
#include "pipeline/jobs/network_input.h"
#include "pipeline/result/gather.h"
#include "pipeline/evidence/memory_limit.h"
#include "pipeline/evidence/validity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct flag interrupted;

void train_interrupt(void)
{
    flag_set(&interrupted);
}

struct course {
    const struct train_job *job;
    const struct train_observer *observer;
    struct train_result *result;
    struct training training;
    struct network_input learn, evaluate;
    struct witness *witness;
    struct memory_limit limit;
    struct recorder *recorder;
    uint64_t gradient_bytes; /* that this rank sends a step */
    char *checkpoint_path;
    uint64_t start_ns; /* the first step's, moved back by what went before a resume */
    uint64_t samples;
    struct result evaluation; /* how its sets are read: not what the course tells of */
};

/* ---- what the engine gives batches to ---- */

static int learn_step(void *state, const struct trainer_batch *batch, struct trainer_times *times)
{
    struct course *course = state;
    struct backend_loss loss;
    int code = training_step(&course->training, batch, times, &loss);

    if (code == 0)
        input_count(&course->learn, &loss);
    meter_add(recorder_meter(course->recorder), METER_GRADIENT_BYTES, course->gradient_bytes);
    return code;
}

static int evaluate_step(void *state, const struct trainer_batch *batch,
                         struct trainer_times *times)
{
    struct course *course = state;
    struct backend_loss loss;
    int code = training_infer(&course->training, batch, times, &loss);

    if (code == 0)
        input_count(&course->evaluate, &loss);
    return code;
}

static int finish(struct course *course, struct network_input *input, struct trainer_times *times)
{
    struct backend_loss loss;
    int code = training_finish(&course->training, times, &loss);

    if (code == 1)
        input_count(input, &loss);
    return code;
}

static int learn_finish(void *state, struct trainer_times *times)
{
    return finish(state, &((struct course *)state)->learn, times);
}

static int evaluate_finish(void *state, struct trainer_times *times)
{
    return finish(state, &((struct course *)state)->evaluate, times);
}

static void *allocate(void *state, size_t bytes)
{
    return training_allocate(&((struct course *)state)->training, bytes);
}

static void release(void *state, void *memory)
{
    training_release(&((struct course *)state)->training, memory);
}

static void tell_memory(void *state, struct trainer_memory *memory)
{
    training_memory(&((struct course *)state)->training, memory);
}

static const struct trainer_ops learner = {.plugin = {.name = "learner"},
                                           .allocate = allocate,
                                           .release = release,
                                           .step = learn_step,
                                           .finish = learn_finish,
                                           .memory = tell_memory};
static const struct trainer_ops evaluator = {.plugin = {.name = "evaluator"},
                                             .allocate = allocate,
                                             .release = release,
                                             .step = evaluate_step,
                                             .finish = evaluate_finish,
                                             .memory = tell_memory};

/* ---- progress ---- */

static void tell(const struct course *course, const struct network_input *input,
                 const struct result_epoch *epoch, uint64_t draws)
{
    if (course->observer->progress)
        course->observer->progress(
            course->observer->context, epoch->epoch, input == &course->evaluate, epoch->samples,
            draws, epoch->wall_ns, input->counted ? input->loss / (double)input->counted : 0);
}

static int go_on_with(const struct course *course, const struct network_input *input,
                      const struct result_epoch *so_far, uint64_t draws)
{
    tell(course, input, so_far, draws);
    if (ranks_called_off(course->job->ranks))
        return fail(ECANCELED, "another rank failed");
    return flag_get(&interrupted) ? fail(EINTR, "interrupted") : 0;
}

static int tick(void *context, const struct result_epoch *so_far, uint64_t draws)
{
    const struct course *course = context;

    return go_on_with(course, &course->learn, so_far, draws);
}

static int evaluation_tick(void *context, const struct result_epoch *so_far, uint64_t draws)
{
    const struct course *course = context;

    return go_on_with(course, &course->evaluate, so_far, draws);
}

static int before_epoch(void *context, struct result_epoch *epoch, int code)
{
    struct course *course = context;

    if (code == 0 && flag_get(&interrupted)) /* an epoch may be too short for a tick */
        code = fail(EINTR, "interrupted");
    code = ranks_meet(course->job->ranks, code, &epoch->start_barrier_ns);
    input_forget(&course->learn);
    if (course->start_ns == 0)
        course->start_ns = clock_now_ns();
    if (code == 0)
        witness_before(course->witness);
    return code;
}

static int after_epoch(void *context, struct result_epoch *epoch, int code)
{
    struct course *course = context;
    struct ranks *ranks = course->job->ranks;

    if (code)
        ranks_call_off(ranks);
    code = ranks_meet(ranks, code, &epoch->stop_barrier_ns);
    witness_after(course->witness, &epoch->device);
    course->result->result.memory_during_bytes = memory_resident_bytes();
    return code;
}

/* ---- between epochs ---- */

/* Each rank evaluates its share; the sums are everybody's. */
static int evaluate(struct course *course, struct train_epoch *row)
{
    const struct engine_hooks hooks = {.tick = evaluation_tick, .context = course};
    struct network_input *input = &course->evaluate;
    const uint64_t start_ns = clock_now_ns();

    input_forget(input);
    input->run.epoch_count = input->run.row_epochs = 0;
    input->run.epochs_run = 0;
    int code =
        ranks_meet(course->job->ranks,
                   engine_run(input->engine, 1, &hooks, &input->run, &course->evaluation), NULL);
    double sums[] = {input->loss, (double)input->counted, (double)input->correct,
                     (double)input->correct_top5};
    if (code == 0)
        code = ranks_sum(course->job->ranks, sums, 4);
    if (code)
        return code;
    if (sums[1] < 1)
        return fail(EINVAL, "%s: no sample has a label: nothing to evaluate", input->job.read.data);
    char where[48];
    snprintf(where, sizeof where, "evaluation of epoch %llu",
             (unsigned long long)row->io.epoch + 1);
    findings_tell(&input->run.findings, where, &course->result->result);
    row->evaluated = true;
    row->evaluation_loss = sums[0] / sums[1];
    row->top1 = sums[2] / sums[1];
    row->top5 = sums[3] / sums[1];
    row->evaluation_samples = (uint64_t)sums[1];
    row->evaluation_ns = clock_now_ns() - start_ns;
    recorder_mark(course->recorder, "evaluation", row->io.epoch, start_ns);
    return 0;
}

static int compare_ranks(struct course *course, struct train_epoch *row)
{
    struct result_rank *all = gather_epoch(course->job->ranks, &row->io);
    int code = all ? result_compare(all, course->job->ranks->place.ranks, &row->ranks) : -ENOMEM;

    free(all);
    return code;
}

static int add_up_epoch(struct course *course, const struct result_epoch *epoch,
                        struct train_epoch *row)
{
    const struct network_input *input = &course->learn;
    double sums[] = {input->loss, (double)input->counted, (double)input->correct,
                     (double)epoch->samples};

    *row = (struct train_epoch){
        .io = *epoch,
        .rate = recipe_rate(&course->training.config.recipe, course->training.step - 1)};
    int code = ranks_sum(course->job->ranks, sums, 4);
    if (code == 0)
        code = compare_ranks(course, row);
    if (code)
        return code;
    if (sums[1] > 0) {
        row->loss = sums[0] / sums[1];
        row->accuracy = sums[2] / sums[1];
    }
    row->samples_per_s = row->ranks.wall_s.maximum > 0 ? sums[3] / row->ranks.wall_s.maximum : 0;
    course->samples += (uint64_t)sums[3];
    return 0;
}

static int keep_checkpoint(struct course *course, const struct train_epoch *row)
{
    const struct training_position position = {
        .epoch = row->io.epoch + 1, .elapsed_ns = row->elapsed_ns, .samples = course->samples};
    const uint64_t start_ns = clock_now_ns();

    if (!course->checkpoint_path || course->job->ranks->place.rank != 0)
        return 0;
    int code = training_save(&course->training, course->checkpoint_path, &position);
    recorder_mark(course->recorder, "checkpoint", row->io.epoch, start_ns);
    return code;
}

static int between_epochs(void *context, struct result_epoch *epoch)
{
    struct course *course = context;
    struct train_result *result = course->result;
    const struct train_job *job = course->job;
    struct train_epoch *row = &result->epochs[result->epoch_count];
    int code = add_up_epoch(course, epoch, row);

    bool last = epoch->epoch + 1 == job->job.epochs;
    if (code == 0 && job->evaluation_data &&
        (last || (epoch->epoch + 1) % job->evaluate_every == 0))
        code = evaluate(course, row);
    if (code)
        return code;
    row->elapsed_ns = clock_now_ns() - course->start_ns;
    result->epoch_count++;
    if (row->evaluated && job->target > 0 && row->top1 >= job->target) {
        result->reached = true;
        result->reached_ns = row->elapsed_ns;
    }
    code = ranks_meet(job->ranks, keep_checkpoint(course, row), NULL);
    if (code == 0 && course->observer->epoch)
        course->observer->epoch(course->observer->context, result, row);
    return code ? code : result->reached;
}

/* ---- the whole ---- */

static struct recipe choose_recipe(const struct train_job *job, uint64_t steps_per_epoch)
{
    struct recipe recipe = recipe_choose(job->recipe, job->network->plain_batch,
                                         job->job.batch_size * job->ranks->place.ranks,
                                         job->job.epochs, steps_per_epoch);

    if (job->rate >= 0)
        recipe.rate = job->rate;
    if (job->momentum >= 0)
        recipe.momentum = job->momentum;
    if (job->weight_decay >= 0)
        recipe.weight_decay = job->weight_decay;
    if (job->label_smoothing >= 0)
        recipe.label_smoothing = job->label_smoothing;
    if (job->warmup_epochs >= 0)
        recipe.warmup_steps = (uint64_t)(job->warmup_epochs * (double)steps_per_epoch);
    return recipe;
}

static int open_training(struct course *course)
{
    const struct train_job *job = course->job;
    struct train_result *result = course->result;
    const uint32_t ranks = job->ranks->place.ranks;
    uint64_t draws;
    int code = input_draws(&course->learn, &draws);

    if (code)
        return code;
    result->records = course->learn.catalog->record_count;
    result->steps_per_epoch = (draws + job->job.batch_size - 1) / job->job.batch_size;
    result->recipe = choose_recipe(job, result->steps_per_epoch);
    result->result.memory_before_bytes = memory_resident_bytes();
    const struct training_config config = {.network = job->network,
                                           .backend = job->backend,
                                           .side = job->side,
                                           .classes = job->classes,
                                           .batch_size = (uint32_t)job->job.batch_size,
                                           .ranks = job->ranks,
                                           .exchange = job->exchange,
                                           .buckets = job->buckets,
                                           .silence_ns = job->job.silence_ns,
                                           .seed = job->job.order.seed,
                                           .threads = job->threads,
                                           .memory_bytes = job->job.cold.memory_limit_bytes,
                                           .learns = true,
                                           .late = true,
                                           .recipe = result->recipe};
    code = training_open(&course->training, &config);
    if (code)
        return code;
    result->cost = graph_cost(course->training.graph);
    /* A ring sends each gradient twice to the next rank, but for its own part; what stays on the
     * node uses no network. */
    if (ranks > 1 &&
        job->ranks->peers[(job->ranks->place.rank + 1) % ranks].node != job->ranks->place.node)
        course->gradient_bytes = 2 * (uint64_t)(ranks - 1) *
                                 course->training.graph->parameter_floats * sizeof(float) / ranks;
    snprintf(result->backend, sizeof result->backend, "%s", course->training.choice.plugin->name);
    return 0;
}

static int go_on(struct course *course)
{
    const struct train_job *job = course->job;
    struct training_position position;

    if (!job->checkpoint)
        return job->resume ? fail(EINVAL, "--resume needs --checkpoint DIR") : 0;
    int code = folder_make_path(job->checkpoint);
    course->checkpoint_path = code ? NULL : file_join(job->checkpoint, "last.checkpoint");
    if (!course->checkpoint_path)
        return code ? code : -ENOMEM;
    code = file_draft_check(course->checkpoint_path);
    if (code)
        return code;
    if (!job->resume) /* a training that took days is not replaced because a word was left out */
        return file_exists(course->checkpoint_path)
                   ? fail(EEXIST,
                          "%s: a training is there already: resume it with --resume, or "
                          "remove it, or name another folder",
                          course->checkpoint_path)
                   : 0;
    code = training_load(&course->training, course->checkpoint_path, &position);
    if (code)
        return code;
    course->result->first_epoch = position.epoch;
    course->samples = position.samples;
    course->start_ns = clock_now_ns() - position.elapsed_ns;
    if (position.epoch >= job->job.epochs)
        return fail(EINVAL, "%s: all %llu epochs are done: give more --epochs",
                    course->checkpoint_path, (unsigned long long)position.epoch);
    return 0;
}

static int open_feeds(struct course *course)
{
    const struct train_job *job = course->job;
    struct train_result *result = course->result;
    const uint64_t first = result->first_epoch;
    int code = input_open(&course->learn, &learner, course, first, job->job.epochs - first,
                          &result->result);

    if (code == 0 && job->evaluation_data)
        code = input_open(&course->evaluate, &evaluator, course, 0, 1, &course->evaluation);
    result->epochs = memory_array(job->job.epochs, sizeof *result->epochs);
    return code || result->epochs ? code : -ENOMEM;
}

static int find_sets(struct course *course)
{
    const struct train_job *job = course->job;
    struct result *result = &course->result->result;
    const uint64_t start_ns = clock_now_ns();
    int code = input_find(&course->learn, &job->job, job->job.read.data, INPUT_LEARN, job->side,
                          job->ranks, result);

    if (code == 0)
        result_describe(result, job->job.read.data, course->learn.plugins.format.plugin->name,
                        course->learn.catalog);
    course->result->job.order.rank = course->learn.job.order.rank;
    course->result->job.order.ranks = course->learn.job.order.ranks;
    course->result->job.order.remainder = course->learn.job.order.remainder;
    if (code == 0 && job->evaluation_data) {
        code = input_find(&course->evaluate, &job->job, job->evaluation_data, INPUT_EVALUATE,
                          job->side, job->ranks, result);
        if (code == 0)
            course->result->evaluation_records = course->evaluate.catalog->record_count;
    }
    recorder_mark(course->recorder, "index", 0, start_ns);
    course->learn.meter = course->evaluate.meter = recorder_meter(course->recorder);
    course->learn.recorder = course->recorder; /* an evaluation is one phase */
    return code;
}

static int open_witness(struct course *course)
{
    course->witness = witness_open(&course->job->job, course->learn.catalog);
    int code = ranks_meet(course->job->ranks, course->witness ? 0 : -ENOMEM, NULL);
    if (code == 0)
        witness_environment(course->witness, &course->result->result.environment);
    return code;
}

/* In the control group that the course shall be in. A course without telemetry is a good one, too.
 */
static int prepare(struct course *course)
{
    const struct train_job *job = course->job;
    struct result *result = &course->result->result;
    int code = 0;

    if (job->job.cold.memory_limit_bytes)
        code = memory_limit_enter(&course->limit, &telemetry_roots_usual,
                                  job->job.cold.memory_limit_bytes);
    code = ranks_meet(job->ranks, code, NULL);
    if (code)
        return code;
    course->recorder = recorder_start(&job->job, job->ranks);
    if (!course->recorder)
        snprintf(result->timeline_reason, sizeof result->timeline_reason, "%.159s", fail_reason());
    code = find_sets(course);
    if (code == 0)
        code = open_witness(course);
    if (code == 0)
        code = ranks_meet(job->ranks, open_training(course), NULL);
    if (code == 0)
        code = ranks_meet(job->ranks, go_on(course), NULL);
    return code ? code : ranks_meet(job->ranks, open_feeds(course), NULL);
}

static void tell_cold(void *context, uint64_t elapsed_ns)
{
    const struct course *course = context;

    if (course->observer->cold)
        course->observer->cold(course->observer->context, elapsed_ns);
}

static int learn(struct course *course)
{
    const struct engine_hooks hooks = {.before = before_epoch,
                                       .after = after_epoch,
                                       .tick = tick,
                                       .between = between_epochs,
                                       .context = course};
    const struct job *job = &course->job->job;
    struct result_run *run = &course->learn.run;
    const uint64_t start_ns = clock_now_ns();

    run->valid = true;
    int code = validity_make_cold(course->witness, job, &course->learn.plugins, course->job->ranks,
                                  tell_cold, course, run);
    recorder_mark(course->recorder, "drop", 0, start_ns);
    return code ? code
                : engine_run(course->learn.engine, job->epochs - course->result->first_epoch,
                             &hooks, run, &course->result->result);
}

/* Its epochs become those of all ranks, the only run of the result. */
static int conclude(struct course *course)
{
    struct train_result *result = course->result;
    struct result_run *run = &course->learn.run;
    int code = gather_run(course->job->ranks, course->job->job.epochs, run);

    result->result.runs = memory_array(1, sizeof *result->result.runs);
    if (!result->result.runs)
        code = -ENOMEM;
    if (code)
        return code;
    result->job.epochs = run->epochs_run;
    validity_ask_server(course->witness, course->job->ranks, run);
    validity_check(&result->job, &course->learn.plugins, run, &result->result);
    validity_account(&result->result, run);
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
    struct course course = {.job = job, .observer = observer, .result = result};
    char reason[FAIL_REASON_BYTES];

    *result = (struct train_result){.job = job->job};
    result->job.runs = 1;
    result->result = (struct result){.job = &result->job,
                                     .valid = true,
                                     .ranks = job->ranks->place.ranks,
                                     .nodes = job->ranks->place.nodes};
    int code = prepare(&course);
    if (code == 0)
        code = learn(&course);
    code = ranks_meet(job->ranks, code, NULL);
    if (code == 0)
        code = ranks_meet(job->ranks, conclude(&course), NULL);
    snprintf(reason, sizeof reason, "%s", fail_reason());
    result->result.timeline = recorder_finish(course.recorder, code);
    job->ranks->silence_ns = 0; /* what comes after may take its time, too */
    input_close(&course.evaluate);
    input_close(&course.learn);
    course.training.failed = code != 0;
    training_close(&course.training);
    witness_close(course.witness);
    memory_limit_leave(&course.limit);
    free(course.checkpoint_path);
    return code ? fail(-code, "%s", reason) : 0;
}

void train_destroy(struct train_result *result)
{
    free(result->epochs);
    result_destroy(&result->result);
}
