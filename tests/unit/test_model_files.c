/* SPDX-License-Identifier: Apache-2.0
 * The files of a checkpoint by model, ranks and scale: a saved page. Sizes of the known models are
 * those of MLPerf Storage v3.0's results and of DLIO's code: 104.7, 911.2, 5292 and 15426.6 GiB. */
#include "tests/unit/golden.h"

#include "cmd/checkpoint/model.h"

static void print_file(const struct model_files *files, uint32_t i)
{
    fprintf(golden, "    %s of rank %u: %llu\n", files->list[i].name, files->list[i].rank,
            (unsigned long long)files->list[i].bytes);
}

static void print_list(const char *name, const struct model_request *asked)
{
    struct model_request request = *asked;
    struct model_files files;
    uint64_t least = UINT64_MAX, most = 0;
    int code = model_choose(name, &request.model);

    fprintf(golden, "%s, %llu ranks, subset %llu, scale %g, %llu bytes\n", name,
            (unsigned long long)request.ranks, (unsigned long long)request.subset, request.scale,
            (unsigned long long)request.bytes);
    if (code == 0)
        code = model_list(&request, &files);
    if (code) {
        fprintf(golden, "  %d: %s\n", code, fail_reason());
        return;
    }
    for (uint32_t i = 0, k; i < files.count; i = k) {
        uint64_t bytes = 0;
        for (k = i; k < files.count && files.list[k].rank == files.list[i].rank; k++)
            bytes += files.list[k].bytes;
        least = bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
    }
    for (uint32_t i = 0; i < files.count; i++) {
        assert_true(model_is_file_name(files.list[i].name) && files.list[i].bytes > 0);
        assert_int_equal(files.list[i].bytes % MODEL_BLOCK_BYTES, 0);
        assert_true(i == 0 || files.list[i].rank >= files.list[i - 1].rank);
        for (uint32_t k = 0; k < i && files.count < 2000; k++)
            assert_string_not_equal(files.list[i].name, files.list[k].name);
    }
    fprintf(golden,
            "  %.6g G parameters, %u ranks%s (%ux%ux%u, ZeRO %u), %u files, %llu of %llu bytes, "
            "%llu to %llu each\n",
            (double)request.model.parameters * 1e-9, files.ranks,
            files.is_published ? " as published" : "", files.tensor, files.pipeline, files.data,
            files.zero, files.count, (unsigned long long)files.bytes,
            (unsigned long long)files.full_bytes, (unsigned long long)least,
            (unsigned long long)most);
    for (uint32_t i = 0; i < files.count; i += 1 + files.count / 4)
        print_file(&files, i);
    print_file(&files, files.count - 1);
    free(files.list);
}

static void models_have_files(void **unused)
{
    static const char *const names[] = {"8b", "70b", "405b", "1t"};
    static const char *const own[] = {"gpt,params=1.3b", "9b",           "",           ",params=1b",
                                      "x,params=",       "x,params=0",   "x,params=z", "x,size=3",
                                      "a/b,params=1b",   "x,params=1bb", "x,params=-1"};
    static const char *const files[] = {
        "weights-000001.bin", "optimizer-123456.bin", "thesis.bin",     "weights-1.bin",
        "weights-000001",     "weights-000001.bin~",  "optimizer-.bin", "../weights-000001.bin"};

    golden_begin();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        print_list(names[i], &(struct model_request){.scale = 1});
        print_list(names[i], &(struct model_request){.scale = 1e-6});
    }
    print_list("70b", &(struct model_request){.ranks = 5, .scale = 1});
    print_list("70b", &(struct model_request){.subset = 2, .scale = 1e-3});
    print_list("8b", &(struct model_request){.bytes = 64 << 20});
    print_list("8b", &(struct model_request){.bytes = 64 << 20, .subset = 9});
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        print_list(own[i], &(struct model_request){.ranks = 4, .scale = 1});
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        fprintf(golden, "%s: %d\n", files[i], model_is_file_name(files[i]));
    golden_end("models.txt");
}

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_have_files)};

    renew = argument_count > 1 ? arguments[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
