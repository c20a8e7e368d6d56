/* SPDX-License-Identifier: Apache-2.0
 * Recipes of all networks, what is read from step times, and checkpoints, to the byte and damaged
 * in each: saved pages. */
#include "tests/unit/folder.h"
#include "tests/unit/golden.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "trainer/backend.h"
#include "trainer/weights.h"
#include "trainer/profile.h"
#include "trainer/training.h"
#include "trainer/trainer.h"

#include <errno.h>

static void print_recipe(const struct network *network, enum backend_recipe kind, uint64_t batch,
                         uint64_t epochs, uint64_t steps)
{
    const struct recipe recipe = recipe_choose(kind, network, batch, epochs, steps);

    fprintf(golden,
            "%-12s %5llu %.7g of %d, %llu of %llu steps warm, %g %.6g %g %g %g%s%s:", network->name,
            (unsigned long long)batch, recipe.rate, (int)recipe.decay_shape,
            (unsigned long long)recipe.warmup_steps, (unsigned long long)recipe.steps,
            recipe.momentum, recipe.weight_decay, recipe.eta, recipe.label_smoothing,
            recipe.clip_norm, recipe.zero_gammas ? " zero" : "",
            recipe.decays_fc_bias ? " fc" : "");
    for (uint64_t step = 0; step < recipe.steps + 9; step += 1 + recipe.steps / 7) {
        fprintf(golden, " %.6g", recipe_rate(&recipe, step));
        assert_true(recipe_rate(&recipe, step) > 0);
    }
    fprintf(golden, "\n");
}

static void recipes(void **unused)
{
    static const uint64_t batches[] = {1, 204, 408, 612, 816, 1024, 1632, 2048, 3200, 4096, 8192};
    const struct network *resnet = network_find("resnet50");
    const struct recipe flat = {.decay_shape = RECIPE_CONSTANT, .rate = 2, .steps = 9};

    golden_begin();
    for (const struct network *const *network = network_registry; *network; network++)
        for (uint64_t batch = 16; batch <= 1024; batch *= 8)
            print_recipe(*network, BACKEND_SGD, batch, 90, 10);
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        print_recipe(resnet, BACKEND_LARS, batches[i], 37, 100);
    print_recipe(network_find("inception-v3"), BACKEND_LARS, 700, 3, 7);
    print_recipe(resnet, BACKEND_LARS, 408, 1, 1);
    print_recipe(resnet, BACKEND_SGD, 408, 1, 3);
    fprintf(golden, "%g %g\n", recipe_rate(&flat, 0), recipe_rate(&flat, 1000));
    golden_end("recipes.txt");
}

static void step_times(void **unused)
{
    static const char *const texts[] = {"1\n2.5\n",
                                        "# steps\n\n 3 \r\n4",
                                        "ms,gpu\n7,0\n8,1\n",
                                        "gpu, \"Step_MS\" ,x\n0, 7 ,1\n1,\"8.5\",2",
                                        "epoch,time\n0,7\n",
                                        " [1, 2.5, 3]",
                                        "{\"step_ms\": [4, 86400000], \"batch_size\": 64}",
                                        "",
                                        "0\n0\n",
                                        "1\nx\n",
                                        "1\n-2\n",
                                        "1\n1e300\n",
                                        "86400000.1",
                                        "1\nnan\n",
                                        "ms,a\n1,2\nms,a\n",
                                        "a,b\n1\n",
                                        "a,ms\n1\n",
                                        "[1, \"2\"]",
                                        "[1,\n ",
                                        "{\"steps\": [1]}",
                                        "3",
                                        "{\"step_ms\": [1], \"batch_size\": -1}",
                                        "{\"step_ms\": [1], \"step_ms\": [2]}"};
    struct profile profile;
    char line[5000];

    golden_begin();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const int code = profile_parse("steps", texts[i], strlen(texts[i]), &profile);
        fprintf(golden, "%s\n= %d %s\n", texts[i], code, code ? fail_reason() : "");
        for (size_t k = 0; code == 0 && k < profile.count; k++)
            fprintf(golden, "%llu ", (unsigned long long)profile.step_ns[k]);
        if (code == 0)
            fprintf(golden, "of %llu\n", (unsigned long long)profile.batch_size);
        profile_release(&profile);
    }
    for (size_t length = 4094; length < 4097; length++) { /* a line may have 4095 bytes */
        snprintf(line, sizeof line, "%*d\n", (int)length, 1);
        fprintf(golden, "%zu: %d\n", length, profile_parse("steps", line, length + 1, &profile));
        profile_release(&profile);
    }
    assert_int_equal(profile_parse("steps", "1\n\0", 3, &profile), -EINVAL);
    fprintf(golden, "%s\n", fail_reason());
    golden_end("step-times.txt");
}

