/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench sweep: measures a command over all combinations of its options' values.
 */
#include "cmd/sweep/sweep.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/families.h"
#include "cmd/outputs.h"
#include "cmd/program.h"
#include "cmd/sweep/live.h"
#include "cmd/sweep/scaling.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const scaling_names[] = {"auto", "strong", "weak", "strong,weak", NULL};

/* clang-format off: one or two rows each */
#define FIELD(field) .offset = offsetof(struct sweep_settings, field)
static const struct option_spec sweep_options[] = {
    {"output", 'o', OPTION_TEXT, FIELD(output), .metavar = "FOLDER", .reach = OPTION_WRITES_IN,
     .summary = "folder that keeps each measurement as it ends; the same command resumes there; "
                "default: iobench-sweep-ID here, the same for the same sweep"},
    {"runs", 'n', OPTION_COUNT, FIELD(runs), .fallback = "3", .minimum = 1, .maximum = 1000,
     .summary = "rounds, each measuring every cell once in newly drawn order"},
    {"budget", 0, OPTION_DURATION, FIELD(budget_ns), .fallback = "none", .zero = "none",
     .summary =
         "measure the most telling cells first, and none that would not end within this time "
         "at the mean time so far"},
    {"ranks", 0, OPTION_TEXT, FIELD(ranks), .metavar = "LIST",
     .summary = "numbers of ranks, started by --launch"},
    {"nodes", 0, OPTION_TEXT, FIELD(nodes), .metavar = "LIST",
     .summary = "numbers of nodes, for --launch"},
    {"launch", 0, OPTION_TEXT, FIELD(launch), .metavar = "'COMMAND'", .reach = OPTION_RUNS,
     .summary = "what starts each measurement; {ranks}, {nodes} and any swept {option} are filled "
                "in; default: mpirun -n {ranks} with --ranks"},
    {"scaling", 0, OPTION_CHOICE, FIELD(scaling), .fallback = "auto", .choices = scaling_names,
     .summary = "with several --ranks or --nodes, check that the job keeps its samples (strong) or "
                "each rank does (weak, --limit-samples-per-rank); strong,weak measures both"},
    {"order-seed", 0, OPTION_COUNT, FIELD(order_seed), .fallback = "1",
     .summary = "random seed of the order of the rounds"},
    {"retry", 0, OPTION_FLAG, FIELD(retry), .fallback = "no",
     .summary = "measure again what was not valid when the sweep was interrupted or ended"},
    {"json", 'j', OPTION_TEXT, FIELD(json), .metavar = "FILE", .reach = OPTION_WRITES,
     .section = "Output",
     .summary = "write cells, effects and scaling as JSON; - is standard output instead of the "
                "tables"},
    {"csv", 0, OPTION_TEXT, FIELD(csv), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "write one CSV row per measurement; - is standard output instead of the tables"},
    {"dry-run", 0, OPTION_FLAG, FIELD(dry_run), .fallback = "no",
     .summary = "print the command of each cell in the order of the first round; run nothing"},
    {0},
};
#undef FIELD
/* clang-format on */

static const struct sweep_target targets[] = {
    {&command_run, .is_launched = true, .read = sweep_read_job},
    {&command_train, .is_launched = true, .read = sweep_read_job},
    {&command_infer, .read = sweep_read_inference},
    {&command_shuffle, .members = shuffle_registry, .read = sweep_read_survey},
};

enum { TARGETS = sizeof targets / sizeof targets[0] };

/* Static: options are parsed before the command runs, and the command may then be refused. */
static struct sweep swept;

/* ---- options of the swept command ---- */

static const struct plugin *const *members_of(const struct option_spec *row)
{
    for (const struct family *family = family_table; family->name; family++)
        if (row->type == OPTION_TEXT && strcmp(family->option, row->name) == 0)
            return family->registry;
    return NULL;
}

static int check_values(const struct sweep *sweep, const struct option_spec *row,
                        const char *as_given)
{
    const struct command *command = sweep->target->command;
    const struct sweep_axis *axis = sweep_axis_named(&sweep->plan, row->name);
    void *scratch = memory_zeroed(command->settings_size + 1);
    int code = scratch ? 0 : -ENOMEM;

    for (size_t i = 0; code == 0 && i < axis->count; i++)
        code = option_set(command->options, scratch, row->name, axis->values[i], as_given);
    if (scratch)
        option_release(command->options, scratch);
    free(scratch);
    return code;
}

