/* SPDX-License-Identifier: Apache-2.0
 * Probes, witnesses and what lies beneath files, by sessions on folders that imitate /proc and /sys
 * of machines. */
#include "tests/unit/session.h"

#include "pipeline/result/timeline.h"
#include "telemetry/series.h"
#include "telemetry/probe.h"
#include "telemetry/storage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/stat.h>

static char proc_root[512], sys_root[512];
static const struct telemetry_roots roots = {.proc = proc_root, .sys = sys_root};
static struct storage *storage;
static struct storage_bytes at_first;

/* Create /sys/devices/PATH and its entry in /sys/dev/block. */
static void make_device(const char *path, const char *number)
{
    char name[512], link[512];

    snprintf(name, sizeof name, "sys/devices/%s/dev", path);
    folder_put(name, number);
    snprintf(name, sizeof name, "%s/sys/dev/block/%s", test_folder, number);
    snprintf(link, sizeof link, "../../devices/%s", path);
    assert_int_equal(symlink(link, name), 0);
}

/* An open probe, and its values after one sample. */
struct look {
    struct probe probe;
    uint64_t values[256];
};

static int look_open(struct look *look, const char *name, const struct probe_site *site)
{
    struct plugin_choice choice = {0};

    assert_int_equal(plugin_choose("probe", probe_registry, name, &choice), 0);
    int code = probe_open(&look->probe, &choice, site);
    plugin_release(&choice);
    if (code == 0) {
        assert_true(look->probe.metrics.count <= 256);
        probe_sample(&look->probe, look->values);
    }
    return code;
}

static void say_known(const char *name, bool known, uint64_t number)
{
    if (known)
        say("  %s %llu\n", name, (unsigned long long)number);
}

static void say_bytes(const struct storage_bytes *bytes)
{
    say_known("process read", bytes->process_known, bytes->process_read_bytes);
    say_known("process wrote", bytes->process_known, bytes->process_write_bytes);
    say_known("server sent", bytes->server_known, bytes->server_read_bytes);
    say_known("devices read", bytes->device_known, bytes->device_read_bytes);
    say_known("devices wrote", bytes->device_known, bytes->device_write_bytes);
}

static struct look look;
static size_t pid_count;

/* What changed since the last sample, or all. */
static void say_values(const uint64_t *before)
{
    for (uint32_t i = 0; i < look.probe.metrics.count; i++) {
        const struct metric *metric = &look.probe.metrics.metrics[i];
        if (before && before[i] == look.values[i])
            continue;
        say("  %s %s ", metric->part, metric->quantity);
        if (look.values[i] == PROBE_MISSING)
            say("unknown");
        else
            say("%llu", (unsigned long long)(look.values[i] * metric->scale));
        say("%s%s\n", metric->kind == METRIC_LEVEL ? ", a level" : "",
            metric->saturates ? ", saturates" : "");
    }
}

