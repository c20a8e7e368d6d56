/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/infer.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "dataset/catalog.h"
#include "pipeline/evidence/validity.h"
#include "pipeline/jobs/network_input.h"
#include "pipeline/jobs/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALIBRATION_BATCH = 25 };

static bool is_int8(const char *precision)
{
    return precision && strcmp(precision, "int8") == 0;
}

struct inference {
    const struct infer_job *job;
    const struct infer_observer *observer;
    struct infer_result *result;
    struct infer_row *row;
    struct training training;
    struct ranks alone;
    struct session session;
    struct network_input input;
    struct calibration calibration; /* during calibration */
    float *ranges;                  /* of tensors, for INT8 */
};

static void note_latency(void *context, const struct trainer_times *times,
                         const struct backend_loss *loss)
{
    struct inference *inference = context;
    struct infer_row *row = inference->row;

    if (row && (loss->count == row->batch_size || row->latency_ns.count == 0)) {
        histogram_add(&row->latency_ns, times->copy_ns + times->compute_ns);
        histogram_add(&row->compute_ns, times->compute_ns);
    }
}

static int infer_tick(void *context, const struct result_epoch *so_far, uint64_t draws)
{
    struct inference *inference = context;

    if (inference->observer->progress)
        inference->observer->progress(inference->observer->context, inference->row, so_far->samples,
                                      draws, so_far->wall_ns);
    return session_tick(&inference->session);
}

/* Accept a file, or a folder written by `train --checkpoint`. */
static int find_weights(const struct infer_job *job, struct infer_result *result)
{
    if (job->weights && snprintf(result->weights, sizeof result->weights, "%s", job->weights) >=
                            (int)sizeof result->weights)
        return fail(ENAMETOOLONG, "--init: too long");
    if (!job->checkpoint)
        return 0;
    char *inside = file_join(job->checkpoint, "last.checkpoint");
    if (!inside)
        return -ENOMEM;
    const char *path = file_exists(inside) ? inside : job->checkpoint;
    if (path == job->checkpoint && file_is_folder(path)) {
        free(inside);
        return fail(
            ENOENT,
            "--checkpoint: %s has no last.checkpoint, which 'iobench train --checkpoint %s' writes",
            path, path);
    }
    int bytes = snprintf(result->weights, sizeof result->weights, "%s", path);
    free(inside);
    return bytes < (int)sizeof result->weights ? 0 : fail(ENAMETOOLONG, "--checkpoint: too long");
}

static struct training_config config_of(struct inference *inference, uint32_t batch_size)
{
    const struct infer_job *job = inference->job;
    struct training_config config = job->training;

    config.batch_size = batch_size;
    config.late = true;
    config.seed = job->job.order.seed;
    config.tick = (struct tick){session_tick, &inference->session};
    return config;
}

static int open_network(struct inference *inference, const struct training_config *config)
{
    struct infer_result *result = inference->result;
    int code = training_open(&inference->training, config);
    if (code == 0 && inference->job->weights) {
        code = training_import(&inference->training, result->weights);
    } else if (code == 0 && result->weights[0]) {
        struct training_position position;
        code = training_load(&inference->training, result->weights, &position);
    }
    if (code)
        return code;
    result->cost = graph_cost(inference->training.graph);
    snprintf(result->backend, sizeof result->backend, "%s",
             inference->training.choice.plugin->name);
    return 0;
}

/* Run grey batches off the clock: the first ones compile kernels and fault memory in. */
static int warm_up(struct inference *inference, uint32_t batch_size)
{
    const size_t row_bytes =
        (size_t)inference->job->training.side * inference->job->training.side * 3;
    struct trainer_batch batch = {.count = batch_size, .tick = {session_tick, &inference->session}};
    struct trainer_times times;
    struct backend_loss loss;
    uint8_t *rows = memory_array(batch_size, row_bytes);
    int code = rows ? 0 : -ENOMEM;

    batch.rows = rows;
    if (rows)
        memset(rows, 127, batch_size * row_bytes);
    for (uint32_t i = 0; i < inference->job->warmup && code == 0; i++)
        code = training_infer(&inference->training, &batch, &times, &loss);
    while (code == 0 && (code = training_finish(&inference->training, &times, &loss)) == 1)
        code = 0;
    free(rows);
    return code;
}

/* Pass over the data set once, after warm-up if the pass is timed. */
static int pass_over(struct inference *inference, struct infer_row *row, uint32_t batch_size)
{
    const struct engine_hooks hooks = {.tick = infer_tick, .context = inference};
    struct result *notices = &inference->result->result;
    struct network_input *input = &inference->input;

    inference->row = row;
    input->job.batch_size = batch_size;
    input_forget(input);
    int code = input_open(input, &inference->training, 0, 1, notices);
    if (code == 0 && row)
        code = warm_up(inference, batch_size);
    if (code)
        return code;
    if (row)
        witness_before(inference->session.witness);
    code = engine_run(input->engine, 1, &hooks, &input->run, notices);
    if (row)
        witness_after(inference->session.witness, &input->run.epochs[0].device);
    return code;
}

static int open_input(struct inference *inference, const char *data, uint64_t limit)
{
    const struct infer_job *job = inference->job;

    input_close(&inference->input);
    int code = input_find(&inference->input, &job->job, data, INPUT_EVALUATE, job->training.side,
                          &inference->alone, &inference->result->result);
    inference->input.job.order.limit_samples = limit;
    inference->input.finished = note_latency;
    inference->input.context = inference;
    return code;
}

