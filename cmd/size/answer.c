/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/answer.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { STEPS_OF_A_DRAW = 256 };

static double with_checkpoints(const struct sizing_outcome *outcome)
{
    return outcome->samples_per_s * (1 - outcome->checkpoint_share);
}

static int compare_values(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

static double nodes_of(const struct sizing_inputs *inputs, double gpus)
{
    return fmax(1, ceil(gpus / fmax(1, inputs->of[SIZING_GPUS].value)));
}

/* A job that does not fill its nodes has fewer GPUs in each: their mean. */
static void fit_nodes(struct sizing_plant *plant, double gpus)
{
    plant->of[SIZING_GPUS] = fmin(plant->of[SIZING_GPUS], gpus / plant->nodes);
}

/* Figures of the draws: one row per figure that has an interval. */
enum { SPEED, FIRST_BATCH, FIRST_EPOCH, LATER_EPOCHS, STALLS, SAVING, FIGURES };

static struct sizing_range range_of(double *values, unsigned count)
{
    const unsigned last = count - 1;

    qsort(values, count, sizeof *values, compare_values);
    return (struct sizing_range){values[last / 2], values[(unsigned)(0.05 * last)],
                                 values[(unsigned)ceil(0.95 * last)]};
}

static void set_ranges(double *values, unsigned draws, struct sizing_answer *answer)
{
    struct sizing_range *const ranges[FIGURES] = {
        [SPEED] = &answer->samples_per_s,
        [FIRST_BATCH] = &answer->first_batch_s,
        [FIRST_EPOCH] = &answer->first_samples_per_s,
        [LATER_EPOCHS] = &answer->later_samples_per_s,
        [STALLS] = &answer->stall_share,
        [SAVING] = &answer->checkpoint_share,
    };

    for (unsigned i = 0; i < FIGURES; i++)
        *ranges[i] = range_of(values + (size_t)i * draws, draws);
}

static int draw_all(const struct sizing_request *request, struct sizing_answer *answer)
{
    const double nodes = nodes_of(request->inputs, request->gpus);
    const size_t draws = request->draws;
    double *values = memory_array(FIGURES * draws, sizeof *values);
    unsigned reached = 0;
    int code = values ? 0 : -ENOMEM;

    for (unsigned i = 0; code == 0 && i < draws; i++) {
        struct random random = random_start(random_hash(request->seed, i, 1));
        struct sizing_plant plant = sizing_plant_drawn(request->inputs, nodes, &random);
        struct sizing_outcome outcome;
        fit_nodes(&plant, request->gpus);
        code = sizing_simulate(&plant, STEPS_OF_A_DRAW, request->seed, &outcome);
        const double figures[FIGURES] = {
            [SPEED] = with_checkpoints(&outcome),
            [FIRST_BATCH] = outcome.first_batch_s,
            [FIRST_EPOCH] = outcome.first_samples_per_s,
            [LATER_EPOCHS] = outcome.later_samples_per_s,
            [STALLS] = outcome.stall_share,
            [SAVING] = outcome.checkpoint_share,
        };
        for (unsigned k = 0; k < FIGURES; k++)
            values[k * draws + i] = figures[k];
        /* The target utilisation is relative to this draw's GPU rate. */
        reached +=
            figures[SPEED] >= 0.999 * request->busy * request->gpus * plant.of[SIZING_GPU_RATE];
    }
    if (code == 0) {
        set_ranges(values, request->draws, answer);
        answer->probability = (double)reached / request->draws;
    }
    free(values);
    return code;
}

static void set_needs(struct sizing_answer *answer)
{
    const struct sizing_plant *plant = &answer->plant;
    const double read = plant->of[SIZING_SAMPLE_BYTES] * plant->of[SIZING_AMPLIFICATION];
    const double goal = answer->goal_samples_per_s;
    const double saved = plant->of[SIZING_CHECKPOINT_BYTES];
    const double lost = SIZING_SAVING_SHARE / (1 - SIZING_SAVING_SHARE);
    const double interval_s = plant->of[SIZING_CHECKPOINT_INTERVAL_S];
    const double batch = plant->nodes * plant->of[SIZING_GPUS] * plant->of[SIZING_BATCH] * read;

    answer->storage_bytes_per_s = goal * read;
    answer->storage_reads_per_s = answer->storage_bytes_per_s / plant->of[SIZING_READ_BYTES];
    answer->node_bytes_per_s = answer->storage_bytes_per_s / plant->nodes;
    answer->cores = goal / plant->nodes * (plant->of[SIZING_DECODE_S] + plant->of[SIZING_LOAD_S]);
    answer->start_bytes = batch * (plant->of[SIZING_PREFETCH] + 1);
    answer->start_bytes_per_s =
        sizing_step_s(plant) > 0 ? answer->start_bytes / sizing_step_s(plant) : 0;
    answer->fabric_bytes_per_s = sizing_hidden_exchange_rate(plant);
    /* Young's interval is sqrt(2 M s) for a saving time s: s / sqrt(2 M s) = lost. */
    answer->checkpoint_write_per_s =
        saved / (interval_s > 0 ? lost * interval_s : 2 * lost * lost * sizing_mtbf_s(plant));
    /* Each failure costs a restore. */
    answer->checkpoint_read_per_s = saved / (SIZING_SAVING_SHARE * sizing_mtbf_s(plant));
    answer->checkpoint_s = sizing_checkpoint_s(plant);
    answer->checkpoint_interval_s = sizing_checkpoint_interval_s(plant);
    if (answer->checkpoint_s > 0)
        answer->checkpoint_bytes_per_s = plant->of[SIZING_CHECKPOINT_BYTES] / answer->checkpoint_s;
}

/* Double the rate of a part, or halve its time. */
static void double_part(struct sizing_plant *plant, enum sizing_part part)
{
    switch (part) {
    case SIZING_PART_GPU:
        plant->of[SIZING_GPU_RATE] *= 2;
        plant->of[SIZING_FABRIC_RATE] *= 2;
        break;
    case SIZING_PART_STORAGE:
        plant->of[SIZING_STORAGE_RATE] *= 2;
        plant->of[SIZING_STORAGE_WRITE_RATE] *= 2;
        plant->storages *= 2;
        break;
    case SIZING_PART_READS:
        plant->of[SIZING_STORAGE_READS] *= 2;
        break;
    case SIZING_PART_CLIENT:
        plant->of[SIZING_PORT_RATE] *= 2;
        plant->of[SIZING_STORAGE_CLIENT_RATE] *= 2;
        break;
    case SIZING_PART_DEPTH:
        plant->of[SIZING_DEPTH] *= 2;
        break;
    case SIZING_PART_CORES:
        plant->of[SIZING_CORES] *= 2;
        plant->of[SIZING_THREADS] *= 2;
        break;
    default:
        plant->of[SIZING_LOAD_S] /= 2;
    }
}

static int compare_upgrades(const void *one, const void *other)
{
    const struct sizing_upgrade *a = one, *b = other;

    return (a->gain < b->gain) - (a->gain > b->gain);
}

static int find_upgrades(const struct sizing_request *request, struct sizing_answer *answer)
{
    for (int part = 0; part < SIZING_PART_COUNT; part++) {
        struct sizing_plant plant = answer->plant;
        struct sizing_outcome outcome;
        if (isinf(answer->first.of[part]))
            continue;
        double_part(&plant, (enum sizing_part)part);
        int code = sizing_simulate(&plant, STEPS_OF_A_DRAW, request->seed, &outcome);
        if (code)
            return code;
        const double rate = with_checkpoints(&outcome);
        answer->upgrades[answer->upgrade_count++] = (struct sizing_upgrade){
            (enum sizing_part)part, rate, rate / with_checkpoints(&answer->outcome) - 1};
    }
    qsort(answer->upgrades, answer->upgrade_count, sizeof *answer->upgrades, compare_upgrades);
    return 0;
}

int sizing_answer(const struct sizing_request *request, struct sizing_answer *answer)
{
    const struct sizing_inputs *inputs = request->inputs;
    static const int needed[] = {SIZING_BATCH,      SIZING_SAMPLE_BYTES, SIZING_SAMPLES,
                                 SIZING_READ_BYTES, SIZING_GPUS,         SIZING_CACHE_RATE,
                                 SIZING_CORES,      SIZING_RECORD_BYTES};

    *answer = (struct sizing_answer){0};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!(inputs->of[needed[i]].value > 0)) {
            const struct sizing_input_row *row = &sizing_input_table[needed[i]];
            return fail(EINVAL, "[%s] %s (%s) must be above 0", row->section, row->key,
                        row->summary);
        }
    answer->plant = sizing_plant_stated(inputs, nodes_of(inputs, request->gpus));
    fit_nodes(&answer->plant, request->gpus);
    answer->goal_samples_per_s = request->busy * request->gpus * inputs->of[SIZING_GPU_RATE].value;
    answer->first = sizing_rates(&answer->plant, 0);
    answer->later = sizing_rates(&answer->plant, 1);
    set_needs(answer);
    int code = sizing_simulate(&answer->plant, 0, request->seed, &answer->outcome);
    if (code == 0)
        code = draw_all(request, answer);
    return code ? code : find_upgrades(request, answer);
}
