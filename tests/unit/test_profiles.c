/* SPDX-License-Identifier: Apache-2.0
 * Profiles: each shipped one is whole, and what the parser refuses. */
#include "tests/unit/folder.h"

#include "base/fail.h"
#include "base/profiles/profiles.h"
#include "cmd/size/model.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <sys/stat.h>

static bool is_family(const char *name)
{
    static const char *const families[] = {"gpu",     "network", "node",
                                           "storage", "fabric",  "workload"};

    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i], name) == 0)
            return true;
    return false;
}

/* Each figure is a number known to the model, with a source; a typing error fails here. */
static void every_shipped_profile_is_whole(void **unused)
{
    int count = 0;

    for (const struct profile_shipped *row = profile_shipped; row->family; row++, count++) {
        struct ini ini, again;
        struct sizing_inputs inputs;
        sizing_inputs_start(&inputs);
        assert_true(is_family(row->family));
        assert_int_equal(profiles_parse(row->name, row->text, &ini), 0);
        assert_non_null(profiles_text(&ini, row->family, "title"));
        if (strcmp(row->family, "workload") != 0 && /* test_mlperf.c */
            sizing_inputs_apply(&inputs, &ini, "resnet50"))
            fail_msg("%s", fail_reason());
        for (size_t i = 0; strcmp(row->family, "gpu") == 0 && i < ini.section_count; i++)
            if (ini_find(&ini, &ini.sections[i], "samples-per-s"))
                assert_true(profiles_number(&ini, ini.sections[i].name, "samples-per-s") > 0);
        assert_int_equal(profiles_load(row->family, row->name, NULL, &again), 0);
        ini_release(&again);
        ini_release(&ini);
    }
    assert_true(count > 30);
}

static void lines_of_an_ini_file(void **unused)
{
    static const char text[] = "# c\n\n[a]\n --Key_One = v = w \nbare\n; x\n[ b ]\nk=\nk=2";
    static const struct {
        const char *key, *value;
        uint32_t line;
    } entries[] = {{"Key-One", "v = w", 4}, {"bare", NULL, 5}, {"k", "", 8}, {"k", "2", 9}};
    struct ini ini;

    assert_int_equal(ini_parse("f", text, strlen(text), &ini), 0);
    assert_int_equal(ini.entry_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(ini.entries[i].key, entries[i].key);
        assert_int_equal(ini.entries[i].line, entries[i].line);
        assert_true((ini.entries[i].value == NULL) == (entries[i].value == NULL));
        if (entries[i].value)
            assert_string_equal(ini.entries[i].value, entries[i].value);
    }
    assert_int_equal(ini.section_count, 2);
    assert_string_equal(ini.sections[0].name, "a");
    assert_string_equal(ini.sections[1].name, "b");
    assert_int_equal(ini.sections[0].first, 0);
    assert_int_equal(ini.sections[0].count, 2);
    assert_int_equal(ini.sections[1].first, 2);
    assert_int_equal(ini.sections[1].count, 2);
    assert_ptr_equal(ini_find(&ini, &ini.sections[1], "k"), &ini.entries[3]);
    assert_null(ini_find(&ini, &ini.sections[0], "k"));
    ini_release(&ini);
}

/* Count lines, each with its number. */
static char *lines_of(const char *head, const char *line, int count)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    fputs(head, file);
    for (int i = 0; i < count; i++)
        fprintf(file, line, i);
    fclose(file);
    return text;
}

static void mistakes_in_an_ini_file(void **unused)
{
    char *const repeated[] = {lines_of("", "[%d]\n", 256), lines_of("[a]\n", "k%d=1\n", 1024)};
    char *const many[] = {lines_of("", "[%d]\n", 257), lines_of("[a]\n", "k%d=1\n", 1025)};
    char *const longest = lines_of("[a]\n", "%063d", 1), *const longer =
                                                             lines_of("[a]\n", "%064d", 1);
    const struct {
        const char *text, *reason;
        size_t bytes;
    } rows[] = {{"[a", "f:1: expected [NAME] alone on a line", 0},
                {"[a] x", "f:1: expected [NAME] alone on a line", 0},
                {"\n[ ]", "f:2: section without a name", 0},
                {"# c\nk=1", "f:2: option before the first [section]", 0},
                {"[a]\n=1", "f:2: expected key=value", 0},
                {"[a]\n--\n", "f:2: expected key=value", 0},
                {longer, "f:2: expected key=value", 0},
                {longest, NULL, 0},
                {"[a]\nk=1\0", "f: not an ini file: contains NUL bytes", 8},
                {"[a]\nk=1\nl=1\n-k=2", "f:4: k is given twice, first in line 2", 0},
                {"[a]\nk=1\n[b]\nk=1", NULL, 0},
                {"[a]\n[b]\n[a]", "f: [a] is given twice", 0},
                {repeated[0], NULL, 0},
                {repeated[1], NULL, 0},
                {many[0], "f: more than 256 sections", 0},
                {many[1], "f: [a] has more than 1024 keys", 0}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ini ini;
        int code = ini_parse("f", rows[i].text,
                             rows[i].bytes ? rows[i].bytes : strlen(rows[i].text), &ini);
        if (code == 0)
            code = ini_refuse_repeats(&ini);
        assert_int_equal(code, rows[i].reason ? -EINVAL : 0);
        if (rows[i].reason)
            assert_string_equal(fail_reason(), rows[i].reason);
        ini_release(&ini);
    }
    for (int i = 0; i < 2; i++) {
        free(repeated[i]);
        free(many[i]);
    }
    free(longest);
    free(longer);
}

