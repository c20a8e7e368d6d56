/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/answer.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_OF_A_DRAW = 256 };

/* Return the plant of the stated values, or of a random draw. */
static struct sizing_plant plant_of(const struct sizing_request *request, struct random *random)
{
    const double gpus = fmax(1, request->inputs->of[SIZING_GPUS].value);
    struct sizing_plant plant =
        sizing_plant_of(request->inputs, fmax(1, ceil(request->gpus / gpus)), random);

    /* A job that does not fill its nodes has fewer GPUs in each: their mean. */
    plant.of[SIZING_GPUS] = fmin(plant.of[SIZING_GPUS], request->gpus / plant.nodes);
    return plant;
}

static int compare_values(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

/* What a draw gives, and where its interval goes. */
static const struct {
    size_t figure, range;
} figures[] = {
    {offsetof(struct sizing_outcome, reached_samples_per_s),
     offsetof(struct sizing_answer, samples_per_s)},
    {offsetof(struct sizing_outcome, first_batch_s), offsetof(struct sizing_answer, first_batch_s)},
    {offsetof(struct sizing_outcome, first_samples_per_s),
     offsetof(struct sizing_answer, first_samples_per_s)},
    {offsetof(struct sizing_outcome, later_samples_per_s),
     offsetof(struct sizing_answer, later_samples_per_s)},
    {offsetof(struct sizing_outcome, stall_share), offsetof(struct sizing_answer, stall_share)},
    {offsetof(struct sizing_outcome, checkpoint_share),
     offsetof(struct sizing_answer, checkpoint_share)},
};

enum { FIGURES = sizeof figures / sizeof *figures };

static int draw_all(const struct sizing_request *request, struct sizing_answer *answer)
{
    const size_t draws = request->draws, last = draws - 1;
    double *values = memory_array(FIGURES * draws, sizeof *values);
    unsigned reached = 0;
    int code = values ? 0 : -ENOMEM;

    assert(draws > 0);
    for (unsigned i = 0; code == 0 && i < draws; i++) {
        struct random random = random_start(random_hash(request->seed, i, 1));
        const struct sizing_plant plant = plant_of(request, &random);
        struct sizing_outcome outcome;
        code = sizing_simulate(&plant, STEPS_OF_A_DRAW, request->seed, &outcome);
        for (unsigned k = 0; k < FIGURES; k++)
            memcpy(&values[k * draws + i], (char *)&outcome + figures[k].figure, sizeof *values);
        /* The target utilisation is relative to this draw's GPU rate. */
        reached += outcome.reached_samples_per_s >=
                   0.999 * request->busy * request->gpus * plant.of[SIZING_GPU_RATE];
    }
    for (unsigned k = 0; code == 0 && k < FIGURES; k++) {
        double *drawn = values + k * draws;
        qsort(drawn, draws, sizeof *drawn, compare_values);
        const struct sizing_range range = {drawn[last / 2], drawn[(size_t)(0.05 * (double)last)],
                                           drawn[(size_t)ceil(0.95 * (double)last)]};
        memcpy((char *)answer + figures[k].range, &range, sizeof range);
    }
    answer->probability = (double)reached / request->draws;
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

static int compare_upgrades(const void *one, const void *other)
{
    const struct sizing_upgrade *a = one, *b = other;

    return (a->gain < b->gain) - (a->gain > b->gain);
}

static int find_upgrades(const struct sizing_request *request, struct sizing_answer *answer)
{
    /* What is doubled of a part; of the I/O thread, the time is halved. */
    static const struct {
        int count;
        enum sizing_input of[2];
    } rates[SIZING_PART_COUNT] = {
        [SIZING_PART_GPU] = {2, {SIZING_GPU_RATE, SIZING_FABRIC_RATE}},
        [SIZING_PART_STORAGE] = {2, {SIZING_STORAGE_RATE, SIZING_STORAGE_WRITE_RATE}},
        [SIZING_PART_READS] = {1, {SIZING_STORAGE_READS}},
        [SIZING_PART_CLIENT] = {2, {SIZING_PORT_RATE, SIZING_STORAGE_CLIENT_RATE}},
        [SIZING_PART_DEPTH] = {1, {SIZING_DEPTH}},
        [SIZING_PART_CORES] = {2, {SIZING_CORES, SIZING_THREADS}},
    };

    for (int part = 0; part < SIZING_PART_COUNT; part++) {
        struct sizing_plant plant = answer->plant;
        struct sizing_outcome outcome;
        if (isinf(answer->first.of[part]))
            continue;
        for (int i = 0; i < rates[part].count; i++)
            plant.of[rates[part].of[i]] *= 2;
        if (part == SIZING_PART_STORAGE)
            plant.storages *= 2;
        if (part == SIZING_PART_LOADER)
            plant.of[SIZING_LOAD_S] /= 2;
        int code = sizing_simulate(&plant, STEPS_OF_A_DRAW, request->seed, &outcome);
        if (code)
            return code;
        const double rate = outcome.reached_samples_per_s;
        answer->upgrades[answer->upgrade_count++] = (struct sizing_upgrade){
            (enum sizing_part)part, rate, rate / answer->outcome.reached_samples_per_s - 1};
    }
    qsort(answer->upgrades, answer->upgrade_count, sizeof *answer->upgrades, compare_upgrades);
    return 0;
}

int sizing_answer(const struct sizing_request *request, struct sizing_answer *answer)
{
    const struct sizing_inputs *inputs = request->inputs;
    static const int needed[] = {SIZING_BATCH,      SIZING_SAMPLE_BYTES, SIZING_SAMPLES,
                                 SIZING_READ_BYTES, SIZING_GPUS,         SIZING_CACHE_RATE,
                                 SIZING_CORES,      SIZING_RECORD_BYTES, SIZING_DEPTH};

    *answer = (struct sizing_answer){0};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!(inputs->of[needed[i]].value > 0)) {
            const struct sizing_input_row *row = &sizing_input_table[needed[i]];
            return fail(EINVAL, "[%s] %s (%s) must be above 0", row->section, row->key,
                        row->summary);
        }
    answer->plant = plant_of(request, NULL);
    answer->goal_samples_per_s = request->busy * request->gpus * inputs->of[SIZING_GPU_RATE].value;
    answer->first = sizing_rates(&answer->plant, 0);
    answer->later = sizing_rates(&answer->plant, 1);
    set_needs(answer);
    int code = sizing_simulate(&answer->plant, 0, request->seed, &answer->outcome);
    if (code == 0)
        code = draw_all(request, answer);
    return code ? code : find_upgrades(request, answer);
}
