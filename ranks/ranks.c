/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks/ranks.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"
#include "ranks/plugins.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- a single process, without peers ---- */

static int none_join(void *state, struct ranks_place *place)
{
    (void)state;
    *place = (struct ranks_place){.ranks = 1, .local_ranks = 1, .nodes = 1};
    gethostname(place->host, sizeof place->host - 1);
    return 0;
}

static int none_gather(void *state, const void *mine, uint64_t bytes, void *all)
{
    (void)state;
    memcpy(all, mine, bytes);
    return 0;
}

const struct ranks_ops ranks_none = {
    .plugin = {.name = "none", .summary = "one process, alone"},
    .join = none_join,
    .gather = none_gather,
};

enum { SUMS_MAX = 8 };

static const uint64_t awake_ns = 1000000, nap_least_ns = 50000, nap_most_ns = 500000;
/* Time before reporting which ranks are missing; doubled after each report. */
static const uint64_t tell_ns = UINT64_C(5000000000);
/* After a failure ranks wait for one that is silent, and for one that is alive but does not come:
 * in a long step, or in a call that never returns. */
static const uint64_t patience_ns = UINT64_C(5000000000);
static const uint64_t patience_most_ns = UINT64_C(60000000000);
/* The others wait longer than the rank that knows the cause, which so reports it first. */
static const uint64_t patience_others_ns = UINT64_C(3000000000);

struct ranks ranks_alone(void)
{
    struct ranks ranks = {.ops = &ranks_none};

    none_join(NULL, &ranks.place);
    ranks.place.cpus = thread_cpu_count();
    return ranks;
}

struct rank_seat {
    uint32_t node, local_rank, cpu_count;
    char host[RANKS_HOST_BYTES];
    cpu_set_t cpus;
};

/* Host and CPUs of a rank: CPUs may be shared, hosts are identified by name. */
static int sit_down(struct ranks *ranks)
{
    struct rank_seat mine = {.node = ranks->place.node,
                             .local_rank = ranks->place.local_rank,
                             .cpu_count = thread_cpu_count()};
    struct rank_seat *all = memory_array(ranks->place.ranks, sizeof *all);

    assert(ranks->place.rank < ranks->place.ranks);
    ranks->peers = memory_array(ranks->place.ranks, sizeof *ranks->peers);
    if (!all || !ranks->peers) {
        free(all);
        return -ENOMEM;
    }
    ranks->place.cpus = mine.cpu_count;
    memcpy(mine.host, ranks->place.host, sizeof mine.host);
    int code = sched_getaffinity(0, sizeof mine.cpus, &mine.cpus) ? -errno : 0;
    if (code) /* more CPUs than the set can hold: treated as not shared */
        CPU_ZERO(&mine.cpus);
    int gathered = ranks_gather(ranks, &mine, sizeof mine, all);
    if (code == 0 && gathered == 0) {
        /* A launcher may bind each rank to its own CPUs, or several ranks to the same CPUs. */
        double share = 0;
        for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            unsigned users = 0;
            if (!CPU_ISSET(cpu, &mine.cpus))
                continue;
            for (uint32_t i = 0; i < ranks->place.ranks; i++)
                users += all[i].node == mine.node && CPU_ISSET(cpu, &all[i].cpus);
            share += 1.0 / users;
        }
        if (share > mine.cpu_count) /* limited by a control group */
            share = mine.cpu_count;
        ranks->place.cpus = share < 1 ? 1 : (uint32_t)share;
    }
    uint32_t leaders = 0;
    for (uint32_t i = 0; gathered == 0 && i < ranks->place.ranks; i++) {
        memcpy(ranks->peers[i].host, all[i].host, sizeof all[i].host - 1);
        ranks->peers[i].node = all[i].node;
        ranks->peers[i].leads = all[i].local_rank == 0;
        leaders += ranks->peers[i].leads;
        if (all[i].node >= ranks->place.nodes || leaders > ranks->place.nodes)
            gathered =
                fail(EPROTO, "rank %u reports node %u of %u", i, all[i].node, ranks->place.nodes);
    }
    free(all);
    return gathered;
}

