/* SPDX-License-Identifier: Apache-2.0
 * Four ranks, three of them made up: what one learns of their words and silence, by hand. Then a
 * team of real ones, each of whose calls fails in turn: all that they say of it is a saved page. */
#include "tests/unit/golden.h"
#include "tests/unit/manual_clock.h"
#include "tests/unit/team.h"

#include "ranks/plugins.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <unistd.h>

enum { RANKS = 4 };
static const uint64_t SECOND = 1000000000;
static const char kinds[] = "OALM"; /* of words: call off, arrives, lives, misses */

static struct {
    const char *words;                 /* heard, each "1O23 ": second, kind, number, from */
    uint32_t beats;                    /* bits of ranks that are heard once a second */
    uint64_t begin_ns, beat_ns[RANKS]; /* of the last */
    bool never_done;
    char called[64], told[256];
    uint32_t signs, looks;
} script;

static int fake_gather(void *state, const void *mine, uint64_t bytes, void *all)
{
    for (uint32_t i = 0; i < RANKS; i++)
        memcpy((uint8_t *)all + i * bytes, mine, bytes);
    return 0;
}

static int fake_test(void *state, bool *done)
{
    *done = !script.never_done;
    return 0;
}

/* Looking takes a millisecond. */
static int fake_hear(void *state, uint32_t *from, uint64_t *word, bool *heard)
{
    const uint64_t passed_ns = manual_clock_ns - script.begin_ns;

    *heard = false;
    for (uint32_t i = 0; i < RANKS && !*heard; i++)
        if (script.beats >> i & 1 && passed_ns >= script.beat_ns[i] + SECOND) {
            script.beat_ns[i] = passed_ns;
            *from = i, *word = WORD_LIVES, *heard = true;
        }
    if (!*heard && script.words && *script.words &&
        passed_ns >= (uint64_t)(script.words[0] - '0') * SECOND) {
        *word = word_of((uint64_t)(script.words[2] - '0'),
                        (enum word_kind)(strchr(kinds, script.words[1]) - kinds));
        *from = (uint32_t)(script.words[3] - '0'), *heard = true;
        script.words += 5;
    }
    script.looks++;
    manual_clock_ns += *heard ? 0 : 1000000;
    return 0;
}

static int fake_call(void *state, uint32_t to, uint64_t word)
{
    const size_t used = strlen(script.called);

    if (word % WORD_KINDS == WORD_LIVES)
        script.signs++;
    else
        snprintf(script.called + used, sizeof script.called - used, "%c%u%u ",
                 kinds[word % WORD_KINDS], (unsigned)(word / WORD_KINDS), to);
    return 0;
}

static const struct ranks_ops fake = {
    .gather = fake_gather, .test = fake_test, .hear = fake_hear, .call = fake_call};

static void hear_told(void *context, const char *text)
{
    snprintf(script.told + strlen(script.told), sizeof script.told - strlen(script.told), "%s|",
             text);
}

static struct ranks start(uint32_t rank)
{
    static struct ranks_peer peers[RANKS];

    memset(&script, 0, sizeof script);
    script.begin_ns = manual_clock_ns;
    for (uint32_t i = 0; i < RANKS; i++)
        peers[i] = (struct ranks_peer){.host = {(char)('a' + i)}};
    return (struct ranks){.ops = &fake,
                          .place = {.rank = rank, .ranks = RANKS, .host = {(char)('a' + rank)}},
                          .peers = peers,
                          .waiting = hear_told};
}

#define UNRESPONSIVE " waited 10 s: another rank is unresponsive"
#define NOT_COME " a rank failed, and another one did not come to learn why"

