/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench net: measures the fabric between the ranks of a job.
 */
#include "cmd/net/report.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/gradients.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/line.h"
#include "cmd/command.h"
#include "cmd/members.h"
#include "pipeline/evidence/witness.h"
#include "pipeline/evidence/validity.h"
#include "pipeline/result/result.h"
#include "pipeline/result/timeline.h"
#include "report/report.h"
#include "trainer/exchange.h"
#include "trainer/graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct net_settings {
    struct survey_settings survey;     /* fields that options set directly */
    struct net_beside_settings beside; /* the same; reads NULL: not requested */
    char *transport, *json;
    uint64_t rank_timeout_ns, sample_interval_ns;
    uint64_t require_all_reduce, require_nodes; /* 0: none */
};

static const char *const precision_names[] = {"fp32", "fp16", NULL};

/* enum survey_pairs */
static const char *const pairs_names[] = {"auto", "alone", "rounds", "none", NULL};

#define FIELD(field) .offset = offsetof(struct net_settings, field)
/* clang-format off */
static const struct option_spec net_options[] = {
    {"transport", 't', OPTION_TEXT, FIELD(transport), .fallback = "mpi", .metavar = "NAME[:...]",
     .section = "What is measured",
     .summary = "how messages travel: see iobench list"},
    {"from", 0, OPTION_SIZE, FIELD(survey.from_bytes), .fallback = "8", .minimum = 8, .maximum = 1 << 30,
     .summary = "smallest message"},
    {"to", 0, OPTION_SIZE, FIELD(survey.to_bytes), .fallback = "16MiB", .minimum = 8, .maximum = 1 << 30,
     .summary = "largest message, at most 1 GiB; each rank needs twice as much memory"},
    {"factor", 'f', OPTION_COUNT, FIELD(survey.factor), .fallback = "8", .minimum = 2, .maximum = 1 << 30,
     .summary = "from one size to the next"},
    {"messages", 0, OPTION_FLAG, FIELD(survey.has_sizes), .fallback = "yes",
     .summary = "messages of all sizes between rank 0 and a rank on another node"},
    {"pairs", 0, OPTION_CHOICE, FIELD(survey.pairs), .fallback = "auto", .choices = pairs_names,
     .summary = "all pairs of ranks: alone is one pair at a time, rounds is disjoint pairs at once; "
                "auto is alone up to 8 ranks"},
    {"pair-size", 0, OPTION_SIZE, FIELD(survey.pair_bytes), .fallback = "1MiB", .minimum = 8,
     .maximum = 1 << 30,
     .summary = "messages between all pairs"},
    {"collectives", 0, OPTION_FLAG, FIELD(survey.has_collectives), .fallback = "yes",
     .summary = "all-reduce, reduce-scatter, all-gather, broadcast and all-to-all of all sizes"},
    {"beside", 0, OPTION_TEXT, FIELD(beside.reads), .metavar = "'OPTIONS'",
     .section = "Gradients and reads",
     .summary = "all-reduces of gradients at a trainer's rhythm, and iobench run with these OPTIONS "
                "on every rank: each alone and both at once"},
    {"network", 'N', OPTION_TEXT, FIELD(beside.network), .fallback = "resnet50", .metavar = "NAME",
     .summary = "network whose gradients are exchanged"},
    {"precision", 0, OPTION_CHOICE, FIELD(beside.halves), .fallback = "fp32",
     .choices = precision_names, .summary = "number format of gradients on the wire"},
    {"buckets", 0, OPTION_COUNT, FIELD(beside.buckets), .fallback = "4", .minimum = 1, .maximum = 256,
     .summary = "at most this many buckets of gradients, cut at layers, each reduced once complete"},
    {"step-time", 0, OPTION_DURATION, FIELD(beside.step_ns), .fallback = "200ms", .minimum = 1e-4,
     .maximum = 3600, .summary = "compute time of a step, forward and backward"},
    {"exchange-time", 0, OPTION_DURATION, FIELD(beside.exchange_ns), .fallback = "5s", .minimum = 1e-3,
     .maximum = 86400, .summary = "time of exchanging gradients alone, in each round"},
    {"rounds", 0, OPTION_COUNT, FIELD(beside.rounds), .fallback = "3", .minimum = 1,
     .maximum = NET_BESIDE_ROUNDS, .summary = "rounds of each alone and both, in random order"},
    {"repeats", 'n', OPTION_COUNT, FIELD(survey.repeats), .fallback = "7", .minimum = 1, .maximum = 10000,
     .section = "How",
     .summary = "measurements of each figure, after the warm-up"},
    {"repeat-time", 0, OPTION_DURATION, FIELD(survey.repeat_ns), .fallback = "20ms", .minimum = 1e-6,
     .maximum = 3600,
     .summary = "minimum time of each measurement"},
    {"verify", 0, OPTION_FLAG, FIELD(survey.verify), .fallback = "yes",
     .summary = "compare what arrived with what was sent, off the clock"},
    {"damage", 0, OPTION_COUNT, FIELD(survey.damage), .fallback = "none", .zero = "none",
     .summary = "flip a bit before this verification, counted on each rank: shows that it is caught"},
    {"seed", 0, OPTION_COUNT, FIELD(survey.seed), .fallback = "1", .summary = "random seed of the data"},
    {"rank-timeout", 0, OPTION_DURATION, FIELD(rank_timeout_ns), .fallback = "8s", .zero = "none",
     .summary = "abort if a rank is unresponsive this long"},
    {"sample-interval", 0, OPTION_DURATION, FIELD(sample_interval_ns), .fallback = "100ms",
     .zero = "none", .section = "Output",
     .summary = "sample the counters of ports and processors this often"},
    {"json", 'j', OPTION_TEXT, FIELD(json), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "write the result as JSON; - is standard output instead of the table"},
    {"require-all-reduce", 0, OPTION_SIZE, FIELD(require_all_reduce), .fallback = "none",
     .zero = "none", .per_second = true,
     .summary = "fail unless the bus bandwidth of all-reduce of the largest message reaches this "
                "(500MB/s, 25GB/s)"},
    {"require-nodes", 0, OPTION_COUNT, FIELD(require_nodes), .fallback = "none", .zero = "none",
     .summary = "fail unless the ranks are on this many nodes"},
    {0},
};
/* clang-format on */