static int take_option(void *context, const struct option_spec *row, const char *value,
                       const char *as_given)
{
    struct sweep *sweep = context;

    if (row->reach == OPTION_WRITES || row->reach == OPTION_WRITES_IN)
        return fail(EINVAL,
                    "%s: each cell would write the same file: results are kept in -o FOLDER",
                    as_given);
    if (row->repeats)
        return fail(EINVAL, "%s: a sweep compares its cells itself: give several values instead",
                    as_given);
    int code = sweep_add(&sweep->plan, row->name, row, members_of(row), value);
    return code ? code : check_values(sweep, row, as_given);
}

/* The first word may name the command, whose options the sweep then accepts. */
static int adopt(const struct invocation *invocation, struct arguments_scope *scope)
{
    const char *word = invocation->argc ? invocation->argv[0] : "-";

    swept = (struct sweep){
        .invocation = invocation, .settings = invocation->settings, .target = &targets[0]};
    for (int i = 0; i < TARGETS; i++)
        if (strcmp(word, targets[i].command->name) == 0)
            swept.target = &targets[i];
    if (*word != '-' && strcmp(word, swept.target->command->name) != 0)
        return fail(EINVAL, "'%s' cannot be swept: expected run, train, infer or shuffle", word);
    *scope = (struct arguments_scope){
        .table = swept.target->command->options, .settings = &swept, .take = take_option};
    return 0;
}

/* ---- the plan ---- */

/* Options whose default is a list are axes even if not given. */
static int add_lists(struct sweep *sweep)
{
    int code = 0;

    for (const struct option_spec *row = sweep->target->command->options; row->name && code == 0;
         row++)
        if (row->fallback && row->metavar && strstr(row->metavar, "[,") &&
            !sweep_axis_named(&sweep->plan, row->name))
            code = sweep_add(&sweep->plan, row->name, row, NULL, row->fallback);
    return code;
}

/* Add a number for the launcher (ranks, nodes), or for the same option of a command that runs as
 * one process.
 */
static int add_number(struct sweep *sweep, const char *name, const char *list)
{
    const struct option_spec *row =
        sweep->target->is_launched ? NULL : option_find(sweep->target->command->options, name);
    uint64_t number;

    if (!list)
        return 0;
    if (!sweep->target->is_launched && !row)
        return fail(EINVAL, "--%s: iobench %s runs as one process", name,
                    sweep->target->command->name);
    int code = sweep_add(&sweep->plan, name, row, NULL, list);
    const struct sweep_axis *axis = sweep_axis_named(&sweep->plan, name);
    for (size_t i = 0; axis && i < axis->count && code == 0; i++) {
        code = option_parse_count(axis->values[i], &number);
        if (code == 0 && (number == 0 || number > 1 << 20))
            code = fail(EINVAL, "--%s: '%s' is not within 1 .. %d", name, axis->values[i], 1 << 20);
    }
    return code;
}

/* Add the operands after the command's name as one axis. */
static int add_operands(struct sweep *sweep)
{
    const struct invocation *invocation = sweep->invocation;
    const bool named = invocation->argc && invocation->argv[0][0] != '-';
    char list[4096] = "";
    size_t used = 0;

    if (!sweep->target->members)
        return invocation->count > named
                   ? fail(EINVAL, "unexpected operand '%s'", invocation->operands[named])
                   : 0;
    for (int i = named; i < invocation->count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "",
                                 invocation->operands[i]);
    if (used >= sizeof list)
        return fail(EINVAL, "too many operands");
    return sweep_add(&sweep->plan, "order", NULL, sweep->target->members, used ? list : "all");
}

/* Check that every {NAME} of the launcher has an axis. */
static int check_launch(const struct sweep *sweep)
{
    static const char *const names[] = {"{ranks}", "{nodes}"};
    char *filled = sweep->launch ? sweep_fill(&sweep->plan, 0, sweep->launch) : NULL;
    int code = sweep->launch && !filled ? -ENOMEM : 0;

    for (size_t i = 0; filled && code == 0 && i < sizeof names / sizeof *names; i++)
        if (strstr(filled, names[i]))
            code = fail(EINVAL, "--launch has %s: give --%.*s", names[i], (int)strlen(names[i]) - 2,
                        names[i] + 1);
    free(filled);
    return code;
}

