/* SPDX-License-Identifier: Apache-2.0
 * Schedules against their formulas; checkpoints that are truncated, changed or of another network.
 */
#include "tests/unit/unit.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/file.h"
#include "tests/unit/folder.h"
#include "trainer/checkpoint.h"
#include "trainer/graph.h"
#include "trainer/recipe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void near(double found, double wanted)
{
    if (!(fabs(found - wanted) <= 1e-9 * fmax(1, fabs(wanted))))
        fail_msg("%.12g is not %.12g", found, wanted);
}

static void lars_takes_the_published_points(void **unused)
{
    static const struct {
        uint64_t batch;
        double rate, decay, warmup;
    } points[] = {{408, 3.0, 5e-5, 2},    {816, 5.3, 5e-5, 2},
                  {1024, 6.0, 2.5e-5, 2}, {1632, 7.5, 5e-5, 2},
                  {2048, 9.0, 5e-5, 3},   {3200, 11.0, 5e-5, 2},
                  {4096, 13.0, 2e-4, 3},  {204, 1.5, 5e-5, 2},
                  {612, 4.15, 5e-5, 2},   {8192, 13.0 + 2.0 * 4096 / 896, 2e-4, 3}};

    const struct network *inception = network_find("inception-v3"); /* no share of LARS */

    (void)unused;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct recipe recipe = recipe_choose(BACKEND_LARS, inception, points[i].batch, 37, 100);
        near(recipe.rate, points[i].rate);
        near(recipe.weight_decay, points[i].decay);
        assert_true(recipe.decays_fc_bias && recipe.zero_gammas && recipe.clip_norm == 0);
        near((double)recipe.warmup_steps, 100 * points[i].warmup);
    }
}

static void lars_falls_as_a_square(void **unused)
{
    const struct recipe recipe =
        recipe_choose(BACKEND_LARS, network_find("resnet50"), 408, 37, 100);

    (void)unused;
    near(recipe_rate(&recipe, 0), 3.0 / 200);
    near(recipe_rate(&recipe, 199), 3.0);
    near(recipe_rate(&recipe, 200), 3.0);
    near(recipe_rate(&recipe, 200 + 1750), 3.0 / 4);
    near(recipe_rate(&recipe, 3699), 3.0 / 3500 / 3500);
    near(recipe_rate(&recipe, 5000), recipe_rate(&recipe, 3699)); /* never 0, never increasing */
}

static void sgd_falls_as_a_cosine(void **unused)
{
    const struct recipe recipe = recipe_choose(BACKEND_SGD, network_find("resnet50"), 512, 90, 10);

    (void)unused;
    near(recipe.rate, 0.512);
    near(recipe.momentum, 0.875);
    near(recipe.weight_decay, 1.0 / 32768);
    assert_true(!recipe.decays_fc_bias && recipe.zero_gammas);
    assert_int_equal(recipe.warmup_steps, 50);
    near(recipe_rate(&recipe, 24), 0.256);
    near(recipe_rate(&recipe, 50 + 425), 0.256);
    assert_true(recipe_rate(&recipe, 899) > 0 && recipe_rate(&recipe, 899) < 1e-5);
    for (uint64_t step = 51; step < 900; step++)
        assert_true(recipe_rate(&recipe, step) < recipe_rate(&recipe, step - 1));
}

/* Networks without batch norm: the rate of Caffe's files, far below where they diverge. */
static void plain_networks_learn_slowly(void **unused)
{
    static const struct {
        const char *network;
        uint64_t batch;
        double rate;
    } points[] = {{"lenet", 64, 0.01},    {"lenet", 16, 0.005},     {"lenet", 256, 0.01},
                  {"alexnet", 256, 0.01}, {"vgg16", 256, 0.01},     {"googlenet", 32, 0.01},
                  {"vgg19", 1024, 0.01},  {"resnet50", 256, 0.256}, {"inception-bn", 256, 0.256}};

    (void)unused;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        near(recipe_choose(BACKEND_SGD, network_find(points[i].network), points[i].batch, 90, 10)
                 .rate,
             points[i].rate);
    for (const struct network *const *network = network_registry; *network; network++) {
        struct graph *graph = network_build(*network, (*network)->side, (*network)->classes);
        bool normalises = false;
        for (uint32_t i = 0; i < graph->node_count; i++)
            normalises |= graph->nodes[i].kind == GRAPH_BATCH_NORM;
        assert_int_equal(normalises, (*network)->plain_batch == 0);
        graph_destroy(graph);
    }
}

/* It diverges at ResNet's rate. None clips its gradients by default. */
static void inception_v3_learns_at_an_eighth(void **unused)
{
    (void)unused;
    near(recipe_choose(BACKEND_SGD, network_find("inception-v3"), 256, 90, 10).rate, 0.032);
    for (const struct network *const *network = network_registry; *network; network++)
        assert_true(recipe_choose(BACKEND_SGD, *network, 32, 90, 10).clip_norm == 0);
}

static void short_courses_have_rates_too(void **unused)
{
    const struct recipe one = recipe_choose(BACKEND_LARS, network_find("resnet50"), 408, 1, 1);
    const struct recipe flat = {.decay_shape = RECIPE_CONSTANT, .rate = 2};

    (void)unused;
    assert_true(recipe_rate(&one, 0) > 0);
    near(recipe_rate(&flat, 0), 2);
    near(recipe_rate(&flat, 1000000), 2);
}