/* A name of a network stands for its trainer, in as many bytes as fit. */
static void trainers_of_networks(void **unused)
{
    static const char *const names[] = {"lenet",   "lenet:",      "lenet:seed=7",
                                        "lenets",  "lene",        "network:lenet",
                                        "network", "replay:h200", ""};
    struct plugin_choice choice;
    char text[1200];

    golden_begin();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int code = trainer_choose(names[i], &choice);
        fprintf(golden, "'%s': %s, %ssynchronous\n", names[i],
                code ? fail_reason() : choice.plugin->name,
                trainer_is_synchronous(names[i]) ? "" : "not ");
        if (code == 0)
            plugin_release(&choice);
    }
    for (size_t length = 1010; length < 1020; length++) {
        snprintf(text, sizeof text, "lenet:rate=0.%0*d1", (int)length - 14, 0);
        assert_int_equal(strlen(text), length);
        const int code = trainer_choose(text, &choice);
        fprintf(golden, "%zu: %d %.24s\n", length, code, code ? fail_reason() : "");
        if (code == 0)
            plugin_release(&choice);
    }
    golden_end("trainers.txt");
}

/* ---- what a rehearsal runs ---- */

static int pretend_load(void *state, const float *parameters, const float *momenta,
                        const float *statistics)
{
    const struct graph *graph = state;
    double sum = 0;

    for (uint64_t i = 0; i < graph->parameter_floats; i++)
        sum += (double)(parameters[i] * parameters[i]) * (double)(i % 97);
    fprintf(golden, "load %.6g%s%s\n", sum, momenta ? " momenta" : "",
            statistics ? " statistics" : "");
    return 0;
}

static int runs_left;

static int pretend_run(void *state, const struct trainer_batch *batch, struct backend_loss *loss)
{
    const uint8_t *rows = batch->rows;
    uint64_t sum = 0;

    for (uint64_t i = 0; rows && i < batch->count * UINT64_C(28) * 28; i++)
        sum += rows[i] * (i % 251);
    fprintf(golden, "run %u %s, rows %llu, %s\n", batch->count, batch->learns ? "learns" : "",
            (unsigned long long)sum, batch->labels ? "labelled" : "");
    assert_int_equal(batch->ready(NULL, 1), 0);
    loss->times.update_ns = rows ? 0 : 700;
    return runs_left-- ? 0 : -EIO;
}

static int pretend_update(void *state, const struct kernel_update *update)
{
    fprintf(golden, "update %g %g %g %g\n", update->rate, update->momentum, update->decay,
            update->gradient_scale);
    return 0;
}

static int note_warm(void *state)
{
    fprintf(golden, "warm\n");
    return 0;
}

static void a_rehearsal(void **unused)
{
    static const struct backend_ops ops = {
        .load = pretend_load, .run = pretend_run, .update = pretend_update};
    struct graph *graph = network_build(network_find("lenet"), 28, 10);

    golden_begin();
    for (int i = 0; i < 5; i++) {
        const struct schedule_request request = {
            .graph = graph, .batch_size = 3, .passes = i == 2 ? 0 : 2, .training = i != 1};
        double update_ns = 5;
        runs_left = i == 3 ? 1 : i == 4 ? 4 : 99;
        const int code = backend_rehearse(&ops, graph, &request, note_warm, &update_ns);
        fprintf(golden, "= %d, %g\n", code, update_ns);
    }
    golden_end("rehearsals.txt");
    graph_destroy(graph);
}

/* ---- checkpoints ---- */

