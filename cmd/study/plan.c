/* SPDX-License-Identifier: Apache-2.0
 * Studies as files, and the commands that follow from one. */
#include "cmd/study/study.h"

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "cmd/arguments.h"
#include "cmd/program.h"
#include "cmd/synthetic.h"
#include "dataset/names_below.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- files ---- */

static const struct study_shipped *find_shipped(const char *name)
{
    const size_t length = strlen(name);

    for (const struct study_shipped *file = study_shipped; file->name; file++)
        if (strncmp(file->name, name, length) == 0 && strcmp(file->name + length, ".ini") == 0)
            return file;
    return NULL;
}

const char *study_text_shipped(const char *name)
{
    const struct study_shipped *file = study_shipped;

    while (strcmp(file->name, name) != 0)
        file++;
    return file->text;
}

int study_open(struct study *study, const char *name)
{
    const struct study_shipped *shipped = find_shipped(name);
    const char *base = file_name(name);
    int code;

    *study = (struct study){.name = strndup(base, strcspn(base, "."))};
    if (!study->name)
        return fail(ENOMEM, "out of memory");
    if (!shipped && !file_exists(name))
        return fail(ENOENT, "unknown study '%s': 'iobench study' lists them", name);
    code = shipped ? ini_parse(shipped->name, shipped->text, shipped->bytes, &study->file)
                   : ini_load(name, &study->file);
    static const char *const needed[] = {"title", "found", "source"};
    for (size_t i = 0; i < 3 && code == 0; i++) {
        char *value = study_value(study, "study", needed[i]);
        if (!value)
            code = fail(EINVAL, "%s: [study] has no %s", name, needed[i]);
        free(value);
    }
    return code;
}

void study_close(struct study *study)
{
    ini_release(&study->file);
    free(study->name);
    *study = (struct study){0};
}

static char *section_value(const struct ini *file, const struct ini_section *section,
                           const char *key)
{
    char *joined = NULL;

    for (size_t i = 0; i < section->count; i++) {
        const struct ini_entry *entry = &file->entries[section->first + i];
        if (strcmp(entry->key, key) != 0 || !entry->value)
            continue;
        char *longer = joined ? file_format_path("%s\n%s", joined, entry->value)
                              : file_format_path("%s", entry->value);
        free(joined);
        joined = longer;
    }
    return joined;
}

char *study_value(const struct study *study, const char *section, const char *key)
{
    for (size_t i = 0; i < study->file.section_count; i++)
        if (strcmp(study->file.sections[i].name, section) == 0)
            return section_value(&study->file, &study->file.sections[i], key);
    return NULL;
}

/* ---- placeholders ---- */

struct variable {
    const char *name, *value, *shown;
};

static const struct variable *find_variable(const struct variable *variables, const char *name,
                                            size_t length)
{
    for (; variables->name; variables++)
        if (strncmp(variables->name, name, length) == 0 && !variables->name[length])
            return variables;
    return NULL;
}

/* Replace each {NAME}. Returns a text to be freed, or NULL with a reason. */
static char *expand(const char *text, const struct variable *variables, bool shown)
{
    struct text_stream stream;
    char *expanded = NULL;
    size_t bytes;
    int code = text_stream_open(&stream);

    while (code == 0 && *text) {
        const size_t plain = strcspn(text, "{"), length = strcspn(text + plain, "}");
        fwrite(text, 1, plain, stream.stream);
        text += plain;
        if (!*text)
            break;
        const struct variable *found = find_variable(variables, text + 1, length - 1);
        if (!text[length] || !found || !found->value)
            code = fail(EINVAL, "unknown placeholder '%.*s}'", (int)length, text);
        else
            fputs(shown && found->shown ? found->shown : found->value, stream.stream);
        text += length + 1;
    }
    if (code == 0)
        code = text_stream_take(&stream, &expanded, &bytes);
    text_stream_close(&stream);
    return expanded;
}

static void release_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

