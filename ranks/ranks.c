/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks/ranks.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"
#include "ranks/plugins.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUMS_MAX = 8 };

/* A wait begins awake, for ranks that come at the same time, and goes on in naps: the CPUs are for
 * those that still work. */
static const uint64_t awake_ns = 1000000, nap_ns = 50000;
/* For one that is stuck; whoever knows why speaks first. */
static const uint64_t patience_culprit_ns = UINT64_C(5000000000);
static const uint64_t patience_ns = UINT64_C(8000000000);

struct ranks ranks_alone(void)
{
    struct ranks ranks = {.ops = &ranks_none};

    ranks_none.join(NULL, &ranks.place);
    ranks.place.cpus = thread_cpu_count();
    return ranks;
}

struct seat {
    uint32_t node, cpu_count;
    cpu_set_t cpus;
};

/* A launcher may bind each rank to CPUs of its own, or to some that several share. */
static uint32_t share_of(const struct seat *mine, const struct seat *all, uint32_t ranks)
{
    double share = 0;

    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        unsigned users = 0;
        if (!CPU_ISSET(cpu, &mine->cpus))
            continue;
        for (uint32_t i = 0; i < ranks; i++)
            users += all[i].node == mine->node && CPU_ISSET(cpu, &all[i].cpus);
        share += 1.0 / users;
    }
    if (share > mine->cpu_count) /* a control group allows less */
        share = mine->cpu_count;
    return share < 1 ? 1 : (uint32_t)share;
}

static int share_cpus(struct ranks *ranks)
{
    struct seat mine = {.node = ranks->place.node, .cpu_count = thread_cpu_count()};
    struct seat *all = memory_array(ranks->place.ranks, sizeof *all);

    if (!all)
        return -ENOMEM;
    ranks->place.cpus = mine.cpu_count;
    int code = sched_getaffinity(0, sizeof mine.cpus, &mine.cpus) ? -errno : 0;
    if (code) /* more CPUs than the set has room for: they are taken as everybody's own */
        CPU_ZERO(&mine.cpus);
    int gathered = ranks_gather(ranks, &mine, sizeof mine, all);
    if (code == 0 && gathered == 0)
        ranks->place.cpus = share_of(&mine, all, ranks->place.ranks);
    free(all);
    return gathered;
}

int ranks_join(struct ranks *ranks)
{
    int i = 0;

    while (ranks_registry[i + 1] && plugin_usable(ranks_registry[i]))
        i++;
    const struct ranks_ops *ops = (const struct ranks_ops *)(const void *)ranks_registry[i];
    *ranks = (struct ranks){.ops = ops, .state = memory_zeroed(ops->plugin.state_size + 1)};
    int code = ranks->state ? ops->join(ranks->state, &ranks->place) : -ENOMEM;
    return code ? code : share_cpus(ranks);
}

bool ranks_speaks(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (getenv(marks[i]))
            return strcmp(getenv(marks[i]), "0") == 0;
    return true;
}

/* ---- waiting ---- */

static int give_up(struct ranks *ranks)
{
    ranks->is_broken = ranks->is_unheard = true;
    return fail(ETIMEDOUT, "rank %u on %s: a rank failed, and another one did not come to hear why",
                ranks->place.rank, ranks->place.host);
}

static int wait_done(struct ranks *ranks)
{
    const uint64_t start_ns = clock_now_ns();
    const uint64_t patient_ns = ranks->is_culprit ? patience_culprit_ns : patience_ns;
    bool done = false;

    for (;;) {
        int code = ranks->ops->test(ranks->state, &done);
        if (code || done)
            return code;
        const uint64_t now_ns = clock_now_ns();
        if (ranks_called_off(ranks) && now_ns > ranks->call_off_ns + patient_ns)
            return give_up(ranks);
        if (now_ns - start_ns < awake_ns)
            sched_yield(); /* ranks may share CPUs */
        else
            clock_sleep_ns(nap_ns);
    }
}

int ranks_gather(struct ranks *ranks, const void *mine, uint64_t bytes, void *all)
{
    int code = ranks->ops->gather(ranks->state, mine, bytes, all);

    return code ? code : wait_done(ranks);
}

int ranks_send(struct ranks *ranks, uint32_t to, const void *message, uint64_t bytes)
{
    int code = ranks->ops->send(ranks->state, to, message, bytes);

    return code ? code : wait_done(ranks);
}

int ranks_receive(struct ranks *ranks, uint32_t from, void *message, uint64_t bytes)
{
    int code = ranks->ops->receive(ranks->state, from, message, bytes);

    return code ? code : wait_done(ranks);
}

int ranks_sum(struct ranks *ranks, double *values, uint32_t count)
{
    double mine[SUMS_MAX] = {0};
    double *all = memory_array(ranks->place.ranks, sizeof mine);

    if (!all)
        return -ENOMEM;
    memcpy(mine, values, count * sizeof *values);
    int code = ranks_gather(ranks, mine, sizeof mine, all);
    for (uint32_t i = 0; code == 0 && i < count; i++) {
        values[i] = 0;
        for (uint32_t rank = 0; rank < ranks->place.ranks; rank++)
            values[i] += all[rank * SUMS_MAX + i];
    }
    free(all);
    return code;
}