static bool is_no_rank;

void ranks_stay_alone(void)
{
    is_no_rank = true;
}

int ranks_started(const char **says)
{
    static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                         "SLURM_STEP_NUM_TASKS"};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const char *count = getenv(counts[i]);
        if (count && atoi(count) > 1) {
            *says = counts[i];
            return atoi(count);
        }
    }
    *says = NULL;
    return 1;
}

/* The first that works here; the last always does. */
static int choose_transport(void)
{
    int i = 0;

    while (ranks_registry[i + 1] && (is_no_rank || plugin_usable(ranks_registry[i])))
        i++;
    return i;
}

/* If it is a front end, those of its module. NULL with a reason. */
static const struct ranks_ops *ops_of(const struct plugin *plugin)
{
    return (const struct ranks_ops *)(const void *)module_plugin(plugin);
}

bool ranks_are_launched(void)
{
    return ranks_registry[choose_transport() + 1] != NULL;
}

void ranks_permit(void)
{
    static const char *const settings[][2] = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
        {"OMPI_MCA_hwloc_base_binding_policy", "none"},
        {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
    };

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 0);
}

int ranks_join(struct ranks *ranks)
{
    const struct ranks_ops *ops = ops_of(ranks_registry[choose_transport()]);

    if (!ops) {
        *ranks = ranks_alone();
        return -ENODEV;
    }
    /* One rank until it has joined: nobody is there to hear of a failure. */
    *ranks = (struct ranks){
        .ops = ops, .state = memory_zeroed(ops->plugin.state_size + 1), .place = {.ranks = 1}};
    int code = ranks->state ? ops->join(ranks->state, &ranks->place) : -ENOMEM;
    if (code == 0) {
        const char *says;
        const int started = ranks->place.ranks == 1 && !is_no_rank ? ranks_started(&says) : 1;
        ranks->is_lost = started > 1; /* each would act as the whole job */
        code =
            ranks->is_lost
                ? fail(ENODEV,
                       "%s=%d: these processes were started together but cannot find each other: "
                       "with srun, choose what this program's MPI supports (srun --mpi=list; often "
                       "--mpi=pmix); mpirun must be that of the MPI it was built with, if any; "
                       "iobench doctor --launch, started the same way, says which",
                       says, started)
                : sit_down(ranks);
    }
    if (code && !ranks->peers && !ranks->is_lost) { /* the launcher has to tell the others */
        ranks->place.ranks = 1;
        ranks->is_broken = ranks->is_unheard = true;
    }
    return code;
}

/* Decide by the first of three marks that a launcher set, else by Slurm's; a process without a mark
 * is the first. */
static bool is_first(const char *const marks[3], const char *slurm_mark)
{
    /* Without a number of tasks each is on its own. */
    const char *mark = getenv("SLURM_STEP_NUM_TASKS") ? getenv(slurm_mark) : NULL;

    for (int i = 2; i >= 0; i--)
        mark = getenv(marks[i]) ? getenv(marks[i]) : mark;
    return !mark || strcmp(mark, "0") == 0;
}

bool ranks_speaks(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

    return is_first(marks, "SLURM_PROCID");
}

bool ranks_leads_host(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "FLUX_TASK_LOCAL_ID"};

    return is_first(marks, "SLURM_LOCALID");
}

const char *ranks_library(char *text)
{
    text[0] = '\0';
    for (int i = 0; ranks_registry[i] && !text[0]; i++) {
        const struct ranks_ops *ops = ops_of(ranks_registry[i]);
        if (ops && ops->library)
            ops->library(text, RANKS_LIBRARY_BYTES);
        if (!ops)
            fail_clear();
    }
    return text;
}

