/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/beside.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/gradients.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/net/survey.h"
#include "report/report.h"
#include "trainer/buckets.h"
#include "trainer/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The members: their bits in a stage. */
enum { ALONE = 1 << 0, BESIDE = 1 << 1, MEMBERS = 2 };

/* ---- before the ranks join ---- */

static int check_reads(struct net_beside *beside)
{
    struct job *job = &beside->job;
    struct job_plugins plugins;

    if (!job->read.data)
        return fail(EINVAL, "--data is missing");
    if (job->against || job->beside || job->turns > 1 || job->until_percent > 0 || job->start_at)
        return fail(EINVAL,
                    "--against, --beside, --turns, --until and --start-at are not for reads "
                    "beside gradients");
    if (job->order.ranks > 1)
        return fail(EINVAL, "--ranks is that of the launcher");
    if (job->output.json || job->output.csv || job->output.series || job->output.profile ||
        job->output.trace)
        return fail(EINVAL, "outputs are those of iobench net: --json");
    job->runs = beside->settings.rounds;
    if (!job->output.label && !(job->output.label = strdup("reads")))
        return fail(ENOMEM, "out of memory");
    int code = job_choose(job, &plugins);
    job_release(&plugins);
    /* Of a set that only some hosts lack, the ranks tell when they have met. */
    return code || !ranks_speaks() ? code : arguments_check_data("data", job->read.data);
}

/* The network's gradients, cut as its backward pass gives them away. */
static int divide_gradients(struct net_beside *beside, uint32_t ranks)
{
    const struct net_beside_settings *settings = &beside->settings;
    const struct network *network = network_find(settings->network);
    struct graph *graph = network ? network_build(network, network->side, network->classes) : NULL;
    const uint64_t each_bytes = settings->halves ? 2 : sizeof(float);
    struct buckets buckets = {0};
    int code = graph ? graph->code : -EINVAL;

    beside->rhythm = (struct rhythm){.step_ns = settings->step_ns, .damage = settings->damage};
    if (code == 0)
        code = buckets_by_layer(&buckets, graph, (uint32_t)settings->buckets);
    for (uint32_t i = 0; i < buckets.count && code == 0; i++)
        code = rhythm_add(&beside->rhythm, buckets_floats(&buckets, i) * each_bytes, ranks);
    buckets_free(&buckets);
    if (graph)
        graph_destroy(graph);
    return code;
}

int net_beside_start(struct net_beside *beside, const struct net_beside_settings *settings,
                     const struct invocation *invocation)
{
    static const char *const labels[MEMBERS] = {"alone", "beside gradients"};
    char *text = strdup(settings->reads);

    *beside = (struct net_beside){.settings = *settings, .as_run = *invocation};
    beside->as_run.command = &command_run;
    beside->as_run.settings = &beside->job;
    beside->as_run.count = 0;
    beside->members = (struct members){.invocation = &beside->as_run, .keeps_messages = true};
    beside->rounds = memory_array(settings->rounds, sizeof *beside->rounds);
    if (!text || !beside->rounds) {
        free(text);
        return fail(ENOMEM, "out of memory");
    }
    const struct arguments_scope scopes[] = {{.table = job_options, .settings = &beside->job}, {0}};
    struct arguments arguments = {0};
    char **words = memory_array(strlen(text) + 1, sizeof *words);
    int code = words ? option_defaults(job_options, &beside->job) : -ENOMEM;
    int count = code ? code : arguments_split(text, words);
    const int first = count > 0 && strcmp(words[0], "run") == 0;
    code = count < 0 ? count : arguments_parse(scopes, count - first, words + first, &arguments);
    if (code == 0 && arguments.count)
        code = fail(EINVAL, "'%s' is not an option", arguments.operands[0]);
    free(arguments.operands);
    free(words);
    if (code == 0)
        code = check_reads(beside);
    free(text);
    if (code)
        return fail(-code, "--beside '%s': %s", settings->reads, fail_reason());
    code = divide_gradients(beside, 1); /* check before there are ranks */
    for (int i = 0; i < MEMBERS && code == 0; i++)
        code = members_start(&beside->members, &beside->job, labels[i], run_as_member);
    return code;
}

