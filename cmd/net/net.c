/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench net: measures the fabric between the ranks of a job.
 */
#include "base/fail.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/line.h"
#include "cmd/net/beside.h"
#include "cmd/net/report.h"
#include "pipeline/evidence/witness.h"
#include "pipeline/evidence/validity.h"
#include "pipeline/result/result.h"
#include "pipeline/result/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct net_settings {
    struct survey_settings survey;     /* what options set as it is */
    struct net_beside_settings beside; /* the same; reads NULL: not asked for */
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
     .choices = precision_names, .summary = "of the gradients on the wire: bytes of their size"},
    {"buckets", 0, OPTION_COUNT, FIELD(beside.buckets), .fallback = "4", .minimum = 1, .maximum = 256,
     .summary = "at most this many buckets of gradients, cut at layers, each reduced once complete"},
    {"step-time", 0, OPTION_DURATION, FIELD(beside.step_ns), .fallback = "200ms", .minimum = 1e-4,
     .maximum = 3600, .summary = "computing of a step, forward and backward"},
    {"exchange-time", 0, OPTION_DURATION, FIELD(beside.exchange_ns), .fallback = "5s", .minimum = 1e-3,
     .maximum = 86400, .summary = "of gradients alone, in each round"},
    {"rounds", 0, OPTION_COUNT, FIELD(beside.rounds), .fallback = "3", .minimum = 1,
     .maximum = NET_BESIDE_ROUNDS, .summary = "of each alone and both at once, in drawn order"},
    {"repeats", 'n', OPTION_COUNT, FIELD(survey.repeats), .fallback = "7", .minimum = 1, .maximum = 10000,
     .section = "How",
     .summary = "measurements of each figure, after the warm-up"},
    {"repeat-time", 0, OPTION_DURATION, FIELD(survey.repeat_ns), .fallback = "20ms", .minimum = 1e-6,
     .maximum = 3600,
     .summary = "at least, for each"},
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

struct shown {
    struct line line;
    const struct ranks *ranks;
};

/* Also where no terminal is: the log of a batch system says that all ranks have met. */
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
    const struct net_settings *settings = invocation->settings;
    struct shown shown = {.line = line_start(), .ranks = ranks};
    struct survey_settings wanted = settings->survey;
    char command[4096];
    const struct output_settings sampled = {.sample_interval_ns = settings->sample_interval_ns};
    struct net_asked asked = {.settings = &wanted,
                              .ranks = ranks,
                              .transport = settings->transport,
                              .command = command,
                              .verdict.valid = true,
                              .beside = beside};
    struct guard_moment start;
    struct guard_counts guard = {0};
    struct fabric_survey survey;

    wanted.progress = show_progress;
    wanted.progress_context = &shown;
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
    code = survey_run(&wanted, transport, ranks, &survey);
    guard_end(&start, &guard);
    line_clear(&shown.line);
    if (code == 0 && beside)
        code = net_beside_run(beside, settings->transport, ranks, recorder);
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
        if (code == 0 && settings->json) {
            code = json_file_write(settings->json, net_report_json(&asked, &survey));
        }
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
    struct net_beside beside = {0};
    struct transport transport;
    struct ranks ranks;
    int status = COMMAND_OK;

    int code = check_settings(settings, &transport);
    const bool is_unusable = code == -ENODEV && !ranks_speaks(); /* here; elsewhere it may be */
    if (code == 0 && settings->beside.reads) {
        /* Before the ranks join: it forks. */
        struct net_beside_settings wanted = settings->beside;
        wanted.seed = settings->survey.seed;
        wanted.damage = settings->survey.damage;
        if (invocation->sandbox == SANDBOX_YES)
            code = fail(EINVAL, "--sandbox yes forbids what --beside reads");
        else
            code = net_beside_start(&beside, &wanted, invocation);
    }
    if (code) {
        if (is_unusable)
            command_unusable(invocation);
        else
            command_misused(invocation);
        net_beside_end(&beside, -EINVAL);
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
    net_beside_end(&beside, code);
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
