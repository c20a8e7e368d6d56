/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench study: published experiments as commands.
 */
#include "cmd/study/study.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/nearest.h"
#include "cmd/commands.h"
#include "cmd/json_file.h"
#include "ranks/ranks.h"
#include "report/words.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct study_settings {
    char *data, *output, *launch, *sets;
    uint64_t budget_ns, link_bytes_per_s;
    bool dry_run, emulates_nodes;
    char *json;
};

/* clang-format off: one row each */
#define FIELD(field) .offset = offsetof(struct study_settings, field)
static const struct option_spec study_command_options[] = {
    {"data", 'd', OPTION_TEXT, FIELD(data), .metavar = "PATH", .reach = OPTION_READS_SET,
     .summary = "data set to make the study's sets of; default: synthetic images"},
    {"budget", 0, OPTION_DURATION, FIELD(budget_ns), .fallback = "3m", .minimum = 1,
     .maximum = 86400,
     .summary = "time for the commands of the study, beside a minute for starting them; its sets "
                "grow with it, and runs that do not fit are left out"},
    {"output", 'o', OPTION_TEXT, FIELD(output), .metavar = "FOLDER", .reach = OPTION_WRITES_IN,
     .summary = "folder of results, picture.svg and page.md; default: study-NAME"},
    {"launch", 0, OPTION_TEXT, FIELD(launch), .metavar = "'COMMAND {ranks}'", .reach = OPTION_RUNS,
     .summary = "how to start runs of several ranks, as 'mpirun -n {ranks} --hostfile hosts' or "
                "'srun -n {ranks}'; default: mpirun on this machine"},
    {"emulate-nodes", 0, OPTION_FLAG, FIELD(emulates_nodes), .fallback = "no",
     .summary = "put each rank on a node of its own: a network namespace of this machine with its "
                "own host name and link; needs root and Open MPI"},
    {"link-rate", 0, OPTION_SIZE, FIELD(link_bytes_per_s), .fallback = "unlimited",
     .zero = "unlimited", .per_second = true,
     .summary = "rate of each emulated node's link, each way, as 125MB/s (1 Gbit/s)"},
    {"sets", 0, OPTION_TEXT, FIELD(sets), .metavar = "FOLDER", .reach = OPTION_WRITES_IN,
     .summary = "folder for the study's data sets, which all nodes must see; default: in the cache "
                "folder"},
    {"dry-run", 0, OPTION_FLAG, FIELD(dry_run), .fallback = "no",
     .summary = "check and print the commands; run nothing"},
    {"json", 0, OPTION_TEXT, FIELD(json), .metavar = "FILE", .reach = OPTION_WRITES, .implied = "-",
     .summary = "write figures and sentences as JSON instead of the table; to "
                "standard output without FILE"},
    {0},
};
#undef FIELD
/* clang-format on */

/* ---- list ---- */

static bool is_study(const struct study_shipped *file)
{
    const size_t length = strlen(file->name);

    return length > 4 && strcmp(file->name + length - 4, ".ini") == 0;
}

int study_list(FILE *stream)
{
    enum { LIST_COLUMN = 16 };
    int code = 0;

    for (const struct study_shipped *file = study_shipped; file->name && code == 0; file++) {
        char name[64], text[256];
        struct study study;
        if (!is_study(file))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strlen(file->name) - 4, file->name);
        code = study_open(&study, name);
        char *title = study_value(&study, "study", "title");
        char *needs = study_value(&study, "study", "needs");
        const char *lack = study_lacks(needs, NULL);
        snprintf(text, sizeof text, "  %s", name);
        if (code == 0)
            words_print(stream, text, LIST_COLUMN, title);
        snprintf(text, sizeof text, "-> unavailable here: %s", lack ? lack : "");
        if (code == 0 && lack)
            words_print(stream, "", LIST_COLUMN, text);
        free(needs);
        free(title);
        study_close(&study);
    }
    return code;
}

static int offer_names(const char *name)
{
    struct nearest nearest = nearest_start(name);
    char names[32][32];
    size_t count = 0;

    for (const struct study_shipped *file = study_shipped; file->name && count < 32; file++)
        if (is_study(file)) {
            snprintf(names[count], sizeof names[0], "%.*s", (int)strlen(file->name) - 4,
                     file->name);
            nearest_offer(&nearest, names[count++]);
        }
    return fail(ENOENT, "unknown study '%s': 'iobench study' lists them%s", name,
                nearest_hint(&nearest));
}

/* ---- one ---- */

static void print_reason(const char *reason)
{
    printf("%s%s\n", reason ? "  # " : "", reason ? reason : "");
}

static int show(const struct study_settings *settings, const struct study_plan *plan)
{
    const struct study_run *first = &plan->runs[0];
    size_t done = 0;

    for (size_t i = 0; i < plan->run_count; i++)
        done += plan->runs[i].state == STUDY_DONE;
    if (!done)
        return fail(ENODATA, "no run of this study has a result: %s: %s", first->name,
                    first->reason ? first->reason : "not run");
    json_t *figures = study_figures(plan);
    if (!figures)
        return -EINVAL;
    study_add_doubts(plan, figures);
    int drawn = study_picture(plan, figures);
    if (drawn < 0) /* the figures do not need the picture */
        fprintf(stderr, "iobench study: no picture: %s\n", fail_reason());
    int code = study_page(plan, figures, drawn == 0);
    if (code == 0 && settings->json)
        return json_file_write(settings->json, figures);
    if (code == 0) {
        study_text(stdout, plan, figures);
        printf("\nPage  %s/page.md\n", plan->options->folder);
    }
    json_decref(figures);
    return code;
}

