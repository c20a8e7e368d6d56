/* SPDX-License-Identifier: Apache-2.0
 * Four ranks, three of them made up: what one learns of their numbers, words and silence, by hand.
 */
#include "tests/unit/manual_clock.h"
#include "tests/unit/unit.h"

#include "ranks/words.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { RANKS = 4 };
static const uint64_t SECOND = 1000000000;
static const char kinds[] = "OALM"; /* of words: call off, arrives, lives, misses */

static struct {
    const uint64_t *numbers;           /* of all ranks, gathered; NULL: all have mine */
    const char *words;                 /* heard, each "1O23 ": second, kind, number, from */
    uint32_t beats;                    /* bits of ranks that are heard once a second */
    uint64_t begin_ns, beat_ns[RANKS]; /* of the last */
    bool never_done;
    char called[64], told[256];
    uint32_t signs;
} script;

static int fake_gather(void *state, const void *mine, uint64_t bytes, void *all)
{
    (void)state;
    for (uint32_t i = 0; i < RANKS; i++)
        memcpy((uint8_t *)all + i * bytes, mine, bytes);
    if (script.numbers && bytes == sizeof *script.numbers)
        memcpy(all, script.numbers, RANKS * bytes);
    return 0;
}

static int fake_test(void *state, bool *done)
{
    (void)state;
    *done = !script.never_done;
    return 0;
}

/* Looking takes a millisecond. */
static int fake_hear(void *state, uint32_t *from, uint64_t *word, bool *heard)
{
    const uint64_t passed_ns = manual_clock_ns - script.begin_ns;

    (void)state;
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
    manual_clock_ns += *heard ? 0 : 1000000;
    return 0;
}

static int fake_call(void *state, uint32_t to, uint64_t word)
{
    const size_t used = strlen(script.called);

    (void)state;
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
    (void)context;
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

static uint32_t other_than(uint64_t first, uint64_t second, uint64_t third, uint64_t fourth)
{
    struct ranks ranks = start(0);
    const uint64_t all[RANKS] = {first, second, third, fourth};
    uint32_t other = RANKS;

    script.numbers = all;
    assert_int_equal(ranks_compare(&ranks, first, &other), 0);
    return other;
}

static void the_first_other_rank_is_found(void **unused)
{
    const uint64_t large = UINT64_C(1) << 63;

    (void)unused;
    assert_int_equal(other_than(7, 7, 7, 7), 0);
    assert_int_equal(other_than(0, 0, 0, 0), 0);
    assert_int_equal(other_than(7, 7, 7, 8), 3);
    assert_int_equal(other_than(7, 9, 7, 8), 1);
    assert_int_equal(other_than(7, 8, 8, 8), 1);
    assert_int_equal(other_than(large, large, 0, large), 2);
    struct ranks alone = ranks_alone();
    uint32_t other = 1;
    assert_int_equal(ranks_compare(&alone, 5, &other), 0);
    assert_int_equal(other, 0);
}

#define UNRESPONSIVE " waited 10 s: another rank is unresponsive"
#define NOT_COME " was told that a rank failed, but another one did not come to hear why"

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
        {0, 10, 6, "1A01 1A02 1A03 ", 0, 11, UNRESPONSIVE ": rank 3 on d", ""},
        {2, 10, 10, "", 0, 10, "rank 2 on c" UNRESPONSIVE, "A00 "},
        {0, 0, 6, "1O01 ", 0, 9, NOT_COME ": rank 1 on b, rank 2 on c, rank 3 on d",
         "M01 M02 M03 "},
        {2, 0, 1, "1O00 2M00 ", 0, 5, "rank 2 on c" NOT_COME, "A00 "},
        {1, 0, 0, "", -1, 5, "rank 1 on b" NOT_COME, "O00 O02 O03 A00 "},
        {2, 0, 1, "1O00 ", 0, 64, "rank 2 on c" NOT_COME, "A00 "},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t hearers = cases[i].rank ? 1 : 3, signs = cases[i].silence_s ? hearers : 0;
        struct ranks ranks = start(cases[i].rank);
        uint64_t waited_ns = 0;
        ranks.silence_ns = cases[i].silence_s * SECOND;
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
        assert_true(ranks.is_broken && ranks.is_unheard);
        assert_string_equal(script.called, cases[i].called);
        assert_in_range(script.signs, 20 * signs, 23 * signs); /* two a second */
    }
}

static void a_call_off_is_heard_once(void **unused)
{
    struct ranks ranks = start(0);

    (void)unused;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_other_rank_is_found),
        cmocka_unit_test(silence_and_patience_end),
        cmocka_unit_test(a_call_off_is_heard_once),
    };

    alarm(PATIENCE_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