void net_beside_end(struct net_beside *beside, int code)
{
    members_end(&beside->members, code);
    members_release(&beside->members);
    free(beside->rounds);
    option_release(job_options, &beside->job);
}

/* ---- the stages ---- */

struct stage_work {
    struct net_beside *beside;
    struct ranks *ranks;
    enum { PREPARE, MAKE_COLD, AWAIT } wanted; /* of the members */
    enum net_stage stage;
    unsigned bits;
    uint64_t end_ns; /* of exchanging alone */
    bool is_last;
};

/* What may block, in a member's own words if it fails rather than that it ended. */
static int ask_members(void *context)
{
    const struct stage_work *work = context;
    const struct ranks_place *place = &work->ranks->place;
    struct members *members = &work->beside->members;
    int code = work->wanted == PREPARE     ? members_prepare(members, place->rank, place->ranks)
               : work->wanted == MAKE_COLD ? members_ready(members, work->bits)
                                           : members_await(members, work->bits, work->is_last);

    for (uint32_t i = 0; code && code != -EINTR && i < members->started; i++) {
        char *line = members_reason(&members->list[i]);
        if (line)
            code = fail(-code, "%s", line);
        free(line);
    }
    return code;
}

static bool has_ended(void *context)
{
    const struct stage_work *work = context;

    return flag_get(&stop_asked) || (work->stage == NET_STAGE_EXCHANGE
                                         ? clock_now_ns() >= work->end_ns
                                         : members_have_ended(&work->beside->members, work->bits));
}

static int run_stage(struct stage_work *work, enum net_stage stage, struct net_round *round,
                     struct recorder *recorder, uint64_t number)
{
    const bool reads = stage != NET_STAGE_EXCHANGE;
    struct guard_moment start;
    int code = 0;

    work->stage = stage;
    work->bits = stage == NET_STAGE_READS ? ALONE : BESIDE;
    work->wanted = MAKE_COLD;
    if (reads)
        code =
            ranks_meet(work->ranks, ranks_do(work->ranks, "drop caches", ask_members, work), NULL);
    if (code)
        return code;
    recorder_sample(recorder);
    const uint64_t start_ns = clock_now_ns();
    guard_begin(&start); /* while others read, too: what befell the machine is not in theirs */
    if (reads)
        code = members_go(&work->beside->members, work->bits);
    code = ranks_meet(work->ranks, code, NULL);
    if (code == 0 && stage != NET_STAGE_READS) {
        work->end_ns = clock_now_ns() + work->beside->settings.exchange_ns;
        code = rhythm_run(&work->beside->rhythm, has_ended, work, &round->exchange[stage]);
    }
    work->wanted = AWAIT;
    if (code == 0 && reads)
        code = ranks_do(work->ranks, "read", ask_members, work);
    guard_end(&start, &work->beside->guard);
    if (code == 0)
        code = stop_check();
    code = ranks_meet(work->ranks, code, NULL);
    meter_add(recorder_meter(recorder), METER_GRADIENT_BYTES,
              (uint64_t)gradients_sent_bytes((double)work->beside->rhythm.bytes *
                                                 (double)round->exchange[stage].steps,
                                             work->ranks->place.ranks));
    recorder_sample(recorder);
    recorder_mark(recorder, net_stage_names[stage], number, start_ns);
    return code;
}

/* ---- what was read ---- */

enum { WALL, SAMPLES, RECORD_BYTES, REQUEST_BYTES, FIGURES };

