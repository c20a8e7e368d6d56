/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/team.h"
#include "tests/unit/manual_clock.h"

#include "base/thread.h"
#include "ranks/plugins.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 4096, SHM = 4, SKEW_NS = 7000000 };
const char *const team_calls[] = {"join", "gather", "send", "receive", "done", "call", "shm"};

static struct team *team;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t turn, idle; /* idle: passes since something moved */
static bool is_ended;

static struct seat {
    pthread_cond_t runs;
    bool ended;
    enum { NOTHING, GATHERS, SENDS, RECEIVES } pending;
    uint32_t gathers, peer, calls;
    void *into;
    const void *message[TEAM_MOST]; /* sent to each, not yet taken */
    uint64_t bytes, sent_bytes[TEAM_MOST];
    uint64_t words[WORDS];
    uint32_t from[WORDS], heard, called;
} seats[TEAM_MOST];

static struct round {
    uint32_t arrived;
    uint64_t bytes;
    unsigned char *data;
} rounds[2];

static struct {
    char name[64];
    int file;
} shm[SHM];

_Thread_local uint32_t team_rank = TEAM_MOST;
#define me team_rank

static void next(void)
{
    for (uint32_t i = 0; i < team->ranks && (i == 0 || seats[turn].ended); i++)
        turn = (turn + 1) % team->ranks;
    pthread_cond_signal(&seats[turn].runs);
}

void team_moved(void)
{
    idle = 0;
}

void team_pass(uint64_t duration_ns)
{
    if (me == TEAM_MOST)
        return;
    if (++idle > 8 * team->ranks && team->clock == TEAM_SLOW) {
        usleep(1000);
        manual_clock_ns += 100000;
    } else if (idle > team->ranks && team->clock != TEAM_SLOW) {
        manual_clock_ns += duration_ns;
    }
    if (!is_ended && !team->step_ns && manual_clock_ns > 300000000000)
        team->hangs = is_ended = true;
    pthread_mutex_lock(&lock);
    next();
    while (turn != me)
        pthread_cond_wait(&seats[me].runs, &lock);
    pthread_mutex_unlock(&lock);
}

static void sleep_here(uint64_t duration_ns)
{
    const uint64_t until_ns = manual_clock_ns + duration_ns, most_ns = 20000000;

    do
        team_pass(until_ns - manual_clock_ns < most_ns ? until_ns - manual_clock_ns : most_ns);
    while (me != TEAM_MOST && manual_clock_ns < until_ns && !is_ended);
}

int sched_yield(void)
{
    team_pass(20000);
    return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    clock_sleep_ns((uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec);
    return 0;
}

/* Ranks 0 and 1 share CPU 2, and ranks 1 and 3 CPU 3, but not a node. */
int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *cpus)
{
    static const unsigned sets[TEAM_MOST + 1] = {0x17, 0x0c, 0x70, 0x08, 0x0f};

    (void)process;
    memset(cpus, 0, bytes);
    for (unsigned i = 0; i < 8; i++)
        if (sets[me] >> i & 1)
            CPU_SET(i, cpus);
    return 0;
}

/* ---- the transport ---- */

static int fault(enum team_call call)
{
    if (is_ended) {
        seats[me].pending = NOTHING;
        return fail(EINTR, "ended");
    }
    if (!team->nth || call != team->fails || me != team->rank || ++seats[me].calls != team->nth)
        return 0;
    team->has_failed = true;
    return fail(EIO, "%s fails", team_calls[call]);
}

static int team_join(void *state, struct ranks_place *place)
{
    *place = (struct ranks_place){.rank = me,
                                  .ranks = team->ranks,
                                  .local_rank = me % team->per_node,
                                  .local_ranks = team->per_node,
                                  .node = me / team->per_node,
                                  .nodes = (team->ranks + team->per_node - 1) / team->per_node};
    snprintf(place->host, sizeof place->host, "host%u", me / team->per_node);
    if (team->node && team->lies == me)
        place->node = *team->node;
    return fault(TEAM_JOIN);
}

