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
#include "base/text_stream.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/families.h"
#include "cmd/outputs.h"
#include "cmd/program.h"
#include "report/load.h"
#include "report/words.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

/* ---- figures from the results of the swept commands ---- */

static void copy_text(char *to, size_t bytes, const char *text)
{
    snprintf(to, bytes, "%s", text ? text : "");
}

/* Return the sum of a figure over all epochs of all runs. */
static double sum_of_epochs(const json_t *job, const char *key)
{
    const json_t *runs = json_object_get(job, "runs"), *run, *epoch;
    double sum = 0;
    size_t i, k;

    json_array_foreach(runs, i, run)
    {
        json_array_foreach(json_object_get(run, "epochs"), k, epoch)
        {
            const double value = load_number(epoch, key);
            sum += isfinite(value) ? value : 0;
        }
    }
    return sum;
}

static uint32_t count_of(const json_t *object, const char *path)
{
    const double count = load_number(object, path);

    return count >= 1 && count < UINT32_MAX ? (uint32_t)count : 1;
}

/* What was at the path. Results of earlier versions have no identity; those of infer, and of orders
 * of no data, no set. */
static void read_set(const json_t *job, struct sweep_figures *figures)
{
    const char *path = load_text(job, "dataset.path"), *format = load_text(job, "dataset.format");
    const char *files = load_text(job, "dataset.identity"), *host = load_text(job, "place.host");

    figures->set_samples = load_number(job, "dataset.samples");
    figures->set_bytes = load_number(job, "dataset.record_bytes");
    if (path && format && isfinite(figures->set_samples) && isfinite(figures->set_bytes))
        figures->set = random_hash_text(random_hash_text(1, path), format);
    figures->files = files && host ? random_hash_text(1, files) | 1 : 0;
    figures->host = random_hash_text(1, host ? host : "");
}

int sweep_read_job(const json_t *document, struct sweep_figures *figures)
{
    const json_t *job = json_array_get(json_object_get(document, "jobs"), 0);

    if (!json_is_object(job))
        return fail(EINVAL, "it has no jobs");
    const char *degraded = load_degraded(job);
    figures->is_valid = load_true(job, "valid") && !degraded;
    copy_text(figures->reason, sizeof figures->reason,
              degraded ? degraded : load_text(job, "invalid_reason"));
    figures->samples_per_s = load_number(job, "summary.samples_per_s");
    copy_text(figures->limit, sizeof figures->limit, load_text(job, "summary.limit"));
    copy_text(figures->cache, sizeof figures->cache, load_text(job, "summary.cache_before"));
    figures->ranks = count_of(job, "engine.ranks");
    static const char *const keys[SWEEP_PARTS] = {"wait_s",     "upload_s", "compute_s",
                                                  "exchange_s", "update_s", "start_barrier_s"};
    for (int i = 0; i < SWEEP_PARTS; i++)
        figures->parts_s[i] = sum_of_epochs(job, keys[i]);
    figures->parts_s[SWEEP_BARRIER] += sum_of_epochs(job, "stop_barrier_s");
    figures->wall_s = sum_of_epochs(job, "wall_s") + figures->parts_s[SWEEP_BARRIER];
    read_set(job, figures);
    return 0;
}

/* An inference uses caches as it finds them: where its bytes came from. "": unknown. */
static const char *source_of(const json_t *row)
{
    const double percent = load_number(row, "storage_percent");

    return !isfinite(percent) ? ""
           : percent >= 98    ? "all from storage"
           : percent <= 2     ? "all in memory"
                              : "partly in memory";
}

int sweep_read_inference(const json_t *document, struct sweep_figures *figures)
{
    const json_t *row = json_array_get(json_object_get(document, "batch_sizes"), 0);

    if (!json_is_object(row))
        return fail(EINVAL, "it has no batch sizes");
    figures->is_valid = !load_degraded(document);
    copy_text(figures->reason, sizeof figures->reason, load_degraded(document));
    figures->samples_per_s = load_number(row, "samples_per_s");
    figures->wall_s = load_number(row, "wall_s");
    figures->parts_s[SWEEP_WAIT] = load_number(row, "wait_s");
    figures->parts_s[SWEEP_COMPUTE] = load_number(row, "compute_s");
    copy_text(figures->cache, sizeof figures->cache, source_of(row));
    read_set(document, figures);
    figures->ranks = 1;
    return 0;
}