enum { PARAMETERS = 3, STATISTICS = 1, FLOATS = 2 * PARAMETERS + STATISTICS, SETTINGS_AT = 128 };

static const struct checkpoint sample = {.network = "tiny",
                                         .side = 32,
                                         .classes = 10,
                                         .parameter_floats = PARAMETERS,
                                         .statistic_floats = STATISTICS,
                                         .seed = 77,
                                         .batch_size = 256,
                                         .position.epoch = 3,
                                         .step = 703,
                                         .position.elapsed_ns = 1234567890123,
                                         .position.samples = 180000,
                                         .rate_before = 0.0625,
                                         .position.settings = "lr 0.1\nmomentum 0.9\n"};
static const float floats[FLOATS] = {1, 2.5f, -3, 4, 5, 6, 7};

static int read_as(const struct checkpoint *wanted, struct checkpoint *found)
{
    float back[FLOATS + 8] = {0};
    const int code = checkpoint_read(folder_path("last"), wanted, found, back);

    if (code == 0)
        assert_memory_equal(back, floats, sizeof floats);
    return code;
}

static void checkpoints(void **unused)
{
    struct checkpoint found, other[5] = {sample, sample, sample, sample, sample};
    char last[FAIL_REASON_BYTES] = "", *whole;
    size_t bytes;

    golden_begin();
    assert_int_equal(checkpoint_write(folder_path("last"), &sample, floats), 0);
    assert_int_equal(checkpoint_check_replaced(folder_path("last")), 0);
    assert_int_equal(read_as(&sample, &found), 0);
    assert_memory_equal(&found, &sample, sizeof sample);
    other[0].classes++;
    other[1].side++;
    other[2].network[0] = 'T';
    other[3].parameter_floats++;
    other[4].statistic_floats++;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(read_as(&other[i], &found), -EINVAL);
        fprintf(golden, "%s\n", strrchr(fail_reason(), '/'));
    }
    assert_int_equal(file_load(folder_path("last"), 1 << 20, &whole, &bytes), 0);
    for (size_t at = 0; at < bytes; at++)
        if (whole[at])
            fprintf(golden, "%zu: %02x\n", at, (unsigned char)whole[at]);
    /* Each byte changed, the file cut at each. */
    for (int cuts = 0; cuts < 2; cuts++)
        for (size_t at = 0; at < bytes; at += at < 150 || at > bytes - 40 ? 1 : 97) {
            whole[at] = (char)(whole[at] ^ 4);
            folder_write("last", whole, cuts ? at : bytes);
            whole[at] = (char)(whole[at] ^ 4);
            assert_true(read_as(&sample, &found) < 0);
            if (strcmp(last, fail_reason()) != 0)
                fprintf(golden, "%zu: %s\n", at, strrchr(fail_reason(), '/'));
            strcpy(last, fail_reason());
        }
    assert_int_equal(checkpoint_check_replaced(folder_path("last")), 0);
    folder_put("last", "IOBENCH's");
    assert_true(checkpoint_check_replaced(folder_path("last")) < 0);
    /* Version 1 had no settings; everything else was where it is now. */
    bytes -= CHECKPOINT_SETTINGS_BYTES;
    memmove(whole + SETTINGS_AT, whole + SETTINGS_AT + CHECKPOINT_SETTINGS_BYTES, sizeof floats);
    bytes_put_le32((uint8_t *)whole + 8, 1);
    bytes_put_le32((uint8_t *)whole + bytes - 4, crc32c(0, whole, bytes - 4));
    folder_write("last", whole, bytes);
    assert_int_equal(read_as(&sample, &found), 0);
    memset(other[0].position.settings, 0, sizeof other[0].position.settings);
    other[0].classes--;
    assert_memory_equal(&found, &other[0], sizeof found);
    free(whole);
    golden_end("trainer-checkpoint.txt");
}

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recipes),
        cmocka_unit_test(step_times),
        cmocka_unit_test(trainers_of_networks),
        cmocka_unit_test(a_rehearsal),
        cmocka_unit_test(checkpoints),
    };

    renew = argument_count > 1 ? arguments[1] : NULL;
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