static void a_figure_without_a_source_is_refused(void **unused)
{
    struct ini ini;

    assert_int_equal(profiles_parse("x.ini", "[storage]\nread-bytes-per-s=1e9\n", &ini), -EINVAL);
    assert_reason("[storage] has no source=");
    ini_release(&ini);
    assert_int_equal(profiles_parse("x.ini", "[storage]\nsource=\n", &ini), -EINVAL);
    ini_release(&ini);
    assert_int_equal(profiles_parse("x.ini", "# nothing\n", &ini), -EINVAL);
    ini_release(&ini);
    assert_int_equal(profiles_parse("x.ini", "[storage]\nsource=me\n", &ini), 0);
    ini_release(&ini);
    assert_refused(profiles_load("gpu", "h300", NULL, &ini), -ENOENT, "h200");
    ini_release(&ini);
}

/* One of the user's folder counts more than a shipped one of the same name; a path is a file. */
static void a_folder_of_profiles_comes_first(void **unused)
{
    static const char text[] = "[storage]\nsource=me\ntitle=mine\n";
    char name[128];
    const struct profile_shipped *row = profile_shipped;
    struct ini ini;

    while (strcmp(row->family, "storage") != 0)
        row++;
    assert_int_equal(mkdir(folder_path("storage"), 0700), 0);
    assert_int_equal(profiles_load("storage", row->name, test_folder, &ini), 0);
    assert_string_not_equal(profiles_text(&ini, "storage", "title"), "mine");
    ini_release(&ini);
    snprintf(name, sizeof name, "storage/%s.ini", row->name);
    for (int good = 1; good >= 0; good--) {
        folder_put(name, good ? text : "[storage]\n");
        for (int by_path = 0; by_path < 2; by_path++) {
            const int code = profiles_load("storage", by_path ? folder_path(name) : row->name,
                                           test_folder, &ini);
            assert_int_equal(code, good ? 0 : -EINVAL);
            if (good)
                assert_string_equal(profiles_text(&ini, "storage", "title"), "mine");
            else
                assert_reason("[storage] has no source=");
            ini_release(&ini);
        }
    }
}

static void quantities_are_parsed(void **unused)
{
    static const char *const bad[] = {"",     "x",      "-1",    "inf",     "nan",
                                      "1 GB", "1 +- 5", "1 +-%", "1 +--5%", "1 +-inf%"};
    struct quantity quantity;

    assert_int_equal(quantity_parse("14e9", &quantity), 0);
    assert_true(quantity.value == 14e9 && quantity.spread == 0);
    assert_int_equal(quantity_parse("14e9 +-10%", &quantity), 0);
    assert_true(quantity.value == 14e9 && fabs(quantity.spread - 0.1) < 1e-12);
    assert_int_equal(quantity_parse("2 +- 5%", &quantity), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(quantity_parse(bad[i], &quantity), -EINVAL);
}

/* A profile that this program wrote is read again, however far apart its runs were. */
static void measured_quantities_are_read_again(void **unused)
{
    static const double measured[][4] = {
        /* value, low, high, spread */
        {100, 99, 103, 0.03}, {100, 20, 110, 0.8}, {100, 1, 2000, 19}, {100, -50, 90, 1.5},
        {1, 0, 1e300, 1e6},   {0, 0, 0, 0},        {0, 0, 5, 0},       {12345.6789, 0, 0, 1}};

    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        const double *m = measured[i];
        const struct quantity quantity = quantity_of_interval(m[0], m[1], m[2]);
        struct quantity read;
        char text[64] = "";
        FILE *stream = fmemopen(text, sizeof text, "w");
        assert_non_null(stream);
        quantity_print(stream, &quantity);
        fclose(stream);
        assert_int_equal(quantity_parse(text, &read), 0);
        assert_true(fabs(read.value - m[0]) <= 1e-4 * m[0]);
        assert_true(fabs(read.spread - m[3]) <= 0.05 * m[3]);
    }
}