int sweep_read_survey(const json_t *document, struct sweep_figures *figures)
{
    const json_t *row = json_array_get(document, 0);
    const char *refused = load_text(row, "refused");

    if (!json_is_object(row))
        return fail(EINVAL, "it has no orders");
    if (json_array_size(document) > 1)
        refused = "it has several rows: give the values of a list one by one";
    refused = refused ? refused : load_text(row, "not_read_reason");
    refused = refused ? refused : load_text(row, "unverified_reason");
    figures->is_valid = !refused;
    copy_text(figures->reason, sizeof figures->reason, refused);
    figures->samples_per_s = load_number(row, "samples_per_s");
    figures->randomness = fmin(1, load_number(row, "labels_per_batch") /
                                      load_number(row, "labels_per_batch_at_random"));
    figures->ranks = count_of(row, "ranks");
    read_set(row, figures);
    return 0;
}

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
    if (code)
        return code;
    const struct command *command = sweep->target->command;
    const struct sweep_axis *axis = sweep_axis_named(&sweep->plan, row->name);
    void *scratch = memory_zeroed(command->settings_size + 1);
    code = scratch ? 0 : -ENOMEM;
    for (size_t i = 0; code == 0 && i < axis->count; i++)
        code = option_set(command->options, scratch, row->name, axis->values[i], as_given);
    if (scratch)
        option_release(command->options, scratch);
    free(scratch);
    return code;
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

/* Add a number for the launcher (ranks, nodes), or for the same option of a command that runs as
 * one process. */
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

static int choose_launch(struct sweep *sweep)
{
    static const char *const names[] = {"{ranks}", "{nodes}"}; /* each needs an axis */
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
    char *filled = sweep->launch ? sweep_fill(&sweep->plan, 0, sweep->launch) : NULL;
    int code = sweep->launch && !filled ? -ENOMEM : 0;
    for (size_t i = 0; filled && code == 0 && i < sizeof names / sizeof *names; i++)
        if (strstr(filled, names[i]))
            code = fail(EINVAL, "--launch has %s: give --%.*s", names[i], (int)strlen(names[i]) - 2,
                        names[i] + 1);
    free(filled);
    return code;
}

static int make_plan(struct sweep *sweep)
{
    const struct sweep_settings *settings = sweep->settings;
    /* Options whose default is a list are axes even if not given. */
    int code = 0;
    for (const struct option_spec *row = sweep->target->command->options; row->name && code == 0;
         row++)
        if (row->fallback && row->metavar && strstr(row->metavar, "[,") &&
            !sweep_axis_named(&sweep->plan, row->name))
            code = sweep_add(&sweep->plan, row->name, row, NULL, row->fallback);

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
    /* Are the data sets there? --launch may start cells where other files are. */
    const bool is_here = !settings->dry_run && !settings->launch;
    for (size_t axis = 0; axis < sweep->plan.axis_count && code == 0 && is_here; axis++) {
        const struct option_spec *row = sweep->plan.axes[axis].row;
        if (!row || (row->reach != OPTION_INDEXES_SET && row->reach != OPTION_READS_SET))
            continue;
        for (uint32_t cell = 0; cell < sweep->plan.cells && code == 0; cell++) {
            char *path = sweep_fill(&sweep->plan, cell, sweep_value(&sweep->plan, cell, axis));
            code = path ? arguments_check_data(row->name, path) : -ENOMEM;
            free(path);
        }
    }
    if (code == 0)
        code = outputs_check_path(settings->json, "{\"schema\"");
    if (code == 0)
        code = outputs_check_path(settings->csv, "cell,run");
    if (code == 0 && ranks_are_launched())
        code = fail(EINVAL, "start it once, without mpirun or srun: --launch starts the ranks");
    if (code)
        return code;
    uint64_t print = random_hash_text(program_build(), sweep->target->command->name);
    print = random_hash_text(print, sweep->launch ? sweep->launch : "");
    for (size_t i = 0; i < sweep->plan.axis_count; i++) {
        print = random_hash_text(print, sweep->plan.axes[i].name);
        for (size_t k = 0; k < sweep->plan.axes[i].count; k++)
            print = random_hash_text(print, sweep->plan.axes[i].values[k]);
        print = random_hash(print, i, sweep->plan.axes[i].count);
    }
    sweep->fingerprint = print;
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
        code = sweep_cell_words(sweep, order[i], NULL, &words);
        for (size_t k = 0; k < words.count; k++)
            printf("%s%s", k ? " " : "", escape_shown(words.list[k]));
        putchar('\n');
        sweep_words_release(&words);
    }
    free(order);
    return code;
}