static void run_command(int count, char **words, const char *input)
{
#define IS(name) (strcmp(words[0], name) == 0)
    if (IS("put")) {
        folder_put(words[1], input);
    } else if (IS("remove")) {
        assert_int_equal(remove(folder_path(words[1])), 0);
    } else if (IS("link")) {
        assert_int_equal(symlink(words[2], folder_path(words[1])), 0);
    } else if (IS("folder")) {
        assert_int_equal(folder_make_path(folder_path(words[1])), 0);
    } else if (IS("device")) { /* PATH NUMBER */
        make_device(words[1], words[2]);
    } else if (IS("on")) {
        char target[512];
        snprintf(target, sizeof target, "%s/sys/devices/%s", test_folder, words[2]);
        assert_int_equal(folder_make_parent(folder_path(words[1])), 0);
        assert_int_equal(symlink(target, folder_path(words[1])), 0);
    } else if (IS("set")) {
        setenv(words[1], words[2] ? words[2] : "", 1);
    } else if (IS("pids")) {
        pid_count = (size_t)atoi(words[1]);
    } else if (IS("probe")) { /* NAME [PATH...] */
        static const int pids[] = {7, 8};
        const struct probe_site site = {.roots = &roots,
                                        .paths = (const char *const *)words + 2,
                                        .path_count = (size_t)count - 2,
                                        .pids = pids,
                                        .pid_count = pid_count};
        probe_close(&look.probe);
        const int code = look_open(&look, words[1], &site);
        say_result(code);
        if (look.probe.slow_interval_ns)
            say("  at most every %llu ms\n",
                (unsigned long long)look.probe.slow_interval_ns / 1000000);
        if (code == 0)
            say_values(NULL);
    } else if (IS("sample")) {
        uint64_t before[256];
        memcpy(before, look.values, sizeof before);
        probe_sample(&look.probe, look.values);
        say_values(before);
    } else if (IS("ports")) {
        struct infiniband_port ports[8];
        const uint32_t found = infiniband_list(&roots, ports, (uint32_t)atoi(words[1]));
        for (uint32_t i = 0; i < found; i++)
            say("  %s %u %s %s %g Gbit/s %s\n", ports[i].device, ports[i].number,
                ports[i].link_layer, ports[i].active ? "active" : "down", ports[i].gbit_per_s,
                ports[i].interface);
    } else if (IS("figures")) {
        const struct monitor_figure *figures = count > 1 ? meter_figures : monitor_figures;
        for (int i = 0; i < (count > 1 ? (int)METER_COUNTS : (int)MONITOR_FIGURES); i++) {
            const char *const texts[] = {figures[i].key,   figures[i].heading, figures[i].unit,
                                         figures[i].probe, figures[i].part,    figures[i].quantity,
                                         figures[i].per};
            for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
                say(" %s", texts[k] ? texts[k] : "-");
            say(" %d %g %g%s\n", (int)figures[i].how, figures[i].factor, figures[i].table_factor,
                figures[i].of_a_cpu ? " of a CPU" : "");
        }
    } else if (IS("rate")) {
        say("  %g\n", infiniband_parse_rate(text_of_string(input)));
    } else if (IS("beneath")) { /* PATH or MAJOR:MINOR, each */
        struct device_list list = {0};
        char text[512];
        for (int i = 1; i < count; i++)
            if (words[i][0] == '/')
                say_result(devices_of_path(&roots, words[i], &list));
            else
                devices_of_device(&roots, (unsigned)atoi(words[i]),
                                  (unsigned)atoi(strchr(words[i], ':') + 1), 0, &list);
        say("  %s%s%s%s%s%s\n", devices_text(&list, text, sizeof text),
            list.cut_off ? " and more" : "", *list.elsewhere ? "; elsewhere: " : "", list.elsewhere,
            *list.memory ? "; in memory: " : "", list.memory);
        say("  met %u devices, memory %u times\n", list.device_ends, list.memory_ends);
        for (uint32_t i = 0; i < list.backing_count; i++)
            say("  through %s\n", list.backing[i]);
    } else if (IS("mount")) { /* PATH ID, in the input */
        struct mount found;
        if (mount_find(text_of_string(input), words[1], strtoull(words[2], NULL, 10), &found))
            say("  %llu %u:%u %s %s %s %s%s%s\n", (unsigned long long)found.id, found.device_major,
                found.device_minor, found.point, found.options, found.type, found.source,
                *found.super_options ? " " : "", found.super_options);
        else
            say("  none\n");
    } else if (IS("storage")) { /* PATH... */
        storage_close(storage);
        storage = storage_open(&roots, (const char *const *)words + 1, (size_t)count - 1);
        assert_non_null(storage);
        storage_read(storage, &at_first);
        say_bytes(&at_first);
        say("  first on %s\n", storage_mount(storage) ? storage_mount(storage)->point : "none");
    } else if (IS("since")) {
        struct storage_bytes now;
        struct storage_share share;
        storage_read(storage, &now);
        storage_between(storage, &at_first, &now, &share);
        say_bytes(&share.parts);
        say_known("left storage", share.known, share.bytes);
        say("  %s%s%s%s%s\n", share.method, share.reason, share.of_node ? ", of the node" : "",
            share.in_memory ? ", in memory" : "",
            share.devices_hold_all ? ", all on the devices" : "");
    } else {
        assert_true(IS("io_stat") || IS("blkio")); /* MAJOR MINOR */
        struct cgroup_counters sum = {1, 2, 3, 4};
        say("  %s\n",
            (IS("blkio") ? cgroup_add_blkio : cgroup_add_io_stat)(
                text_of_string(input), (unsigned)atoi(words[1]), (unsigned)atoi(words[2]), &sum)
                ? "listed"
                : "not listed");
        say("  %llu %llu %llu %llu\n", (unsigned long long)sum.read_bytes,
            (unsigned long long)sum.write_bytes, (unsigned long long)sum.reads,
            (unsigned long long)sum.writes);
    }
}

static void all_of_each_probe(void **unused)
{
    session_marks[1][0] = "@NVML", session_marks[1][1] = MOCK_NVML;
    session_run("probes.txt", run_command);
}

static void what_lies_beneath(void **unused)
{
    session_run("beneath.txt", run_command);
}

static void all_of_its_disks(void **unused)
{
    static char device[32];
    struct stat status;

    assert_int_equal(stat(test_folder, &status), 0);
    if (major(status.st_dev) == 0)
        skip(); /* a file system without its own device */
    snprintf(device, sizeof device, "%u:%u", major(status.st_dev), minor(status.st_dev));
    session_marks[1][0] = "@DEVICE", session_marks[1][1] = device;
    session_run("disks.txt", run_command);
}

static int setup(void **state)
{
    if (folder_setup(state))
        return -1;
    snprintf(proc_root, sizeof proc_root, "%s/proc", test_folder);
    snprintf(sys_root, sizeof sys_root, "%s/sys", test_folder);
    session_marks[1][0] = NULL;
    return 0;
}

static int teardown(void **state)
{
    probe_close(&look.probe);
    storage_close(storage);
    storage = NULL;
    return folder_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_of_each_probe, setup, teardown),
        cmocka_unit_test_setup_teardown(what_lies_beneath, setup, teardown),
        cmocka_unit_test_setup_teardown(all_of_its_disks, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