static void apply(const char *text, int wanted, const char *reason)
{
    struct sizing_inputs inputs;
    struct ini ini;

    sizing_inputs_start(&inputs);
    assert_int_equal(profiles_parse("x.ini", text, &ini), 0);
    fail_clear();
    assert_int_equal(sizing_inputs_apply(&inputs, &ini, "resnet50"), wanted);
    assert_reason(reason);
    ini_release(&ini);
}

static void unknown_figures_are_refused(void **unused)
{
    apply("[storage]\nsource=me\nread-bytes-per-sec=1\n", -EINVAL, "x.ini:3: unknown figure");
    apply("[storage]\nsource=me\nread-bytes-per-s=1 GB\n", -EINVAL, "x.ini:3: read-bytes-per-s");
    apply("[storage]\nsource=me\nscope=all\n", -EINVAL, "'job' or 'node'");
    apply("[storage]\nsource=me\nread-bytes-per-s=1e9\n", 0, "");
}

/* Of a section that nobody reads, and of all but the last of two figures, the user hears nothing.
 */
static void what_would_not_count_is_refused(void **unused)
{
    static const struct {
        const char *text, *reason;
    } wrong[] = {
        {"[storage]\nsource=me\nlatency-s=1\nlatency_s=2\n",
         "x.ini:4: latency-s is given twice, first in line 3"},
        {"[storage]\nsource=me\n[node]\nsource=me\n[storage]\nsource=me\n",
         "x.ini: [storage] is given twice"},
    };
    struct sizing_inputs inputs;
    struct ini ini;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_refused(profiles_parse("x.ini", wrong[i].text, &ini), -EINVAL, wrong[i].reason);
        ini_release(&ini);
    }
    sizing_inputs_start(&inputs);
    assert_int_equal(profiles_parse("x.ini", "[stroage]\nsource=me\n", &ini), 0);
    assert_int_equal(sizing_inputs_apply(&inputs, &ini, NULL), -EINVAL);
    assert_reason("unknown section [stroage]; did you mean 'storage'?");
    assert_int_equal(sizing_inputs_apply(&inputs, &ini, "resnet50"), 0); /* another network */
    ini_release(&ini);
    assert_int_equal(profiles_parse("x.ini", "[peak]\nsource=me\n[form a]\nsource=me\n", &ini), 0);
    assert_int_equal(sizing_inputs_apply(&inputs, &ini, NULL), 0);
    ini_release(&ini);
}

static void later_profiles_override(void **unused)
{
    static const char gpu[] = "[resnet50]\nsamples-per-s=100\nsource=me\n"
                              "[unet3d]\nsamples-per-s=7\nsource=me\n";
    static const char own[] = "[gpu]\nsamples-per-s=200 +-5%\nsource=me\n"
                              "[node]\nmemory-bytes=100\ngpus=4\nsource=me\n"
                              "[fabric]\nport-bytes-per-s=10\nsource=me\n";
    struct sizing_inputs inputs;
    struct ini ini;

    sizing_inputs_start(&inputs);
    assert_int_equal(profiles_parse("gpu", gpu, &ini), 0);
    assert_int_equal(sizing_inputs_apply(&inputs, &ini, "unet3d"), 0);
    assert_true(inputs.of[SIZING_GPU_RATE].value == 7);
    ini_release(&ini);
    assert_int_equal(profiles_parse("own", own, &ini), 0);
    assert_int_equal(sizing_inputs_apply(&inputs, &ini, NULL), 0);
    ini_release(&ini);
    assert_true(inputs.of[SIZING_GPU_RATE].value == 200);
    assert_true(fabs(inputs.of[SIZING_GPU_RATE].spread - 0.05) < 1e-12);
    assert_true(inputs.of[SIZING_CACHE_BYTES].value == 75);
    assert_true(inputs.of[SIZING_FABRIC_RATE].value == 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shipped_profile_is_whole),
        cmocka_unit_test(lines_of_an_ini_file),
        cmocka_unit_test(mistakes_in_an_ini_file),
        cmocka_unit_test(a_figure_without_a_source_is_refused),
        FOLDER_TEST(a_folder_of_profiles_comes_first),
        cmocka_unit_test(quantities_are_parsed),
        cmocka_unit_test(measured_quantities_are_read_again),
        cmocka_unit_test(unknown_figures_are_refused),
        cmocka_unit_test(what_would_not_count_is_refused),
        cmocka_unit_test(later_profiles_override),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
