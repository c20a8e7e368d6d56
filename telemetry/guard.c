/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/guard.h"

#include "base/atomic.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/control_group.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 1 << 14, STEAL = 7, PATH_BYTES = CONTROL_GROUP_BYTES + 32 };

static const uint64_t NAP_NS = 1000000, TURN_NS = 100000000, LATE_NS = 600000000;
/* Percentages from which on a rate says nothing about what was measured. */
static const double THROTTLED_MOST = 10, DELAYED_MOST = 25, STOLEN_MOST = 10;
static const double OWN_LOAD = 75; /* from here on its threads wait for each other */

/* ---- counters of the kernel ---- */

/* Return the number at a place after the word that begins a line, in the first 16 KiB of a file; 0
 * if there is none. */
static uint64_t number_of(const char *folder, const char *name, const char *word, int place)
{
    char path[PATH_BYTES], text[16384], *line = text;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file_read_begin(path, text, sizeof text);
    while (line && strncmp(line, word, strlen(word)) != 0)
        line = (line = strchr(line, '\n')) ? line + 1 : NULL;
    if (!line)
        return 0;
    line += strlen(word);
    while (place-- > 0)
        strtoull(line, &line, 10);
    return strtoull(line, NULL, 10);
}

static struct counter own_drops, pauses;
static uint32_t ranks_here = 1;

void guard_note_drop(void)
{
    counter_add(&own_drops, 1);
}

void guard_note_ranks(uint32_t ranks)
{
    ranks_here = ranks;
}

/* A process cannot catch the signal that stops it, only the one that continues it. */
static void on_continue(int number)
{
    (void)number;
    counter_add(&pauses, 1);
}