/* What ends a wait after how many seconds, and whom that blames. */
static void silence_and_patience_end(void **unused)
{
    static const struct {
        uint32_t rank, silence_s, beats;
        const char *words;
        int own;
        uint32_t ends_s;
        const char *reason, *called;
    } cases[] = {
        {0, 10, 2, "1A03 ", 0, 10, "rank 0 on a" UNRESPONSIVE ": rank 2 on c", ""},
        {0, 10, 2, "1A03 ", EIO, 10, "own (unresponsive: rank 1 on b, rank 2 on c)", ""},
        {0, 10, 2, "1A03 5L02 ", 0, 15, "rank 0 on a" UNRESPONSIVE ": rank 2 on c", ""},
        {0, 10, 6, "1A01 1A02 1A03 ", 0, 11, UNRESPONSIVE ": rank 3 on d", ""},
        {2, 10, 10, "", 0, 10, "rank 2 on c" UNRESPONSIVE, "A00 "},
        {0, 0, 6, "1O01 ", 0, 9, NOT_COME ": rank 1 on b, rank 2 on c, rank 3 on d",
         "M01 M02 M03 "},
        {2, 0, 1, "1O00 2M00 ", 0, 5, "rank 2 on c" NOT_COME, "A00 "},
        {1, 0, 0, "", -1, 5, "rank 1 on b" NOT_COME, "O00 O02 O03 A00 "},
        {2, 0, 1, "1O00 ", 0, 64, "rank 2 on c" NOT_COME, "A00 "},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t hearers = cases[i].rank ? 1 : 3, signs = cases[i].silence_s ? hearers : 0;
        struct ranks ranks = start(cases[i].rank);
        uint64_t waited_ns = 0;
        ranks.rank_timeout_ns = cases[i].silence_s * SECOND;
        script.never_done = true;
        script.beats = cases[i].beats;
        script.words = cases[i].words;
        const int code = cases[i].own > 0 ? fail(cases[i].own, "own") : 0;
        if (cases[i].own < 0) /* who knows the cause does not wait for others to tell theirs */
            ranks_call_off(&ranks);
        assert_int_equal(ranks_meet(&ranks, code, &waited_ns), code ? code : -ETIMEDOUT);
        const char *end = strstr(fail_reason(), cases[i].reason);
        assert_true(end && !end[strlen(cases[i].reason)]);
        assert_in_range(waited_ns / 1000000, cases[i].ends_s * 1000, cases[i].ends_s * 1000 + 20);
        if (i == 0)
            assert_string_equal(script.told, "waiting for rank 1 on b, rank 2 on c, 5 s so far|");
        if (i == 3) /* all have come */
            assert_string_equal(script.told, "");
        assert_true(ranks.is_broken && ranks.is_unheard);
        assert_string_equal(script.called, cases[i].called);
        /* two a second */
        assert_in_range(script.signs, 2 * cases[i].ends_s * signs,
                        (2 * cases[i].ends_s + 3) * signs);
    }
}

static void a_call_off_is_heard_once(void **unused)
{
    struct ranks ranks = start(0);

    ranks.meetings = 2;
    script.words = "1O13 2O23 "; /* of a meeting that has ended; of the next */
    manual_clock_ns += SECOND;
    assert_int_equal(ranks_watch(&ranks, manual_clock_ns), 0);
    assert_string_equal(script.words, "2O23 ");
    manual_clock_ns += SECOND;
    assert_int_equal(ranks_watch(&ranks, manual_clock_ns), -ECANCELED);
    ranks_call_off(&ranks); /* not once more */
    assert_string_equal(script.called, "");
    assert_int_equal(ranks_meet(&ranks, 0, NULL), 0);
    assert_false(ranks_called_off(&ranks));
}

/* ---- what blocks, and what computes ---- */

static sem_t told_enough;
static uint32_t looks_until_told;

static void hear_of_work(void *context, const char *text)
{
    hear_told(context, text);
    if (strstr(text, " 20 s")) {
        looks_until_told = script.looks; /* a millisecond each, and half of one between them */
        sem_post(&told_enough);
    }
}

static int work_long(void *context)
{
    *(int *)context += 1;
    while (sem_wait(&told_enough))
        ;
    return fail(EDOM, "once");
}

static void slow_work_is_told(void **unused)
{
    static const char told[] =
        "slow work, 5 s so far|slow work, 10 s so far|slow work, 20 s so far|";
    struct ranks ranks = start(0), alone = ranks_alone();
    int worked = 0;

    sem_init(&told_enough, 0, 0);
    ranks.waiting = hear_of_work;
    ranks.rank_timeout_ns = SECOND;
    assert_int_equal(ranks_do(&ranks, "slow work", work_long, &worked), -EDOM);
    assert_string_equal(fail_reason(), "once");
    assert_int_equal(worked, 1);
    assert_memory_equal(script.told, told, sizeof told - 1);
    assert_true(script.signs > 2 * 3 * 19);
    assert_in_range(looks_until_told, 13000, 15500);
    sem_post(&told_enough);
    assert_int_equal(ranks_do(&alone, "slow work", work_long, &worked), -EDOM);
    assert_int_equal(worked, 2);
}