static int choose_launch(struct sweep *sweep)
{
    const struct sweep_settings *settings = sweep->settings;
    const struct sweep_axis *ranks = sweep_axis_named(&sweep->plan, "ranks");

    if (settings->launch && !sweep->target->is_launched)
        return fail(EINVAL, "--launch: iobench %s runs as one process",
                    sweep->target->command->name);
    sweep->launch = settings->launch;
    if (!sweep->launch && ranks && !ranks->row)
        sweep->launch = "mpirun -n {ranks}";
    if (!sweep->launch && settings->nodes)
        return fail(EINVAL, "--nodes needs --launch, as in --launch 'srun -N {nodes}'");
    return check_launch(sweep);
}

/* Check that the data sets of the cells are there. */
static int check_paths(const struct sweep *sweep)
{
    const struct sweep_plan *plan = &sweep->plan;
    int code = 0;

    for (size_t axis = 0; axis < plan->axis_count && code == 0; axis++) {
        const struct option_spec *row = plan->axes[axis].row;
        if (!row || (row->reach != OPTION_INDEXES_SET && row->reach != OPTION_READS_SET))
            continue;
        for (uint32_t cell = 0; cell < plan->cells && code == 0; cell++) {
            char *path = sweep_fill(plan, cell, sweep_value(plan, cell, axis));
            code = path ? arguments_check_data(row->name, path) : -ENOMEM;
            free(path);
        }
    }
    return code;
}

static uint64_t fingerprint_of(const struct sweep *sweep)
{
    uint64_t print = random_hash_text(program_build(), sweep->target->command->name);

    print = random_hash_text(print, sweep->launch ? sweep->launch : "");
    for (size_t i = 0; i < sweep->plan.axis_count; i++) {
        print = random_hash_text(print, sweep->plan.axes[i].name);
        for (size_t k = 0; k < sweep->plan.axes[i].count; k++)
            print = random_hash_text(print, sweep->plan.axes[i].values[k]);
        print = random_hash(print, i, sweep->plan.axes[i].count);
    }
    return print;
}

static int make_plan(struct sweep *sweep)
{
    const struct sweep_settings *settings = sweep->settings;
    int code = add_lists(sweep);

    if (code == 0)
        code = add_operands(sweep);
    if (code == 0)
        code = add_number(sweep, "nodes", settings->nodes);
    if (code == 0)
        code = add_number(sweep, "ranks", settings->ranks);
    if (code == 0)
        code = choose_launch(sweep);
    if (code == 0)
        code = sweep_scaling_plan(sweep);
    if (code == 0)
        code = sweep_count(&sweep->plan);
    if (code == 0 && sweep->plan.cells * settings->runs > SWEEP_MEASUREMENTS_MAX)
        code = fail(EINVAL, "%u cells, %llu runs of each: more than %d measurements",
                    sweep->plan.cells, (unsigned long long)settings->runs, SWEEP_MEASUREMENTS_MAX);
    if (code == 0 && !settings->dry_run &&
        !settings->launch) /* which may start them where other files are */
        code = check_paths(sweep);
    if (code == 0)
        code = outputs_check_path(settings->json, "{\"schema\"");
    if (code == 0)
        code = outputs_check_path(settings->csv, "cell,run");
    if (code == 0 && ranks_are_launched())
        code = fail(EINVAL, "start it once, without mpirun or srun: --launch starts the ranks");
    if (code)
        return code;
    sweep->fingerprint = fingerprint_of(sweep);
    sweep->table = (struct sweep_table){.plan = &sweep->plan, .rounds = (uint32_t)settings->runs};
    sweep->table.figures =
        memory_array(settings->runs * sweep->plan.cells, sizeof *sweep->table.figures);
    return sweep->table.figures ? 0 : -ENOMEM;
}