/* ---- waiting ---- */

/* Call a word to those that hear from this rank: rank 0 hears from every rank, and every rank from
 * rank 0. Also for the heart's thread, if is_shared(). */
static void send_word(struct ranks *ranks, uint64_t word)
{
    const uint32_t end = ranks->place.rank == 0 ? ranks->place.ranks : 1;

    for (uint32_t i = ranks->place.rank == 0; ranks->ops->call && i < end; i++)
        ranks->ops->call(ranks->state, i, word);
}

/* On rank 0: all others have reached this collective. What they send to it may still be on its way,
 * and a rank that is stopped in between is as silent as one that never came. */
static bool have_all_come(const struct ranks *ranks)
{
    for (uint32_t i = 1; i < ranks->place.ranks; i++)
        if (ranks->peers[i].gathers <= ranks->gathers)
            return false;
    return true;
}

/* Time of the last heartbeat of the awaited rank heard longest ago, the start of the wait at the
 * earliest. Rank 0 awaits those that have not come, then the data of all. */
static uint64_t silent_since(const struct ranks *ranks, uint64_t start_ns)
{
    const bool leads = ranks->place.rank == 0, came = leads && have_all_come(ranks);
    uint64_t since_ns = UINT64_MAX;

    for (uint32_t i = 0; i < ranks->place.ranks; i++) {
        const struct ranks_peer *peer = &ranks->peers[i];
        const bool is_awaited = leads ? i && (came || peer->gathers <= ranks->gathers) : !i;
        if (is_awaited && peer->heard_ns < since_ns)
            since_ns = peer->heard_ns;
    }
    return since_ns < start_ns ? start_ns : since_ns;
}

/* Name the awaited ranks that were last heard of before this time; UINT64_MAX: all that have not
 * arrived. On rank 0 only, since the others hear of nobody else. "rank 3 on c7, rank 5 on c9"; ""
 * if there are none.
 */
static const char *missing_since(const struct ranks *ranks, uint64_t before_ns, char *text,
                                 size_t text_bytes)
{
    const bool came = before_ns != UINT64_MAX && have_all_come(ranks);
    size_t used = 0;

    text[0] = '\0';
    if (ranks->place.rank != 0)
        return text;
    for (uint32_t i = 1; i < ranks->place.ranks; i++)
        if ((came || ranks->peers[i].gathers <= ranks->gathers) &&
            ranks->peers[i].heard_ns <= before_ns && used + 32 < text_bytes)
            used += (size_t)snprintf(text + used, text_bytes - used, "%srank %u on %.16s",
                                     used ? ", " : "", i, ranks->peers[i].host);
    return text;
}

/* Rank 0 says what it has been doing since then; what: "" is nothing. */
static void tell(const struct ranks *ranks, const char *before, const char *what, uint64_t since_ns)
{
    char text[320];

    if (!ranks->waiting || ranks->place.rank != 0 || !what[0])
        return;
    snprintf(text, sizeof text, "%s%.260s, %llu s so far", before, what,
             (unsigned long long)(since_ns / 1000000000));
    ranks->waiting(ranks->waiting_context, text);
}

/* before_ns: names the ranks last heard before. */
static int give_up(struct ranks *ranks, const char *what, uint64_t before_ns)
{
    char who[256];

    ranks->is_broken = ranks->is_unheard = true;
    missing_since(ranks, before_ns, who, sizeof who);
    return fail(ETIMEDOUT, "rank %u on %s %s%s%s", ranks->place.rank, ranks->place.host, what,
                who[0] ? ": " : "", who);
}

/* Give up if a rank that is waited for has been silent for too long. */
static int check_silence(struct ranks *ranks, uint64_t start_ns, uint64_t now_ns)
{
    const uint64_t since_ns = ranks->rank_timeout_ns ? silent_since(ranks, start_ns) : UINT64_MAX;
    char text[80];

    if (since_ns > now_ns || now_ns - since_ns < ranks->rank_timeout_ns)
        return 0;
    snprintf(text, sizeof text, "waited %llu s: another rank is unresponsive",
             (unsigned long long)((now_ns - since_ns) / 1000000000));
    return give_up(ranks, text, now_ns - ranks->rank_timeout_ns);
}