/* ---- gradients and reads over one fabric ----
 *
 * All-reduces at a trainer's rhythm, `iobench run` on every rank, each alone and both at once. The
 * reads are members (cmd/members.h), forked before the ranks join: each reads its rank's part. */

/* The members: their bits in a stage. */
enum { ALONE = 1 << 0, BESIDE = 1 << 1, MEMBERS = 2 };

static int check_reads(struct net_beside *beside)
{
    struct job *job = &beside->job;
    struct job_plugins plugins;

    if (!job->read.data)
        return fail(EINVAL, "--data is missing");
    if (job->against || job->beside || job->turns > 1 || job->until_percent > 0 || job->start_at)
        return fail(EINVAL, "--against, --beside, --turns, --until and --start-at cannot be used "
                            "for reads beside gradients");
    if (job->order.ranks > 1)
        return fail(EINVAL, "--ranks cannot be given: the launcher sets it");
    if (job->output.json || job->output.csv || job->output.series || job->output.profile ||
        job->output.trace)
        return fail(EINVAL, "outputs cannot be given: use --json of iobench net");
    job->runs = beside->settings.rounds;
    if (!job->output.label && !(job->output.label = strdup("reads")))
        return fail(ENOMEM, "out of memory");
    int code = job_choose(job, &plugins);
    job_release(&plugins);
    /* If only some hosts lack the set, the ranks report that once they have joined. */
    return code || !ranks_speaks() ? code : arguments_check_data("data", job->read.data);
}

/* Divide the network's gradients into buckets, in the order in which the backward pass completes
 * them. */
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

/* Parse and check the reads, and fork. Before the ranks join. Returns 0 or a negative errno with a
 * reason; call end_beside() in either case. */
