/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "base/thread.h"

#include <sched.h>

/* A machine in which nodes 0 and 8 have this test's CPUs and are usable; node 2 has only memory,
 * and node 3 has CPUs that do not exist here. */
static void nodes_with_memory_and_cpus_count(void **unused)
{
    struct numa numa;
    cpu_set_t before, after;

    folder_put("devices/system/node/has_memory", "0,2-3,8\n");
    folder_put("devices/system/node/node0/cpulist", "0-511\n");
    folder_put("devices/system/node/node2/cpulist", "\n");
    folder_put("devices/system/node/node3/cpulist", "1000-1007,1020\n");
    folder_put("devices/system/node/node8/cpulist", "0-3,4-511\n");
    numa_find(&numa, test_folder);
    assert_int_equal(numa.count, 2);
    assert_int_equal(numa.nodes[0], 0);
    assert_int_equal(numa.nodes[1], 8);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    numa_run_on(&numa, 1);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

static void a_thread_is_kept_on_its_node(void **unused)
{
    struct numa numa;
    cpu_set_t before, after;
    char text[32];
    int cpu = 0;

    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET((size_t)cpu, &before))
        cpu++;
    snprintf(text, sizeof text, "%d\n", cpu);
    folder_put("devices/system/node/node8/cpulist", text);
    numa_find(&numa, test_folder);
    numa_run_on(&numa, 1);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_int_equal(CPU_COUNT(&after), 1);
    assert_true(CPU_ISSET((size_t)cpu, &after));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    struct numa_policy policy = numa_prefer(&numa, 0);
    numa_put_back(&policy);
    struct numa_policy again = numa_prefer(&numa, 0);
    assert_int_equal(policy.mode, again.mode); /* it was restored */
    numa_put_back(&again);
}

static void without_nodes_there_is_one(void **unused)
{
    struct numa numa;

    numa_find(&numa, "/nonexistent");
    assert_int_equal(numa.count, 1);
    numa_run_on(&numa, 0);
    struct numa_policy policy = numa_prefer(&numa, 0);
    assert_true(policy.mode < 0);
    numa_put_back(&policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_with_memory_and_cpus_count),
        cmocka_unit_test(a_thread_is_kept_on_its_node),
        cmocka_unit_test(without_nodes_there_is_one),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