/* Returns 0 unless the wait should be abandoned. */
static int lose_patience(struct ranks *ranks, uint64_t start_ns, uint64_t now_ns)
{
    if (!ranks_called_off(ranks))
        return check_silence(ranks, start_ns, now_ns);
    const uint64_t since_ns = silent_since(ranks, ranks->call_off_ns);
    if (ranks->missed_ns == 0 && ((since_ns < now_ns && now_ns - since_ns > patience_ns) ||
                                  now_ns > ranks->call_off_ns + patience_most_ns)) {
        ranks->missed_ns = now_ns;
        if (ranks->place.rank == 0) /* the others do not hear of that rank */
            send_word(ranks, word_of(ranks->meetings, WORD_MISSES));
    }
    if (ranks->missed_ns == 0 ||
        now_ns < ranks->missed_ns + (ranks->is_culprit ? 0 : patience_others_ns))
        return 0;
    return give_up(ranks, "a rank failed, and another one did not come to learn why", UINT64_MAX);
}

int ranks_watch(struct ranks *ranks, uint64_t start_ns)
{
    const uint64_t now_ns = clock_now_ns();

    if (ranks->place.ranks == 1)
        return 0;
    if (ranks_called_off(ranks))
        return fail(ECANCELED, "another rank failed");
    /* Report a wait without naming ranks: none says that it has reached an exchange. */
    if (ranks->watch_start_ns != start_ns) {
        ranks->watch_start_ns = start_ns;
        ranks->watch_tell_ns = tell_ns;
    }
    if (now_ns - start_ns >= ranks->watch_tell_ns) {
        ranks->watch_tell_ns *= 2;
        tell(ranks, "waiting for ", "other ranks", now_ns - start_ns);
    }
    return check_silence(ranks, start_ns, now_ns);
}

void ranks_pause(uint64_t waited_ns)
{
    const uint64_t part_ns = waited_ns / 64;

    if (waited_ns < awake_ns)
        sched_yield(); /* ranks may share CPUs */
    else
        clock_sleep_ns(part_ns < nap_least_ns  ? nap_least_ns
                       : part_ns > nap_most_ns ? nap_most_ns
                                               : part_ns);
}

static int wait_done(struct ranks *ranks)
{
    const uint64_t start_ns = clock_now_ns();
    uint64_t next_tell_ns = tell_ns;
    bool done = false;
    char who[256];

    while (ranks->ops->test) {
        int code = ranks->ops->test(ranks->state, &done);
        if (code || done)
            return code;
        const uint64_t now_ns = clock_now_ns(), waited_ns = now_ns - start_ns;
        code = lose_patience(ranks, start_ns, now_ns);
        if (code)
            return code;
        if (waited_ns >= next_tell_ns) {
            tell(ranks, "waiting for ", missing_since(ranks, UINT64_MAX, who, sizeof who),
                 waited_ns);
            next_tell_ns *= 2;
        }
        ranks_pause(waited_ns);
    }
    return 0;
}

/* After a failed transfer no other one would match those of the other ranks: the launcher has to
 * end them. */
static int transferred(struct ranks *ranks, int code)
{
    if (code)
        ranks->is_broken = ranks->is_unheard = true;
    return code;
}

int ranks_gather(struct ranks *ranks, const void *mine, uint64_t bytes, void *all)
{
    int code = ranks->is_unheard ? -ETIMEDOUT : 0;

    if (code == 0 && ranks->place.rank != 0 && ranks->ops->call)
        code = ranks->ops->call(ranks->state, 0, word_of(ranks->gathers, WORD_ARRIVES));
    if (code == 0)
        code = ranks->ops->gather(ranks->state, mine, bytes, all);
    if (code == 0)
        code = wait_done(ranks);
    ranks->gathers += code == 0;
    return transferred(ranks, code);
}