/* ---- what it shows while it runs ---- */

/* On stderr: on a terminal the table so far with the time left, else a line per measurement. */
struct sweep_live {
    const struct sweep *sweep;
    struct line line;
    unsigned drawn;                  /* table lines now on the screen */
    uint32_t cell, round;            /* being measured */
    size_t done, total;              /* measurements */
    bool told_replaced;              /* that a data set was replaced */
    uint64_t cell_start_ns, left_ns; /* left_ns: 0 while unknown */
};

enum { ROWS_AROUND = 4 }; /* heading, status line and prompt */

static void time_left(char text[LINE_PART_BYTES], uint64_t left_ns)
{
    const uint64_t seconds = left_ns / 1000000000;

    text[0] = '\0';
    if (left_ns)
        snprintf(text, LINE_PART_BYTES, ", %u:%02u:%02u left", (unsigned)(seconds / 3600),
                 (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
}

static void erase_table(struct sweep_live *live)
{
    line_clear(&live->line);
    if (live->drawn)
        dprintf(STDERR_FILENO, "\033[%uA\033[J", live->drawn);
    live->drawn = 0;
}

static void show_status(struct sweep_live *live)
{
    const struct sweep *sweep = live->sweep;
    char text[sizeof live->line.last], title[128], left[LINE_PART_BYTES];
    const uint64_t seconds = (clock_now_ns() - live->cell_start_ns) / 1000000000;

    time_left(left, live->left_ns);
    snprintf(text, sizeof text, "%zu of %zu%s; run %u of %u, %u s: %s", live->done + 1, live->total,
             left, live->round + 1, sweep->table.rounds, (unsigned)seconds,
             sweep_title(&sweep->plan, live->cell, title, sizeof title));
    line_show(&live->line, text);
}

static bool show_tick(void *context)
{
    show_status(context);
    return false;
}

static void show_end(struct sweep_live *live)
{
    const struct sweep *sweep = live->sweep;
    const struct sweep_figures *figures = sweep_at(&sweep->table, live->cell, live->round);
    char title[512], rate[WORDS_BYTES], left[LINE_PART_BYTES];

    live->done++;
    if (figures->is_replaced && !live->told_replaced) { /* the table does not show it */
        live->told_replaced = true;
        erase_table(live);
        fprintf(stderr, "iobench sweep: what is measured of it now is not valid: %s\n",
                escape_shown(figures->reason));
    }
    if (live->line.shown) {
        struct winsize size;
        const bool has_size = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
        const uint32_t cells = live->sweep->plan.cells;
        const uint32_t rows =
            has_size && size.ws_row >= 2 * ROWS_AROUND ? size.ws_row - ROWS_AROUND : 20;
        const unsigned columns = has_size && size.ws_col >= 20 ? size.ws_col : 80;
        const uint32_t count = cells < rows ? cells : rows;
        uint32_t first = live->cell > count / 2 ? live->cell - count / 2 : 0;
        struct text_stream table;
        char *text = NULL, *rest, *line;
        size_t bytes;
        first = first + count > cells ? cells - count : first;
        if (text_stream_open(&table) == 0)
            sweep_print_cells(table.stream, live->sweep, first, count);
        if (text_stream_take(&table, &text, &bytes) == 0) {
            erase_table(live);
            for (rest = text; (line = strsep(&rest, "\n")) && rest; live->drawn++)
                dprintf(STDERR_FILENO, "%.*s\n", (int)columns - 1, escape_shown(line));
        }
        free(text);
        return;
    }
    time_left(left, live->left_ns);
    sweep_title(&sweep->plan, live->cell, title, sizeof title);
    if (figures->is_valid)
        fprintf(stderr, "%zu of %zu%s: %s: %s samples/s%s%s\n", live->done, live->total, left,
                escape_shown(title), words_rate(figures->samples_per_s, rate),
                *figures->limit ? ", limit " : "", figures->limit);
    else
        fprintf(stderr, "%zu of %zu%s: %s: not valid: %s\n", live->done, live->total, left,
                escape_shown(title), escape_shown(figures->reason));
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
static int measure_all(struct sweep *sweep)
{
    const struct sweep_settings *settings = sweep->settings;
    const uint32_t cells = sweep->plan.cells, rounds = sweep->table.rounds;
    struct sweep_clock clock = {.start_ns = clock_now_ns()};
    struct sweep_live live = {.sweep = sweep,
                              .line = line_start(),
                              .total = (size_t)cells * rounds,
                              .done = sweep->folder.kept};
    uint32_t *order = memory_array(cells, sizeof *order);
    int code = order ? 0 : -ENOMEM;

    fprintf(stderr, "iobench sweep: %u cells, %u runs of each, kept in %s\n", cells, rounds,
            escape_shown(sweep->folder.path));
    if (sweep->folder.kept)
        fprintf(stderr, "iobench sweep: %zu of %zu measurements are there already\n",
                sweep->folder.kept, live.total);
    for (uint32_t round = 0; round < rounds && code == 0; round++) {
        /* A round that fits the budget is in random order, so drift affects all cells alike. */
        const bool is_certain =
            clock.measured > 0 && fits(sweep, &clock, missing_of(sweep, round, round + 1));
        sweep_order(&sweep->plan, settings->order_seed, round, settings->budget_ns && !is_certain,
                    order);
        for (uint32_t i = 0; i < cells && code == 0; i++) {
            const size_t missing = missing_of(sweep, 0, rounds);
            if (sweep_at(&sweep->table, order[i], round)->is_measured)
                continue;
            if (!fits(sweep, &clock, 1)) {
                code = 1;
                break;
            }
            live.cell = order[i];
            live.round = round;
            live.left_ns = (mean_ns(&clock) * missing);
            live.cell_start_ns = clock_now_ns();
            show_status(&live);
            const uint64_t start_ns = clock_now_ns();
            code = sweep_cell_run(sweep, order[i], round, show_tick, &live);
            clock.spent_ns += clock_now_ns() - start_ns;
            clock.measured++;
            live.left_ns = mean_ns(&clock) * (missing - 1);
            if (code == 0)
                show_end(&live);
        }
    }
    erase_table(&live);
    free(order);
    return code;
}

/* ---- the command ---- */

static int run_sweep(const struct invocation *invocation)
{
    struct sweep *sweep = &swept;
    int status, code = make_plan(sweep);

    if (code) {
        status = command_misused(invocation);
    } else if (sweep->settings->dry_run) {
        status = print_plan(sweep) ? command_failed(invocation) : COMMAND_OK;
    } else {
        command_on_interrupt();
        code = sweep_folder_open(sweep);
        const bool is_open = code == 0;
        if (code == 0)
            code = measure_all(sweep);
        status = code < 0 ? command_failed(invocation) : COMMAND_OK;
        if (is_open && (code >= 0 || code == -EINTR)) {
            const struct sweep_settings *settings = sweep->settings;
            const char *left_out = code == 1        ? "they would not end within --budget"
                                   : code == -EINTR ? "interrupted; the same command goes on"
                                                    : NULL;
            const bool on_stdout = (settings->json && strcmp(settings->json, "-") == 0) ||
                                   (settings->csv && strcmp(settings->csv, "-") == 0);
            status = code == -EINTR ? COMMAND_FAILED : COMMAND_OK;
            for (size_t i = 0; i < (size_t)sweep->plan.cells * sweep->table.rounds; i++)
                if (sweep->table.figures[i].is_measured && !sweep->table.figures[i].is_valid)
                    status = COMMAND_FAILED;
            if (!on_stdout)
                sweep_print(stdout, sweep, left_out);
            status =
                sweep_write_files(sweep, left_out) ? command_failed(sweep->invocation) : status;
        }
        sweep_folder_close(sweep);
    }
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
        "doubles, 1:16:+5 adds 5. 'all' stands for every plug-in that can be used here (--format "
        "all), every choice, or no and yes of a flag (--direct=all). A value may hold those of "
        "other options: --data '/mnt/set-{format}'.\n"
        "A cell is a combination. Each round runs every cell once, in newly drawn order, each in a "
        "process of its own. Results are kept in a folder as they end: the same command resumes a "
        "sweep that was interrupted or killed, and --runs may be raised later. With --budget the "
        "most telling cells come first: the base cell (the first value of each option), then those "
        "with one option changed, to its last value and then to the others, then combinations, "
        "those of first and last values before the others. How many were left out is printed.\n"
        "The tables show each cell, the main effect of each value (the ratio to the first value "
        "over all pairs of cells of a round that differ in this option alone, paired t test of "
        "logarithms), and with several --ranks or --nodes the scaling: speed-up, efficiency, and "
        "where the time of a rank went. Strong scaling is the default: --limit-samples is the "
        "job's. --limit-samples-per-rank measures weak scaling; with --scaling strong,weak one "
        "sweep measures both. Measurements that are not valid are shown with their reason and "
        "enter no figure.",
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
