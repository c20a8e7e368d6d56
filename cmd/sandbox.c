/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/command.h"

#include "base/child.h"
#include "base/landlock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "cachectl/outside.h"
#include "dataset/store.h"
#include "ranks/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const sandbox_choices[] = {"auto", "yes", "no", NULL};

enum access_sets {
    CHANGE = LANDLOCK_READ | LANDLOCK_MAKE | LANDLOCK_PIN, /* READ: new files in / have no rule */
    DEVICE = LANDLOCK_READ | LANDLOCK_WRITE,
};

struct sandbox {
    struct landlock_rules rules;
    const char **commands; /* commands named by options; they run outside */
    size_t command_count;
    bool network;
    bool has_set;
    bool drops; /* caches, by the helper or itself */
    bool moves; /* moves files between folders, which Landlock ABI 1 forbids */
    int code;   /* first error */
};

static void allow(struct sandbox *sandbox, const char *path, unsigned access)
{
    if (sandbox->code == 0 && sandbox->rules.fd >= 0)
        sandbox->code = landlock_allow(&sandbox->rules, path, access);
}

/* ---- needs of every command ---- */

/* Patterns. Every file may be read, except below /dev: root can command a device that is open for
 * reading. Programs elsewhere are not started. */
static const struct sandbox_place {
    const char *pattern;
    unsigned access;
} system_places[] = {
    {"/usr", LANDLOCK_RUN},
    {"/lib*", LANDLOCK_RUN},
    {"/bin", LANDLOCK_RUN},
    {"/sbin", LANDLOCK_RUN},
    {"/opt", LANDLOCK_RUN},
    {"/nix/store", LANDLOCK_RUN},
    {"/proc/self/task", LANDLOCK_WRITE | LANDLOCK_PIN}, /* thread names */
    {"/", LANDLOCK_LIST},
    {"/*", LANDLOCK_READ | LANDLOCK_PIN},
    {"/.[!.]*", LANDLOCK_READ | LANDLOCK_PIN},
    {"/dev/null", DEVICE},
    {"/dev/zero", DEVICE},
    {"/dev/full", DEVICE},
    {"/dev/*random", DEVICE},
    {"/dev/tty", DEVICE},
    {"/dev/pts", DEVICE},
    {"/dev/std*", DEVICE}, /* for the targets of these links */
    {"/dev/shm", DEVICE | LANDLOCK_MAKE},
    {"/dev/nvidia*", DEVICE},
    {"/dev/dxg", DEVICE},
    {"/dev/gdrdrv", DEVICE},
    {"/dev/infiniband", DEVICE},
    {"/dev/knem", DEVICE},
    {"/dev/xpmem", DEVICE},
    {"/dev/hugepages", DEVICE | LANDLOCK_MAKE},
};

/* Folders in which MPI processes of a node rendezvous. */
static const struct sandbox_place session_places[] = {
    {"/tmp", CHANGE | LANDLOCK_TALK},
    {"/var/tmp", CHANGE | LANDLOCK_TALK},
    {"/run", CHANGE | LANDLOCK_TALK},
};

static void allow_places(struct sandbox *sandbox, const struct sandbox_place *places, size_t count)
{
    struct folder_names found;

    for (size_t i = 0; i < count && sandbox->code == 0; i++) {
        sandbox->code = folder_names_matching(&found, places[i].pattern);
        for (size_t k = 0; k < found.count; k++)
            /* What holds /dev is not read as a whole: all other folders in "/" have a rule each. */
            if (!(places[i].access & LANDLOCK_READ) || !store_is_within("/dev", found.list[k]))
                allow(sandbox, found.list[k], places[i].access);
        folder_names_release(&found);
    }
}

/* ---- needs of options and operands ---- */

/* Allow path itself, or its nearest existing parent. */
static void allow_nearest(struct sandbox *sandbox, const char *path, unsigned access)
{
    char nearest[PATH_MAX];

    snprintf(nearest, sizeof nearest, "%s", path);
    while (!file_exists(nearest) && strcmp(nearest, ".") != 0 && strcmp(nearest, "/") != 0) {
        const char *parent = dirname(nearest);
        memmove(nearest, parent, strlen(parent) + 1);
    }
    allow(sandbox, nearest, access);
}

/* Files are written under a temporary name, possibly with other files beside them. */
static void allow_beside(struct sandbox *sandbox, const char *path, unsigned access)
{
    char copy[PATH_MAX];

    snprintf(copy, sizeof copy, "%s", path);
    const char *folder = dirname(copy);
    if (!store_is_same(folder, "/dev")) /* /dev/stdout has nothing beside it */
        allow_nearest(sandbox, folder, access);
    if (sandbox->code == 0)
        fail_clear(); /* the folder may be missing */
}

/* Create the folders here: a missing path cannot have a rule. */
static void allow_cache_folders(struct sandbox *sandbox)
{
    const char *home = getenv("HOME");
    char *cache = file_cache_path(""), path[PATH_MAX];

    if (cache && folder_make_path(cache) == 0)
        allow(sandbox, cache, CHANGE);
    free(cache);
    fail_clear();
    if (home && *home && snprintf(path, sizeof path, "%s/.nv", home) < PATH_MAX)
        allow(sandbox, path, CHANGE); /* the CUDA driver's own */
}