/* Split a text into words, then expand each, so a path with blanks stays one word. */
static char **words_of(const char *text, const struct variable *variables)
{
    char *copy = strdup(text);
    char **words = copy ? memory_array(strlen(copy) + 2, sizeof *words) : NULL;
    char **parts = words ? memory_array(strlen(copy) + 2, sizeof *parts) : NULL;
    int count = parts ? arguments_split(copy, parts) : -ENOMEM;

    if (count == 0)
        count = fail(EINVAL, "an empty command");
    for (int i = 0; i < count; i++)
        if (!(words[i] = expand(parts[i], variables, false)))
            count = -EINVAL;
    free(parts);
    free(copy);
    if (count > 0)
        return words;
    release_words(words);
    return NULL;
}

/* ---- the plan ---- */

enum { VARIABLES = 32, LIST_BYTES = 256 };

/* The sizes in the study files suit this budget. */
static const double usual_budget_s = 180;

struct making {
    struct study_plan *plan;
    struct variable variables[VARIABLES];
    size_t fixed; /* variables that every run shares */
    bool allow_commands;
    char samples[32], source[64];
    char *program;
    uint64_t data_identity; /* of the user's data; 0: none */
};

static int blame(const struct making *making, const char *section, int code)
{
    if (code == 0)
        return 0;
    return fail(-code, "%s: [%s]: %s", making->plan->study->file.path, section, fail_reason());
}

/* [NAME word] -> word */
static const char *kind_of(const struct ini_section *section, const char *kind)
{
    const size_t length = strlen(kind);

    return strncmp(section->name, kind, length) == 0 && section->name[length] == ' '
               ? section->name + length + 1
               : NULL;
}

/* Build argv: `before`, the program, the words, `last`. before, last: NULL: none. */
static int join_words(struct study_command *command, char *const *before, const char *program,
                      const char *last)
{
    size_t used = 0;

    while (before && before[used])
        used++;
    for (char **word = command->words; *word; word++)
        used++;
    command->argv = memory_array(used + 3, sizeof *command->argv);
    if (!command->argv)
        return -ENOMEM;
    used = 0;
    for (; before && *before; before++)
        command->argv[used++] = *before;
    command->argv[used++] = program;
    for (char **word = command->words; *word; word++)
        command->argv[used++] = *word;
    command->argv[used] = last;
    return 0;
}

static int expand_command(struct making *making, const char *text, struct study_command *command)
{
    command->shown = expand(text, making->variables, true);
    command->words = command->shown ? words_of(text, making->variables) : NULL;
    return command->words
               ? study_check_words(command->words, making->allow_commands, &command->lack)
               : -EINVAL;
}

static int add_set(struct making *making, const struct ini_section *section, const char *name)
{
    struct study_plan *plan = making->plan;
    const char *given = plan->options->sets;
    char *pack = section_value(&plan->study->file, section, "pack");
    int code = memory_room(&plan->sets, plan->set_count, sizeof *plan->sets, "data sets");

    if (code == 0 && (!pack || making->fixed + 4 > VARIABLES))
        code = fail(EINVAL, "expected pack=OPTIONS");
    if (code == 0) {
        struct study_set *set = &plan->sets[plan->set_count++];
        struct variable *variable = &making->variables[making->fixed];
        char *cache = given ? NULL : synthetic_folder();
        char *folder = given ? strdup(given) : cache ? file_join(cache, "studies") : NULL;
        *set = (struct study_set){.name = strdup(name)};
        *variable = (struct variable){"target", "", NULL};
        /* The path depends on the command, so a changed command gets a new set; so do changed data.
         */
        char *command = expand(pack, making->variables, false), *hashed = command;
        if (command && making->data_identity && strstr(pack, "{source}")) {
            hashed = file_format_path("%s\n%016" PRIx64, command, making->data_identity);
            free(command);
        }
        if (folder && hashed)
            set->path =
                file_format_path("%s/%s-%08x", folder, name, crc32c(0, hashed, strlen(hashed)));
        free(hashed);
        free(folder);
        free(cache);
        *variable = (struct variable){"target", set->path, name};
        code = set->path && set->name ? expand_command(making, pack, &set->command) : -EINVAL;
        if (code == 0)
            code = join_words(&set->command, NULL, plan->program, NULL);
        if (code == 0 && set->command.lack && !study_set_exists(set))
            set->lack = strdup(set->command.lack);
        making->variables[making->fixed++] = (struct variable){set->name, set->path, name};
        making->variables[making->fixed] = (struct variable){0};
    }
    free(pack);
    return code;
}