static void a_watch_tells_and_ends(void **unused)
{
    struct ranks ranks = start(0);
    int code = 0;

    for (int wait = 0; wait < 2; wait++) { /* each tells anew */
        const uint64_t start_ns = manual_clock_ns;
        while (code == 0 && manual_clock_ns < start_ns + (wait ? 6 : 11) * SECOND)
            code = ranks_watch(&ranks, start_ns);
        assert_int_equal(code, 0);
    }
    assert_string_equal(script.told, "waiting for other ranks, 5 s so far|"
                                     "waiting for other ranks, 10 s so far|"
                                     "waiting for other ranks, 5 s so far|");
    ranks.rank_timeout_ns = 3 * SECOND;
    const uint64_t start_ns = manual_clock_ns;
    while (code == 0)
        code = ranks_watch(&ranks, start_ns);
    assert_int_equal(code, -ETIMEDOUT);
    assert_int_equal((manual_clock_ns - start_ns) / 10000000, 300);
    assert_string_equal(fail_reason(), "rank 0 on a waited 3 s: another rank is unresponsive: rank "
                                       "1 on b, rank 2 on c, rank 3 on d");
}

static bool is_shared;

static bool fake_is_shared(const void *state)
{
    return is_shared;
}

/* The heart waits for times of this clock on the machine's: it looks all the time. */
static void await_looks(void)
{
    for (const unsigned before = manual_clock_asked; manual_clock_asked < before + 5;)
        poll(NULL, 0, 1);
}

static void a_heart_beats_for_who_computes(void **unused)
{
    struct ranks ranks = start(2), alone = ranks_alone();
    struct ranks_ops ops = fake;

    ops.is_shared = fake_is_shared;
    ranks.ops = alone.ops = &ops;
    assert_int_equal(ranks_heart_start(&ranks), 0);
    is_shared = true;
    assert_int_equal(ranks_heart_start(&alone), 0);
    assert_true(!ranks.heart && !alone.heart);
    manual_clock_ns = SECOND;
    for (int i = 0; i < 2; i++)
        assert_int_equal(ranks_heart_start(&ranks), 0);
    await_looks();
    assert_non_null(ranks.heart);
    assert_int_equal(script.signs, 0);
    manual_clock_ns++;
    await_looks();
    assert_int_equal(script.signs, 1);
    ranks_heart_stop(&ranks);
    manual_clock_ns++;
    await_looks();
    assert_int_equal(script.signs, 2);
    ranks_heart_stop(&ranks);
    assert_null(ranks.heart);
    ranks_heart_stop(&ranks);
}

/* ---- what a launcher says ---- */

static int lost_or_alone(struct ranks *ranks)
{
    return fail(EDOM, "joined%s", ranks->is_lost ? ", but lost" : "");
}

static void launchers_mark_their_processes(void **unused)
{
    static const char *const rows[] = {
        "",
        "OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0",
        "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_LOCAL_RANK=0",
        "PMI_SIZE=3 PMI_RANK=0 MPI_LOCALRANKID=1 PMIX_RANK=0",
        "PMI_SIZE=2 PMI_RANK=1 PMIX_RANK=0 MPI_LOCALRANKID=0 FLUX_TASK_LOCAL_ID=1",
        "PMIX_RANK=1 FLUX_TASK_LOCAL_ID=2",
        "SLURM_STEP_NUM_TASKS=5 SLURM_PROCID=3 SLURM_LOCALID=0",
        "SLURM_STEP_NUM_TASKS=5 SLURM_PROCID=0 SLURM_LOCALID=1",
        "SLURM_PROCID=3 SLURM_LOCALID=1",
    };
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE",
                                        "PMI_SIZE",
                                        "SLURM_STEP_NUM_TASKS",
                                        "OMPI_COMM_WORLD_RANK",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID",
                                        "FLUX_TASK_LOCAL_ID",
                                        "SLURM_PROCID",
                                        "SLURM_LOCALID"};
    char library[RANKS_LIBRARY_BYTES], row[256];

    golden_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct team team = {.ranks = 1, .per_node = 1, .act = lost_or_alone};
        const char *says = "";
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            unsetenv(names[k]);
        strcpy(row, rows[i]);
        for (char *word = strtok(row, " "); word; word = strtok(NULL, " "))
            putenv(word);
        const int count = ranks_started(&says);
        fprintf(golden, "%s\n  %d by %s%s%s\n", rows[i], count, says ? says : "none",
                ranks_speaks() ? ", speaks" : "", ranks_leads_host() ? ", leads its host" : "");
        team_run(&team);
        team_print(&team, golden);
    }
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        unsetenv(names[k]);
    assert_true(ranks_are_launched());
    fprintf(golden, "%s\n", ranks_library(library));
    golden_end("ranks-launchers.txt");
}