void *ranks_collect(struct ranks *ranks, int *code, const void *mine, uint64_t bytes)
{
    void *all = memory_array(ranks->place.ranks, bytes);

    assert(bytes > 0 && ranks->place.rank < ranks->place.ranks);
    if (!all && *code == 0)
        *code = -ENOMEM;
    *code = ranks_meet(ranks, *code, NULL);
    if (*code == 0)
        *code = ranks_gather(ranks, mine, bytes, all);
    if (*code == 0)
        return all;
    free(all);
    return NULL;
}

int ranks_compare(struct ranks *ranks, uint64_t number, uint32_t *other)
{
    int code = 0;
    uint64_t *all = ranks_collect(ranks, &code, &number, sizeof number);

    *other = 0;
    for (uint32_t i = ranks->place.ranks - 1; all && i > 0; i--)
        if (all[i] != all[0])
            *other = i;
    free(all);
    return code;
}

int ranks_broadcast(struct ranks *ranks, void *data, uint64_t bytes)
{
    int code = 0;
    void *all = ranks_collect(ranks, &code, data, bytes);

    if (all)
        memcpy(data, all, bytes);
    free(all);
    return code;
}

int ranks_move(struct ranks *ranks, uint32_t other, void *message, uint64_t bytes, bool sends)
{
    assert(other < ranks->place.ranks && other != ranks->place.rank);
    int code = ranks->ops->move(ranks->state, other, message, bytes, sends);

    return transferred(ranks, code ? code : wait_done(ranks));
}