static void allow_reach(struct sandbox *sandbox, enum option_reach reach, const char *path)
{
    if (strcmp(path, "-") == 0)
        return;
    switch (reach) {
    case OPTION_INDEXES_SET:
        sandbox->has_set = true;
        if (file_is_folder(path))
            allow(sandbox, path, CHANGE);
        else if (file_exists(path))
            allow_beside(sandbox, path, CHANGE);
        /* fall through */
    case OPTION_READS_SET:
        sandbox->network |= !store_is_local(path);
        break;
    case OPTION_MAKES_SET:
        sandbox->moves = true;
        /* fall through */
    case OPTION_WRITES:
        sandbox->network |= !store_is_local(path);
        allow(sandbox, path, CHANGE | LANDLOCK_WRITE);
        allow_beside(sandbox, path, CHANGE);
        break;
    case OPTION_WRITES_COLD:
        sandbox->drops = true;
        allow(sandbox, "/proc/sys/vm/drop_caches", LANDLOCK_WRITE | LANDLOCK_PIN);
        /* fall through */
    case OPTION_WRITES_IN:
        allow_nearest(sandbox, path, CHANGE);
        break;
    case OPTION_MAKES_GROUPS:
        allow(sandbox, "/sys/fs/cgroup", LANDLOCK_WRITE | LANDLOCK_MAKE);
        break;
    case OPTION_CONNECTS:
        sandbox->network = true;
        break;
    case OPTION_CACHES:
        allow_cache_folders(sandbox);
        break;
    case OPTION_READS:
    case OPTION_INDEXES_OPERANDS:
    case OPTION_RUNS:
    case OPTION_REACHES_NOTHING:
        break;
    }
}

/* Allow what "NAME:ARGUMENTS" of any family names: plug-ins have devices, their options a reach. */
static void allow_plugin(struct sandbox *sandbox, const char *choice)
{
    const size_t length = strcspn(choice, ":");
    const char *arguments = choice[length] ? choice + length + 1 : NULL;
    char name[64];

    if (snprintf(name, sizeof name, "%.*s", (int)length, choice) >= 64)
        return;
    for (const struct family *family = family_table; family->name; family++) {
        const struct plugin *plugin = plugin_find(family->registry, name);
        if (plugin && plugin->devices)
            allow_places(sandbox, &(struct sandbox_place){plugin->devices, LANDLOCK_READ}, 1);
        char *list = plugin && plugin->options && arguments ? strdup(arguments) : NULL;
        char *cursor = list, *part;
        while (list && (part = strsep(&cursor, ","))) {
            /* Allow what "key=value" of a plug-in names; the value may name another plug-in. */
            char *equals = strchr(part, '=');
            const struct option_spec *row = plugin->options;
            const char *value = equals ? equals + 1 : part;
            if (equals) {
                *equals = '\0';
                row = option_find(plugin->options, part);
            }
            if (row && row->name && row->reach)
                allow_reach(sandbox, row->reach, value);
            else
                allow_plugin(sandbox, value);
        }
        free(list);
    }
}

static void allow_row(struct sandbox *sandbox, const struct option_spec *row, const void *settings)
{
    const void *field = (const char *)settings + row->offset;
    char value[PATH_MAX];

    if (row->type == OPTION_TEXT && !*(char *const *)field)
        return;
    option_text(row, settings, value, sizeof value);
    if (row->reach == OPTION_REACHES_NOTHING && row->type == OPTION_TEXT)
        allow_plugin(sandbox, value);
    if (row->reach == OPTION_RUNS && sandbox->rules.fd >= 0) {
        if (sandbox->code == 0)
            sandbox->code = memory_room(&sandbox->commands, sandbox->command_count,
                                        sizeof *sandbox->commands, "commands");
        if (sandbox->code == 0)
            sandbox->commands[sandbox->command_count++] = *(char *const *)field;
    }
    if (!row->reach || (row->fallback && strcmp(value, row->fallback) == 0))
        return;
    allow_reach(sandbox, row->reach, value);
}

static bool keeps_indexes(const struct option_spec *row)
{
    while (row && row->name && row->reach != OPTION_INDEXES_SET)
        row++;
    return row && row->name;
}

/* ---- entering ---- */

/* Drop what root may do without opening a file: access to device ports, other processes' memory,
 * kernel modules, the clock. Nothing here needs it. */