void guard_read(struct guard_moment *moment, const char *proc, const char *sys)
{
    struct control_group group;
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    moment->used_ns = ((uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec) * ranks_here;
    moment->stolen_ns =
        number_of(proc, "stat", "cpu ", STEAL) * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
    moment->drops = number_of(proc, "vmstat", "drop_pagecache ", 0) - counter_get(&own_drops);
    moment->pauses = counter_get(&pauses);
    moment->cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    moment->throttled_ns = 0;
    if (!control_group_find(&group, "cpu", proc, sys))
        return;
    do
        moment->throttled_ns += number_of(group.folder, "cpu.stat", "throttled_time ", 0) +
                                number_of(group.folder, "cpu.stat", "throttled_usec ", 0) * 1000;
    while (control_group_up(&group));
}

/* ---- while a measurement is open ---- */

static struct {
    pid_t process; /* the process whose thread watches: a fork has no such thread */
    unsigned open;
    struct folder tasks; /* open as long as that thread runs */
    uint64_t looked_ns, still_ns, delayed_ns;
    struct slot {
        pid_t thread;
        uint64_t waited_ns; /* for a CPU, at the last look */
    } slots[SLOTS];         /* by number of the thread */
    pthread_mutex_t lock;
} watch = {.tasks.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* A thread that is late, and not for lack of a CPU, was stopped. schedstat: ns on a CPU, ns ready
 * and waiting for one. A kernel that does not count reports 0 0. */
static void look_around(void)
{
    uint64_t most_ns = 0,
             own_ns = UINT64_MAX; /* waited since the last look by any thread, by this one */
    struct clock_moment now;
    alignas(struct dirent64) char entries[4096];
    ssize_t count = lseek(watch.tasks.fd, 0, SEEK_SET);

    clock_moment(&now);
    const uint64_t passed_ns = now.raw_ns - watch.looked_ns, late_ns = passed_ns - TURN_NS;
    while (count >= 0 && (count = getdents64(watch.tasks.fd, entries, sizeof entries)) > 0)
        for (const char *at = entries; at < entries + count;) { /* no stream: that is allocated */
            const struct dirent64 *entry = (const void *)at;
            const pid_t thread = atoi(entry->d_name);
            at += entry->d_reclen;
            if (!thread)
                continue;
            struct slot *slot = &watch.slots[thread % SLOTS];
            char folder[64];
            snprintf(folder, sizeof folder, "/proc/self/task/%d", thread);
            const uint64_t waited_ns = number_of(folder, "schedstat", "", 1);
            const bool is_same = slot->thread == thread && slot->waited_ns <= waited_ns;
            const uint64_t new_ns = waited_ns - (is_same ? slot->waited_ns : 0);
            *slot = (struct slot){thread, waited_ns};
            most_ns = new_ns > most_ns ? new_ns : most_ns;
            if (thread == gettid() && number_of(folder, "schedstat", "", 0))
                own_ns = new_ns;
        }
    clock_moment(&now); /* a thread that waits for the lock meanwhile is not late */
    watch.looked_ns = now.raw_ns;
    watch.delayed_ns += most_ns < passed_ns ? most_ns : passed_ns;
    if (passed_ns > LATE_NS && own_ns < late_ns / 2)
        watch.still_ns += late_ns;
}

static void *watch_body(void *unused)
{
    pthread_mutex_lock(&watch.lock);
    while (watch.open) {
        pthread_mutex_unlock(&watch.lock);
        clock_sleep_ns(TURN_NS);
        pthread_mutex_lock(&watch.lock);
        look_around();
    }
    watch.process = 0;
    folder_close(&watch.tasks);
    pthread_mutex_unlock(&watch.lock);
    return unused;
}

static void take_watched(struct guard_moment *moment)
{
    look_around();
    moment->still_ns = watch.still_ns;
    moment->delayed_ns = watch.delayed_ns;
    pthread_mutex_unlock(&watch.lock);
    guard_read(moment, "/proc", "/sys");
}

void guard_begin(struct guard_moment *from)
{
    const struct sigaction action = {.sa_handler = on_continue,
                                     .sa_flags = SA_RESTART | SA_ONSTACK};
    pthread_t thread;

    pthread_mutex_lock(&watch.lock);
    watch.open++;
    /* Nobody waits for the thread of a process that forked this one. */
    if (watch.process != getpid()) {
        sigaction(SIGCONT, &action, NULL);
        watch.process = 0;
        folder_close(&watch.tasks);
        /* If there is no memory for a thread, only stops that end with a signal are seen. */
        if (folder_open(&watch.tasks, "/proc/self/task") == 0 &&
            pthread_create(&thread, NULL, watch_body, NULL) == 0) {
            pthread_setname_np(thread, "guard");
            pthread_detach(thread);
            watch.process = getpid();
        }
    }
    take_watched(from);
    clock_moment(&from->clock);
}

/* Let the thread look first: only a thread that runs knows how long it waited for a CPU. */
void guard_end(const struct guard_moment *from, struct guard_counts *sum)
{
    struct guard_counts counts;
    struct guard_moment to;

    clock_moment(&to.clock);
    pthread_mutex_lock(&watch.lock);
    while (watch.process && to.clock.raw_ns > watch.looked_ns + LATE_NS) {
        pthread_mutex_unlock(&watch.lock);
        clock_sleep_ns(NAP_NS);
        pthread_mutex_lock(&watch.lock);
    }
    assert(watch.open > 0);
    watch.open--;
    take_watched(&to);
    guard_between(from, &to, &counts);
    guard_add(sum, &counts);
}

/* ---- arithmetic ---- */

static double percent_of(uint64_t from, uint64_t to, double whole)
{
    return to > from && whole > 0 ? fmin(100 * (double)(to - from) / whole, 100) : 0;
}

void guard_between(const struct guard_moment *from, const struct guard_moment *to,
                   struct guard_counts *counts)
{
    const double wall = (double)(to->clock.raw_ns - from->clock.raw_ns), all = wall * to->cpus;

    *counts = (struct guard_counts){
        .pauses = to->pauses - from->pauses + (to->still_ns > from->still_ns),
        .shortages = shortage_code() != 0,
        .drops = to->drops > from->drops ? to->drops - from->drops : 0,
        .throttled_percent = percent_of(from->throttled_ns, to->throttled_ns, all),
        .delayed_percent = percent_of(from->delayed_ns, to->delayed_ns, wall),
        .stolen_percent = percent_of(from->stolen_ns, to->stolen_ns, all),
        .used_percent = percent_of(from->used_ns, to->used_ns, all)};
    /* Throttled time over all CPUs understates what one thread lost; what a thread waited includes
     * other causes, so it counts only where throttling explains half of it. */
    if (percent_of(from->throttled_ns, to->throttled_ns, wall) > counts->delayed_percent / 2)
        counts->throttled_percent = fmax(counts->throttled_percent, counts->delayed_percent);
    counts->is_throttled = counts->throttled_percent >= THROTTLED_MOST;
    counts->is_starved =
        counts->delayed_percent >= DELAYED_MOST || counts->stolen_percent >= STOLEN_MOST;
    if (clock_agrees(&from->clock, &to->clock, &counts->passed_ns, &counts->other_ns))
        counts->passed_ns = counts->other_ns;
}

void guard_add(struct guard_counts *sum, const struct guard_counts *counts)
{
    if (counts->passed_ns != counts->other_ns) {
        sum->passed_ns = counts->passed_ns;
        sum->other_ns = counts->other_ns;
    }
    if (counts->delayed_percent > sum->delayed_percent)
        sum->used_percent = counts->used_percent;
    sum->pauses += counts->pauses;
    sum->shortages += counts->shortages;
    sum->drops = counts->drops > sum->drops ? counts->drops : sum->drops;
    sum->throttled_percent = fmax(sum->throttled_percent, counts->throttled_percent);
    sum->delayed_percent = fmax(sum->delayed_percent, counts->delayed_percent);
    sum->stolen_percent = fmax(sum->stolen_percent, counts->stolen_percent);
    sum->is_throttled |= counts->is_throttled;
    sum->is_starved |= counts->is_starved;
}

/* ---- the verdict ---- */

int guard_check_clock(const struct guard_counts *counts)
{
    return counts->passed_ns == counts->other_ns
               ? 0
               : fail(EPROTO,
                      "the clock is unreliable: %.3f s passed on CLOCK_MONOTONIC and %.3f s on "
                      "another clock of the kernel; it was set, slewed, or the machine slept",
                      (double)counts->passed_ns * 1e-9, (double)counts->other_ns * 1e-9);
}

enum guard_grade guard_judge(const struct guard_counts *counts, guard_tell *tell, void *context)
{
    enum guard_grade worst = GUARD_NOTICE;
    char text[256];
#define SAY(grade, ...)                            \
    do {                                           \
        snprintf(text, sizeof text, __VA_ARGS__);  \
        tell(context, grade, text);                \
        worst = (grade) > worst ? (grade) : worst; \
    } while (0)

    if (guard_check_clock(counts))
        SAY(GUARD_INVALID, "%.255s", fail_reason());
    else if (counts->pauses)
        SAY(GUARD_INVALID,
            "the process was stopped and continued (SIGSTOP, Ctrl-Z, a debugger, a frozen control "
            "group, or a batch system's suspend): its time includes the pause");
    if (shortage_code())
        SAY(GUARD_INVALID, "%s: figures may be missing or wrong: %.160s",
            fail_errno_text(shortage_code()), shortage_what());
    else if (counts->shortages)
        SAY(GUARD_INVALID, "too many open files on another rank, which names one: figures may be "
                           "missing or wrong");
    if (counts->is_throttled)
        SAY(GUARD_DEGRADED,
            "CPU quota: the control group was throttled %.0f%% of the time: rates are those of its "
            "quota",
            counts->throttled_percent);
    else if (counts->delayed_percent >= DELAYED_MOST && counts->used_percent < OWN_LOAD)
        SAY(GUARD_NOTICE, "others had the CPUs: a thread waited for one %.0f%% of the time",
            counts->delayed_percent);
    if (counts->stolen_percent >= STOLEN_MOST)
        SAY(GUARD_NOTICE, "the hypervisor had the CPUs %.0f%% of the time (steal)",
            counts->stolen_percent);
    if (counts->drops)
        SAY(GUARD_NOTICE, "another process dropped the machine's page cache meanwhile (%llu)",
            (unsigned long long)counts->drops);
#undef SAY
    return worst;
}
