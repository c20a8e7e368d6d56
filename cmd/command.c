/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/command.h"

#include "base/child.h"
#include "base/crc32c.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/random.h"
#include "base/stop.h"
#include "ranks/ranks.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Which processes report a failed join, since they cannot agree on one: rank 0 gives the reason,
 * and one process of each other host only says that it is lost. If a host lacks something that
 * others may have, one process of each host says so. */
static enum { VOICE_FULL, VOICE_OF_HOST, VOICE_LOST, VOICE_NONE } voice;

static void choose_voice(bool speaks, bool leads_host, bool is_lost)
{
    voice = speaks ? VOICE_FULL : !leads_host ? VOICE_NONE : is_lost ? VOICE_LOST : VOICE_OF_HOST;
}

int command_fails_last(void)
{
    enum { SECONDS = 2 };

    sleep(SECONDS); /* a signal, such as the launcher's, ends it */
    return COMMAND_FAILED;
}

int command_failed(const struct invocation *invocation)
{
    const char *name = invocation->command->name, *says;
    char host[RANKS_HOST_BYTES] = "this host";

    if (voice == VOICE_LOST) {
        const int started = ranks_started(&says);
        fprintf(stderr,
                "iobench %s: %s=%d, but this process is alone: see the message of process 0\n",
                name, says, started);
    } else if (voice == VOICE_OF_HOST) {
        gethostname(host, sizeof host - 1);
        fprintf(stderr, "iobench %s: on %s: %s\n", name, host, fail_reason());
    } else if (voice == VOICE_FULL) {
        fprintf(stderr, "iobench %s: %s\n", name, fail_reason());
    }
    return voice == VOICE_LOST || voice == VOICE_NONE ? command_fails_last() : COMMAND_FAILED;
}

int command_unusable(const struct invocation *invocation)
{
    choose_voice(ranks_speaks(), ranks_leads_host(), false);
    return command_failed(invocation);
}

void command_text(const struct invocation *invocation, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "iobench %s", invocation->command->name);

    for (int i = 0; i < invocation->argc && used < bytes; i++) {
        bool quoted = strpbrk(invocation->argv[i], " \t\n\"'\\$*?;&|<>()") != NULL;
        used += (size_t)snprintf(text + used, bytes - used, quoted ? " '%s'" : " %s",
                                 invocation->argv[i]);
    }
}

int command_misused(const struct invocation *invocation)
{
    if (ranks_speaks())
        fprintf(stderr, "iobench %s: %s\nTry 'iobench help %s'.\n", invocation->command->name,
                fail_reason(), invocation->command->name);
    else
        command_fails_last();
    return COMMAND_USAGE;
}

void command_on_interrupt(void)
{
    static char stack[256 * 1024]; /* of the main thread, which takes the process's signals */
    const stack_t apart = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = stop_ask,
                               .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK)};
    struct sigaction former;

    sigemptyset(&action.sa_mask);
    sigaltstack(&apart, NULL);
    if (sigaction(SIGHUP, NULL, &former) == 0 && former.sa_handler != SIG_IGN) /* no nohup */
        sigaction(SIGHUP, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void tell_guard(void *context, enum guard_grade grade, const char *text)
{
    (void)context;
    if (grade != GUARD_NOTICE)
        fprintf(stderr, "iobench: %s: %s\n", grade == GUARD_INVALID ? "INVALID" : "DEGRADED",
                escape_shown(text));
}

enum guard_grade command_guard(const struct guard_counts *counts)
{
    return guard_judge(counts, tell_guard, NULL);
}

static void show_waiting(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "iobench: %s\n", escape_shown(text));
}

/* ---- ranks of one or more jobs ---- */

static struct {
    struct ranks ranks; /* state NULL: not joined */
    bool keeps;
} kept;

int command_join(struct ranks *ranks)
{
    const bool is_joined = kept.ranks.state != NULL;
    /* Ask before joining: afterwards a lone process of Open MPI calls itself rank 0. */
    const bool speaks = ranks_speaks(), leads_host = ranks_leads_host();
    int code = is_joined ? 0 : ranks_join(ranks);

    if (code == -ENODEV)
        choose_voice(speaks, leads_host, ranks->is_lost);
    if (is_joined)
        *ranks = kept.ranks;
    ranks->waiting = show_waiting;
    if (code == 0)
        guard_note_ranks(ranks->place.local_ranks);
    return code;
}

void command_leave(struct ranks *ranks, bool failed)
{
    if (!kept.keeps) {
        ranks_leave(ranks, failed);
        return;
    }
    if (failed)
        ranks_call_off(ranks);
    kept.ranks = *ranks;
}

void command_keep_ranks(void)
{
    assert(!kept.keeps);
    kept.keeps = true;
}

bool command_may_go_on(void)
{
    if (!kept.ranks.state)
        return !flag_get(&stop_asked);
    return ranks_meet(&kept.ranks, flag_get(&stop_asked) || kept.ranks.is_broken ? -EINTR : 0,
                      NULL) == 0;
}

void command_part_ranks(bool failed)
{
    kept.keeps = false;
    ranks_leave(&kept.ranks, failed);
}

int command_reach(const char *option, double measured, double required, const char *unit)
{
    if (!(required > 0) || measured >= required)
        return 0;
    return fail(ERANGE, "--%s: reached %.6g %s, %.1f%% of the required %.6g", option, measured,
                unit, 100 * measured / required, required);
}

/* ---- this program, for commands that start it again and keep what it measured ---- */

char *program_path(void)
{
    const char *given = getenv("IOBENCH_PROGRAM");
    char path[PATH_MAX];
    const ssize_t length = given ? 0 : readlink("/proc/self/exe", path, sizeof path);

    if (length < 0) {
        fail(errno, "/proc/self/exe: %s", fail_errno_text(errno));
        return NULL;
    }
    return given ? strdup(given) : strndup(path, (size_t)length);
}

/* Hash the notes of the first object, the program; one of them is the build ID. */
static int hash_notes(struct dl_phdr_info *info, size_t bytes, void *build)
{
    (void)bytes;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const void *notes = (const void *)(uintptr_t)(info->dlpi_addr + part->p_vaddr);
        if (part->p_type == PT_NOTE)
            *(uint64_t *)build =
                random_hash(*(uint64_t *)build, crc32c(0, notes, part->p_memsz), part->p_memsz);
    }
    return 1;
}

uint64_t program_build(void)
{
    uint64_t build = random_hash_text(1, PACKAGE_VERSION);

    dl_iterate_phdr(hash_notes, &build);
    return build;
}

const struct option_spec common_options[] = {
    {"help", 'h', OPTION_CHOICE, offsetof(struct common_settings, help),
     .choices = (const char *const[]){"no", "yes", "all", NULL}, .implied = "yes",
     .section = "Common options",
     .summary = "explain this command; all: every command and plug-in"},
    {"version", 'V', OPTION_FLAG, offsetof(struct common_settings, version),
     .summary = "print the version"},
    {"sandbox", 0, OPTION_CHOICE, offsetof(struct common_settings, sandbox), .fallback = "auto",
     .choices = sandbox_choices,
     .summary = "confine the process to data, outputs and caches (Landlock); auto: only as root"},
    {"allow-commands", 0, OPTION_FLAG, offsetof(struct common_settings, allow_commands),
     .summary = "allow job files to run commands (server-drop-cmd, server-check-cmd)"},
    {0},
};
