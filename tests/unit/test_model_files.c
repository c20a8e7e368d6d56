/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "cmd/checkpoint/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct model_files list(const char *name, uint32_t ranks, uint32_t subset, double scale)
{
    struct model_request request = {.ranks = ranks, .subset = subset, .scale = scale};
    struct model_files files;

    assert_int_equal(model_choose(name, &request.model), 0);
    assert_int_equal(model_list(&request, &files), 0);
    return files;
}

static double gib(uint64_t bytes)
{
    return (double)bytes / (1 << 30);
}

static uint64_t bytes_of_rank(const struct model_files *files, uint32_t rank)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < files->count; i++)
        bytes += files->list[i].rank == rank ? files->list[i].bytes : 0;
    return bytes;
}

/* Values from MLPerf Storage v3.0's results and DLIO's code. */
static void published_sizes(void **unused)
{
    static const struct {
        const char *name;
        uint32_t ranks, files;
        double parameters, gib, least, most; /* least and most: GiB of a rank */
    } rows[] = {
        {"8b", 8, 16, 8.030e9, 104.7, 13.09, 13.09},
        {"70b", 64, 128, 69.88e9, 911.2, 14.24, 14.24},
        {"405b", 512, 1544, 405.85e9, 5292, 8.86, 12.32},
        {"1t", 1024, 2072, 1183e9, 15426.6, 12.91, 17.97},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_choice choice;
        struct model_files files = list(rows[i].name, 0, 0, 1);
        double least = 1e9, most = 0;
        assert_int_equal(model_choose(rows[i].name, &choice), 0);
        assert_near((double)choice.parameters / rows[i].parameters, 1, 1e-3);
        assert_int_equal(files.ranks, rows[i].ranks);
        assert_int_equal(files.count, rows[i].files);
        assert_true(files.is_published);
        assert_near(gib(files.full_bytes) / rows[i].gib, 1, 1e-3);
        for (uint32_t rank = 0; rank < files.ranks; rank++) {
            const double each = gib(bytes_of_rank(&files, rank));
            least = each < least ? each : least;
            most = each > most ? each : most;
        }
        assert_near(least, rows[i].least, 0.01);
        assert_near(most, rows[i].most, 0.01);
        free(files.list);
    }
}

static void files_have_names_of_their_own_in_rank_order(void **unused)
{
    static const char *const names[] = {"8b", "405b"};

    (void)unused;
    for (size_t n = 0; n < 2; n++) {
        struct model_files files = list(names[n], 0, 0, 1e-6);
        for (uint32_t i = 0; i < files.count; i++) {
            assert_true(model_is_file_name(files.list[i].name));
            assert_int_equal(files.list[i].bytes % MODEL_BLOCK_BYTES, 0);
            assert_true(files.list[i].bytes > 0);
            assert_true(i == 0 || files.list[i].rank >= files.list[i - 1].rank);
            for (uint32_t k = 0; k < i; k++)
                assert_string_not_equal(files.list[i].name, files.list[k].name);
        }
        free(files.list);
    }
}

static void other_ranks_share_evenly(void **unused)
{
    struct model_files files = list("70b", 5, 0, 1);

    (void)unused;
    assert_int_equal(files.ranks, 5);
    assert_int_equal(files.count, 10);
    assert_false(files.is_published);
    assert_near(gib(files.full_bytes) / 911.2, 1, 1e-3);
    assert_near(gib(bytes_of_rank(&files, 4)) / (911.2 / 5), 1, 1e-3);
    free(files.list);
}

static void scale_subset_and_bytes(void **unused)
{
    struct model_files files = list("70b", 0, 2, 1.0 / 1000);
    struct model_request request = {.bytes = 64 << 20};

    (void)unused;
    assert_int_equal(files.ranks, 2);
    assert_int_equal(files.count, 4);
    assert_near((double)files.full_bytes / (double)files.bytes, 1000, 1);
    free(files.list);
    assert_int_equal(model_choose("8b", &request.model), 0);
    request.subset = 9;
    assert_int_equal(model_list(&request, &files), -EINVAL);
    assert_string_equal(fail_reason(), "--subset 9: the model has 8 ranks");
    request.subset = 0;
    assert_int_equal(model_list(&request, &files), 0);
    assert_near((double)files.bytes / (64 << 20), 1, 0.01);
    free(files.list);
}

static void own_models(void **unused)
{
    static const char *const wrong[] = {
        "9b",         "",         ",params=1b",    "x,params=",    "x,params=0",
        "x,params=z", "x,size=3", "a/b,params=1b", "x,params=1bb", "x,params=-1"};
    struct model_choice choice;
    struct model_files files = list("gpt,params=1.3b", 4, 0, 1);

    (void)unused;
    assert_near((double)files.full_bytes, 14 * 1.3e9, 1e3);
    free(files.list);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(model_choose(wrong[i], &choice), -EINVAL);
}

static void other_names_are_not_ours(void **unused)
{
    static const char *const others[] = {"thesis.bin",     "weights-1.bin",
                                         "weights-000001", "weights-000001.bin~",
                                         "optimizer-.bin", "../weights-000001.bin"};

    (void)unused;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(model_is_file_name(others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_sizes),
        cmocka_unit_test(files_have_names_of_their_own_in_rank_order),
        cmocka_unit_test(other_ranks_share_evenly),
        cmocka_unit_test(scale_subset_and_bytes),
        cmocka_unit_test(own_models),
        cmocka_unit_test(other_names_are_not_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