/* ---- failing together ---- */

struct verdict {
    int code;
    char host[RANKS_HOST_BYTES];
    char reason[FAIL_REASON_BYTES / 2];
};

/* The first that failed by itself: others were only called off. */
static uint32_t find_culprit(const struct verdict *verdicts, uint32_t ranks)
{
    uint32_t first = ranks;

    for (uint32_t i = 0; i < ranks; i++)
        if (verdicts[i].code && verdicts[i].code != -ECANCELED)
            return i;
        else if (verdicts[i].code && first == ranks)
            first = i;
    return first;
}

static int judge(const struct verdict *verdicts, uint32_t ranks)
{
    const uint32_t culprit = find_culprit(verdicts, ranks);
    const struct verdict *verdict = &verdicts[culprit];
    bool alike = true;

    for (uint32_t i = 0; i < ranks; i++)
        alike = alike && verdicts[i].code == verdict->code &&
                strcmp(verdicts[i].reason, verdict->reason) == 0;
    return alike
               ? fail(-verdict->code, "%s", verdict->reason)
               : fail(-verdict->code, "rank %u on %s: %s", culprit, verdict->host, verdict->reason);
}

static int learn_why(struct ranks *ranks, int code)
{
    struct verdict mine = {.code = code};
    struct verdict *all = memory_array(ranks->place.ranks, sizeof *all);

    if (!all)
        return -ENOMEM;
    memcpy(mine.host, ranks->place.host, sizeof mine.host);
    snprintf(mine.reason, sizeof mine.reason, "%.*s", (int)sizeof mine.reason - 1,
             code ? fail_reason() : "");
    int verdict = ranks_gather(ranks, &mine, sizeof mine, all);
    if (verdict == 0)
        verdict = judge(all, ranks->place.ranks);
    free(all);
    return verdict;
}

static int gather_codes(struct ranks *ranks, int code, bool *any)
{
    int *codes = memory_array(ranks->place.ranks, sizeof *codes);

    if (!codes)
        return -ENOMEM;
    int gathered = ranks_gather(ranks, &code, sizeof code, codes);
    for (uint32_t i = 0; gathered == 0 && i < ranks->place.ranks; i++)
        *any = *any || codes[i];
    free(codes);
    return gathered;
}

int ranks_meet(struct ranks *ranks, int code, uint64_t *waited_ns)
{
    const uint64_t start_ns = clock_now_ns();
    char own[FAIL_REASON_BYTES];
    bool any = false;

    if (ranks->place.ranks == 1)
        return code;
    snprintf(own, sizeof own, "%s", code ? fail_reason() : "");
    int met = gather_codes(ranks, code, &any);
    if (waited_ns)
        *waited_ns = clock_now_ns() - start_ns;
    if (met == 0 && any)
        met = learn_why(ranks, code);
    if (code && ranks->is_unheard) /* better known than that nobody came */
        met = fail(-code, "rank %u on %s: %s", ranks->place.rank, ranks->place.host, own);
    ranks->meetings++;
    ranks->call_off_ns = 0;
    ranks->is_culprit = false;
    return met;
}

void ranks_call_off(struct ranks *ranks)
{
    if (ranks->place.ranks == 1 || ranks->call_off_ns)
        return;
    ranks->is_culprit = true;
    ranks->call_off_ns = clock_now_ns();
    ranks->ops->call(ranks->state, ranks->meetings);
}

bool ranks_called_off(struct ranks *ranks)
{
    uint64_t meeting;
    bool heard = true;

    while (ranks->call_off_ns == 0 && heard &&
           ranks->ops->hear(ranks->state, &meeting, &heard) == 0)
        if (heard && meeting == ranks->meetings) /* older calls are over */
            ranks->call_off_ns = clock_now_ns();
    return ranks->call_off_ns != 0;
}

void ranks_leave(struct ranks *ranks, bool failed)
{
    bool orderly;

    if (!ranks->state)
        return;
    if (failed)
        ranks_call_off(ranks);
    orderly = ranks_meet(ranks, ranks->is_broken ? -EIO : 0, NULL) == 0;
    ranks->ops->leave(ranks->state, orderly);
    free(ranks->state);
    ranks->state = NULL;
}

/* ---- in turn ---- */

int ranks_in_turn(struct ranks *ranks, int (*act)(void *context), void *context)
{
    const struct ranks_place *place = &ranks->place;
    const uint32_t mine = place->rank == 0 ? 0 : place->local_rank == 0 ? 1 : 2;
    const uint32_t turns = place->ranks == 1 ? 1 : 3;
    int code = 0;

    for (uint32_t turn = 0; code == 0 && turn < turns; turn++)
        code = ranks_meet(ranks, turn == mine ? act(context) : 0, NULL);
    return code;
}