int ranks_sum(struct ranks *ranks, double *values, uint32_t count)
{
    double mine[SUMS_MAX] = {0};
    double *all = memory_array(ranks->place.ranks, sizeof mine);

    assert(count <= SUMS_MAX);
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

enum { ERRNO_MOST = 4095 };

struct verdict {
    int code;
    char host[RANKS_HOST_BYTES];
    char reason[FAIL_REASON_BYTES / 2];
};

/* Collective: the reason of the first rank that failed by itself; others were only aborted. */
static int learn_why(struct ranks *ranks, int code)
{
    const uint32_t count = ranks->place.ranks;
    struct verdict mine = {.code = code};
    struct verdict *all = memory_array(count, sizeof *all);
    uint32_t culprit = count;
    bool alike = true;

    if (!all)
        return -ENOMEM;
    memcpy(mine.host, ranks->place.host, sizeof mine.host);
    snprintf(mine.reason, sizeof mine.reason, "%.*s", (int)sizeof mine.reason - 1,
             code ? fail_reason() : "");
    int verdict = ranks_gather(ranks, &mine, sizeof mine, all);
    for (uint32_t i = count; verdict == 0 && i-- > 0;) {
        all[i].host[sizeof all[i].host - 1] = all[i].reason[sizeof all[i].reason - 1] = '\0';
        if (all[i].code > 0 || all[i].code < -ERRNO_MOST)
            all[i].code = -EPROTO;
        if (all[i].code &&
            (all[i].code != -ECANCELED || culprit == count || all[culprit].code == -ECANCELED))
            culprit = i;
    }
    const struct verdict *why = &all[culprit % count];
    for (uint32_t i = 0; verdict == 0 && i < count; i++)
        alike = alike && all[i].code == why->code && strcmp(all[i].reason, why->reason) == 0;
    if (verdict == 0 && culprit == count)
        verdict = fail(EPROTO, "a rank failed without a report: are all ranks of the same build?");
    else if (verdict == 0)
        verdict = alike ? fail(-why->code, "%s", why->reason)
                        : fail(-why->code, "rank %u on %s: %s", culprit, why->host, why->reason);
    free(all);
    return verdict;
}

int ranks_meet(struct ranks *ranks, int code, uint64_t *waited_ns)
{
    const uint64_t start_ns = clock_now_ns();
    char own[FAIL_REASON_BYTES];
    bool any = false;

    if (ranks->place.ranks == 1 || ranks->is_unheard)
        return code ? code : ranks->is_unheard ? -ETIMEDOUT : 0;
    snprintf(own, sizeof own, "%s", code ? fail_reason() : "");
    int *codes = memory_array(ranks->place.ranks, sizeof *codes);
    int met = codes ? ranks_gather(ranks, &code, sizeof code, codes) : -ENOMEM;
    for (uint32_t i = 0; met == 0 && i < ranks->place.ranks; i++)
        any = any || codes[i];
    free(codes);
    if (waited_ns)
        *waited_ns = clock_now_ns() - start_ns;
    if (met == 0 && any)
        met = learn_why(ranks, code);
    /* Not every rank arrived. This rank's own failure explains most; otherwise the unresponsive
     * rank is all there is to report. */
    if (ranks->is_unheard && code) {
        char who[256] = "";
        if (met == -ETIMEDOUT)
            missing_since(ranks, UINT64_MAX, who, sizeof who);
        met = fail(-code, "rank %u on %s: %s%s%s%s", ranks->place.rank, ranks->place.host, own,
                   who[0] ? " (unresponsive: " : "", who, who[0] ? ")" : "");
    }
    ranks->meetings++;
    ranks->call_off_ns = ranks->missed_ns = 0;
    ranks->is_culprit = false;
    return met;
}

void ranks_call_off(struct ranks *ranks)
{
    if (ranks->place.ranks == 1 || ranks->call_off_ns)
        return;
    ranks->is_culprit = true;
    ranks->call_off_ns = clock_now_ns();
    for (uint32_t i = 0; i < ranks->place.ranks; i++)
        if (i != ranks->place.rank && ranks->ops->call)
            ranks->ops->call(ranks->state, i, word_of(ranks->meetings, WORD_CALL_OFF));
}

bool ranks_called_off(struct ranks *ranks)
{
    uint32_t from;
    uint64_t word;
    bool heard = true;
    while (ranks->ops->hear && ranks->ops->hear(ranks->state, &from, &word, &heard) == 0 && heard) {
        const uint64_t number = word / WORD_KINDS, kind = word % WORD_KINDS;
        ranks->peers[from].heard_ns = clock_now_ns();
        if (kind == WORD_ARRIVES)
            ranks->peers[from].gathers = number + 1;
        else if (kind == WORD_CALL_OFF && number == ranks->meetings &&
                 ranks->call_off_ns == 0) /* older ones have ended */
            ranks->call_off_ns = clock_now_ns();
        else if (kind == WORD_MISSES && number == ranks->meetings && ranks->missed_ns == 0)
            ranks->missed_ns = clock_now_ns();
    }
    /* A rank that works for long is slow, not unresponsive: give a sign. */
    const uint64_t now_ns = clock_now_ns();
    if (ranks->rank_timeout_ns && now_ns >= ranks->sign_ns + RANKS_SIGN_NS) {
        ranks->sign_ns = now_ns;
        send_word(ranks, word_of(0, WORD_LIVES));
    }
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
    if (ranks->ops->leave)
        ranks->ops->leave(ranks->state, orderly);
    free(ranks->peers);
    free(ranks->state);
    ranks->peers = NULL;
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

/* ---- alone, while the others wait ---- */

struct task {
    int (*act)(void *context);
    void *context;
    struct flag done;
};

static int act_task(void *argument)
{
    struct task *task = argument;
    int code = task->act(task->context);

    flag_set(&task->done);
    return code;
}

int ranks_do(struct ranks *ranks, const char *what, int (*act)(void *context), void *context)
{
    const uint64_t start_ns = clock_now_ns();
    struct task task = {.act = act, .context = context};
    struct thread thread = {0};
    uint64_t next_tell_ns = tell_ns;

    if (ranks->place.ranks == 1)
        return act(context);
    int code = thread_start(&thread, "alone", act_task, &task);
    while (code == 0 && !flag_get(&task.done)) {
        const uint64_t since_ns = clock_now_ns() - start_ns;
        ranks_called_off(ranks); /* the heartbeat */
        if (since_ns >= next_tell_ns) {
            tell(ranks, "", what, since_ns);
            next_tell_ns *= 2;
        }
        ranks_pause(since_ns);
    }
    return code ? code : thread_join(&thread);
}

/* ---- the heart ---- */

/* A thread that sends heartbeats while the main thread computes, as in one step of minutes, which
 * calls nobody. It vouches for that thread alone, by its CPU time: one that blocks, on a dead disk
 * say, spends none, and sends heartbeats only if it wakes to send them itself. */
struct ranks_heart {
    struct ranks *ranks;
    struct thread thread;
    pthread_t vouched; /* the main thread */
    pthread_mutex_t lock;
    pthread_cond_t stops;
    bool is_stopped;
    uint32_t users; /* jobs that take turns */
};

static int beat(void *argument)
{
    struct ranks_heart *heart = argument;
    uint64_t before_ns = clock_cpu_of_ns(heart->vouched);

    for (;;) {
        const uint64_t until_ns = clock_now_ns() + RANKS_SIGN_NS;
        bool more = true;
        pthread_mutex_lock(&heart->lock);
        while (!heart->is_stopped && more)
            more = thread_condition_wait(&heart->stops, &heart->lock, until_ns);
        more = !heart->is_stopped;
        pthread_mutex_unlock(&heart->lock);
        if (!more)
            return 0;
        const uint64_t cpu_ns = clock_cpu_of_ns(heart->vouched);
        if (cpu_ns > before_ns)
            send_word(heart->ranks, word_of(0, WORD_LIVES));
        before_ns = cpu_ns;
    }
}

int ranks_heart_start(struct ranks *ranks)
{
    if (ranks->place.ranks == 1 || !ranks->ops->is_shared || !ranks->ops->is_shared(ranks->state))
        return 0;
    if (ranks->heart) {
        ranks->heart->users++;
        return 0;
    }
    struct ranks_heart *heart = memory_zeroed(sizeof *heart);
    if (!heart)
        return -ENOMEM;
    heart->users = 1;
    heart->ranks = ranks;
    heart->vouched = pthread_self();
    pthread_mutex_init(&heart->lock, NULL);
    thread_condition_init(&heart->stops);
    ranks->heart = heart;
    return thread_start(&heart->thread, "heart", beat, heart);
}

void ranks_heart_stop(struct ranks *ranks)
{
    struct ranks_heart *heart = ranks->heart;

    if (!heart)
        return;
    assert(heart->users > 0);
    if (--heart->users)
        return;
    pthread_mutex_lock(&heart->lock);
    heart->is_stopped = true;
    pthread_cond_signal(&heart->stops);
    pthread_mutex_unlock(&heart->lock);
    thread_join(&heart->thread);
    pthread_cond_destroy(&heart->stops);
    pthread_mutex_destroy(&heart->lock);
    free(heart);
    ranks->heart = NULL;
}

/* ---- clocks ---- */

/* Offsets between nodes: each node's lowest rank queries rank 0's clock, one node at a time, as in
 * NTP (RFC 5905, section 8). */
enum { QUESTIONS = 40 };

int ranks_compare_clocks(struct ranks *ranks, struct ranks_clock *clock)
{
    const uint32_t rank = ranks->place.rank;
    int code = 0;

    *clock = (struct ranks_clock){.at_ns = clock_now_ns()};
    for (uint32_t other = 1; other < ranks->place.ranks && code == 0; other++) {
        uint64_t least_ns = UINT64_MAX;
        if (!ranks->peers[other].leads || (rank != 0 && rank != other))
            continue;
        for (int i = 0; i < QUESTIONS && code == 0; i++) {
            /* One asks, rank 0 answers with its time. */
            const uint64_t start_ns = clock_now_ns();
            uint64_t time_ns = start_ns;
            code = ranks_move(ranks, rank ? 0 : other, &time_ns, sizeof time_ns, rank);
            if (rank == 0)
                time_ns = clock_now_ns();
            if (code == 0)
                code = ranks_move(ranks, rank ? 0 : other, &time_ns, sizeof time_ns, !rank);
            const uint64_t took_ns = clock_now_ns() - start_ns;
            if (code || rank == 0 || took_ns >= least_ns)
                continue;
            least_ns = took_ns;
            *clock = (struct ranks_clock){.at_ns = start_ns + took_ns / 2,
                                          .ahead_ns = (int64_t)(start_ns + took_ns / 2 - time_ns),
                                          .uncertainty_ns = (took_ns + 1) / 2};
        }
    }
    return ranks_meet(ranks, code, NULL);
}

/* ---- memory shared by the ranks of a node ----
 *
 * The lowest rank creates it under a unique name, the others open it, then the name is removed. */

struct offer {
    uint32_t node;
    bool leads;
    char name[64];
};

static int map(int file, struct ranks_memory *memory)
{
    void *start = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE,
                       file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, file, 0);

    if (start == MAP_FAILED)
        return fail(errno, "memory shared by the ranks of a node: %s", fail_errno_text(errno));
    memory->start = start;
    return 0;
}

static int open_named(const char *name, bool makes, struct ranks_memory *memory)
{
    int file = shm_open(name, makes ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
    int code = 0;

    if (file < 0)
        return fail(errno, "%s, memory shared by the ranks of a node: %s", name,
                    fail_errno_text(errno));
    if (makes && ftruncate(file, (off_t)memory->bytes))
        code = fail(errno, "%s: %s", name, fail_errno_text(errno));
    if (code == 0)
        code = map(file, memory);
    close(file);
    return code;
}

int ranks_share(struct ranks *ranks, uint64_t each_bytes, struct ranks_memory *memory)
{
    const uint64_t line_bytes = 64; /* ranks never share a cache line */
    const bool leads = ranks->place.local_rank == 0;
    struct offer mine = {.node = ranks->place.node, .leads = leads};

    each_bytes = (each_bytes + line_bytes - 1) / line_bytes * line_bytes;
    *memory = (struct ranks_memory){.each_bytes = each_bytes,
                                    .bytes = each_bytes * ranks->place.local_ranks};
    if (ranks->place.ranks == 1)
        return map(-1, memory);
    snprintf(mine.name, sizeof mine.name, "/iobench-%d-%llx", (int)getpid(),
             (unsigned long long)clock_now_ns());
    int code = leads ? open_named(mine.name, true, memory) : 0;
    struct offer *offers = ranks_collect(ranks, &code, &mine, sizeof mine);
    for (uint32_t i = 0; offers && !leads && i < ranks->place.ranks; i++)
        if (offers[i].leads && offers[i].node == ranks->place.node)
            code = open_named(offers[i].name, false, memory);
    if (code == 0 && !memory->start)
        code = fail(EPROTO, "no rank of this node shares memory");
    code = ranks_meet(ranks, code, NULL);
    if (leads)
        shm_unlink(mine.name);
    free(offers);
    return code;
}

void ranks_unshare(struct ranks_memory *memory)
{
    if (memory->start)
        munmap(memory->start, memory->bytes);
    memory->start = NULL;
}

void *ranks_memory_of(const struct ranks_memory *memory, uint32_t local_rank)
{
    assert(memory->start && memory->each_bytes * local_rank < memory->bytes);
    return (char *)memory->start + memory->each_bytes * local_rank;
}