/* Find the ranges of the tensors in FP32, over a few images. */
static int calibrate(struct inference *inference)
{
    const struct infer_job *job = inference->job;
    const uint32_t batch_size =
        job->calibrate < CALIBRATION_BATCH ? job->calibrate : CALIBRATION_BATCH;
    struct training_config config = config_of(inference, batch_size);
    int code = open_input(inference, job->calibrate_data ? job->calibrate_data : job->job.read.data,
                          job->calibrate);

    if (code)
        return code;
    struct graph *graph =
        network_build(job->training.network, job->training.side, job->training.classes);
    if (!graph)
        return -EINVAL;
    config.precision = "fp32";
    config.calibration = &inference->calibration;
    code = calibration_open(&inference->calibration, graph);
    if (code == 0)
        code = open_network(inference, &config);
    if (code == 0)
        code = pass_over(inference, NULL, batch_size);
    inference->ranges = memory_array(graph->node_count, sizeof *inference->ranges);
    if (code == 0 && !inference->ranges)
        code = -ENOMEM;
    if (code == 0) {
        inference->result->calibrated = inference->input.run.epochs[0].samples;
        calibration_ranges(&inference->calibration, job->calibrate_by, inference->ranges);
    }
    input_shut(&inference->input); /* its batches are the backend's memory */
    training_close(&inference->training);
    calibration_close(&inference->calibration);
    graph_destroy(graph);
    return code;
}

/* ---- start to end ---- */

/* Measure one precision with one batch size. */
static int measure_row(struct inference *inference, const char *precision, uint32_t batch_size)
{
    struct infer_result *result = inference->result;
    struct network_input *input = &inference->input;
    struct infer_row *row = &result->rows[result->row_count];
    struct training_config config = config_of(inference, batch_size);

    row->batch_size = batch_size;
    row->is_int8 = is_int8(precision);
    if (row->is_int8)
        config.ranges = inference->ranges;
    else
        config.precision = precision;
    int code = open_network(inference, &config);
    if (code == 0)
        snprintf(row->precision, sizeof row->precision, "%s",
                 training_precision(&inference->training));
    if (code == 0 && row->is_int8)
        code = quantise_count(inference->training.graph, inference->ranges, &row->int8);
    if (code == 0)
        code = pass_over(inference, row, batch_size);
    if (code == 0) {
        char where[64];
        snprintf(where, sizeof where, "%s, batch size %u", row->precision, batch_size);
        findings_tell(&input->run.findings, where, &result->result);
        row->io = input->run.epochs[0];
        validity_guard(&row->io.guard, where, &result->result);
        row->counted = input->counted;
    }
    if (code == 0 && input->counted && result->weights[0]) {
        row->loss = input->loss / (double)input->counted;
        row->top1 = (double)input->correct / (double)input->counted;
        row->top5 = (double)input->correct_top5 / (double)input->counted;
    }
    input_shut(input); /* its batches are the backend's memory */
    training_close(&inference->training);
    if (code)
        return code;
    result->row_count++;
    if (inference->observer->row)
        inference->observer->row(inference->observer->context, result, row);
    return 0;
}

int infer_run(const struct infer_job *job, const struct infer_observer *observer,
              struct infer_result *result)
{
    struct inference *inference = memory_zeroed(sizeof *inference); /* larger than a small stack */

    *result = (struct infer_result){.result = {.job = &job->job, .valid = true}};
    if (!inference)
        return -ENOMEM;
    inference->job = job;
    inference->observer = observer;
    inference->result = result;
    inference->alone = ranks_alone();
    inference->session =
        (struct session){.job = &job->job, .ranks = &inference->alone, .result = &result->result};
    struct network_input *input = &inference->input;
    int code = 0;
    for (uint32_t i = 0; i < job->precision_count && code == 0; i++) { /* before any is measured */
        struct plugin_choice choice;
        const char *precision = is_int8(job->precisions[i]) ? NULL : job->precisions[i];
        code = backend_choose(job->training.backend, precision, &choice);
        if (code == 0)
            code = backend_check(&choice);
        plugin_release(&choice);
    }
    if (code == 0)
        code = find_weights(job, result);
    for (uint32_t i = 0; i < job->precision_count && code == 0; i++)
        if (is_int8(job->precisions[i]) && !inference->ranges)
            code = calibrate(inference);
    if (code == 0)
        code = open_input(inference, job->job.read.data, order_rank_samples(&job->job.order));
    if (code == 0) {
        result->records = input->catalog->record_count;
        result_describe(&result->result, job->job.read.data, input->plugins.format.plugin->name,
                        input->catalog);
        result->rows = memory_array((size_t)job->precision_count * job->batch_size_count,
                                    sizeof *result->rows);
        code = result->rows ? session_watch(&inference->session, input->catalog, &input->plugins)
                            : -ENOMEM;
    }
    for (uint32_t i = 0; i < job->precision_count; i++)
        for (uint32_t j = 0; j < job->batch_size_count && code == 0; j++)
            code = measure_row(inference, job->precisions[i], job->batch_sizes[j]);
    fail_hold();
    witness_close(inference->session.witness);
    input_close(&inference->input);
    free(inference->ranges);
    free(inference);
    fail_release();
    return code;
}

void infer_destroy(struct infer_result *result)
{
    free(result->rows);
    result_destroy(&result->result);
}

double infer_compute_samples_per_s(const struct infer_row *row)
{
    const uint64_t median_ns = histogram_quantile(&row->compute_ns, 0.5);
    /* A set smaller than the batch makes one partial batch. */
    const uint64_t samples = row->io.samples < row->batch_size ? row->io.samples : row->batch_size;

    return median_ns ? (double)samples * 1e9 / (double)median_ns : 0;
}