/* ---- checkpoints ---- */

enum { PARAMETERS = 1000, STATISTICS = 30 };

struct arrays {
    float floats[2 * PARAMETERS + STATISTICS];
};

static const struct checkpoint sample = {.network = "tiny",
                                         .side = 32,
                                         .classes = 10,
                                         .parameter_floats = PARAMETERS,
                                         .statistic_floats = STATISTICS,
                                         .seed = 77,
                                         .batch_size = 256,
                                         .epoch = 3,
                                         .step = 703,
                                         .elapsed_ns = 1234567890123,
                                         .samples = 180000,
                                         .rate_before = 0.0625,
                                         .settings = "lr 0.1\nmomentum 0.9\n"};

static void fill(struct arrays *arrays)
{
    for (size_t i = 0; i < sizeof arrays->floats / sizeof *arrays->floats; i++)
        arrays->floats[i] = (float)i * 0.37f - 100;
}

static int read_back(const char *path, struct checkpoint *found, struct arrays *arrays)
{
    return checkpoint_read(path, &sample, found, arrays->floats);
}

static void a_checkpoint_comes_back(void **unused)
{
    const char *path = folder_path("last");
    struct arrays arrays, back = {0};
    struct checkpoint found;

    (void)unused;
    fill(&arrays);
    assert_int_equal(checkpoint_write(path, &sample, arrays.floats), 0);
    assert_int_equal(read_back(path, &found, &back), 0);
    assert_memory_equal(&arrays, &back, sizeof arrays);
    assert_memory_equal(&found, &sample, sizeof sample);
}

static char *write_and_load(const char *path, struct arrays *arrays, size_t *bytes)
{
    char *whole;

    assert_int_equal(checkpoint_write(path, &sample, arrays->floats), 0);
    assert_int_equal(file_load(path, 1 << 20, &whole, bytes), 0);
    return whole;
}

/* Version 1 had no settings; everything else was where it is now. */
static void the_first_version_is_still_read(void **unused)
{
    enum { SETTINGS_AT = 128 };
    const char *path = folder_path("last");
    struct arrays arrays, back = {0};
    struct checkpoint found;
    char *whole;
    size_t bytes;

    (void)unused;
    fill(&arrays);
    whole = write_and_load(path, &arrays, &bytes);
    assert_int_equal(bytes, SETTINGS_AT + CHECKPOINT_SETTINGS_BYTES + sizeof arrays + 4);
    bytes -= CHECKPOINT_SETTINGS_BYTES;
    memmove(whole + SETTINGS_AT, whole + SETTINGS_AT + CHECKPOINT_SETTINGS_BYTES, sizeof arrays);
    bytes_put_le32((uint8_t *)whole + 8, 1);
    bytes_put_le32((uint8_t *)whole + bytes - 4, crc32c(0, whole, bytes - 4));
    FILE *file = fopen(path, "we");
    assert_int_equal(fwrite(whole, 1, bytes, file), bytes);
    fclose(file);
    free(whole);
    assert_int_equal(read_back(path, &found, &back), 0);
    assert_memory_equal(&arrays, &back, sizeof arrays);
    assert_string_equal(found.settings, "");
    struct checkpoint same = sample;
    memset(same.settings, 0, sizeof same.settings);
    assert_memory_equal(&found, &same, sizeof same);
}

/* Every changed or missing byte is detected. */
static void damage_is_noticed(void **unused)
{
    const char *path = folder_path("last");
    struct arrays arrays, back;
    struct checkpoint found;
    char *whole;
    size_t bytes;

    (void)unused;
    fill(&arrays);
    whole = write_and_load(path, &arrays, &bytes);
    for (size_t at = 0; at < bytes; at += at < 160 ? 1 : 97) {
        FILE *file = fopen(path, "we");
        whole[at] = (char)(whole[at] ^ 4);
        assert_int_equal(fwrite(whole, 1, bytes, file), bytes);
        fclose(file);
        whole[at] = (char)(whole[at] ^ 4);
        int code = read_back(path, &found, &back);
        assert_true(code == -EBADMSG || code == -EINVAL);
    }
    for (size_t length = 0; length < bytes; length += 61) {
        FILE *file = fopen(path, "we");
        assert_int_equal(fwrite(whole, 1, length, file), length);
        fclose(file);
        assert_int_equal(read_back(path, &found, &back), -EBADMSG);
    }
    free(whole);
}

static void that_of_another_network_is_refused(void **unused)
{
    const char *path = folder_path("last");
    struct arrays arrays;
    struct checkpoint found, other = sample;

    (void)unused;
    fill(&arrays);
    other.classes = 100;
    assert_int_equal(checkpoint_write(path, &other, arrays.floats), 0);
    assert_int_equal(read_back(path, &found, &arrays), -EINVAL);
    assert_non_null(strstr(fail_reason(), "100 classes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lars_takes_the_published_points),
        cmocka_unit_test(lars_falls_as_a_square),
        cmocka_unit_test(sgd_falls_as_a_cosine),
        cmocka_unit_test(plain_networks_learn_slowly),
        cmocka_unit_test(inception_v3_learns_at_an_eighth),
        cmocka_unit_test(short_courses_have_rates_too),
        cmocka_unit_test(a_checkpoint_comes_back),
        cmocka_unit_test(the_first_version_is_still_read),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(that_of_another_network_is_refused),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