static int carry_out(const struct invocation *invocation, const struct study *study,
                     const struct study_options *options)
{
    const struct study_settings *settings = invocation->settings;
    struct study_plan plan;
    int status = COMMAND_OK;
    int code = study_plan_make(&plan, study, options, invocation->allow_commands);

    if (code) {
        status = command_misused(invocation);
    } else if (settings->dry_run) {
        for (size_t i = 0; i < plan.set_count; i++) {
            printf("iobench %s", plan.sets[i].command.shown);
            print_reason(plan.sets[i].lack);
        }
        for (size_t i = 0; i < plan.run_count; i++) {
            const struct study_run *run = &plan.runs[i];
            if (run->launch)
                printf("%s ", run->launch);
            printf("iobench %s", run->command.shown);
            print_reason(run->state == STUDY_LACKING ? run->reason : NULL);
        }
        json_t *figures = study_figures(&plan); /* check the expressions on no results */
        status = figures ? COMMAND_OK : command_failed(invocation);
        json_decref(figures);
    } else {
        char *needs = study_value(study, "study", "needs");
        const char *lack = study_lacks(needs, options);
        free(needs);
        command_on_interrupt();
        code = lack ? fail(ENODEV, "%s: %s", study->name, lack) : study_carry_out(&plan);
        if (code == 0)
            code = show(settings, &plan);
        status = code ? command_failed(invocation) : COMMAND_OK;
        for (size_t i = 0; i < plan.run_count && code == 0; i++)
            if (plan.runs[i].state == STUDY_FAILED)
                status = COMMAND_FAILED;
    }
    study_plan_release(&plan);
    return status;
}

/* Return an absolute path, since commands run in another directory, to be freed; NULL with a
 * reason. */
static char *absolute(const char *path)
{
    char here[PATH_MAX];

    if (*path == '/')
        return strdup(path);
    if (!getcwd(here, sizeof here)) {
        fail(errno, "the current folder: %s", fail_errno_text(errno));
        return NULL;
    }
    return file_join(here, path);
}

static char *folder_of(const struct study_settings *settings, const struct study *study)
{
    char *name =
        settings->output ? strdup(settings->output) : file_format_path("study-%s", study->name);
    char *folder = name ? absolute(name) : NULL;

    free(name);
    return folder;
}

static int check_nodes(const struct study_settings *settings)
{
    if (settings->emulates_nodes && settings->launch)
        return fail(EINVAL, "only one of --launch and --emulate-nodes can be given");
    if (settings->link_bytes_per_s && !settings->emulates_nodes)
        return fail(EINVAL, "--link-rate needs --emulate-nodes");
    return 0;
}

static int run_study(const struct invocation *invocation)
{
    const struct study_settings *settings = invocation->settings;
    struct study study;

    if (invocation->count == 0 || strcmp(invocation->operands[0], "list") == 0)
        return study_list(stdout) ? command_failed(invocation) : COMMAND_OK;
    if (ranks_are_launched()) {
        fail(EINVAL, "is one process, which starts those that it needs");
        return command_misused(invocation);
    }
    int code = check_nodes(settings);
    if (code)
        return command_misused(invocation);
    code = study_open(&study, invocation->operands[0]);
    if (code == -ENOENT)
        offer_names(invocation->operands[0]);
    char *folder = code == 0 ? folder_of(settings, &study) : NULL;
    char *sets = folder && settings->sets ? absolute(settings->sets) : NULL;
    const struct study_options options = {.data = settings->data,
                                          .folder = folder,
                                          .launch = settings->launch,
                                          .sets = sets,
                                          .budget_s = (double)settings->budget_ns * 1e-9,
                                          .emulates_nodes = settings->emulates_nodes,
                                          .link_bytes_per_s = settings->link_bytes_per_s};
    const bool is_set_up = folder && !sets == !settings->sets;
    int status = is_set_up ? carry_out(invocation, &study, &options) : command_misused(invocation);
    free(sets);
    free(folder);
    study_close(&study);
    return status;
}

const struct command command_study = {
    .name = "study",
    .summary = "repeat a published experiment, and say what it shows here",
    .operands = "[NAME]",
    .operands_maximum = 1,
    .operands_reach = {OPTION_READS},
    .description =
        "Repeats one of the experiments published for training clusters: makes its data, runs its "
        "commands (each a process of this program, on several ranks by mpirun), draws its picture "
        "and says in two sentences what the figures show here, and what was published. Without "
        "NAME it lists the studies, and what they lack on this machine. NAME may be a file of your "
        "own (docs/studies/README.md). Ranks run on this machine, on the nodes of --launch, or "
        "with --emulate-nodes each on a node that this machine emulates. Results are kept as they "
        "end: the same command of the same build resumes.",
    .examples = "iobench study\tlist them\n"
                "iobench study formats\tthree formats, cold and cached\n"
                "iobench study scaling --budget 10m -o scaling\tlarger, into a folder\n"
                "iobench study scaling --emulate-nodes --link-rate 125MB/s\ton nodes of its own, "
                "which this machine emulates\n"
                "iobench study formats --data /mnt/imagenet/train --dry-run\tthe commands, for "
                "your own data\n",
    .options = study_command_options,
    .settings_size = sizeof(struct study_settings),
    .run = run_study,
};
