/* SPDX-License-Identifier: Apache-2.0
 * The fabric between a team of ranks: what is measured over a transport of memory, whose messages
 * take as long as their link, and who is accused; and over TCP. Figures are saved pages. */
#include "tests/unit/golden.h"
#include "tests/unit/manual_clock.h"
#include "tests/unit/team.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cmd/net/measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- who is accused ---- */

enum { RANKS = 8, MOST = 16 };

/* Links differ by a few percent, as measured ones do; those of `slow`, "from to factor", by more. A
 * factor of 0: it was not measured. */
static void judge(uint32_t ranks, uint32_t per_node, const char *slow)
{
    static const char *const kinds[] = {"sender", "receiver", "link", "asymmetry"};
    double rates[RANKS * RANKS], between, within;
    uint32_t nodes[RANKS];
    struct suspect suspects[MOST];
    const struct matrix matrix = {ranks, ranks / per_node, nodes, rates, rates};
    char from, to;
    int skip;

    for (uint32_t i = 0; i < ranks * ranks; i++) {
        const uint32_t sender = i / ranks, receiver = i % ranks;
        nodes[sender] = sender / per_node;
        rates[i] = sender == receiver ? NAN
                                      : (sender / per_node == receiver / per_node ? 1e10 : 1e9) *
                                            (1 + 0.03 * ((sender * 5 + receiver * 3) % 7));
    }
    fprintf(golden, "%u ranks, %u on each node: %s\n", ranks, per_node, slow);
    for (double factor; sscanf(slow, " %c%c%lf%n", &from, &to, &factor, &skip) == 3; slow += skip)
        for (uint32_t i = 0; i < ranks * ranks; i++)
            if ((from == '*' || i / ranks == (uint32_t)(from - '0')) &&
                (to == '*' || i % ranks == (uint32_t)(to - '0')))
                rates[i] = factor > 0 ? rates[i] * factor : NAN;
    const int count = matrix_judge(&matrix, suspects, ranks == 7 ? 3 : MOST);
    for (int i = 0; i < count; i++)
        fprintf(golden, "  %s %u %u: %.4g of %.4g\n", kinds[suspects[i].kind], suspects[i].from,
                suspects[i].to, suspects[i].bytes_per_s, suspects[i].typical);
    assert_int_equal(matrix_median(&matrix, rates, false, &between), 0);
    assert_int_equal(matrix_median(&matrix, rates, true, &within), 0);
    fprintf(golden, "  medians %.5g %.5g\n", between, within);
}