/* Add a launcher to a run. With nodes it also starts a single rank, so that all are started alike.
 */
static int add_launcher(struct making *making, struct study_run *run, const char *ranks)
{
    const struct study_options *options = making->plan->options;
    const struct variable variables[] = {{"ranks", ranks ? ranks : "1", NULL}, {0}};
    const char *launch = options->launch ? options->launch : "mpirun -n {ranks}";

    run->ranks = ranks ? (unsigned)strtoul(ranks, NULL, 10) : 1;
    if (!ranks || (run->ranks == 1 && !study_has_nodes(options)))
        return 0;
    run->launch = expand(launch, variables, true);
    run->launcher = run->launch ? words_of(launch, variables) : NULL;
    return run->launcher ? 0 : -EINVAL;
}

static int add_run(struct making *making, const struct ini_section *section, const char *name,
                   const char *each, const char *also)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    struct study_plan *plan = making->plan;
    const struct ini *ini = &plan->study->file;
    int code = memory_room(&plan->runs, plan->run_count, sizeof *plan->runs, "runs");

    if (code)
        return code;
    struct study_run *run = &plan->runs[plan->run_count++];
    *run =
        (struct study_run){.each = each ? strdup(each) : NULL, .also = also ? strdup(also) : NULL};
    making->variables[making->fixed] = (struct variable){"each", run->each, NULL};
    making->variables[making->fixed + 1] = (struct variable){"also", run->also, NULL};
    making->variables[making->fixed + 2] = (struct variable){0};
    char *command = section_value(ini, section, "command"),
         *needs = section_value(ini, section, "needs");
    char *given = section_value(ini, section, "ranks"),
         *ranks = given ? expand(given, making->variables, false) : NULL;
    run->name = expand(name, making->variables, false);
    char *file = run->name ? strdup(run->name) : NULL;
    for (char *at = file; at && *(at += strspn(at, plain));)
        *at = '-';
    run->path = file ? file_format_path("%s/%s.json", plan->options->folder, file) : NULL;
    run->json = run->path ? file_format_path("--json=%s", run->path) : NULL;
    code = run->json && !given == !ranks ? 0 : -EINVAL;
    if (code == 0)
        code = command ? expand_command(making, command, &run->command)
                       : fail(EINVAL, "expected command=...");
    if (code == 0)
        code = add_launcher(making, run, ranks);
    if (code == 0)
        code = join_words(&run->command, run->launcher, plan->program, run->json);
    for (size_t i = 0; i < plan->set_count && code == 0; i++) { /* VARIABLES bounds their number */
        char *set = file_format_path("{%s}", plan->sets[i].name);
        if (set && strstr(command, set))
            run->sets |= UINT32_C(1) << i;
        free(set);
    }
    const char *lack = code ? NULL : study_lacks(needs, plan->options);
    if (!lack && run->launch)
        lack = study_lacks("mpi", plan->options);
    if (!lack)
        lack = study_lacking_set(plan, run);
    if (!lack)
        lack = run->command.lack;
    if (code == 0 && lack) {
        run->state = STUDY_LACKING;
        run->reason = strdup(lack);
    }
    making->variables[making->fixed] = (struct variable){0};
    free(file);
    free(ranks);
    free(given);
    free(needs);
    free(command);
    return code;
}

/* Split a list into words; a single NULL if the list is absent. */
static int split_list(char *list, char **words)
{
    words[0] = NULL;
    if (!list)
        return 1;
    if (strlen(list) >= LIST_BYTES)
        return fail(EINVAL, "a list of over %d bytes", LIST_BYTES);
    return arguments_split(list, words);
}