static int print_plan(struct sweep *sweep)
{
    uint32_t *order = memory_array(sweep->plan.cells, sizeof *order);
    struct sweep_words words = {0};
    int code = order ? 0 : -ENOMEM;

    if (order)
        sweep_order(&sweep->plan, sweep->settings->order_seed, 0, sweep->settings->budget_ns > 0,
                    order);
    for (uint32_t i = 0; i < sweep->plan.cells && code == 0; i++) {
        code = sweep_cell_words(sweep, order[i], &words);
        for (size_t k = 0; k < words.count; k++)
            printf("%s%s", k ? " " : "", escape_shown(words.list[k]));
        putchar('\n');
        sweep_words_release(&words);
    }
    free(order);
    return code;
}

/* ---- measuring ---- */

struct sweep_clock {
    uint64_t start_ns, spent_ns; /* spent_ns: on this call's measurements */
    size_t measured;
};

static uint64_t mean_ns(const struct sweep_clock *clock)
{
    return clock->measured ? clock->spent_ns / clock->measured : 0;
}

/* Return whether this many measurements would end within the budget. */
static bool fits(const struct sweep *sweep, const struct sweep_clock *clock, size_t count)
{
    const uint64_t budget_ns = sweep->settings->budget_ns;

    return !budget_ns || clock->measured == 0 ||
           clock_now_ns() - clock->start_ns + count * mean_ns(clock) <= budget_ns;
}

static size_t missing_of(const struct sweep *sweep, uint32_t first_round, uint32_t end_round)
{
    size_t missing = 0;

    for (uint32_t round = first_round; round < end_round; round++)
        for (uint32_t cell = 0; cell < sweep->plan.cells; cell++)
            missing += !sweep_at(&sweep->table, cell, round)->is_measured;
    return missing;
}

/* Returns 0, 1 if the budget allows no other measurement, or a negative errno with a reason. */
static int measure_next(struct sweep *sweep, struct sweep_clock *clock, struct sweep_live *live,
                        uint32_t cell, uint32_t round)
{
    const size_t missing = missing_of(sweep, 0, sweep->table.rounds);

    if (!fits(sweep, clock, 1))
        return 1;
    sweep_live_begin(live, cell, round, mean_ns(clock) * missing);
    const uint64_t start_ns = clock_now_ns();
    int code = sweep_cell_run(sweep, cell, round, sweep_live_tick, live);
    clock->spent_ns += clock_now_ns() - start_ns;
    clock->measured++;
    if (code)
        return code;
    live->left_ns = mean_ns(clock) * (missing - 1);
    sweep_live_end(live);
    return 0;
}

/* A round that fits the budget is in random order, so drift affects all cells alike. */
static int measure_round(struct sweep *sweep, struct sweep_clock *clock, struct sweep_live *live,
                         uint32_t round, uint32_t *order)
{
    const bool certain =
        clock->measured > 0 && fits(sweep, clock, missing_of(sweep, round, round + 1));
    int code = 0;

    sweep_order(&sweep->plan, sweep->settings->order_seed, round,
                sweep->settings->budget_ns && !certain, order);
    for (uint32_t i = 0; i < sweep->plan.cells && code == 0; i++)
        if (!sweep_at(&sweep->table, order[i], round)->is_measured)
            code = measure_next(sweep, clock, live, order[i], round);
    return code;
}

static int measure_all(struct sweep *sweep)
{
    struct sweep_clock clock = {.start_ns = clock_now_ns()};
    struct sweep_live live = sweep_live_start(sweep);
    uint32_t *order = memory_array(sweep->plan.cells, sizeof *order);
    int code = order ? 0 : -ENOMEM;

    fprintf(stderr, "iobench sweep: %u cells, %u runs of each, kept in %s\n", sweep->plan.cells,
            sweep->table.rounds, escape_shown(sweep->folder.path));
    if (sweep->folder.kept)
        fprintf(stderr, "iobench sweep: %zu of %zu measurements are there already\n",
                sweep->folder.kept, live.total);
    for (uint32_t round = 0; round < sweep->table.rounds && code == 0; round++)
        code = measure_round(sweep, &clock, &live, round, order);
    sweep_live_clear(&live);
    free(order);
    return code;
}

/* ---- the command ---- */