/* The last test: nothing else joins after it. */
static void who_stays_alone_asks_nobody(void **unused)
{
    struct ranks ranks;

    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    ranks_stay_alone();
    assert_false(ranks_are_launched());
    assert_int_equal(ranks_join(&ranks), 0);
    assert_int_equal(ranks.place.ranks, 1);
    assert_int_equal(ranks.place.cpus, 4);
    assert_string_equal(ranks.peers->host, ranks.place.host);
    ranks_leave(&ranks, false);
    assert_null(ranks.state);
}

/* ---- a team ---- */

#define REQUIRE(call)     \
    do {                  \
        int code_ = call; \
        if (code_)        \
            return code_; \
    } while (0)

static int act_in_turn(void *context)
{
    const struct ranks *ranks = context;

    fprintf(golden, "turn of rank %u\n", ranks->place.rank);
    return 0;
}

/* All collectives; what each learns is printed at its end, while the others stand still. */
static int agree(struct ranks *ranks)
{
    const struct ranks_place *place = &ranks->place;
    double sums[3] = {place->rank + 1, 10.5 * place->rank, 5};
    uint32_t word[2] = {place->rank + 7, place->rank}, other, last, none;
    struct ranks_memory memory = {0};
    struct ranks_clock clock;
    uint64_t waited_ns = 0;

    REQUIRE(ranks_sum(ranks, sums, 2));
    REQUIRE(ranks_broadcast(ranks, word, sizeof word));
    REQUIRE(ranks_compare(ranks, (place->rank + 1) / 2, &other));
    REQUIRE(ranks_compare(ranks, UINT64_C(5) << (place->rank == 3 ? 61 : 60), &last));
    REQUIRE(ranks_compare(ranks, 0, &none));
    if (place->rank == 1)
        clock_sleep_ns(30000000);
    REQUIRE(ranks_meet(ranks, 0, &waited_ns));
    REQUIRE(ranks_in_turn(ranks, act_in_turn, ranks));
    REQUIRE(ranks_compare_clocks(ranks, &clock));
    int code = ranks_share(ranks, 65, &memory);
    if (code == 0) {
        memset(ranks_memory_of(&memory, place->local_rank), 'a' + (int)place->rank, 65);
        code = ranks_meet(ranks, 0, NULL);
    }
    if (code == 0) {
        fprintf(golden, "rank %u of %u, %u of %u on node %u of %u, %s, %u CPUs:", place->rank,
                place->ranks, place->local_rank, place->local_ranks, place->node, place->nodes,
                place->host, place->cpus);
        for (uint32_t i = 0; i < place->ranks; i++)
            fprintf(golden, " %s%s %u", ranks->peers[i].leads ? "*" : "", ranks->peers[i].host,
                    ranks->peers[i].node);
        fprintf(golden,
                "; sums %g %g %g; word %u %u; other %u %u %u; waited %.2f ms; ahead %.3f +-%.3f ms "
                "at %.1f; memory %llu of %llu:",
                sums[0], sums[1], sums[2], word[0], word[1], other, last, none,
                (double)waited_ns * 1e-6, (double)clock.ahead_ns * 1e-6,
                (double)clock.uncertainty_ns * 1e-6, (double)clock.at_ns * 1e-6 - 1e3,
                (unsigned long long)memory.each_bytes, (unsigned long long)memory.bytes);
        for (uint32_t i = 0; i < place->local_ranks; i++)
            fprintf(golden, " %.66s", (const char *)ranks_memory_of(&memory, i));
        fprintf(golden, "; %llu meetings, %llu gathers\n", (unsigned long long)ranks->meetings,
                (unsigned long long)ranks->gathers);
        code = ranks_meet(ranks, 0, NULL);
    }
    ranks_unshare(&memory);
    return memory.start ? fail(EPROTO, "not unshared") : code;
}

