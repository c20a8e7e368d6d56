/* SPDX-License-Identifier: Apache-2.0
 * The control group of --memory-limit on generated trees; a real one:
 * tests/cli/memory_limit.sh.
 */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "pipeline/jobs/session.h"

#include <string.h>

static char proc[300], sys[300];
static const struct telemetry_roots roots = {.proc = proc, .sys = sys};

/* Create a folder below the fake /sys/fs/cgroup, with its controllers. */
static void make_group(const char *path, const char *subtree_control)
{
    char name[400];

    snprintf(name, sizeof name, "%s/fs/cgroup%s", sys, path);
    assert_int_equal(folder_make_path(name), 0);
    snprintf(name, sizeof name, "sys/fs/cgroup%s/cgroup.subtree_control", path);
    if (subtree_control)
        folder_put(name, subtree_control);
}

static void make_process(const char *groups)
{
    snprintf(proc, sizeof proc, "%s/proc", test_folder);
    snprintf(sys, sizeof sys, "%s/sys", test_folder);
    folder_put("proc/self/cgroup", groups);
}

static void contains(const char *group, const char *name, const char *wanted)
{
    char text[64];

    if (!file_peek(text, sizeof text, "%s/%s", group, name))
        fail_msg("%s/%s is not there", group, name);
    assert_string_equal(text, wanted);
}

/* Enter and leave a group. Side effects do not matter in a fake tree, where files stay in a removed
 * group. */
static void enter_and_leave(const char *parent, const char *limit_name)
{
    struct memory_limit limit;
    char wanted[CONTROL_GROUP_BYTES], pid[32];

    snprintf(pid, sizeof pid, "%d", (int)getpid());
    snprintf(wanted, sizeof wanted, "%s/fs/cgroup%s/iobench.%s", sys, parent, pid);
    if (memory_limit_enter(&limit, &roots, 64 << 20))
        fail_msg("%s", fail_reason());
    assert_string_equal(limit.group, wanted);
    contains(wanted, limit_name, "67108864");
    contains(wanted, "cgroup.procs", pid);
    snprintf(wanted, sizeof wanted, "%s", limit.from);
    memory_limit_leave(&limit);
    contains(wanted, "cgroup.procs", pid);
    memory_limit_leave(&limit);
}

static void version_1(void **unused)
{
    make_process("7:blkio:/\n4:memory:/user/me\n0::/\n");
    make_group("/memory/user/me", NULL);
    enter_and_leave("/memory/user/me", "memory.limit_in_bytes");
    /* The path is the host's, seen from inside a container. */
    make_process("4:memory,cpu:/docker/0123\n");
    enter_and_leave("/memory", "memory.limit_in_bytes");
}

static void version_2_below_our_own_group(void **unused)
{
    char group[400];

    make_process("0::/user.slice/run.scope\n");
    make_group("/user.slice/run.scope", "cpu memory pids\n");
    enter_and_leave("/user.slice/run.scope", "memory.max");
    /* What is on is not asked for again; what is not, is. */
    snprintf(group, sizeof group, "%s/fs/cgroup/user.slice/run.scope", sys);
    contains(group, "cgroup.subtree_control", "cpu memory pids");
    make_process("0::/user.slice/b.scope\n");
    make_group("/user.slice/b.scope", "cpu\n");
    enter_and_leave("/user.slice/b.scope", "memory.max");
    snprintf(group, sizeof group, "%s/fs/cgroup/user.slice/b.scope", sys);
    contains(group, "cgroup.subtree_control", "+memory");
}

/* The kernel refuses "+memory" in a group with processes: a folder simulates that refusal. */
static void version_2_beside_our_own_group(void **unused)
{
    make_process("0::/app.slice/shell.scope\n");
    make_group("/app.slice", "memory pids\n");
    make_group("/app.slice/shell.scope/cgroup.subtree_control", NULL);
    enter_and_leave("/app.slice", "memory.max");
}

static void a_refusal_says_what_to_do(void **unused)
{
    struct memory_limit limit;

    make_process("0::/closed/shell.scope\n");
    make_group("/closed/cgroup.subtree_control", NULL);
    make_group("/closed/shell.scope/cgroup.subtree_control", NULL);
    assert_true(memory_limit_enter(&limit, &roots, 64 << 20) < 0);
    assert_reason("--memory-limit 64.00 MiB");
    assert_reason("systemd-run --user --scope");
    memory_limit_leave(&limit);
    make_process("7:blkio:/\n");
    assert_true(memory_limit_enter(&limit, &roots, 64 << 20) < 0);
    assert_reason("no control group counts memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_1),
        cmocka_unit_test(version_2_below_our_own_group),
        cmocka_unit_test(version_2_beside_our_own_group),
        cmocka_unit_test(a_refusal_says_what_to_do),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