/* outcome: 0, 1 if the budget ran out, or -EINTR. Returns enum command_exit. */
static int finish(const struct sweep *sweep, int outcome)
{
    const struct sweep_settings *settings = sweep->settings;
    const char *left_out = outcome == 1        ? "they would not end within --budget"
                           : outcome == -EINTR ? "interrupted; the same command goes on"
                                               : NULL;
    const bool on_stdout = (settings->json && strcmp(settings->json, "-") == 0) ||
                           (settings->csv && strcmp(settings->csv, "-") == 0);
    int status = outcome == -EINTR ? COMMAND_FAILED : COMMAND_OK;

    for (size_t i = 0; i < (size_t)sweep->plan.cells * sweep->table.rounds; i++)
        if (sweep->table.figures[i].is_measured && !sweep->table.figures[i].is_valid)
            status = COMMAND_FAILED;
    if (!on_stdout)
        sweep_print(stdout, sweep, left_out);
    return sweep_write_files(sweep, left_out) ? command_failed(sweep->invocation) : status;
}

static int carry_out(struct sweep *sweep)
{
    command_on_interrupt();
    int code = sweep_folder_open(sweep);
    const bool is_open = code == 0;

    if (code == 0)
        code = measure_all(sweep);
    if (code == -EINTR)
        command_failed(sweep->invocation);
    int status = is_open && (code >= 0 || code == -EINTR) ? finish(sweep, code)
                                                          : command_failed(sweep->invocation);
    sweep_folder_close(sweep);
    return status;
}

static int run_sweep(const struct invocation *invocation)
{
    struct sweep *sweep = &swept;
    int status, code = make_plan(sweep);

    if (code)
        status = command_misused(invocation);
    else if (sweep->settings->dry_run)
        status = print_plan(sweep) ? command_failed(invocation) : COMMAND_OK;
    else
        status = carry_out(sweep);
    free(sweep->table.figures);
    sweep_release(&sweep->plan);
    return status;
}

const struct command command_sweep = {
    .name = "sweep",
    .summary = "measure all combinations of options: effects, scaling",
    .operands = "[run|train|infer|shuffle] OPTIONS...",
    .operands_maximum = -1,
    .description =
        "Takes every option of the command (run if none is named) and measures all combinations of "
        "their values. Values are separated by commas: --shuffle epoch,tfdata. A comma within a "
        "value is written '\\,'; it may be plain before KEY=VALUE in the arguments of a plug-in: "
        "--trainer none,replay:h200,gpus=8 has two values. Numbers have ranges: 32:1024:x2 "
        "doubles, "
        "1:16:+5 adds 5. 'all' stands for every plug-in that can be used here (--format all), "
        "every choice, or no and yes of a flag (--direct=all). A value may hold those of other "
        "options: --data '/mnt/set-{format}'.\n"
        "A cell is a combination. Each round runs every cell once, in newly drawn order, each in a "
        "process of its own. Results are kept in a folder as they end: the same command resumes a "
        "sweep that was interrupted or killed, and --runs may be raised later. With --budget the "
        "most telling cells come first: the base cell (the first value of each option), then those "
        "with one option changed, to its last value and then to the others, then combinations, "
        "those of first and last values before the others. How many were left out "
        "is printed.\n"
        "The tables show each cell, the main effect of each value (the ratio to the first value "
        "over "
        "all pairs of cells of a round that differ in this option alone, paired t test of "
        "logarithms), and with several --ranks or --nodes the scaling: speed-up, efficiency, and "
        "where the time of a rank went. Strong scaling is the default: --limit-samples is the "
        "job's. "
        "--limit-samples-per-rank measures weak scaling; with --scaling strong,weak one sweep "
        "measures both. Measurements that are not valid are shown "
        "with their reason and enter no figure.",
    .examples =
        "iobench sweep --data /mnt/set -c --decode-threads 1,2,4 --batch-size 32:1024:x2\tall "
        "combinations, three runs each\n"
        "iobench sweep --data '/mnt/set-{format}' --format all --shuffle epoch,tfdata --budget "
        "30m\tthe most telling cells in half an hour\n"
        "iobench sweep --data /mnt/set --ranks 1,2,4,8 --launch 'srun -N {ranks} -n "
        "{ranks}'\tstrong scaling, one rank a node\n"
        "iobench sweep train --data /mnt/set --network resnet50,vgg16 --limit-samples-per-rank 10k "
        "--ranks 1:8:x2\tweak scaling of two networks\n",
    .options = sweep_options,
    .settings_size = sizeof(struct sweep_settings),
    .adopt = adopt,
    .run = run_sweep,
};