static void a_team_agrees(void **unused)
{
    struct team team = {.ranks = TEAM_MOST, .per_node = 2, .act = agree};
    static const uint32_t node_one = 1, node_two = 2;

    golden_begin();
    team_run(&team);
    team_print(&team, golden);
    team.per_node = TEAM_MOST; /* which has a launcher */
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    team_run(&team);
    unsetenv("OMPI_COMM_WORLD_SIZE");
    team_print(&team, golden);
    for (int lie = 0; lie < 2; lie++) {
        struct team liars = {.ranks = 3, .per_node = 2, .act = agree, .lies = 1};
        liars.node = lie ? &node_two : &node_one;
        fprintf(golden, "\nrank 1 says that its node is %u\n", *liars.node);
        team_run(&liars);
        team_print(&liars, golden);
    }
    golden_end("ranks-agree.txt");
}

/* Codes and reasons of three ranks; 125 is that of a rank that was called off. */
static const struct {
    int codes[3];
    const char *reasons[3];
} verdict_rows[] = {
    {{0, EIO, 0}, {"", "r", ""}},
    {{ECANCELED, EIO, EPERM}, {"q", "r", "s"}},
    {{EPERM, EIO, ECANCELED}, {"q", "r", "s"}},
    {{EIO, EIO, EPERM}, {"r", "s", "r"}},
    {{EIO, EIO, EIO}, {"r", "r", "r"}},
    {{EIO, EIO, EPERM}, {"r", "r", "r"}},
    {{EIO, EIO, EIO}, {"r", "r", "s"}},
    {{0, ECANCELED, ECANCELED}, {"", "r", "s"}},
    {{0, 0, 5000}, {"", "", "r"}},
    {{-7, 0, 0}, {"r", "", ""}},
};
static size_t verdict_row;

static int fail_as_told(struct ranks *ranks)
{
    const int code = verdict_rows[verdict_row].codes[ranks->place.rank];

    if (code)
        fail(code, "%s", verdict_rows[verdict_row].reasons[ranks->place.rank]);
    const int met = ranks_meet(ranks, -code, NULL);
    if (ranks->place.rank == 0)
        fprintf(golden, "%zu: %d\n", verdict_row, met);
    return met;
}

static void the_first_cause_is_named(void **unused)
{
    golden_begin();
    for (verdict_row = 0; verdict_row < sizeof verdict_rows / sizeof *verdict_rows; verdict_row++) {
        struct team team = {.ranks = 3, .per_node = 1, .act = fail_as_told};
        team_run(&team);
        team_print(&team, golden);
    }
    for (verdict_row = 0; verdict_row < 9; verdict_row++) { /* while they tell each other */
        struct team team = {.ranks = 3, .per_node = 1, .act = fail_as_told, .fails = TEAM_DONE};
        team.rank = (uint32_t)verdict_row % 3;
        team.nth = 2 + (uint32_t)verdict_row / 3;
        team_run(&team);
        team_print(&team, golden);
    }
    golden_end("ranks-verdicts.txt");
}

/* Each call of each of three ranks fails once. */
static void every_call_fails_in_turn(void **unused)
{
    golden_begin();
    for (int call = 0; call < TEAM_CALLS; call++)
        for (uint32_t rank = 0; rank < 3; rank++)
            for (uint32_t nth = 1;; nth += call == TEAM_GATHER || nth < 2 ? 1 : 20) {
                struct team team = {.ranks = 3,
                                    .per_node = 2,
                                    .act = agree,
                                    .fails = (enum team_call)call,
                                    .rank = rank,
                                    .nth = nth};
                const long before = ftell(golden);
                team_run(&team);
                fseek(golden, before, SEEK_SET);
                if (!team.has_failed)
                    break;
                fprintf(golden, "%s %u of rank %u\n", team_calls[call], nth, rank);
                team_print(&team, golden);
            }
    golden_end("ranks-failures.txt");
}

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_and_patience_end),
        cmocka_unit_test(a_call_off_is_heard_once),
        cmocka_unit_test(slow_work_is_told),
        cmocka_unit_test(a_watch_tells_and_ends),
        cmocka_unit_test(a_heart_beats_for_who_computes),
        cmocka_unit_test(launchers_mark_their_processes),
        cmocka_unit_test(a_team_agrees),
        cmocka_unit_test(the_first_cause_is_named),
        cmocka_unit_test(every_call_fails_in_turn),
        cmocka_unit_test(who_stays_alone_asks_nobody),
    };

    alarm(PATIENCE_S);
    renew = argument_count > 1 ? arguments[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