static void team_leave(void *state, bool orderly)
{
    team_moved();
    team->orderly[me] = orderly;
    is_ended |= !orderly; /* by the launcher */
}

static int team_gather(void *state, const void *mine, uint64_t bytes, void *all)
{
    struct seat *seat = &seats[me];
    struct round *round = &rounds[seat->gathers % 2];
    const int code = fault(TEAM_GATHER);

    if (code)
        return code;
    assert(seat->pending == NOTHING);
    if (round->arrived == 0 || round->arrived == team->ranks) {
        free(round->data);
        *round = (struct round){.bytes = bytes, .data = malloc(team->ranks * bytes)};
    }
    if (bytes != round->bytes) /* after a failure */
        return fail(EPROTO, "ranks do not gather alike");
    memcpy(round->data + me * bytes, mine, bytes);
    team_moved();
    seat->gathers++;
    round->arrived++;
    seat->into = all;
    seat->pending = GATHERS;
    return 0;
}

static int team_move(void *state, uint32_t other, void *message, uint64_t bytes, bool sends)
{
    struct seat *seat = &seats[me];
    const int code = fault(sends ? TEAM_SEND : TEAM_RECEIVE);

    if (code)
        return code;
    if (sends) {
        seat->message[other] = message;
        seat->sent_bytes[other] = bytes;
    }
    seat->into = message;
    seat->bytes = bytes;
    seat->peer = other;
    seat->pending = sends ? SENDS : RECEIVES;
    return 0;
}

static int team_test(void *state, bool *done)
{
    struct seat *seat = &seats[me], *peer = &seats[seat->peer];

    *done = false;
    if (seat->pending == GATHERS) {
        const struct round *round = &rounds[(seat->gathers + 1) % 2];
        *done = round->arrived == team->ranks;
        if (*done)
            memcpy(seat->into, round->data, team->ranks * round->bytes);
    } else if (seat->pending == SENDS) {
        *done = !seat->message[seat->peer];
    } else if (seat->pending == RECEIVES && peer->message[me]) {
        assert(seat->bytes == peer->sent_bytes[me]);
        memcpy(seat->into, peer->message[me], seat->bytes);
        peer->message[me] = NULL;
        *done = true;
    }
    if (*done) {
        seat->pending = NOTHING;
        team_moved();
    }
    return *done || is_ended ? fault(TEAM_DONE) : 0;
}

static int team_call(void *state, uint32_t to, uint64_t word)
{
    struct seat *seat = &seats[to];
    const int code = fault(TEAM_CALL);

    if (code)
        return code;
    assert(to < team->ranks && to != me && seat->called < seat->heard + WORDS);
    seat->from[seat->called % WORDS] = me;
    seat->words[seat->called++ % WORDS] = word;
    return 0;
}

static int team_hear(void *state, uint32_t *from, uint64_t *word, bool *heard)
{
    struct seat *seat = &seats[me];

    *heard = seat->heard < seat->called;
    if (*heard) {
        *from = seat->from[seat->heard % WORDS];
        *word = seat->words[seat->heard++ % WORDS];
    }
    return 0;
}

static void team_library(char *text, size_t bytes)
{
    snprintf(text, bytes, "Team");
}

static const struct ranks_ops ranks_team = {.plugin = {.name = "team", .state_size = 1},
                                            .join = team_join,
                                            .leave = team_leave,
                                            .gather = team_gather,
                                            .move = team_move,
                                            .test = team_test,
                                            .call = team_call,
                                            .hear = team_hear,
                                            .library = team_library};

const struct plugin *const ranks_registry[] = {&ranks_team.plugin, &ranks_none.plugin, NULL};

/* ---- memory shared by name ---- */

pid_t getpid(void)
{
    return 70 + (pid_t)me;
}