static int start_beside(struct net_beside *beside, const struct invocation *invocation)
{
    static const char *const labels[MEMBERS] = {"alone", "beside gradients"};
    const struct net_beside_settings *settings = &beside->settings;
    char *text = strdup(settings->reads);

    beside->as_run = *invocation;
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

static void end_beside(struct net_beside *beside, int code)
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

/* Let the members do what may block. If a member fails, its own reason is reported, not only that
 * it ended. */
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

/* ---- what was read ---- */

enum { WALL, SAMPLES, RECORD_BYTES, REQUEST_BYTES, FIGURES };

/* Take a member's figures and the verdict of its result. *degraded: 1 if the figures may
 * mislead. */
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

/* Collective. name: as in --transport. Marks the stages in the recorder. Returns 0 or a negative
 * errno; then rounds are those of all ranks, on every rank. */
static int run_beside(struct net_beside *beside, const char *name, struct ranks *ranks,
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
    for (uint64_t i = 0; i < beside->settings.rounds * NET_STAGES && code == 0; i++) {
        struct net_round *round = &beside->rounds[i / NET_STAGES];
        uint32_t order[NET_STAGES];
        random_order(beside->settings.seed, i / NET_STAGES, order, NET_STAGES);
        const enum net_stage stage = (enum net_stage)order[i % NET_STAGES];
        const bool reads = stage != NET_STAGE_EXCHANGE;
        struct guard_moment start;
        work.is_last = i / NET_STAGES + 1 == beside->settings.rounds;
        work.stage = stage;
        work.bits = stage == NET_STAGE_READS ? ALONE : BESIDE;
        work.wanted = MAKE_COLD;
        if (reads)
            code = ranks_meet(ranks, ranks_do(ranks, "drop caches", ask_members, &work), NULL);
        if (code)
            break;
        recorder_sample(recorder);
        const uint64_t start_ns = clock_now_ns();
        guard_begin(&start); /* reads alone, too: the members' figures lack this */
        if (reads)
            code = members_go(&beside->members, work.bits);
        code = ranks_meet(ranks, code, NULL);
        if (code == 0 && stage != NET_STAGE_READS) {
            work.end_ns = clock_now_ns() + beside->settings.exchange_ns;
            code = rhythm_run(&beside->rhythm, has_ended, &work, &round->exchange[stage]);
        }
        work.wanted = AWAIT;
        if (code == 0 && reads)
            code = ranks_do(ranks, "read", ask_members, &work);
        guard_end(&start, &beside->guard);
        if (code == 0)
            code = stop_check();
        code = ranks_meet(ranks, code, NULL);
        meter_add(recorder_meter(recorder), METER_GRADIENT_BYTES,
                  (uint64_t)gradients_sent_bytes((double)beside->rhythm.bytes *
                                                     (double)round->exchange[stage].steps,
                                                 ranks->place.ranks));
        recorder_sample(recorder);
        recorder_mark(recorder, net_stage_names[stage], i / NET_STAGES, start_ns);
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

/* ---- the command ---- */

struct shown {
    struct line line;
    const struct ranks *ranks;
};

/* Print even without a terminal: the log of a batch system then shows that all ranks have
 * joined. */
static void show_progress(void *context, uint64_t done, uint64_t total)
{
    struct shown *shown = context;
    struct line *line = &shown->line;
    char bar[LINE_PART_BYTES], text[sizeof line->last];

    if (done == 0)
        fprintf(stderr, "iobench net: measuring %u ranks on %u %s\n", shown->ranks->place.ranks,
                shown->ranks->place.nodes, shown->ranks->place.nodes == 1 ? "node" : "nodes");
    snprintf(text, sizeof text, "measuring %s", line_bar(bar, done, total));
    line_show(line, text);
}

static int measure_fabric(const struct invocation *invocation, struct transport *transport,
                          struct ranks *ranks, struct net_beside *beside)
{
    struct net_settings *settings = invocation->settings;
    struct shown shown = {.line = line_start(), .ranks = ranks};
    char command[4096];
    const struct output_settings sampled = {.sample_interval_ns = settings->sample_interval_ns};
    struct net_asked asked = {.settings = &settings->survey,
                              .ranks = ranks,
                              .transport = settings->transport,
                              .command = command,
                              .verdict.valid = true,
                              .beside = beside};
    struct guard_moment start;
    struct guard_counts guard = {0};
    struct fabric_survey survey;

    settings->survey.progress = show_progress;
    settings->survey.progress_context = &shown;
    machine_describe(&asked.verdict.environment, "/proc", "/sys");
    command_text(invocation, command, sizeof command);
    int code = ranks->place.rank == 0 ? outputs_check_path(settings->json, "{\"schema\"") : 0;
    if (code == 0 && ranks->place.nodes < settings->require_nodes)
        code = fail(ERANGE, "--require-nodes: %u of %" PRIu64 " nodes", ranks->place.nodes,
                    settings->require_nodes);
    code = ranks_meet(ranks, code, NULL); /* refuse before the work, not after it */
    if (code)
        return code;
    struct recorder *recorder = recorder_start("/", &sampled, ranks);
    guard_begin(&start);
    code = survey_run(&settings->survey, transport, ranks, &survey);
    guard_end(&start, &guard);
    line_clear(&shown.line);
    if (code == 0 && beside)
        code = run_beside(beside, settings->transport, ranks, recorder);
    if (code == 0 && beside) {
        guard_add(&guard, &beside->guard);
        if (*beside->degraded)
            result_degraded(&asked.verdict, "%s", beside->degraded);
    }
    code = code ? code : gather_guard(ranks, &guard);
    if (code == 0)
        validity_guard(&guard, "the ranks", &asked.verdict);
    if (code == 0 && beside) /* the last step of each stage that exchanges */
        survey.verified_bytes += 2 * beside->settings.rounds * beside->rhythm.bytes * beside->ranks;
    asked.timeline = recorder_finish(recorder, code);
    if (code == 0 && ranks->place.rank == 0) {
        if (!settings->json || strcmp(settings->json, "-") != 0)
            code = net_report_text(&asked, &survey);
        if (code == 0 && settings->json)
            code = json_file_write(settings->json, net_report_json(&asked, &survey));
        if (code == 0)
            code = command_reach("require-all-reduce", net_report_all_reduce(&survey),
                                 (double)settings->require_all_reduce, "bytes/s");
        if (code == 0)
            code = !asked.verdict.valid || *asked.verdict.degraded_reason;
    }
    timeline_destroy(asked.timeline);
    survey_destroy(&survey);
    return code;
}

static int check_settings(const struct net_settings *settings, struct transport *transport)
{
    *transport = (struct transport){0};
    if (!ranks_are_launched())
        return fail(EINVAL, "needs several ranks: mpirun -n 4 iobench net");
    if (settings->survey.from_bytes > settings->survey.to_bytes)
        return fail(EINVAL, "--from is larger than --to");
    if (settings->require_all_reduce && !settings->survey.has_collectives)
        return fail(EINVAL, "--require-all-reduce needs --collectives");
    if (!settings->survey.has_sizes && !settings->survey.has_collectives &&
        settings->survey.pairs == SURVEY_PAIRS_NONE && !settings->beside.reads)
        return fail(EINVAL, "--no-messages --no-collectives --pairs none: nothing to measure");
    const int code = transport_choose(transport, settings->transport);
    if (code == 0 && (settings->survey.has_collectives || settings->beside.reads) &&
        !transport_allows_collectives(transport))
        return fail(EINVAL, "--transport %s has no collectives: give --no-collectives",
                    settings->transport);
    return code;
}

static int net_check(const struct invocation *invocation)
{
    const struct net_settings *settings = invocation->settings;
    struct transport transport;
    int code = check_settings(settings, &transport);

    if (code == 0 && settings->beside.reads)
        code = fail(EINVAL, "--beside works on a command line only");
    transport_close(&transport, true);
    return code;
}

static int net_command(const struct invocation *invocation)
{
    const struct net_settings *settings = invocation->settings;
    struct net_beside beside = {.settings = settings->beside};
    struct transport transport;
    struct ranks ranks;
    int status = COMMAND_OK;

    int code = check_settings(settings, &transport);
    const bool is_unusable = code == -ENODEV && !ranks_speaks(); /* on this host only */
    if (code == 0 && settings->beside.reads) {
        /* Before the ranks join: it forks. */
        beside.settings.seed = settings->survey.seed;
        beside.settings.damage = settings->survey.damage;
        if (invocation->sandbox == SANDBOX_YES)
            code = fail(EINVAL, "--sandbox yes forbids what --beside reads");
        else
            code = start_beside(&beside, invocation);
    }
    if (code) {
        if (is_unusable)
            command_unusable(invocation);
        else
            command_misused(invocation);
        end_beside(&beside, -EINVAL);
        transport_close(&transport, true);
        return COMMAND_USAGE;
    }
    code = command_join(&ranks);
    command_on_interrupt(); /* after MPI has installed its handlers */
    ranks.rank_timeout_ns = settings->rank_timeout_ns;
    if (code == 0)
        code =
            measure_fabric(invocation, &transport, &ranks, settings->beside.reads ? &beside : NULL);
    transport_close(&transport, true); /* if it was not measured */
    if (code < 0 && (ranks.place.rank == 0 || ranks.is_unheard))
        status = command_failed(invocation);
    else if (code)
        status = COMMAND_FAILED;
    end_beside(&beside, code);
    command_leave(&ranks, code < 0);
    return status;
}

const struct command command_net = {
    .name = "net",
    .summary = "measure the fabric between ranks: messages, pairs, collectives",
    .description =
        "Under mpirun or srun, measures latency and bandwidth of messages by size, in one and in "
        "both directions; bandwidth and latency of all pairs of ranks as a matrix, naming the "
        "node, link or direction that is slow; and collectives, with algorithm and bus bandwidth "
        "as nccl-tests defines them. What arrived is compared with what was sent. Each figure is "
        "the median of several measurements after a warm-up, with its 95% interval. A rank that "
        "does not respond ends the job with its name.",
    .examples =
        "mpirun -n 4 iobench net\tranks on this machine\n"
        "mpirun -n 16 --hostfile hosts --map-by node iobench net --to 1GiB --json net.json\t"
        "between nodes, up to 1 GiB\n"
        "mpirun -n 64 --hostfile hosts iobench net --no-messages --no-collectives\tonly find the "
        "slow link\n",
    .options = net_options,
    .settings_size = sizeof(struct net_settings),
    .is_confined = true,
    .check = net_check,
    .run = net_command,
};
