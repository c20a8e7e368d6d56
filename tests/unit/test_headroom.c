/* SPDX-License-Identifier: Apache-2.0
 * Available memory and CPUs, from trees of files like those of kernels. */
#include "tests/unit/folder.h"

#include "base/memory.h"
#include "base/control_group.h"

#include <sys/resource.h>

enum { MIB = 1 << 20 };

static void put_mib(const char *path, unsigned mib)
{
    char text[32];

    snprintf(text, sizeof text, "%llu\n", (unsigned long long)mib * MIB);
    folder_put(path, text);
}

static struct headroom find(void)
{
    struct headroom headroom;

    headroom_find(&headroom, folder_path("proc"), folder_path("sys"));
    return headroom;
}

static void check(unsigned available_mib, unsigned limit_mib, const char *cause)
{
    const struct headroom headroom = find();

    assert_int_equal(headroom.available_bytes, (uint64_t)available_mib * MIB);
    assert_int_equal(headroom.limit_bytes, (uint64_t)limit_mib * MIB);
    assert_string_equal(headroom.cause, cause);
}

static int setup(void **state)
{
    if (folder_setup(state))
        return -1;
    folder_put("proc/meminfo",
               "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:   8388608 kB\n");
    folder_put("proc/self/statm", "1000 500 10 10 0 700 0\n");
    return 0;
}

static void without_groups_the_machine_decides(void **unused)
{
    check(8192, 0, "the machine");
    folder_put("proc/self/cgroup", "0::/\n"); /* a root without memory files */
    check(8192, 0, "the machine");
}

static void without_proc_free_memory_counts(void **unused)
{
    struct headroom headroom;

    headroom_find(&headroom, folder_path("nothing"), folder_path("nothing"));
    assert_true(headroom.available_bytes > MIB);
    assert_string_equal(headroom.cause, "the machine");
}

static void the_narrowest_group_above_decides(void **unused)
{
    folder_put("proc/self/cgroup", "0::/slurm/job_7/step\n");
    folder_put("sys/fs/cgroup/slurm/job_7/step/memory.max", "max\n");
    put_mib("sys/fs/cgroup/slurm/job_7/step/memory.current", 50);
    folder_put("sys/fs/cgroup/slurm/job_7/step/memory.stat", "anon 1\nfile 9\n");
    check(8192, 0, "the machine");
    put_mib("sys/fs/cgroup/slurm/job_7/memory.max", 300);
    put_mib("sys/fs/cgroup/slurm/job_7/memory.current", 200);
    check(100, 300, "its control group");
    /* File pages are reclaimable. */
    folder_put("sys/fs/cgroup/slurm/job_7/memory.stat",
               "anon 1\nfile 999999999\ninactive_file 52428800\nactive_file 52428800\n");
    check(200, 300, "its control group");
    put_mib("sys/fs/cgroup/slurm/memory.max", 1024);
    put_mib("sys/fs/cgroup/slurm/memory.current", 1000);
    check(24, 300, "its control group"); /* the smallest limit can leave more memory */
    put_mib("sys/fs/cgroup/slurm/job_7/step/memory.high", 60);
    check(10, 60, "its control group");
    put_mib("sys/fs/cgroup/slurm/job_7/step/memory.current", 70);
    check(0, 60, "its control group");
}

static void version_1_counts_too(void **unused)
{
    folder_put("proc/self/cgroup",
               "5:cpu,cpuacct:/other\n4:hugetlb,memory:/docker/abc\n0::/else\n");
    folder_put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put_mib("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", 500);
    put_mib("sys/fs/cgroup/memory/docker/memory.usage_in_bytes", 450);
    put_mib("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", 300);
    put_mib("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", 200);
    folder_put("sys/fs/cgroup/memory/docker/abc/memory.stat",
               "inactive_file 1\ntotal_inactive_file 52428800\ntotal_active_file 0\n");
    check(50, 300, "its control group");
}