/* Its figures and what the result says of them. *degraded: 1 if they may mislead. */
static int take_member(struct net_beside *beside, const struct member *member,
                       double (*figures)[FIGURES], double *degraded)
{
    const size_t rounds = beside->settings.rounds;
    static const char *const keys[FIGURES] = {"wall_s", "samples", "record_bytes", "request_bytes"};
    json_t *documents = json_array();
    const json_t *epoch;
    size_t k;
    int code = members_collect(member, documents);
    const json_t *job = json_array_get(documents, 0), *runs = json_object_get(job, "runs");
    const char *reason = load_text(job, "invalid_reason");

    if (code == 0 && !load_true(job, "valid"))
        code =
            fail(EINVAL, "%s: not valid: %s", member->label, reason ? reason : "no reason given");
    if (code == 0 && json_array_size(runs) != rounds)
        code = fail(ENODATA, "%s: %zu runs of %zu", member->label, json_array_size(runs), rounds);
    const char *marked = code ? NULL : load_degraded(job);
    const char *cache = load_text(job, "summary.cache_before");
    *degraded = marked != NULL;
    if (marked && !*beside->degraded)
        snprintf(beside->degraded, sizeof beside->degraded, "the reads: %s", marked);
    if (code == 0 && *beside->cache && cache && strcmp(cache, beside->cache) != 0)
        snprintf(beside->cache, sizeof beside->cache, "mixed");
    else if (code == 0)
        snprintf(beside->cache, sizeof beside->cache, "%s", cache ? cache : "");
    for (size_t i = 0; i < rounds && code == 0; i++)
        json_array_foreach(json_object_get(json_array_get(runs, i), "epochs"), k,
                           epoch) for (int f = 0; f < FIGURES; f++) figures[i][f] +=
            load_number(epoch, keys[f]);
    json_decref(documents);
    return code;
}

int net_beside_run(struct net_beside *beside, const char *name, struct ranks *ranks,
                   struct recorder *recorder)
{
    struct stage_work work = {.beside = beside, .ranks = ranks, .wanted = PREPARE};
    struct transport transport = {0};
    struct transport_config config = {.ranks = ranks};
    int code = arguments_check_data("data", beside->job.read.data);

    if (code == 0)
        code = divide_gradients(beside, ranks->place.ranks);
    beside->ranks = ranks->place.ranks;
    beside->rhythm.transport = &transport;
    config.bytes = 2 * beside->rhythm.bytes;
    config.arena = code ? NULL : memory_pages(config.bytes);
    if (code == 0)
        code = config.arena ? transport_choose(&transport, name) : -ENOMEM;
    code = ranks_meet(ranks, code, NULL);
    if (code == 0)
        code = ranks_meet(ranks, ranks_do(ranks, "index", ask_members, &work), NULL);
    if (code == 0)
        code = transport_open(&transport, &config);
    for (uint64_t round = 0; round < beside->settings.rounds && code == 0; round++) {
        uint32_t order[NET_STAGES];
        random_order(beside->settings.seed, round, order, NET_STAGES);
        work.is_last = round + 1 == beside->settings.rounds;
        for (uint32_t i = 0; i < NET_STAGES && code == 0; i++)
            code =
                run_stage(&work, (enum net_stage)order[i], &beside->rounds[round], recorder, round);
    }
    transport_close(&transport, code != 0);
    free(config.arena);
    if (code == 0)
        members_end(&beside->members, 0);
    if (code)
        return code;
    /* Collective: the figures of all ranks. */
    const size_t rounds = beside->settings.rounds;
    double(*mine)[FIGURES] = memory_array(rounds, sizeof *mine);
    code = ranks_meet(ranks, mine ? 0 : -ENOMEM, NULL);
    for (int i = 0; i < MEMBERS && code == 0; i++) {
        memset(mine, 0, rounds * sizeof *mine);
        double degraded = 0;
        code =
            ranks_meet(ranks, take_member(beside, &beside->members.list[i], mine, &degraded), NULL);
        if (code == 0)
            code = ranks_sum(ranks, &degraded, 1);
        if (code == 0 && degraded > 0 && !*beside->degraded)
            snprintf(beside->degraded, sizeof beside->degraded,
                     "the reads of %.0f other rank%s are degraded", degraded,
                     degraded > 1 ? "s" : "");
        double(*all)[FIGURES] = ranks_collect(ranks, &code, mine, rounds * sizeof *mine);
        for (size_t k = 0; all && k < rounds * ranks->place.ranks; k++) {
            struct net_round *round = &beside->rounds[k % rounds];
            const enum net_stage stage = i ? NET_STAGE_BOTH : NET_STAGE_READS;
            if (all[k][WALL] > round->wall_s[stage])
                round->wall_s[stage] = all[k][WALL];
            round->samples[stage] += all[k][SAMPLES];
            round->record_bytes[stage] += all[k][RECORD_BYTES];
            round->request_bytes[stage] += all[k][REQUEST_BYTES];
        }
        free(all);
    }
    free(mine);
    return code;
}