static int drop_capabilities(void)
{
    static const uint32_t none = 1U << CAP_SYS_RAWIO | 1U << CAP_SYS_MODULE | 1U << CAP_SYS_PTRACE |
                                 1U << CAP_SYS_BOOT | 1U << CAP_SYS_TIME | 1U << CAP_SYS_CHROOT |
                                 1U << CAP_MKNOD | 1U << CAP_NET_ADMIN;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];

    if (syscall(SYS_capget, &header, sets))
        return fail(errno, "cannot read the capabilities: %s", fail_errno_text(errno));
    sets[0].effective &= ~none;
    sets[0].permitted &= ~none;
    sets[0].inheritable &= ~none;
    return syscall(SYS_capset, &header, sets)
               ? fail(errno, "cannot drop capabilities: %s", fail_errno_text(errno))
               : 0;
}

static void collect_paths(struct sandbox *sandbox, const struct invocation *invocation,
                          const void *settings, size_t count)
{
    const struct command *command = invocation->command;

    for (size_t i = 0; i < count; i++) {
        sandbox->has_set = !keeps_indexes(command->options);
        for (const struct option_spec *row = command->options; row && row->name; row++)
            allow_row(sandbox, row, (const char *)settings + i * command->settings_size);
        sandbox->moves |= !sandbox->has_set; /* may have to generate a synthetic set */
    }
    bool indexes = false; /* a flag asks to index the operands */
    for (const struct option_spec *row = command->options; row && row->name; row++)
        indexes |= row->reach == OPTION_INDEXES_OPERANDS &&
                   *(const bool *)((const char *)settings + row->offset);
    for (int i = 0; i < invocation->count; i++)
        allow_reach(sandbox, indexes ? OPTION_INDEXES_SET : command->operands_reach[i > 0],
                    invocation->operands[i]);
    if (indexes || keeps_indexes(command->options)) {
        allow_cache_folders(sandbox);
        allow(sandbox, "/proc/sys/vm/drop_caches", LANDLOCK_WRITE | LANDLOCK_PIN);
    }
    for (size_t i = 0; i < invocation->more_count; i++)
        collect_paths(sandbox, &invocation->more[i], invocation->more[i].settings, 1);
}

/* A helper process outside the sandbox does what cannot be done inside (cachectl/outside.h). It has
 * no streams: readers of our output must not wait for it. */
static int fork_outside(const struct sandbox *sandbox)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return fail(errno, "cannot create a socket: %s", fail_errno_text(errno));
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = 0; i < 3; i++)
            dup2(null, i);
        dup2(ends[1], 3);
        close_range(4, ~0U, 0);
        signal(SIGINT, SIG_IGN); /* the helper ends with the other process */
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        prctl(PR_SET_NAME, "iobench-outside");
        outside_serve(3, sandbox->commands, sandbox->command_count);
        _exit(0);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return fail(errno, "cannot start a process: %s", fail_errno_text(errno));
    }
    outside_use(ends[0], sandbox->commands, sandbox->command_count);
    return 0;
}

int sandbox_enter(const struct invocation *invocation, const void *settings, size_t count)
{
    struct sandbox sandbox = {0};

    if (invocation->sandbox == SANDBOX_NO)
        return 0;
    if (invocation->sandbox == SANDBOX_AUTO &&
        (geteuid() != 0 || landlock_abi() == 0 || ranks_are_launched()))
        return 0;
    const bool launched = ranks_are_launched();
    /* The ruleset must know about connecting when it is created, hence two passes over the needs.
     */
    sandbox.rules.fd = -1;
    collect_paths(&sandbox, invocation, settings, count);
    if (sandbox.moves && landlock_abi() == 1)
        return invocation->sandbox == SANDBOX_YES
                   ? fail(ENOTSUP, "--sandbox yes: Landlock ABI 1 cannot move files between "
                                   "folders; needs Linux 5.19")
                   : 0;
    sandbox.code = landlock_open(&sandbox.rules, sandbox.network || launched);
    collect_paths(&sandbox, invocation, settings, count);
    allow_places(&sandbox, system_places, sizeof system_places / sizeof *system_places);
    /* Allow starting this program, and what CUDA and MPI start. */
    static const char *const variables[] = {"CUDA_HOME", "OPAL_PREFIX"};
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        allow(&sandbox, dirname(program), LANDLOCK_RUN);
    }
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]))
            allow(&sandbox, getenv(variables[i]), LANDLOCK_RUN);
    if (launched) {
        /* MPI ranks on a node copy each other's memory like a debugger (CMA), which Landlock
         * forbids across domains. Open MPI 4, Open MPI 5 and UCX notice only when it fails. */
        setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
        setenv("OMPI_MCA_smsc", "^cma", 0);
        setenv("UCX_TLS", "^cma", 0);
        allow_places(&sandbox, session_places, sizeof session_places / sizeof *session_places);
        if (getenv("TMPDIR"))
            allow(&sandbox, getenv("TMPDIR"), CHANGE | LANDLOCK_TALK);
    }
    if (sandbox.code == 0 && (sandbox.drops || keeps_indexes(invocation->command->options)))
        sandbox.code = fork_outside(&sandbox);
    if (sandbox.code == 0)
        sandbox.code = drop_capabilities();
    if (sandbox.code == 0)
        sandbox.code = landlock_enter(&sandbox.rules);
    landlock_close(&sandbox.rules);
    return sandbox.code;
}