static void the_slow_are_accused(void **unused)
{
    static const char *const rows[] = {
        "",            /* nothing stands out */
        "1*.25 *1.25", /* a node */
        "2*.2 *2.2",   /* hides not in the spread that it causes */
        "12.25 21.25",
        "30.25", /* a link; one direction */
        "01.74",
        "01.76",
        "*0.49",
        "0*.51",
        "10.45 20.4",
        "0*0 *00",
        "10.25 20.25 01.2 1*0",
        "*1.25 210",
    };

    golden_begin();
    for (uint32_t ranks = 2; ranks <= RANKS; ranks++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (ranks < 5 || i < 4 || ranks == 7)
                judge(ranks, 1, rows[i]);
    judge(8, 2, "");
    judge(8, 2, "4*.25 5*.25");
    judge(8, 2, "45.25");
    judge(8, 4, "45.25 15.2 *7.5");
    golden_end("fabric-suspects.txt");
}

static void test_rounds_meet_every_pair_once(void **state)
{
    for (uint32_t ranks = 2; ranks <= 33; ranks++) {
        int met[33][33] = {{0}};
        for (uint32_t round = 0; round < survey_rounds(ranks); round++)
            for (uint32_t rank = 0; rank < ranks; rank++) {
                const uint32_t partner = survey_partner(ranks, round, rank);
                assert_true(partner < ranks);
                assert_int_equal(survey_partner(ranks, round, partner), rank);
                met[rank][partner] += partner != rank;
            }
        for (uint32_t a = 0; a < ranks; a++)
            for (uint32_t b = 0; b < ranks; b++)
                assert_int_equal(met[a][b], a != b);
    }
}

static void test_every_byte_counts(void **state)
{
    const struct pattern pattern = {3, 7}, stale = {3, 6}, other = {2, 7};
    unsigned char data[77];

    pattern_fill(&pattern, data, sizeof data);
    assert_int_equal(pattern_check(&pattern, 0, data, sizeof data), 0);
    assert_int_equal(pattern_check(&pattern, 16, data + 16, sizeof data - 16), 0);
    assert_int_equal(pattern_check(&pattern, 8, data, 32), -EBADMSG);
    assert_int_equal(pattern_check(&stale, 0, data, sizeof data), -EBADMSG);
    assert_int_equal(pattern_check(&other, 0, data, sizeof data), -EBADMSG);
    for (size_t i = 0; i < sizeof data; i++) {
        char place[64];
        data[i] ^= 1;
        assert_int_equal(pattern_check(&pattern, 0, data, sizeof data), -EBADMSG);
        snprintf(place, sizeof place, "rank 3 arrived damaged at byte %zu:", i);
        assert_non_null(strstr(fail_reason(), place));
        data[i] ^= 1;
    }
}

static void test_sums(void **state)
{
    enum { FLOATS = 100, MANY = 5000 };
    static float one[FLOATS], sum[FLOATS];

    for (uint32_t rank = 0; rank < MANY; rank++) {
        const struct pattern pattern = {rank, 9};
        pattern_fill_floats(&pattern, (unsigned char *)one, sizeof one);
        for (int i = 0; i < FLOATS; i++)
            sum[i] += one[i];
    }
    assert_int_equal(pattern_check_sum(9, MANY, 0, (unsigned char *)sum, sizeof sum), 0);
    assert_int_equal(pattern_check_sum(9, MANY, 40, (unsigned char *)(sum + 10), 80), 0);
    assert_int_equal(pattern_check_sum(8, MANY, 0, (unsigned char *)sum, sizeof sum), -EBADMSG);
    sum[55] += 1;
    assert_int_equal(pattern_check_sum(9, MANY, 0, (unsigned char *)sum, sizeof sum), -EBADMSG);
    assert_non_null(strstr(fail_reason(), "byte 220"));
    sum[55] = NAN;
    assert_int_equal(pattern_check_sum(9, MANY, 0, (unsigned char *)sum, sizeof sum), -EBADMSG);
}

/* ---- a transport of memory ---- */

static struct end {
    struct transport_config config;
    unsigned char *memory; /* the arena, or a copy of it */
    struct transport_message receives[TRANSPORT_DEPTH * 2];
    uint32_t receive_count, send_count;
    struct transport_message sent[TEAM_MOST][1 << 12];
    uint32_t first[TEAM_MOST], count[TEAM_MOST];
    uint64_t in, out, bytes; /* of a collective */
    enum collective kind;
    uint32_t begun, calls;
} ends[TEAM_MOST];

static uint32_t failing_rank, failing_call;        /* from 1; 0: none fails */
static uint32_t taken[TEAM_MOST][4 * COLLECTIVES]; /* messages of each link, since the last open */

struct memory_state {
    uint32_t rank;
};

static int memory_fault(struct end *end)
{
    return ++end->calls == failing_call && end == &ends[failing_rank] ? fail(ENETDOWN, "link down")
                                                                      : 0;
}

static struct end *end_of(const void *state)
{
    return &ends[((const struct memory_state *)state)->rank];
}

static int memory_open(void *state, const void *settings, const struct transport_config *config)
{
    struct memory_state *mine = state;

    (void)settings;
    mine->rank = config->ranks->place.rank;
    memset(end_of(state), 0, sizeof(struct end));
    memset(taken[mine->rank], 0, sizeof taken[mine->rank]);
    end_of(state)->config = *config;
    end_of(state)->memory = config->arena;
    return memory_fault(end_of(state));
}

static int copied_open(void *state, const void *settings, const struct transport_config *config)
{
    const int code = memory_open(state, settings, config);

    end_of(state)->memory = memory_zeroed(config->bytes);
    return code;
}

static void memory_close(void *state, bool failed)
{
    (void)failed;
}

static void copied_close(void *state, bool failed)
{
    (void)failed;
    free(end_of(state)->memory);
    end_of(state)->memory = NULL;
}

static void memory_describe(void *state, char *text, size_t bytes)
{
    snprintf(text, bytes, "memory of rank %u", ((struct memory_state *)state)->rank);
}

static int memory_start(void *state, const struct transport_message *message, bool sends)
{
    struct end *end = end_of(state);

    assert_true(message->from + message->bytes <= end->config.bytes);
    if (sends) {
        assert_true(end->count[message->peer] - end->first[message->peer] < 1 << 12);
        end->sent[message->peer][end->count[message->peer]++ % (1 << 12)] = *message;
        end->send_count++;
    } else {
        assert_true(end->receive_count < TRANSPORT_DEPTH * 2);
        end->receives[end->receive_count++] = *message;
    }
    team_moved();
    return memory_fault(end);
}

/* Half a microsecond and a nanosecond a byte, more from and to higher ranks, and now and then. */
static void take_time(uint32_t from, uint32_t to, uint64_t bytes)
{
    manual_clock_ns += (500 + bytes + ++taken[from][to] / 40 % 5 * 30) * (4 + 2 * from + to) / 4;
    team_moved();
}

static void reduce_all(uint32_t ranks)
{
    for (uint64_t i = 0; ends[0].kind == COLLECTIVE_ALL_REDUCE && i < ends[0].bytes; i += 4) {
        float sum = 0;
        for (uint32_t rank = 0; rank < ranks; rank++)
            sum += *(float *)(void *)(ends[rank].memory + ends[rank].out + i);
        for (uint32_t rank = 0; rank < ranks; rank++)
            *(float *)(void *)(ends[rank].memory + ends[rank].in + i) = sum;
    }
}

static int memory_test(void *state, bool *done)
{
    struct end *end = end_of(state);
    const uint32_t rank = ((struct memory_state *)state)->rank;
    const uint32_t ranks = end->config.ranks->place.ranks;

    for (uint32_t i = 0; i < end->receive_count; i++) {
        const struct transport_message wanted = end->receives[i];
        struct end *peer = &ends[wanted.peer];
        if (peer->first[rank] == peer->count[rank])
            continue;
        const struct transport_message sent = peer->sent[rank][peer->first[rank]++ % (1 << 12)];
        assert_true(sent.from == wanted.from && sent.to == wanted.to && sent.bytes == wanted.bytes);
        memcpy(end->memory + sent.to, peer->memory + sent.from, sent.bytes);
        take_time(wanted.peer, rank, sent.bytes);
        peer->send_count--;
        end->receive_count--;
        memmove(end->receives + i, end->receives + i + 1,
                (end->receive_count - i) * sizeof *end->receives);
        i--;
    }
    *done = end->receive_count == 0 && end->send_count == 0;
    for (uint32_t i = 0; i < ranks; i++)
        *done = *done && ends[i].begun >= end->begun;
    return memory_fault(end);
}

static uint32_t memory_pending(const void *state)
{
    const struct end *end = end_of(state);

    return end->receive_count > end->send_count ? end->receive_count : end->send_count;
}

/* Each takes longer than the one before. */
static int memory_collective(void *state, enum collective kind, uint64_t out, uint64_t in,
                             uint64_t bytes)
{
    struct end *end = end_of(state);
    const uint32_t ranks = end->config.ranks->place.ranks;
    uint32_t begun = 0;

    end->begun++;
    end->kind = kind, end->out = out, end->in = in, end->bytes = bytes;
    for (uint32_t i = 0; i < ranks; i++)
        begun += ends[i].begun == end->begun;
    if (begun == ranks) {
        reduce_all(ranks);
        take_time(0, 4 * kind, bytes);
    }
    return memory_fault(end);
}

static int memory_copy(void *state, bool back, uint64_t at, uint64_t bytes)
{
    struct end *end = end_of(state);

    assert_true(at + bytes <= end->config.bytes);
    memcpy((back ? end->config.arena : end->memory) + at,
           (back ? end->memory : end->config.arena) + at, bytes);
    return memory_fault(end);
}

#define MEMORY(plugin_name, opens, closes, ...)                                                    \
    {                                                                                              \
        .plugin = {.name = plugin_name, .state_size = sizeof(struct memory_state)}, .open = opens, \
        .close = closes, .describe = memory_describe, .start = memory_start, .test = memory_test,  \
        __VA_ARGS__                                                                                \
    }
static const struct transport_ops memories[] = {
    MEMORY("memory", memory_open, memory_close, .pending = memory_pending),
    MEMORY("windows", memory_open, memory_close, .collective = NULL),
    MEMORY("copied", copied_open, copied_close, .copy = memory_copy, .pending = memory_pending),
    MEMORY("own", memory_open, memory_close, .collective = memory_collective),
};

static int choose(struct transport *transport, const char *name)
{
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
        if (strcmp(name, memories[i].plugin.name) == 0) {
            *transport = (struct transport){.ops = &memories[i]};
            return 0;
        }
    return transport_choose(transport, name);
}

/* ---- surveys ---- */

static struct survey_settings settings;
static const char *transport_name;
static bool prints;

static void print_progress(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    fprintf(golden, " %llu/%llu", (unsigned long long)done, (unsigned long long)total);
}

static void print_figure(const struct stats_summary *figure, double unit)
{
    fprintf(golden, " %.5g (%.5g..%.5g)", figure->median / unit, figure->minimum / unit,
            figure->maximum / unit);
}

static void print_survey(const struct fabric_survey *survey, uint32_t ranks)
{
    fprintf(golden, "\n%s, %llu bytes verified:%s%s%s%s\n", survey->transport,
            (unsigned long long)survey->verified_bytes, survey->has_sizes ? " sizes" : "",
            survey->has_pairs ? " pairs" : "", survey->is_alone ? " alone" : "",
            survey->has_collectives ? " collectives" : "");
    for (uint32_t i = 0; survey->has_sizes && i < survey->size_count; i++) {
        fprintf(golden, "  %llu bytes to %u:", (unsigned long long)survey->sizes[i].bytes,
                survey->other);
        for (int kind = 0; kind < PAIR_KINDS; kind++)
            print_figure(&survey->sizes[i].pair[kind], kind == PAIR_LATENCY ? 1e-6 : 1e6);
        fprintf(golden, "\n");
    }
    for (uint32_t i = 0; survey->has_pairs && i < ranks * ranks; i++)
        fprintf(golden, " %c %.5g %.5g%s", i % ranks ? ',' : ' ',
                survey->matrix.bytes_per_s[i] / 1e6, survey->matrix.latency_s[i] * 1e6,
                i % ranks == ranks - 1 ? "\n" : "");
    for (uint32_t i = 0; survey->has_collectives && i < survey->size_count; i++) {
        fprintf(golden, "  %llu bytes:", (unsigned long long)survey->collectives[i].bytes);
        for (int kind = 0; kind < COLLECTIVES; kind++)
            print_figure(&survey->collectives[i].seconds[kind], 1e-6);
        fprintf(golden, "\n");
    }
}

static int survey(struct ranks *ranks)
{
    struct fabric_survey found = {0};
    struct transport transport;
    int code = choose(&transport, transport_name);

    if (code == 0)
        code = survey_run(&settings, &transport, ranks, &found);
    if (code == 0 && ranks->place.rank == 0 && prints)
        print_survey(&found, ranks->place.ranks);
    survey_destroy(&found);
    return code;
}

static struct team run_survey(uint32_t ranks, const char *name)
{
    static struct team team;

    team = (struct team){.ranks = ranks, .per_node = 2, .act = survey};
    transport_name = name;
    team_run(&team);
    return team;
}

static void print_run(uint32_t ranks, const char *name)
{
    fprintf(golden, "%u ranks by %s:", ranks, name);
    const struct team team = run_survey(ranks, name);
    team_print(&team, golden);
}

static void links_are_measured(void **unused)
{
    prints = true;
    settings = (struct survey_settings){.from_bytes = 8,
                                        .to_bytes = 500,
                                        .factor = 7,
                                        .pair_bytes = 100,
                                        .has_sizes = true,
                                        .has_collectives = true,
                                        .verify = true,
                                        .repeats = 3,
                                        .repeat_ns = 50000,
                                        .seed = 5,
                                        .progress = print_progress};
    golden_begin();
    print_run(3, "memory");
    print_run(2, "windows");
    settings.pairs = SURVEY_PAIRS_ROUNDS;
    settings.has_sizes = settings.has_collectives = false;
    print_run(4, "memory");
    print_run(3, "copied");
    settings.pairs = SURVEY_PAIRS_NONE;
    settings.has_collectives = true;
    print_run(4, "memory");
    settings.verify = false;
    print_run(3, "own");
    settings.has_collectives = false;
    settings.has_sizes = true;
    settings.repeat_ns = 0;
    settings.from_bytes = settings.to_bytes = 4194305; /* larger than a window */
    settings.pairs = SURVEY_PAIRS_ALONE;
    settings.pair_bytes = 5000000;
    print_run(2, "memory");
    settings.pairs = SURVEY_PAIRS_NONE;
    /* The verification that finds damage, and on which rank. */
    settings.progress = NULL;
    settings.repeats = 1;
    settings.verify = settings.has_collectives = true;
    settings.from_bytes = settings.to_bytes = 640;
    for (settings.damage = 1; settings.damage < 180; settings.damage += 24) {
        fprintf(golden, "damage %llu\n", (unsigned long long)settings.damage);
        print_run(3, "memory");
    }
    golden_end("fabric-survey.txt");
}

/* All ranks fail, whichever call of whichever rank does, and say so; none waits without end. */
static void a_link_goes_down(void **unused)
{
    prints = false;
    settings = (struct survey_settings){.from_bytes = 8,
                                        .to_bytes = 8,
                                        .factor = 2,
                                        .pair_bytes = 8,
                                        .pairs = SURVEY_PAIRS_ALONE,
                                        .has_sizes = true,
                                        .has_collectives = true,
                                        .verify = true,
                                        .repeats = 1};
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
        for (failing_rank = 0; failing_rank < 2; failing_rank++)
            for (failing_call = 1;; failing_call += 1 + failing_call / 2) {
                settings.has_collectives = !memories[i].copy;
                const struct team team = run_survey(3, memories[i].plugin.name);
                if (ends[failing_rank].calls < failing_call)
                    break;
                for (uint32_t rank = 0; rank < 3; rank++)
                    if (team.hangs || !team.codes[rank])
                        fail_msg("%s: call %u of rank %u: rank %u %s: %s", memories[i].plugin.name,
                                 failing_call, failing_rank, rank,
                                 team.hangs ? "hangs" : "does not fail", team.reasons[rank]);
                if (!strstr(team.reasons[failing_rank], "link down"))
                    fail_msg("%s: call %u of rank %u: %s", memories[i].plugin.name, failing_call,
                             failing_rank, team.reasons[failing_rank]);
            }
    failing_call = 0;
}

/* ---- a rhythm ---- */

static struct rhythm rhythm_wanted;

static bool after_three(void *context)
{
    return ++*(int *)context >= 3;
}

static int keep_rhythm(struct ranks *ranks)
{
    struct rhythm rhythm = {.step_ns = 300000, .damage = rhythm_wanted.damage};
    struct rhythm_figures figures;
    struct transport transport;
    int steps = ranks->place.rank == 1 ? 1 : 0; /* the last to end counts */
    int code = choose(&transport, transport_name);

    for (uint32_t i = 0; i < rhythm_wanted.count && code == 0; i++)
        code = rhythm_add(&rhythm, rhythm_wanted.buckets[i], ranks->place.ranks);
    struct transport_config config = {.ranks = ranks, .bytes = 2 * rhythm.bytes};
    config.arena = memory_zeroed(config.bytes);
    rhythm.transport = &transport;
    if (code == 0)
        code = transport_open(&transport, &config);
    for (int run = 0; run < 2 && code == 0; run++) {
        code = rhythm_run(&rhythm, after_three, &steps, &figures);
        if (code == 0 && ranks->place.rank == 0)
            fprintf(golden, "run %llu of %llu bytes: %llu steps in %.1f us, %.1f late, %.1f busy\n",
                    (unsigned long long)rhythm.turn, (unsigned long long)rhythm.bytes,
                    (unsigned long long)figures.steps, figures.time_s * 1e6, figures.late_s * 1e6,
                    figures.busy_s * 1e6);
        steps = 0;
    }
    transport_close(&transport, code != 0);
    free(config.arena);
    return code;
}

static void gradients_keep_a_rhythm(void **unused)
{
    static const char *const names[] = {"memory", "own"};

    golden_begin();
    for (int i = 0; i < 6; i++) {
        struct team team = {.ranks = 3, .per_node = 2, .act = keep_rhythm, .clock = TEAM_PROMPT};
        transport_name = names[i % 2];
        rhythm_wanted = (struct rhythm){.buckets = {1210, 5, i == 2 ? 200000 : 700},
                                        .count = i < 4 ? 3 : RHYTHM_BUCKETS + (uint32_t)i - 5,
                                        .damage = i == 3 ? 2 : 0};
        for (uint32_t k = 3; k < rhythm_wanted.count && k < RHYTHM_BUCKETS; k++)
            rhythm_wanted.buckets[k] = 1;
        fprintf(golden, "%s, %u buckets\n", transport_name, rhythm_wanted.count);
        team_run(&team);
        team_print(&team, golden);
    }
    golden_end("fabric-rhythm.txt");
}

/* ---- waiting ---- */

static void print_waiting(void *context, const char *text)
{
    (void)context;
    fprintf(golden, "  %s\n", text);
}

/* Rank 1 sends after 12 s, or fails. */
static int stall(struct ranks *ranks)
{
    struct transport_config config = {.ranks = ranks, .arena = memory_zeroed(64), .bytes = 64};
    const struct transport_message message = {.peer = 1 - ranks->place.rank, .bytes = 8};
    struct transport transport;
    int code = choose(&transport, "memory");

    ranks->waiting = print_waiting;
    if (code == 0)
        code = transport_open(&transport, &config);
    if (code == 0 && ranks->place.rank == 1)
        clock_sleep_ns(12000000000);
    if (code == 0 && ranks->place.rank == 1 && transport_name)
        code = fail(EDOM, "rank 1 %s", transport_name);
    if (code == 0)
        code = transport_start(&transport, &message, ranks->place.rank == 1);
    if (code == 0)
        code = transport_wait(&transport);
    fprintf(golden, "  rank %u: %s%s\n", ranks->place.rank, code ? fail_reason() : "good",
            ranks->is_broken ? ", broken" : "");
    if (code)
        ranks_call_off(ranks);
    code = ranks_meet(ranks, code, NULL);
    transport_close(&transport, code != 0);
    free(config.arena);
    return code;
}

static void a_stalled_link_is_told(void **unused)
{
    golden_begin();
    for (int i = 0; i < 3; i++) {
        struct team team = {.ranks = 2, .per_node = 2, .act = stall, .clock = TEAM_PROMPT};
        team.rank_timeout_ns = i == 1 ? UINT64_C(7000000000) : 0;
        transport_name = i == 2 ? "gives up" : NULL;
        team_run(&team);
        team_print(&team, golden);
    }
    golden_end("fabric-stalled.txt");
}

/* ---- TCP ---- */

static struct {
    bool is_logged, refuses_near, refuses_all, has_strangers;
    int ends; /* rank 0's; 1: a receive ends, 2: one fails, 3: a send fails */
    uint32_t calls;
} wire;

/* Of two networks that all have the second is narrow, so that it is its ranks' own. */
int getifaddrs(struct ifaddrs **list)
{
    static struct {
        char name[8];
        unsigned flags;
        uint32_t address, mask, of_rank;
    } rows[] = {
        {"lo", IFF_UP | IFF_LOOPBACK, 0x7f000001, 0xff000000, 0},
        {"eth0", IFF_UP, 0x0a000001, 0xffff0000, 1 << 16},
        {"eth1", 0, 0x0a080800, 0xffffff00, 1},
        {"eth2", IFF_UP, 0x0a090900, 0xffffff00, 1},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    static struct ifaddrs found[TEAM_MOST][ROWS];
    static struct sockaddr_in addresses[TEAM_MOST][ROWS], masks[TEAM_MOST][ROWS];
    const uint32_t rank = team_rank;

    for (size_t i = 0; i < ROWS; i++) {
        addresses[rank][i].sin_family = AF_INET;
        addresses[rank][i].sin_addr.s_addr = htonl(rows[i].address + (rank + 1) * rows[i].of_rank);
        masks[rank][i].sin_addr.s_addr = htonl(rows[i].mask);
        found[rank][i] = (struct ifaddrs){.ifa_name = rows[i].name,
                                          .ifa_flags = rows[i].flags,
                                          .ifa_addr = (struct sockaddr *)&addresses[rank][i],
                                          .ifa_netmask = (struct sockaddr *)&masks[rank][i],
                                          .ifa_next = i + 1 < ROWS ? &found[rank][i + 1] : NULL};
    }
    *list = found[rank];
    return 0;
}

void freeifaddrs(struct ifaddrs *list)
{
    (void)list;
}

/* All addresses are this machine's. */
static struct sockaddr_in local(const char *what, const struct sockaddr *address)
{
    struct sockaddr_in here = *(const struct sockaddr_in *)(const void *)address;
    char text[INET_ADDRSTRLEN];

    if (wire.is_logged && (team_rank == 0 || team_rank == TEAM_MOST))
        fprintf(golden, "  %s %s\n", what, inet_ntop(AF_INET, &here.sin_addr, text, sizeof text));
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return here;
}

int bind(int handle, const struct sockaddr *address, socklen_t bytes)
{
    const struct sockaddr_in here = local("from", address);

    return (int)syscall(SYS_bind, handle, &here, bytes);
}

int connect(int handle, const struct sockaddr *address, socklen_t bytes)
{
    const struct sockaddr_in here = local("to", address);
    const uint32_t host =
        ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);
    const uint32_t hello[4] = {1, 2, 0, 0}; /* with another secret */

    if (wire.refuses_all || (wire.refuses_near && host >> 16 == (10 << 8 | 9)))
        return errno = ECONNREFUSED, -1;
    const int stranger = wire.has_strangers ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (stranger >= 0) { /* is forgotten: the listener closes it */
        assert_int_equal(syscall(SYS_connect, stranger, &here, bytes), 0);
        assert_int_equal(write(stranger, hello, sizeof hello), sizeof hello);
    }
    return (int)syscall(SYS_connect, handle, &here, bytes);
}

static uint32_t waits_of_a_ms;

/* Who waits a millisecond for data waits for a rank whose turn it is not. Who waits for a call, of
 * one that is refused, has waited for a minute. */
int poll(struct pollfd *polled, nfds_t count, int wait_ms)
{
    waits_of_a_ms += wait_ms == 1;
    if (wire.refuses_all && wait_ms == 100)
        manual_clock_ns += 61000000000;
    return (int)syscall(SYS_poll, polled, count, wait_ms == 1 ? 0 : wait_ms);
}

ssize_t recv(int handle, void *data, size_t bytes, int flags)
{
    const bool breaks = wire.ends && team_rank == 0 && ++wire.calls > 20;

    if (breaks && wire.ends < 3)
        return errno = EHOSTDOWN, wire.ends == 1 ? 0 : -1;
    return syscall(SYS_recvfrom, handle, data, bytes, flags, NULL, NULL);
}

ssize_t send(int handle, const void *data, size_t bytes, int flags)
{
    const bool breaks = wire.ends == 3 && team_rank == 0 && ++wire.calls > 20;

    return breaks ? (errno = EPIPE, -1) : syscall(SYS_sendto, handle, data, bytes, flags, NULL, 0);
}

static int survey_tcp(struct ranks *ranks)
{
    struct fabric_survey found = {0};
    struct transport transport;
    int code = transport_choose(&transport, transport_name);

    if (code == 0)
        code = survey_run(&settings, &transport, ranks, &found);
    if (code == 0 && ranks->place.rank == 0)
        fprintf(golden, "  %llu bytes by %s\n", (unsigned long long)found.verified_bytes,
                found.transport);
    survey_destroy(&found);
    return code;
}

static void print_tcp(uint32_t ranks, uint32_t per_node, const char *name)
{
    struct team team = {
        .ranks = ranks, .per_node = per_node, .act = survey_tcp, .clock = TEAM_SLOW};

    wire.calls = 0;
    transport_name = name;
    fprintf(golden, "%u ranks by %s%s%s%s%s %d\n", ranks, name, wire.is_logged ? ", logged" : "",
            wire.refuses_near ? ", near refused" : "", wire.refuses_all ? ", all refused" : "",
            wire.has_strangers ? ", strangers" : "", wire.ends);
    team_run(&team);
    team_print(&team, golden);
}

static void connections_carry_messages(void **unused)
{
    settings = (struct survey_settings){.from_bytes = 8,
                                        .to_bytes = 200000,
                                        .factor = 25000,
                                        .pair_bytes = 100,
                                        .has_sizes = true,
                                        .has_collectives = true,
                                        .verify = true,
                                        .repeats = 1};
    golden_begin();
    print_tcp(3, 1, "tcp:engine=plain");
    print_tcp(3, 3, "tcp:connections=3");
    wire.has_strangers = true;
    print_tcp(3, 1, "tcp:connections=2,engine=plain");
    wire.has_strangers = false;
    wire.is_logged = true;
    print_tcp(2, 1, "tcp:engine=plain");
    print_tcp(2, 1, "tcp:engine=plain,interface=eth0");
    print_tcp(2, 1, "tcp:engine=plain,interface=eth1");
    print_tcp(2, 1, "tcp:engine=none");
    wire.refuses_near = true;
    print_tcp(2, 1, "tcp:engine=plain");
    wire.refuses_all = true;
    print_tcp(2, 1, "tcp:engine=plain");
    memset(&wire, 0, sizeof wire);
    for (wire.ends = 1; wire.ends <= 3; wire.ends++)
        print_tcp(2, 1, "tcp:engine=plain");
    memset(&wire, 0, sizeof wire);
    assert_true(waits_of_a_ms > 0);
    golden_end("fabric-tcp.txt");
}

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slow_are_accused),
        cmocka_unit_test(test_rounds_meet_every_pair_once),
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(links_are_measured),
        cmocka_unit_test(a_link_goes_down),
        cmocka_unit_test(gradients_keep_a_rhythm),
        cmocka_unit_test(a_stalled_link_is_told),
        cmocka_unit_test(connections_carry_messages),
    };

    alarm(PATIENCE_S);
    renew = argument_count > 1 ? arguments[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