int shm_open(const char *name, int flags, mode_t mode)
{
    uint32_t i = 0, spare = SHM;

    assert(mode == 0600 && name[0] == '/');
    if (fault(TEAM_SHM))
        return errno = EMFILE, -1;
    for (; i < SHM && strcmp(shm[i].name, name) != 0; i++)
        spare = shm[i].name[0] ? spare : i;
    if (i < SHM)
        return flags & O_EXCL ? (errno = EEXIST, -1) : dup(shm[i].file);
    if (!(flags & O_CREAT))
        return errno = ENOENT, -1;
    assert(spare < SHM);
    snprintf(shm[spare].name, sizeof shm[spare].name, "%s", name);
    shm[spare].file = memfd_create("shm", MFD_CLOEXEC);
    return dup(shm[spare].file);
}

int ftruncate(int file, off_t bytes)
{
    return fault(TEAM_SHM) ? (errno = ENOSPC, -1) : (int)syscall(SYS_ftruncate, file, bytes);
}

int shm_unlink(const char *name)
{
    for (uint32_t i = 0; i < SHM; i++)
        if (strcmp(shm[i].name, name) == 0) {
            close(shm[i].file);
            shm[i].name[0] = '\0';
        }
    return 0;
}

/* ---- a run ---- */

static int be_a_rank(void *argument)
{
    struct ranks ranks;

    me = (uint32_t)((struct seat *)argument - seats);
    pthread_mutex_lock(&lock);
    while (turn != me)
        pthread_cond_wait(&seats[me].runs, &lock);
    pthread_mutex_unlock(&lock);
    manual_clock_ahead_ns = me / team->per_node * SKEW_NS;
    fail_clear();
    int code = ranks_join(&ranks);
    ranks.rank_timeout_ns = team->rank_timeout_ns;
    if (code == 0)
        code = team->act(&ranks);
    team->codes[me] = code;
    strcpy(team->reasons[me], fail_reason());
    team->ended_ns[me] = manual_clock_ns;
    ranks_leave(&ranks, code != 0);
    pthread_mutex_lock(&lock);
    seats[me].ended = true;
    next();
    pthread_mutex_unlock(&lock);
    return 0;
}

void team_run(struct team *of)
{
    struct thread threads[TEAM_MOST] = {0};

    team = of;
    turn = 0;
    is_ended = false;
    manual_clock_sleeps = sleep_here;
    manual_clock_ns = 1000000000;
    manual_clock_step_ns = team->step_ns;
    manual_clock_late_ns = team->clock == TEAM_LATE ? 5000000 : 0;
    memset(rounds, 0, sizeof rounds);
    memset(seats, 0, sizeof seats);
    for (uint32_t i = 0; i < team->ranks; i++)
        pthread_cond_init(&seats[i].runs, NULL);
    for (uint32_t i = 0; i < team->ranks; i++)
        assert_int_equal(thread_start(&threads[i], "rank", be_a_rank, &seats[i]), 0);
    for (uint32_t i = 0; i < team->ranks; i++)
        assert_int_equal(thread_join(&threads[i]), 0);
    for (uint32_t i = 0; i < 2; i++)
        free(rounds[i].data);
    for (uint32_t i = 0; i < SHM; i++)
        assert_string_equal(shm[i].name, "");
}

void team_print(const struct team *from, FILE *page)
{
    uint32_t printed = 0;

    if (from->hangs)
        fprintf(page, "  HANGS\n");
    for (uint32_t i = 0; i < from->ranks; i++) {
        if (printed >> i & 1)
            continue;
        for (uint32_t k = i; k < from->ranks; k++)
            if (from->codes[k] == from->codes[i] && from->orderly[k] == from->orderly[i] &&
                (!from->codes[i] || strcmp(from->reasons[k], from->reasons[i]) == 0)) {
                printed |= 1u << k;
                fprintf(page, "%s%u", k == i ? "  " : ",", k);
            }
        if (from->clock != TEAM_SLOW && !from->step_ns)
            fprintf(page, " %.2f s", (double)from->ended_ns[i] * 1e-9 - 1);
        fprintf(page, "%s: %s\n", from->orderly[i] ? "" : ", aborts",
                from->codes[i] ? from->reasons[i] : "good");
    }
}