static int add_runs(struct making *making, const struct ini_section *section, const char *name)
{
    char *each = section_value(&making->plan->study->file, section, "each");
    char *also = section_value(&making->plan->study->file, section, "also");
    char *first[LIST_BYTES], *second[LIST_BYTES];
    const int rows = split_list(each, first), columns = split_list(also, second);
    int code = rows < 0 ? rows : columns < 0 ? columns : 0;

    for (int i = 0; i < rows && code == 0; i++)
        for (int k = 0; k < columns && code == 0; k++)
            code = add_run(making, section, name, first[i], second[k]);
    free(also);
    free(each);
    return code;
}

static double number_of(const struct study *study, const char *key, double fallback)
{
    char *text = study_value(study, "study", key);
    const double value = text ? strtod(text, NULL) : fallback;

    free(text);
    return value;
}

/* Set the variables that every command may use. With fewer samples than `least` a study cannot show
 * its subject: it takes longer than its budget instead. */
static int set_variables(struct making *making)
{
    const struct study *study = making->plan->study;
    const struct study_options *options = making->plan->options;
    const double samples = number_of(study, "samples", 4000) * options->budget_s / usual_budget_s;

    snprintf(making->samples, sizeof making->samples, "%.0f",
             fmax(ceil(samples), number_of(study, "least", 1)));
    snprintf(making->source, sizeof making->source, "synthetic:count=%s,classes=100",
             making->samples);
    const struct variable given[] = {
        {"samples", making->samples, NULL},
        {"source", options->data ? options->data : making->source, NULL},
        {"fashion", STUDY_FASHION "/train-images-idx3-ubyte.gz", NULL},
        {"fashion-test", STUDY_FASHION "/t10k-images-idx3-ubyte.gz", NULL},
        {"out", options->folder, "."},
    };
    if (options->data)
        making->data_identity = names_below_identity(options->data);
    fail_clear(); /* if there are none, the command that reads them says so */
    memcpy(making->variables, given, sizeof given);
    making->fixed = sizeof given / sizeof *given;
    return 0;
}

int study_plan_make(struct study_plan *plan, const struct study *study,
                    const struct study_options *options, bool allow_commands)
{
    struct making making = {.plan = plan, .allow_commands = allow_commands};
    const struct ini *file = &study->file;

    *plan = (struct study_plan){.study = study, .options = options, .program = program_path()};
    int code = plan->program ? set_variables(&making) : -ENOMEM;
    for (size_t i = 0; i < file->section_count && code == 0; i++) {
        const struct ini_section *section = &file->sections[i];
        const char *set = kind_of(section, "data"), *run = kind_of(section, "run");
        if (set)
            code = blame(&making, section->name, add_set(&making, section, set));
        else if (run)
            code = blame(&making, section->name, add_runs(&making, section, run));
    }
    bool has_ranks = false;
    for (size_t i = 0; i < plan->run_count; i++)
        has_ranks = has_ranks || plan->runs[i].launch;
    if (code == 0 && plan->run_count == 0)
        code = fail(EINVAL, "%s: no [run NAME]", file->path);
    if (code == 0 && options->emulates_nodes && !has_ranks)
        code = fail(EINVAL, "--emulate-nodes: study %s starts no ranks", study->name);
    return code;
}

static void release_command(struct study_command *command)
{
    release_words(command->words);
    free(command->argv);
    free(command->shown);
    free(command->lack);
}

void study_plan_release(struct study_plan *plan)
{
    for (size_t i = 0; i < plan->set_count; i++) {
        release_command(&plan->sets[i].command);
        free(plan->sets[i].lack);
        free(plan->sets[i].path);
        free(plan->sets[i].name);
    }
    for (size_t i = 0; i < plan->run_count; i++) {
        struct study_run *run = &plan->runs[i];
        release_command(&run->command);
        free(run->reason);
        json_decref(run->read);
        release_words(run->launcher);
        free(run->launch);
        free(run->also);
        free(run->each);
        free(run->json);
        free(run->path);
        free(run->name);
    }
    free(plan->sets);
    free(plan->runs);
    free(plan->program);
    *plan = (struct study_plan){0};
}
