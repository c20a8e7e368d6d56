/* SPDX-License-Identifier: Apache-2.0
 * Optional members of plug-ins: a read-only format is refused for writing, and no plug-in lacks a
 * mandatory member. */
#include "tests/unit/folder.h"

#include "base/fail.h"
#include "base/option.h"
#include "decode/decoder.h"
#include "formats/format.h"
#include "formats/plugins.h"
#include "cmd/pack/packing.h"
#include "cmd/pack/source.h"
#include "ranks/ranks.h"
#include "readers/reader.h"
#include "shuffle/plan.h"
#include "telemetry/probe.h"
#include "trainer/exchange.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <string.h>

/* Replaces the program's own: the linker uses the first definition. */
static struct format_ops read_only;
const struct plugin *const format_registry[] = {&read_only.plugin, &format_recordio.plugin, NULL};

static void make_read_only(void)
{
    read_only = format_recordio;
    read_only.plugin.name = "readonly";
    read_only.shard_open = NULL;
    read_only.shard_append = NULL;
    read_only.shard_close = NULL;
}

static void check_refused(int code)
{
    assert_int_equal(code, -ENOTSUP);
    assert_string_equal(fail_reason(), "format readonly is read-only; choose one of: recordio");
}

static void read_only_is_not_written(void **unused)
{
    struct plugin_choice choice;
    struct format_writer writer;
    char *path;

    assert_int_equal(plugin_choose("format", format_registry, "readonly", &choice), 0);
    check_refused(format_check_writable(choice.plugin));
    check_refused(format_shard_path(choice.plugin, test_folder, 0, 1, &path));
    assert_null(path);
    check_refused(format_writer_open(&writer, &choice, folder_path("shard")));
    assert_int_equal(format_writer_close(&writer, false), 0);
    plugin_release(&choice);
}

static void read_only_is_not_packed(void **unused)
{
    struct pack_job job;
    struct pack_figures figures;
    char source[] = "synthetic:count=3", format[] = "readonly", target[128];

    snprintf(target, sizeof target, "%s", folder_path("target"));
    memset(&job, 0, sizeof job);
    assert_int_equal(option_defaults(pack_options, &job), 0);
    assert_int_equal(option_set(pack_options, &job, "format", format, "--format"), 0);
    job.source = source;
    job.target = target;
    check_refused(pack_run(&job, NULL, &figures));
    assert_false(file_exists(target));
    option_release(pack_options, &job);
}

/* Visit every member of a registry as the ops that it begins with. */
#define FOR_ALL(registry, type, ...)                                     \
    for (const struct plugin *const *at = registry; *at; at++) {         \
        const struct type *ops = (const struct type *)(const void *)*at; \
        assert_true(__VA_ARGS__);                                        \
    }

static void nobody_lacks_what_is_called(void **unused)
{
    FOR_ALL(format_registry, format_ops, ops->detect && (ops->index || ops->walk) && ops->parse);
    FOR_ALL(reader_registry, reader_ops,
            ops->open && ops->close && ops->submit && ops->reap &&
                (ops->wake || strcmp(ops->plugin.name, "null") == 0));
    FOR_ALL(shuffle_registry, shuffle_ops,
            ops->open && ops->close && ops->begin && ops->next && ops->draws);
    FOR_ALL(decoder_registry, decoder_ops, ops->plugin.module || ops->decode);
    FOR_ALL(trainer_registry, trainer_ops,
            ops->plugin.idle || (ops->open && ops->close && ops->step));
    FOR_ALL(probe_registry, probe_ops, ops->open && ops->sample);
    FOR_ALL(source_registry, source_ops, ops->plugin.module || (ops->open && ops->read));
}

/* Any launcher's mark will do, unless it is of a single process. */
static void each_launcher_is_known(void **unused)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "MPI_LOCALRANKID"};
    static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    const struct plugin *mpi = ranks_registry[0];

    if (strcmp(mpi->name, "mpi") != 0)
        skip();
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(unsetenv(marks[i]) | unsetenv(counts[i % 2]), 0);
    assert_refused(plugin_usable(mpi), -ENODEV, "not started by mpirun or srun");
    for (size_t i = 0; i < 4; i++) {
        setenv(marks[i], "0", 1);
        assert_int_equal(plugin_usable(mpi), 0);
        for (size_t k = 0; k < 2; k++) {
            setenv(counts[k], "1", 1);
            assert_refused(plugin_usable(mpi), -ENODEV, "without peers");
            setenv(counts[k], "2", 1);
            assert_int_equal(plugin_usable(mpi), 0);
            unsetenv(counts[k]);
        }
        unsetenv(marks[i]);
    }
}

static void nobody_trains_alone(void **unused)
{
    struct exchange exchange;
    struct ranks ranks = {.place = {.ranks = 1}};

    assert_int_equal(exchange_choose(&exchange, "auto", &ranks), 0);
    assert_string_equal(exchange.choice.plugin->name, "none");
    plugin_release(&exchange.choice);
    ranks.place.ranks = 2;
    assert_int_equal(exchange_choose(&exchange, "none", &ranks), -EINVAL);
    assert_string_equal(fail_reason(), "exchange none: 2 ranks would each train alone");
    plugin_release(&exchange.choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_only_is_not_written),    cmocka_unit_test(read_only_is_not_packed),
        cmocka_unit_test(nobody_lacks_what_is_called), cmocka_unit_test(each_launcher_is_known),
        cmocka_unit_test(nobody_trains_alone),
    };

    make_read_only();
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
