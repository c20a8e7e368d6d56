/* SPDX-License-Identifier: Apache-2.0
 *
 * One measurement: a process of its own, so that a crash loses one cell. It writes its result
 * itself, so that it is kept even if the sweep is killed meanwhile. */
#include "cmd/sweep/sweep.h"

#include "base/child.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "cmd/arguments.h"
#include "cmd/program.h"
#include "cmd/sandbox.h"
#include "cmd/sweep/scaling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- command line ---- */

/* Take ownership of word. */
static int add_word(struct sweep_words *words, char *word)
{
    if (!word || memory_room(&words->list, words->count, sizeof *words->list, "words")) {
        free(word);
        return fail(ENOMEM, "out of memory");
    }
    words->list[words->count++] = word;
    return 0;
}

static int end_words(struct sweep_words *words)
{
    if (memory_room(&words->list, words->count, sizeof *words->list, "words"))
        return -ENOMEM;
    words->list[words->count] = NULL;
    return 0;
}

void sweep_words_release(struct sweep_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->list[i]);
    free(words->list);
    *words = (struct sweep_words){0};
}

/* Split launch words first and fill them afterwards, so a value never spans words. */
static int add_launch(const struct sweep *sweep, uint32_t cell, struct sweep_words *words)
{
    char *copy = strdup(sweep->launch);
    char **parts = memory_array(strlen(sweep->launch) + 1, sizeof *parts);
    int code = copy && parts ? arguments_split(copy, parts) : -ENOMEM;
    const int count = code;

    for (int i = 0; i < count && code >= 0; i++)
        code = add_word(words, sweep_fill(&sweep->plan, cell, parts[i]));
    free(parts);
    free(copy);
    return code < 0 ? code : 0;
}

static int add_options(const struct sweep *sweep, uint32_t cell, struct sweep_words *words)
{
    const struct sweep_plan *plan = &sweep->plan;
    int code = 0;

    for (size_t i = 0; i < plan->axis_count && code == 0; i++) {
        if (!plan->axes[i].row || !sweep_scaling_has(plan, cell, plan->axes[i].name))
            continue; /* for the launcher, an operand, or not this cell's */
        char *value = sweep_fill(plan, cell, sweep_value(plan, cell, i));
        code = value ? add_word(words, file_format_path("--%s=%s", plan->axes[i].name, value))
                     : -ENOMEM;
        free(value);
    }
    return code;
}

/* Add the options that the sweep itself sets, if the command has them. */
static int add_own(const struct sweep *sweep, uint32_t cell, struct sweep_words *words)
{
    const struct option_spec *options = sweep->target->command->options;
    char title[512];
    int code = 0;

    sweep_title_without(&sweep->plan, cell, SWEEP_NO_AXIS, NULL, title, sizeof title);
    if (option_find(options, "runs"))
        code = add_word(words, strdup("--runs=1"));
    if (code == 0 && *title && option_find(options, "label") &&
        !sweep_axis_named(&sweep->plan, "label"))
        code = add_word(words, file_format_path("--label=%s", title));
    if (code == 0 && sweep->invocation->sandbox != SANDBOX_AUTO)
        code = add_word(
            words, file_format_path("--sandbox=%s", sandbox_choices[sweep->invocation->sandbox]));
    return code;
}

/* Add the cell's operand: its value on the axis that is not an option. */
static int add_operand(const struct sweep *sweep, uint32_t cell, struct sweep_words *words)
{
    const struct sweep_axis *axis =
        sweep->target->members ? sweep_axis_named(&sweep->plan, "order") : NULL;

    if (!axis)
        return 0;
    int code = add_word(words, strdup("--"));
    return code ? code
                : add_word(words, strdup(sweep_value(&sweep->plan, cell,
                                                     (size_t)(axis - sweep->plan.axes))));
}

static int make_words(const struct sweep *sweep, uint32_t cell, const char *json,
                      struct sweep_words *words)
{
    int code = sweep->launch ? add_launch(sweep, cell, words) : 0;

    if (code == 0)
        code = add_word(words, program_path());
    if (code == 0)
        code = add_word(words, strdup(sweep->target->command->name));
    if (code == 0)
        code = add_options(sweep, cell, words);
    if (code == 0)
        code = add_own(sweep, cell, words);
    if (code == 0 && json)
        code = add_word(words, file_format_path("--json=%s", json));
    if (code == 0)
        code = add_operand(sweep, cell, words);
    if (code == 0)
        code = end_words(words);
    if (code)
        sweep_words_release(words);
    return code;
}

int sweep_cell_words(const struct sweep *sweep, uint32_t cell, struct sweep_words *words)
{
    *words = (struct sweep_words){0};
    return make_words(sweep, cell, NULL, words);
}

/* ---- process ---- */

/* The file exists unless the process failed before writing it. */
static int settle(struct sweep *sweep, uint32_t cell, uint32_t round,
                  const struct child_result *result)
{
    char reason[CHILD_OUTPUT_BYTES + 64];
    int code = sweep_folder_load(sweep, cell, round);

    if (code != -ENOENT)
        return code;
    if (result->status > 128)
        snprintf(reason, sizeof reason, "ended by signal %d: %s", result->status - 128,
                 result->output);
    else
        snprintf(reason, sizeof reason, "exit status %d: %s", result->status, result->output);
    code = sweep_folder_fail(sweep, cell, round, reason);
    return code ? code : sweep_folder_load(sweep, cell, round);
}

int sweep_cell_run(struct sweep *sweep, uint32_t cell, uint32_t round, bool (*tick)(void *context),
                   void *context)
{
    char *json = sweep_folder_file(sweep, cell, round);
    struct sweep_words words = {0};
    struct child_result result;
    int code = json ? make_words(sweep, cell, json, &words) : -ENOMEM;
    const int nowhere = file_open_quietly("/dev/null", O_RDWR);

    if (code == 0) {
        const struct child_task task = {.argv = (const char *const *)words.list,
                                        .input = sweep->folder.lock.fd,
                                        .output = nowhere < 0 ? 0 : nowhere,
                                        .prefers = "iobench",
                                        .stop = tick,
                                        .context = context};
        code = child_run(&task, &result);
        if (code == -EINTR) /* discard what an interrupted process wrote */
            sweep_folder_remove(sweep, cell, round);
    }
    if (code == 0)
        code = settle(sweep, cell, round, &result);
    if (nowhere >= 0)
        close(nowhere);
    sweep_words_release(&words);
    free(json);
    return code;
}