/* The path is the host's; the tree is the container's. */
static void a_container_sees_its_own_root(void **unused)
{
    static const char *const paths[] = {"0::/system.slice/docker-77.scope\n", "0::/../../x\n"};

    put_mib("sys/fs/cgroup/memory.max", 256);
    put_mib("sys/fs/cgroup/memory.current", 56);
    for (int i = 0; i < 2; i++) {
        folder_put("proc/self/cgroup", paths[i]);
        check(200, 256, "its control group");
    }
}

static unsigned cpus(void)
{
    return control_group_cpus(folder_path("proc"), folder_path("sys"));
}

/* Batch systems and systemd limit a group of their own, at any level. */
static void the_smallest_quota_above_decides(void **unused)
{
    folder_put("proc/self/cgroup", "0::/slurm/job_8/step\n");
    folder_put("sys/fs/cgroup/slurm/job_8/step/cpu.max", "max 100000\n");
    assert_int_equal(cpus(), 0);
    folder_put("sys/fs/cgroup/slurm/job_8/cpu.max", "350000 100000\n");
    assert_int_equal(cpus(), 3);
    folder_put("sys/fs/cgroup/slurm/cpu.max", "800000 100000\n");
    assert_int_equal(cpus(), 3);
    folder_put("sys/fs/cgroup/slurm/job_8/step/cpu.max", "5000 50000\n");
    assert_int_equal(cpus(), 1);

    folder_put("proc/self/cgroup", "5:cpu,cpuacct:/box/me\n0::/slurm/job_8\n");
    folder_put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    folder_put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    folder_put("sys/fs/cgroup/cpu/box/me/cpu.cfs_quota_us", "-1\n");
    folder_put("sys/fs/cgroup/cpu/box/me/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpus(), 0);
    folder_put("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "200000\n");
    folder_put("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpus(), 2);

    folder_put("proc/self/cgroup", "0::/system.slice/docker-78.scope\n");
    folder_put("sys/fs/cgroup/cpu.max", "400000 100000\n");
    assert_int_equal(cpus(), 4);
}

static void damaged_files_are_no_limit(void **unused)
{
    static const char *const texts[] = {"", "\n", "x", "0::", "0::/a", "::::\n", "4:memory\n"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        folder_put("proc/self/cgroup", texts[i]);
        check(8192, 0, "the machine");
    }
    folder_put("proc/self/cgroup", "0::/a\n");
    folder_put("sys/fs/cgroup/a/memory.max", "-\n");
    check(8192, 0, "the machine");
}

static void the_data_limit_counts(void **unused)
{
    struct rlimit before, limit;

    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    limit = before;
    limit.rlim_cur = 700 * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)512 * MIB;
    if (limit.rlim_cur > before.rlim_max || setrlimit(RLIMIT_DATA, &limit))
        skip();
    const struct headroom headroom = find();
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    assert_int_equal(headroom.available_bytes, 512 * MIB);
    assert_string_equal(headroom.cause, "ulimit -d");
}

/* Containers within containers nest groups. */
static void a_long_path_is_that_of_the_group(void **unused)
{
    char name[480], line[480];

    snprintf(line, sizeof line, "0::/%0190d/%0190d\n", 0, 1);
    folder_put("proc/self/cgroup", line);
    snprintf(name, sizeof name, "sys/fs/cgroup/%0190d/%0190d/memory.max", 0, 1);
    put_mib(name, 300);
    check(300, 300, "its control group");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_groups_the_machine_decides, setup, folder_teardown),
        cmocka_unit_test_setup_teardown(without_proc_free_memory_counts, setup, folder_teardown),
        cmocka_unit_test_setup_teardown(the_narrowest_group_above_decides, setup, folder_teardown),
        cmocka_unit_test_setup_teardown(version_1_counts_too, setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_container_sees_its_own_root, setup, folder_teardown),
        cmocka_unit_test_setup_teardown(the_smallest_quota_above_decides, setup, folder_teardown),
        cmocka_unit_test_setup_teardown(damaged_files_are_no_limit, setup, folder_teardown),
        cmocka_unit_test_setup_teardown(the_data_limit_counts, setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_long_path_is_that_of_the_group, setup, folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
