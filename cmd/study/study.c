/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench study: published experiments as commands. A study is data: commands of this program, the
 * figures taken from their results (cmd/study/evaluate.c), and the words for them;
 * docs/studies/README.md has the form of the files.
 */
#include "cmd/study/study.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/plugin.h"
#include "cmd/arguments.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/line.h"
#include "dataset/catalog.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "ranks/ranks.h"
#include "report/report.h"
#include "report/svg.h"
#include "report/words.h"
#include "trainer/backend.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct study {
    const char *name;
    struct ini file;
};

/* Texts and lists that are made of a study, or of what it did. Static: one study is open at a time.
 */
static struct {
    void **list;
    size_t count;
} kept;

/* Keep memory until study_close(). Returns it, or NULL. */
static void *keep(void *memory)
{
    if (memory && memory_room(&kept.list, kept.count, sizeof *kept.list, "texts")) {
        free(memory);
        return NULL;
    }
    if (memory)
        kept.list[kept.count++] = memory;
    return memory;
}

struct study_settings {
    char *data;   /* the user's data set; NULL: synthetic */
    char *output; /* folder for results, from the root: commands run in another one */
    char *launch; /* how to start {ranks} ranks; NULL: mpirun on this machine */
    char *sets;   /* folder for its data sets, from the root; NULL: in the cache folder */
    uint64_t budget_ns, link_bytes_per_s; /* link: of an emulated node; 0: unlimited */
    bool dry_run, emulates_nodes;         /* each rank on a node of its own, emulated here */
    bool has_server;                      /* such nodes read from an NFS server */
    char *json;
};

struct study_command {
    char **words;      /* arguments after the program */
    const char **argv; /* argument vector, borrowed from words */
    char *shown;       /* as a user types it, with sets by name */
    const char *lack;  /* what this build lacks for it; NULL: nothing */
};

/* A data set, generated once. */
struct study_set {
    const char *name, *path;
    struct study_command command;
    const char *lack; /* why it cannot be made here; NULL: it can, or it is there */
};

/* Where the package dataset-fashion-mnist installs its images. */
#define STUDY_FASHION "/usr/share/datasets/fashion-mnist"

enum study_state { STUDY_DUE, STUDY_DONE, STUDY_FAILED, STUDY_LACKING, STUDY_LEFT_OUT };

struct study_run {
    char *name, *path;       /* path: its result file */
    char *json;              /* option that takes the path */
    const char *each, *also; /* values of its variables; NULL: none */
    unsigned ranks;
    uint32_t sets;   /* those it reads, as bits */
    char *launch;    /* launcher put before the command, as shown; NULL: one process */
    char **launcher; /* words of launch */
    struct study_command command;
    enum study_state state;
    const char *reason; /* why it was not run, or its figures are in doubt; NULL: none */
    double seconds;
    json_t *read; /* what its jobs read, as told to load_compare_data(); NULL: not done */
};

struct study_plan {
    const struct study *study;
    const struct study_settings *settings;
    struct study_set *sets;
    struct study_run *runs;
    size_t set_count, run_count;
    char *program; /* path of this program */
};

enum { STUDY_NODES_BYTES = 64 };
#define NODES_SERVER "198.18.0.254" /* the bridge of cmd/study/nodes.sh */

/* ---- the machine ---- */

static bool has_gpu(void)
{
    const struct plugin *cuda = plugin_find(backend_registry, "cuda");

    return cuda && plugin_usable(cuda) == 0;
}

/* Return whether ranks run on nodes of their own. */
static bool study_has_nodes(const struct study_settings *settings)
{
    return settings && (settings->launch || settings->emulates_nodes);
}

/* Return NULL if this machine has everything in `needs` ("gpu mpi"; "cpu" is the absence of a GPU),
 * else what is missing. settings NULL: the usual ones. */
static const char *study_lacks(const char *needs, const struct study_settings *settings)
{
    const char *lack = NULL;

    if (settings && settings->emulates_nodes && geteuid() != 0)
        lack = "--emulate-nodes makes network namespaces, which needs root: use sudo";
    else if (needs && strstr(needs, "gpu") && !has_gpu())
        lack = "needs an NVIDIA GPU";
    else if (needs && strstr(needs, "cpu") && has_gpu())
        lack = "for machines without a GPU";
    else if (needs && strstr(needs, "launch") && !study_has_nodes(settings))
        lack = "needs nodes: --launch, or --emulate-nodes as root";
    else if (needs && strstr(needs, "mpi") && !(settings && settings->launch) &&
             !file_in_path("mpirun"))
        lack = "needs mpirun";
    else if (needs && strstr(needs, "fashion") && !file_exists(STUDY_FASHION))
        lack = "needs the package dataset-fashion-mnist";
    fail_clear();
    return lack;
}

/* ---- data sets ---- */

/* Return whether the set is there, complete. */
static bool study_set_exists(const struct study_set *set)
{
    bool found = file_exists(set->path) && format_detect(set->path) != NULL;

    fail_clear();
    return found;
}

/* Return why a set of this run cannot be made. NULL: all can, or are there. */
static const char *study_lacking_set(const struct study_plan *plan, const struct study_run *run)
{
    for (size_t i = 0; i < plan->set_count; i++)
        if (run->sets >> i & 1 && plan->sets[i].lack)
            return plan->sets[i].lack;
    return NULL;
}

/* ---- commands ---- */

/* Check a command, words[0], and its arguments against its option table. *lack: a
 * plug-in it names that cannot be used here; NULL: none. Returns 0 or -errno with a reason. */
static int study_check_words(char **words, bool allow_commands, const char **lack)
{
    const struct command *command = command_find(words[0]);

    if (!command)
        return fail(EINVAL, "unknown command '%s'", words[0]);
    void *settings = memory_zeroed(command->settings_size + 1);
    struct common_settings common = {0};
    struct arguments arguments = {0};
    const struct arguments_scope scopes[] = {{.table = command->options, .settings = settings},
                                             {.table = common_options, .settings = &common},
                                             {0}};
    int count = 0, code = settings ? option_defaults(command->options, settings) : -ENOMEM;
    while (words[count])
        count++;
    if (code == 0)
        code = arguments_parse(scopes, count - 1, words + 1, &arguments);
    if (code == 0 &&
        (arguments.count < command->operands_minimum ||
         (command->operands_maximum >= 0 && arguments.count > command->operands_maximum)))
        code = fail(EINVAL, "iobench %s: %d operands", words[0], arguments.count);
    free(arguments.operands);
    for (const struct option_spec *row = command->options; row && row->name && code == 0; row++)
        if (!allow_commands && row->reach == OPTION_RUNS &&
            *(char *const *)((const char *)settings + row->offset))
            code = fail(EPERM, "starts a program: needs --allow-commands");
    *lack = NULL;
    /* Can the plug-ins that the settings name be used here? */
    const bool makes_set = command->operands_reach[1] == OPTION_MAKES_SET;
    for (const struct family *family = family_table; family->name && code == 0 && !*lack;
         family++) {
        const struct option_spec *row =
            command->options ? option_find(command->options, family->option) : NULL;
        if (!row || row->type != OPTION_TEXT)
            continue;
        const char *value = *(char *const *)((const char *)settings + row->offset);
        char name[64];
        snprintf(name, sizeof name, "%.*s", value ? (int)strcspn(value, ":,") : 0,
                 value ? value : "");
        if (!value || strcmp(name, "auto") == 0)
            continue;
        const struct plugin *plugin = plugin_find(family->registry, name);
        int usable = plugin ? plugin_usable(plugin)
                            : fail(ENOTSUP, "this build has no %s '%s'", family->name, name);
        if (usable == 0 && makes_set && family->registry == format_registry)
            usable = format_check_writable(plugin);
        if (usable)
            *lack = keep(strdup(fail_reason()));
    }
    if (code == 0)
        fail_clear();
    if (settings)
        option_release(command->options, settings);
    free(settings);
    return code;
}

/* ---- files ---- */

/* Return the value of a key; repeated keys are joined by newlines. NULL if absent or out of memory.
 */
static char *section_value(const struct ini *file, const struct ini_section *section,
                           const char *key)
{
    char *joined = NULL;

    for (size_t i = 0; i < section->count; i++) {
        const struct ini_entry *entry = &file->entries[section->first + i];
        if (strcmp(entry->key, key) == 0 && entry->value)
            joined = keep(
                file_format_path("%s%s%s", joined ? joined : "", joined ? "\n" : "", entry->value));
    }
    return joined;
}

static char *study_value(const struct study *study, const char *section, const char *key)
{
    for (size_t i = 0; i < study->file.section_count; i++)
        if (strcmp(study->file.sections[i].name, section) == 0)
            return section_value(&study->file, &study->file.sections[i], key);
    return NULL;
}

/* name: a shipped study or the path of a file. Close it in either case. Returns 0 or -errno. */
static int study_open(struct study *study, const char *name)
{
    const struct study_shipped *shipped = study_shipped;
    const size_t length = strlen(name);
    const char *base = file_name(name);
    int code;

    while (shipped->name && (strncmp(shipped->name, name, length) != 0 ||
                             strcmp(shipped->name + length, ".ini") != 0))
        shipped++;
    *study = (struct study){.name = keep(strndup(base, strcspn(base, ".")))};
    if (!study->name)
        return fail(ENOMEM, "out of memory");
    if (!shipped->name && !file_exists(name))
        return fail(ENOENT, "unknown study '%s': 'iobench study' lists them", name);
    code = shipped->name ? ini_parse(shipped->name, shipped->text, shipped->bytes, &study->file)
                         : ini_load(name, &study->file);
    static const char *const needed[] = {"title", "found", "source"};
    for (size_t i = 0; i < 3 && code == 0; i++)
        if (!study_value(study, "study", needed[i]))
            code = fail(EINVAL, "%s: [study] has no %s", name, needed[i]);
    return code;
}

static void study_close(struct study *study)
{
    ini_release(&study->file);
    *study = (struct study){0};
    while (kept.count)
        free(kept.list[--kept.count]);
    free(kept.list);
    kept.list = NULL;
}

/* ---- placeholders ---- */

struct variable {
    const char *name, *value, *shown;
};

/* Replace each {NAME}. Returns NULL with a reason. */
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
        const struct variable *found = variables;
        while (found->name &&
               (strncmp(found->name, text + 1, length - 1) != 0 || found->name[length - 1]))
            found++;
        if (!text[length] || !found->name || !found->value)
            code = fail(EINVAL, "unknown placeholder '%.*s}'", (int)length, text);
        else
            fputs(shown && found->shown ? found->shown : found->value, stream.stream);
        text += length + 1;
    }
    if (code == 0)
        code = text_stream_take(&stream, &expanded, &bytes);
    text_stream_close(&stream);
    return keep(expanded);
}

/* Split a text into words, then expand each, so a path with blanks stays one word. */
static char **words_of(const char *text, const struct variable *variables)
{
    char *copy = keep(strdup(text));
    char **words = copy ? keep(memory_array(strlen(copy) + 2, sizeof *words)) : NULL;
    int count = words ? arguments_split(copy, words) : -ENOMEM;

    if (count == 0)
        count = fail(EINVAL, "an empty command");
    for (int i = 0; i < count; i++)
        if (!(words[i] = expand(words[i], variables, false)))
            count = -EINVAL;
    return count > 0 ? words : NULL;
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
    uint64_t data_identity; /* of the user's data; 0: none */
};

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
    command->argv = keep(memory_array(used + 3, sizeof *command->argv));
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
    const char *given = plan->settings->sets;
    char *pack = section_value(&plan->study->file, section, "pack");
    int code = memory_room(&plan->sets, plan->set_count, sizeof *plan->sets, "data sets");

    if (code == 0 && (!pack || making->fixed + 4 > VARIABLES))
        code = fail(EINVAL, "expected pack=OPTIONS");
    if (code == 0) {
        struct study_set *set = &plan->sets[plan->set_count++];
        struct variable *variable = &making->variables[making->fixed];
        const char *cache = given ? NULL : keep(file_cache_path(""));
        if (!given && !cache)
            fail(EINVAL,
                 "no folder for the study's data sets: use --sets, or set XDG_CACHE_HOME to "
                 "an absolute path");
        const char *folder = given ? given : cache ? keep(file_join(cache, "studies")) : NULL;
        *set = (struct study_set){.name = keep(strdup(name))};
        *variable = (struct variable){"target", "", NULL};
        /* The path depends on the command: a changed one gets a new set; so do changed data. */
        const char *hashed = expand(pack, making->variables, false);
        if (hashed && making->data_identity && strstr(pack, "{source}"))
            hashed = keep(file_format_path("%s\n%016" PRIx64, hashed, making->data_identity));
        if (folder && hashed)
            set->path = keep(
                file_format_path("%s/%s-%08x", folder, name, crc32c(0, hashed, strlen(hashed))));
        *variable = (struct variable){"target", set->path, name};
        code = set->path && set->name ? expand_command(making, pack, &set->command) : -EINVAL;
        if (code == 0)
            code = join_words(&set->command, NULL, plan->program, NULL);
        if (code == 0 && set->command.lack && !study_set_exists(set))
            set->lack = set->command.lack;
        const char *read = plan->settings->has_server && set->path
                               ? keep(file_format_path("%s" NODES_SERVER "%s",
                                                       store_registry[0]->scheme, set->path))
                               : set->path;
        making->variables[making->fixed++] = (struct variable){set->name, read, name};
        making->variables[making->fixed] = (struct variable){0};
    }
    return code;
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
    *run = (struct study_run){.each = each, .also = also};
    making->variables[making->fixed] = (struct variable){"each", run->each, NULL};
    making->variables[making->fixed + 1] = (struct variable){"also", run->also, NULL};
    making->variables[making->fixed + 2] = (struct variable){0};
    char *command = section_value(ini, section, "command"),
         *needs = section_value(ini, section, "needs");
    char *given = section_value(ini, section, "ranks"),
         *ranks = given ? expand(given, making->variables, false) : NULL;
    run->name = expand(name, making->variables, false);
    char *file = run->name ? keep(strdup(run->name)) : NULL;
    for (char *at = file; at && *(at += strspn(at, plain));)
        *at = '-';
    run->path = file ? keep(file_format_path("%s/%s.json", plan->settings->output, file)) : NULL;
    run->json = run->path ? keep(file_format_path("--json=%s", run->path)) : NULL;
    code = run->json && !given == !ranks ? 0 : -EINVAL;
    if (code == 0)
        code = command ? expand_command(making, command, &run->command)
                       : fail(EINVAL, "expected command=...");
    /* With nodes a launcher also starts a single rank, so that all are started alike. */
    run->ranks = ranks ? (unsigned)strtoul(ranks, NULL, 10) : 1;
    if (code == 0 && ranks && (run->ranks != 1 || study_has_nodes(plan->settings))) {
        const struct variable variables[] = {{"ranks", ranks, NULL}, {0}};
        const char *launch = plan->settings->launch ? plan->settings->launch : "mpirun -n {ranks}";
        run->launch = expand(launch, variables, true);
        run->launcher = run->launch ? words_of(launch, variables) : NULL;
        code = run->launcher ? 0 : -EINVAL;
    }
    if (code == 0)
        code = join_words(&run->command, run->launcher, plan->program, run->json);
    assert(plan->set_count < VARIABLES); /* a bit each */
    for (size_t i = 0; i < plan->set_count && code == 0; i++) {
        const char *set = keep(file_format_path("{%s}", plan->sets[i].name));
        if (set && strstr(command, set))
            run->sets |= UINT32_C(1) << i;
    }
    const char *lack = code ? NULL : study_lacks(needs, plan->settings);
    if (!lack && run->launch)
        lack = study_lacks("mpi", plan->settings);
    if (!lack)
        lack = study_lacking_set(plan, run);
    if (!lack)
        lack = run->command.lack;
    if (code == 0 && lack) {
        run->state = STUDY_LACKING;
        run->reason = lack;
    }
    making->variables[making->fixed] = (struct variable){0};
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

static double number_of(const struct study *study, const char *key, double fallback)
{
    const char *text = study_value(study, "study", key);

    return text ? strtod(text, NULL) : fallback;
}

/* Expand the commands and check each against its option table; run nothing. Release in either case.
 * allow_commands: the file may start other programs. Returns 0 or -errno with a reason. */
static int study_plan_make(struct study_plan *plan, const struct study *study,
                           const struct study_settings *settings, bool allow_commands)
{
    struct making making = {.plan = plan, .allow_commands = allow_commands};
    const struct ini *file = &study->file;
    const double budget_s = (double)settings->budget_ns * 1e-9;
    const double samples = number_of(study, "samples", 4000) * budget_s / usual_budget_s;

    *plan =
        (struct study_plan){.study = study, .settings = settings, .program = keep(program_path())};
    int code = plan->program ? 0 : -ENOMEM;
    /* The variables that every command may use. With fewer samples than `least` a study cannot show
     * its subject: it takes longer than its budget instead. */
    snprintf(making.samples, sizeof making.samples, "%.0f",
             fmax(ceil(samples), number_of(study, "least", 1)));
    snprintf(making.source, sizeof making.source, "synthetic:count=%s,classes=100", making.samples);
    const struct variable given[] = {
        {"samples", making.samples, NULL},
        {"source", settings->data ? settings->data : making.source, NULL},
        {"fashion", STUDY_FASHION "/train-images-idx3-ubyte.gz", NULL},
        {"fashion-test", STUDY_FASHION "/t10k-images-idx3-ubyte.gz", NULL},
        {"out", settings->output, "."},
    };
    if (settings->data)
        making.data_identity = names_below_identity(settings->data);
    fail_clear(); /* if there are none, the command that reads them says so */
    memcpy(making.variables, given, sizeof given);
    making.fixed = sizeof given / sizeof *given;
    for (size_t i = 0; i < file->section_count && code == 0; i++) {
        const struct ini_section *section = &file->sections[i];
        const char *set = kind_of(section, "data"), *run = kind_of(section, "run");
        if (set)
            code = add_set(&making, section, set);
        if (run) {
            char *each = section_value(file, section, "each"), *first[LIST_BYTES];
            char *also = section_value(file, section, "also"), *second[LIST_BYTES];
            const int rows = split_list(each, first), columns = split_list(also, second);
            code = rows < 0 ? rows : columns < 0 ? columns : 0;
            for (int r = 0; r < rows && code == 0; r++)
                for (int k = 0; k < columns && code == 0; k++)
                    code = add_run(&making, section, run, first[r], second[k]);
        }
        if (code)
            code = fail(-code, "%s: [%s]: %s", file->path, section->name, fail_reason());
    }
    bool has_ranks = false;
    for (size_t i = 0; i < plan->run_count; i++)
        has_ranks = has_ranks || plan->runs[i].launch;
    if (code == 0 && plan->run_count == 0)
        code = fail(EINVAL, "%s: no [run NAME]", file->path);
    if (code == 0 && settings->emulates_nodes && !has_ranks)
        code = fail(EINVAL, "--emulate-nodes: study %s starts no ranks", study->name);
    return code;
}

static void study_plan_release(struct study_plan *plan)
{
    for (size_t i = 0; i < plan->run_count; i++)
        json_decref(plan->runs[i].read);
    free(plan->sets);
    free(plan->runs);
    *plan = (struct study_plan){0};
}

/* ---- emulated nodes ---- */

enum { NODES_MAX = 250 }; /* addresses of the subnet */

static const uint64_t time_limit_ns = UINT64_C(120000000000);

static const char *study_nodes_text(const struct study_settings *settings,
                                    char text[STUDY_NODES_BYTES])
{
    if (!settings->emulates_nodes)
        return NULL;
    const int used = snprintf(text, STUDY_NODES_BYTES, "--emulate-nodes%s",
                              settings->has_server ? " --file-server" : "");
    if (settings->link_bytes_per_s)
        snprintf(text + used, STUDY_NODES_BYTES - (size_t)used, " --link-rate %" PRIu64 "B/s",
                 settings->link_bytes_per_s);
    return text;
}

/* Emulate nodes 1 to count: network namespaces of this machine, in namespaces that this process
 * enters, so that they end with it. mpirun, started from here, then puts each rank on the next
 * node. Returns 0 or -errno with a reason. */
static int study_nodes_emulate(const struct study_plan *plan, unsigned count)
{
    if (count > NODES_MAX)
        return fail(EINVAL, "--emulate-nodes: %u ranks, but at most %d nodes", count, NODES_MAX);
    if (unshare(CLONE_NEWNET | CLONE_NEWNS))
        return fail(errno, "--emulate-nodes: no namespaces can be made here: %s",
                    fail_errno_text(errno));
    const struct study_shipped *script = study_shipped;
    while (strcmp(script->name, "nodes.sh") != 0)
        script++;
    char nodes[16], rate[24];
    /* Sets lie beside each other, in one folder. */
    const char *set = plan->settings->has_server && plan->set_count ? plan->sets[0].path : "";
    const char *export =
        keep(strndup(set, strrchr(set, '/') ? (size_t)(strrchr(set, '/') - set) : 0));
    const char *const argv[] = {"sh", "-c", script->text, "nodes.sh", nodes, rate, export, NULL};
    const struct child_task task = {.argv = argv, .timeout_ns = time_limit_ns};
    struct child_result result;
    snprintf(nodes, sizeof nodes, "%u", count);
    snprintf(rate, sizeof rate, "%" PRIu64, plan->settings->link_bytes_per_s);
    int code = child_run(&task, &result);
    if (code == 0 && result.status)
        code = fail(EIO, "--emulate-nodes: %s", result.output);
    if (code == 0) {
        /* Ranks go to the nodes one by one, and talk over their links alone. Open MPI 5 starts them
         * with PRRTE, which has variables of its own. */
        static const char *const settings[][2] = {
            {"OMPI_MCA_orte_default_hostfile", "/run/netns/hosts"},
            {"OMPI_MCA_plm_rsh_agent", "sh /run/netns/agent"},
            {"OMPI_MCA_rmaps_base_mapping_policy", "node"},
            {"OMPI_MCA_oob_tcp_if_include", "198.18.0.0/24"},
            {"PRTE_MCA_prte_default_hostfile", "/run/netns/hosts"},
            {"PRTE_MCA_plm_ssh_agent", "sh /run/netns/agent"},
            {"PRTE_MCA_rmaps_default_mapping_policy", "node:oversubscribe"},
            {"PRTE_MCA_oob_tcp_if_include", "198.18.0.0/24"},
            {"OMPI_MCA_btl_tcp_if_include", "198.18.0.0/24"},
            {"OMPI_MCA_btl", "self,tcp"},
            {"OMPI_MCA_pml", "ob1"},
            {"OMPI_MCA_mpi_yield_when_idle", "1"},
        };
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
            setenv(settings[i][0], settings[i][1], 1);
    }
    return code;
}

/* Time limit of one command. */
static const double run_limit_s = 3600;

/* Added to --budget for starting, indexing and exiting. */
static const double grace_s = 60;

/* ---- the record ---- */

enum { BUILD_BYTES = 17 };

static const char *build_text(char text[BUILD_BYTES])
{
    snprintf(text, BUILD_BYTES, "%016" PRIx64, program_build());
    return text;
}

static char *record_path(const struct study_plan *plan)
{
    return keep(file_join(plan->settings->output, "study.json"));
}

/* The paths of the sets that a run reads, which depend on what they were made of. */
static json_t *sets_of(const struct study_plan *plan, const struct study_run *run)
{
    json_t *sets = json_array();

    for (size_t i = 0; i < plan->set_count; i++)
        if (run->sets >> i & 1)
            json_array_append_new(sets, json_text(plan->sets[i].path));
    return sets;
}

/* Return whether both texts are absent, or equal. */
static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* ---- results ---- */

/* A ramp and a survey have no mark beside the reason. */
static const char *degraded_reason(const json_t *part)
{
    static const char *const keys[] = {"degraded_reason", "not_read_reason", "unverified_reason"};
    const char *reason = load_degraded(part);

    for (size_t i = 0; i < sizeof keys / sizeof *keys && !reason; i++)
        if (!json_object_get(part, "degraded"))
            reason = load_text(part, keys[i]);
    return reason;
}

/* Read from a result what it read, and why it should not be trusted. */
static bool read_doubts(struct study_run *run)
{
    json_t *document = file_exists(run->path) ? load_file(run->path) : NULL;
    json_t *parts = json_object_get(document, "jobs");
    json_t *ramp = json_object_get(document, "ramp");
    const char *invalid = NULL, *degraded = NULL;

    /* The parts that have figures: its jobs, its ramp, the shuffles of a survey, or itself. */
    parts = json_array_size(parts)    ? json_incref(parts)
            : json_is_array(document) ? json_incref(document)
            : document                ? json_pack("[O]", json_is_object(ramp) ? ramp : document)
                                      : NULL;
    json_decref(run->read);
    run->read = json_array();
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        invalid = invalid ? invalid : load_text(part, "invalid_reason");
        degraded = degraded ? degraded : degraded_reason(part);
        json_t *read = json_object(), *place = json_object();
        json_put_text(place, "host", load_text(part, "place.host"));
        json_object_set_new(read, "place", place);
        json_object_set(read, "dataset", json_object_get(part, "dataset"));
        json_array_append_new(run->read, read);
    }
    if (invalid || degraded)
        run->reason = keep(strdup(invalid ? invalid : degraded));
    const bool is_whole = document && !invalid;
    json_decref(parts);
    json_decref(document);
    return is_whole;
}

/* ---- those of earlier calls ---- */

/* Reuse results of an earlier call of this study, data, program and nodes, by the same commands. */
static void take_over(struct study_plan *plan)
{
    char *path = record_path(plan), build[BUILD_BYTES], nodes[STUDY_NODES_BYTES];
    json_t *document = path && file_exists(path) ? load_file(path) : NULL, *record;
    size_t index, replaced = 0;

    const bool is_fit =
        document && is_same(load_text(document, "study"), plan->study->name) &&
        is_same(load_text(document, "data"), plan->settings->data) &&
        is_same(load_text(document, "build"), build_text(build)) &&
        is_same(load_text(document, "nodes"), study_nodes_text(plan->settings, nodes));
    for (size_t i = 0; is_fit && i < plan->run_count; i++) {
        struct study_run *run = &plan->runs[i];
        json_array_foreach(json_object_get(document, "runs"), index, record)
        {
            if (run->state != STUDY_DUE || !is_same(load_text(record, "name"), run->name) ||
                !is_same(load_text(record, "command"), run->command.shown) ||
                !is_same(load_text(record, "launch"), run->launch) || !load_true(record, "done"))
                continue;
            json_t *sets = sets_of(plan, run);
            const bool is_same_set = json_equal(sets, json_object_get(record, "sets")) != 0;
            json_decref(sets);
            replaced += !is_same_set;
            if (!is_same_set || !read_doubts(run))
                continue;
            run->state = STUDY_DONE;
            run->seconds = load_number(record, "seconds");
        }
    }
    if (replaced)
        fprintf(stderr,
                "iobench study: %zu result%s of other data sets (--data was replaced or written, "
                "or --sets names another folder): measured again\n",
                replaced, replaced == 1 ? " is" : "s are");
    json_decref(document);
    fail_clear();
}

/* ---- one command ---- */

/* Returns the exit status, or -errno with a reason. */
static int start_command(const struct study_command *command, struct child_result *result)
{
    const struct child_task task = {.argv = command->argv,
                                    .prefers = "iobench ", /* not the launcher's last words */
                                    .timeout_ns = (uint64_t)(run_limit_s * 1e9)};
    int code = child_run(&task, result);

    return code ? code : result->status;
}

/* Identifies the file: a new result replaces the old one of that name. */
static ino_t inode_of(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? status.st_ino : 0;
}

static int carry_out_run(const struct study_plan *plan, struct study_run *run)
{
    struct child_result result;
    const ino_t former = inode_of(run->path);
    const uint64_t start_ns = clock_now_ns();
    int status = start_command(&run->command, &result);

    run->seconds = (double)(clock_now_ns() - start_ns) * 1e-9;
    if (status == -EINTR)
        return status;
    const bool is_new = inode_of(run->path) && inode_of(run->path) != former;
    run->state = is_new && read_doubts(run) ? STUDY_DONE : STUDY_FAILED;
    /* Figures of two sets at one path are not compared: a study may find another set later. */
    for (size_t i = 0; i < plan->run_count && run->state == STUDY_DONE; i++) {
        const struct study_run *other = &plan->runs[i];
        const json_t *one, *another;
        bool is_replaced = false;
        size_t k, l;
        if (other == run || other->state != STUDY_DONE)
            continue;
        json_array_foreach(run->read, k, one) json_array_foreach(other->read, l, another)
            is_replaced |= load_compare_data(one, another) == LOAD_DATA_REPLACED;
        if (!is_replaced)
            continue;
        run->reason =
            keep(file_format_path("it read another data set than %s at the same path: it was "
                                  "replaced or written; name another folder with -o",
                                  other->name));
        run->state = STUDY_FAILED;
    }
    if (status == COMMAND_USAGE) /* the last line is only a hint */
        snprintf(result.output, sizeof result.output, "refused: iobench %s", run->command.shown);
    if (run->state == STUDY_FAILED && !run->reason)
        run->reason = keep(strdup(status < 0 ? fail_reason() : result.output));
    json_t *document = json_object();
    char *path = record_path(plan), text[BUILD_BYTES], nodes[STUDY_NODES_BYTES];
    json_object_set_new(document, "schema", json_string("iobench-study"));
    json_object_set_new(document, "iobench_version", json_string(PACKAGE_VERSION));
    json_put_text(document, "study", plan->study->name);
    json_put_text(document, "build", build_text(text));
    json_put_text(document, "data", plan->settings->data);
    json_put_text(document, "nodes", study_nodes_text(plan->settings, nodes));
    json_t *runs = json_put_new(document, "runs", json_array());
    for (size_t i = 0; i < plan->run_count; i++)
        json_array_append_new(runs, json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "name",
                                              json_text(plan->runs[i].name), "command",
                                              json_text(plan->runs[i].command.shown), "launch",
                                              json_text(plan->runs[i].launch), "sets",
                                              sets_of(plan, &plan->runs[i]), "done",
                                              plan->runs[i].state == STUDY_DONE, "seconds",
                                              json_number(plan->runs[i].seconds), "reason",
                                              json_text(plan->runs[i].reason)));
    return path ? json_file_write(path, document) : -ENOMEM;
}

/* ---- all of them ---- */

/* Make the sets of the runs that are due, until no other becomes due: a set that is made again has
 * other files than earlier results. If one cannot be made, only the runs that read it fail. */
static int make_sets(struct study_plan *plan, struct line *line)
{
    bool more_due = true;
    int code = 0;

    while (more_due && code == 0) {
        uint32_t due = 0;
        more_due = false;
        for (size_t i = 0; i < plan->run_count; i++)
            due |= plan->runs[i].state == STUDY_DUE ? plan->runs[i].sets : 0;
        for (size_t number = 0; number < plan->set_count && code == 0; number++) {
            struct study_set *set = &plan->sets[number];
            struct child_result result;
            char text[sizeof line->last];
            size_t count = 0;
            if (!(due >> number & 1) || set->lack || study_set_exists(set))
                continue;
            snprintf(text, sizeof text, "making the data set %s", set->name);
            if ((code = folder_make_parent(set->path)))
                return code;
            line_show(line, text);
            code = start_command(&set->command, &result);
            if (code > 0)
                set->lack = keep(file_format_path("data set %s: %s", set->name, result.output));
            for (size_t i = 0; i < plan->run_count && code == 0; i++) {
                struct study_run *run = &plan->runs[i];
                if (run->state != STUDY_DONE || !(run->sets >> number & 1))
                    continue;
                run->reason = NULL;
                run->state = STUDY_DUE;
                count++;
            }
            if (code == 0)
                line_clear(line);
            if (count)
                fprintf(stderr,
                        "iobench study: data set %s was gone and is made again: its %zu result%s "
                        "measured again\n",
                        escape_shown(set->name), count, count == 1 ? " is" : "s are");
            more_due |= count > 0;
            code = code > 0 ? 0 : code;
        }
    }
    for (size_t i = 0; i < plan->run_count; i++) {
        struct study_run *run = &plan->runs[i];
        const char *lack = study_lacking_set(plan, run);
        if (run->state == STUDY_DUE && lack) {
            run->state = STUDY_FAILED;
            run->reason = lack;
        }
    }
    return code;
}

/* Generate the sets, run what is due, and record each result in the folder's study.json as it ends.
 * Results kept from an earlier call with the same commands are reused. A failed run does not end
 * the study. Returns 0, -EINTR, or another -errno with a reason. */
static int study_carry_out(struct study_plan *plan)
{
    struct line line = line_start();
    char text[sizeof line.last];
    bool has_run = false;
    unsigned nodes = 0;
    int code = folder_make_path(plan->settings->output);

    if (code == 0)
        take_over(plan);
    ranks_permit();
    if (code == 0)
        code = make_sets(plan, &line);
    /* As many nodes as the largest run that is due has ranks; one for the server alone. */
    for (size_t i = 0; i < plan->run_count; i++)
        if (plan->runs[i].state == STUDY_DUE && plan->runs[i].ranks > nodes &&
            (plan->runs[i].launch || plan->settings->has_server))
            nodes = plan->runs[i].ranks;
    if (code == 0 && plan->settings->emulates_nodes && nodes)
        code = study_nodes_emulate(plan, nodes);
    const uint64_t start_ns = clock_now_ns();
    for (size_t i = 0; i < plan->run_count && code == 0; i++) {
        struct study_run *run = &plan->runs[i];
        const double elapsed_s = (double)(clock_now_ns() - start_ns) * 1e-9;
        if (run->state != STUDY_DUE)
            continue;
        if (has_run &&
            elapsed_s > (double)plan->settings->budget_ns * 1e-9 + grace_s) { /* never the first */
            run->state = STUDY_LEFT_OUT;
            run->reason = "left out: the time of --budget was over";
            continue;
        }
        snprintf(text, sizeof text, "%s: %s (%zu of %zu), %.0f s", plan->study->name, run->name,
                 i + 1, plan->run_count, elapsed_s);
        line_show(&line, text);
        code = carry_out_run(plan, run);
        has_run = true;
    }
    line_clear(&line);
    return code;
}

/* ---- figures: a study's expressions over the results ---- */

enum { COLUMNS = 32 };

/* The expressions of a study; NULL: none. */
enum expression { ROWS, ALL, FIRST, SECOND, THIRD, EXPRESSIONS };
static const struct {
    const char *section, *key;
} places[EXPRESSIONS] = {
    [ROWS] = {"table", "rows"},    [ALL] = {"table", "all"},    [FIRST] = {"says", "first"},
    [SECOND] = {"says", "second"}, [THIRD] = {"says", "third"},
};

struct expressions {
    struct evaluate_node *nodes[EXPRESSIONS];
    struct {
        char *name;
        struct evaluate_node *node;
    } columns[COLUMNS];
    size_t column_count;
};

/* Return a value, or null if a figure is missing. */
static json_t *value_of(const struct evaluate_node *node, const struct evaluate_scope *scope)
{
    json_t *value = node ? evaluate(node, scope) : NULL;

    if (!value)
        fail_clear();
    return value ? value : json_null();
}

/* Evaluate an expression of this program. */
static json_t *compute(const char *text, const struct evaluate_scope *scope)
{
    struct evaluate_node *node = text ? evaluate_parse(text) : NULL;
    json_t *value = value_of(node, scope);

    evaluate_release(node);
    return value;
}

/* Add what a result says: its rows, and the machine if it is the first that names one. */
static int add_result(const struct study_run *run, const struct expressions *expressions,
                      json_t *rows, json_t **machine)
{
    static const char place[] =
        "if job.place == null then null else \"{job.place.cpu_count} x {job.place.cpu}, "
        "{job.place.memory_bytes / 1073741824} GiB of memory, {job.place.kernel}"
        "{if job.place.file_system == null then \"\" else \", {job.place.file_system}\"}\"";
    json_t *document = load_file(run->path), *member;
    size_t i;

    if (!document)
        return -EINVAL;
    json_t *none = json_null(), *name = json_text(run->name),
           *job = json_array_get(json_object_get(document, "jobs"), 0);
    json_t *each = run->each ? json_text(run->each) : none,
           *also = run->also ? json_text(run->also) : none;
    struct evaluate_scope scope[] = {
        {NULL, "run", name},
        {NULL, "each", each},
        {NULL, "also", also},
        {NULL, "result", document},
        {NULL, "job", job ? job : none},
        {NULL, "summary", job ? json_object_get(job, "summary") : none},
        {NULL, "it", document}};
    enum { SCOPES = sizeof scope / sizeof *scope };
    for (i = 1; i < SCOPES; i++)
        scope[i].outer = &scope[i - 1];
    const struct evaluate_scope *all = &scope[SCOPES - 1];
    json_t *members = expressions->nodes[ROWS] ? value_of(expressions->nodes[ROWS], all)
                                               : json_pack("[O]", document);

    json_array_foreach(members, i, member)
    {
        const struct evaluate_scope it = {all, "it", member};
        json_t *row = json_object();
        json_object_set(row, "run", name);
        for (size_t k = 0; k < expressions->column_count; k++)
            json_object_set_new(row, expressions->columns[k].name,
                                value_of(expressions->columns[k].node, &it));
        json_array_append_new(rows, row);
    }
    if (json_is_null(*machine))
        *machine = compute(place, all);
    json_decref(members);
    json_decref(each);
    json_decref(also);
    json_decref(name);
    json_decref(document);
    return 0;
}

/* Call on each name of a list "A; B"; it is cut. */
static char *next_name(char **list)
{
    char *name = strtok_r(NULL, ";", list);

    if (!name)
        return NULL;
    name += strspn(name, " ");
    for (size_t length = strlen(name); length && name[length - 1] == ' '; length--)
        name[length - 1] = '\0';
    return name;
}

/* Add the panels of a [picture] section to `panels`: their labels, and their curves as [NAME,
 * POINTS]. `bars` and `across` are short for the expressions over all rows that they become. */
static int add_panels(const struct study *study, const struct ini_section *section,
                      const struct evaluate_scope *scope, json_t *panels)
{
    static const char *const keys[] = {"kind",   "x",    "y",  "log",    "lines",
                                       "panels", "bars", "up", "across", "by"};
    enum { KIND, X, Y, LOG, LINES, PANELS, BARS, UP, ACROSS, BY, KEYS };
    const char *title = kind_of(section, "picture");
    struct evaluate_node *node = NULL;
    json_t *curves = NULL, *panel;
    char *value[KEYS];
    size_t i;
    int code = 0;

    for (i = 0; i < KEYS; i++)
        value[i] = section_value(&study->file, section, keys[i]);
    const int expression = value[PANELS] ? PANELS : LINES;
    if (value[expression] && !(node = evaluate_parse(value[expression])))
        code = fail(EINVAL, "%s: [%s] %s: %s", study->file.path, section->name, keys[expression],
                    fail_reason());
    else
        curves = node ? value_of(node, scope) : json_array();
    char *rest = value[BARS] ? value[BARS] : value[UP];
    const char *by = value[BY], *across = value[ACROSS] ? value[ACROSS] : "";
    const bool are_several = rest && strchr(rest, ';');
    for (char *name; code == 0 && rest && (name = next_name(&rest));) {
        char *text =
            value[BARS]
                ? file_format_path(
                      "[[\"%s\", of(where(rows, it[\"%s\"] != null), [run, it[\"%s\"]])]]", name,
                      name, name)
                : file_format_path(
                      "of(group(where(rows, it[\"%s\"] != null and it[\"%s\"] != null), %s%s%s),"
                      " [\"%s%s%s%s%s\", of(it, [it[\"%s\"], it[\"%s\"]])])",
                      name, across, by ? "it[\"" : "0", by ? by : "", by ? "\"]" : "",
                      by ? "{it[0][\"" : "", by ? by : "", by ? "\"]}" : "",
                      by && are_several ? ", " : "", by && !are_several ? "" : name, across, name);
        json_t *more = compute(keep(text), scope);
        json_array_extend(curves, more);
        json_decref(more);
    }
    if (!value[PANELS]) /* labels of a file need not be UTF-8 */
        curves = json_pack("[[o, o]]", json_text(title ? title : ""), curves);
    json_array_foreach(curves, i, panel) json_array_append_new(
        panels,
        json_pack("{s:O, s:o, s:o, s:o, s:o, s:O, s:O?}", "title", json_array_get(panel, 0), "kind",
                  json_text(value[KIND] ? value[KIND] : ""), "x",
                  json_text(value[X] ? value[X] : ""), "y", json_text(value[Y] ? value[Y] : ""),
                  "log", json_text(value[LOG] ? value[LOG] : ""), "lines", json_array_get(panel, 1),
                  "marks", json_array_get(panel, 2)));
    evaluate_release(node);
    json_decref(curves);
    return code;
}

/* Compute table, picture and sentences from the available results, by the study's expressions.
 * The caller releases it by json_decref(). NULL with a reason. */
static json_t *study_figures(const struct study_plan *plan)
{
    struct expressions expressions = {0};
    json_t *figures = NULL, *machine = json_null(), *rows = json_array(), *says = json_array(),
           *panels = json_array();
    /* Repeated keys of an expression are one; each [table] column is "NAME: EXPRESSION". */
    const struct ini *file = &plan->study->file;
    int code = 0;
    for (size_t i = 0; i < EXPRESSIONS && code == 0; i++) {
        char *text = study_value(plan->study, places[i].section, places[i].key);
        if (text && !(expressions.nodes[i] = evaluate_parse(text)))
            code = fail(EINVAL, "%s: [%s] %s: %s", file->path, places[i].section, places[i].key,
                        fail_reason());
    }
    for (size_t i = 0; i < file->section_count; i++) {
        const struct ini_section *section = &file->sections[i];
        for (size_t k = section->first; k < section->first + section->count && code == 0; k++) {
            const struct ini_entry *entry = &file->entries[k];
            const char *colon = entry->value ? strstr(entry->value, ": ") : NULL;
            if (strcmp(section->name, "table") != 0 || strcmp(entry->key, "column") != 0)
                continue;
            if (!colon || expressions.column_count == COLUMNS)
                code = fail(EINVAL, "%s:%u: expected column=NAME: EXPRESSION, at most %d times",
                            file->path, entry->line, COLUMNS);
            else if (!(expressions.columns[expressions.column_count].node =
                           evaluate_parse(colon + 2)))
                code = fail(EINVAL, "%s:%u: %s", file->path, entry->line, fail_reason());
            else
                expressions.columns[expressions.column_count++].name =
                    keep(strndup(entry->value, (size_t)(colon - entry->value)));
        }
    }

    for (size_t i = 0; i < plan->run_count && code == 0; i++)
        if (plan->runs[i].state == STUDY_DONE)
            code = add_result(&plan->runs[i], &expressions, rows, &machine);
    struct evaluate_scope scope = {NULL, "rows", rows};
    if (code == 0 && expressions.nodes[ALL]) {
        json_t *changed = evaluate(expressions.nodes[ALL], &scope);
        if (!json_is_array(changed))
            code = fail(EINVAL, "%s: [table] all: %s", plan->study->file.path,
                        changed ? "no list of rows" : fail_reason());
        json_decref(rows);
        scope.value = rows = changed;
    }
    if (code == 0) {
        char *hidden = study_value(plan->study, "table", "hidden"), *rest = hidden;
        json_t *row;
        size_t k;
        for (size_t i = FIRST; i <= THIRD; i++) {
            json_t *sentence = expressions.nodes[i] ? evaluate(expressions.nodes[i], &scope) : NULL;
            if (expressions.nodes[i] && !json_is_string(sentence)) {
                const char *text = keep(file_format_path(
                    "Not shown here: %s.", sentence ? "a figure is missing" : fail_reason()));
                json_decref(sentence);
                sentence = json_text(text ? text : "");
                fail_clear();
            }
            if (sentence)
                json_array_append_new(says, sentence);
        }
        for (size_t i = 0; i < file->section_count && code == 0; i++)
            if (strcmp(file->sections[i].name, "picture") == 0 ||
                kind_of(&file->sections[i], "picture"))
                code = add_panels(plan->study, &file->sections[i], &scope, panels);
        for (char *name; rest && (name = next_name(&rest));)
            json_array_foreach(rows, k, row) json_object_del(row, name);
        if (code == 0)
            figures = json_pack("{s:O, s:O, s:O, s:O}", "rows", rows, "says", says, "picture",
                                panels, "machine", machine);
    }
    for (size_t i = 0; i < EXPRESSIONS; i++)
        evaluate_release(expressions.nodes[i]);
    for (size_t i = 0; i < expressions.column_count; i++)
        evaluate_release(expressions.columns[i].node);
    json_decref(machine);
    json_decref(rows);
    json_decref(says);
    json_decref(panels);
    return figures;
}

/* ---- the picture: bars by run, lines over a figure, or lines over time ---- */

enum { WIDTH = 860, HEIGHT = 300 };

/* Draw the panels of figures.picture into FOLDER/picture.svg. Returns 0, 1 if nothing is to be
 * drawn, or -errno. */
static int study_picture(const struct study_plan *plan, const json_t *figures)
{
    char *title = study_value(plan->study, "study", "title"), marked[512];
    const char *path = keep(file_join(plan->settings->output, "picture.svg"));
    const json_t *panels = json_object_get(figures, "picture"), *part, *curve, *point, *doubt;
    bool is_doubtful = false; /* a run whose figures may mislead is among those drawn */
    size_t i, k, n, drawn = 0;
    struct svg svg;

    json_array_foreach(json_object_get(figures, "doubts"), i, doubt) is_doubtful |=
        load_true(doubt, "in_figures");
    snprintf(marked, sizeof marked, "%s%s", title ? title : "",
             is_doubtful ? " (some runs are DEGRADED)" : "");
    svg_begin(&svg, marked, WIDTH, HEIGHT, json_array_size(panels) > 1 ? 2 : 1);
    json_array_foreach(panels, i, part)
    {
        const char *kind = load_word(part, "kind"), *log = load_word(part, "log");
        const bool is_over_time = strcmp(kind, "time") == 0;
        json_t *names = json_object(); /* of bars, to their places */
        struct svg_panel *panel = svg_panel(&svg, load_word(part, "title"));
        svg_x(panel, load_word(part, "x"), strchr(log, 'x') ? SVG_LOG2 : SVG_LINEAR,
              is_over_time ? 0 : NAN, NAN);
        svg_y(panel, load_word(part, "y"), strchr(log, 'y') ? SVG_LOG : SVG_LINEAR, NAN, NAN);
        json_array_foreach(json_object_get(part, "lines"), k, curve)
        {
            if (json_array_size(json_array_get(curve, 1)) == 0) /* nor does the legend name it */
                continue;
            const char *style = json_string_value(json_array_get(curve, 2));
            const char *curve_name = json_string_value(json_array_get(curve, 0));
            struct svg_curve *line =
                svg_curve(panel, curve_name ? curve_name : "", svg_color(k), 1.5,
                          strcmp(kind, "bars") == 0 ? SVG_BARS
                          : style                   ? SVG_DASHED
                          : is_over_time            ? SVG_LINE
                                                    : SVG_POINTS);
            json_array_foreach(json_array_get(curve, 1), n, point)
            {
                const json_t *at = json_array_get(point, 0);
                const char *name = json_string_value(at);
                double x = json_number_value(at);
                if (name) {
                    const json_t *known = json_object_get(names, name);
                    x = known ? json_number_value(known) : (double)json_object_size(names);
                    if (!known) {
                        svg_tick(panel, x, name);
                        json_object_set_new(names, name, json_real(x));
                    }
                }
                svg_point(line, x, json_number_value(json_array_get(point, 1)));
                drawn++;
            }
        }
        json_array_foreach(json_object_get(part, "marks"), k, point)
        {
            const char *text = json_string_value(json_array_get(point, 1));
            svg_mark(panel, json_number_value(json_array_get(point, 0)), text ? text : "");
        }
        json_decref(names);
    }
    int code = !path ? -ENOMEM : drawn ? svg_save(&svg, path) : 1;
    svg_release(&svg);
    return code;
}

/* ---- table and sentences, as text and as a page ---- */

enum { CELL_BYTES = 128, GAP = 2, INDENT = 2 };

/* A column's heading has two lines if its name has a unit: "epoch 1, samples/s". */
struct study_column {
    const char *name, *unit; /* unit: part of name */
    int name_width, width;
};

struct study_table {
    struct study_column *columns;
    size_t count;
    const json_t *rows;
};

static const char *cell_text(const json_t *value, char *text)
{
    char number[WORDS_BYTES];

    if (json_is_integer(value))
        snprintf(text, CELL_BYTES, "%lld", (long long)json_integer_value(value));
    else if (json_is_number(value))
        snprintf(text, CELL_BYTES, "%s", words_rate(json_number_value(value), number));
    else
        snprintf(text, CELL_BYTES, "%s",
                 json_is_string(value) ? escape_shown(json_string_value(value)) : "-");
    return text;
}

static int wider(int width, size_t bytes)
{
    return (int)bytes > width ? (int)bytes : width;
}

/* The columns are in the order of their first appearance. */
static struct study_table table_of(const json_t *figures)
{
    struct study_table table = {.rows = json_object_get(figures, "rows")};
    const json_t *row;
    const char *name;
    json_t *value;
    char text[CELL_BYTES];
    size_t i;

    json_array_foreach(table.rows, i, row)
    {
        json_object_foreach((json_t *)(uintptr_t)row, name, value)
        {
            const char *comma = strstr(name, ", ");
            size_t k = 0;
            while (k < table.count && strcmp(table.columns[k].name, name) != 0)
                k++;
            if (k < table.count ||
                memory_room(&table.columns, table.count, sizeof *table.columns, "columns"))
                continue;
            struct study_column column = {.name = name, .unit = comma ? comma + 2 : ""};
            column.name_width = (int)(comma ? (size_t)(comma - name) : strlen(name));
            column.width = wider(column.name_width, strlen(column.unit));
            table.columns[table.count++] = column;
        }
    }
    for (size_t k = 0; k < table.count; k++) {
        struct study_column *column = &table.columns[k];
        json_array_foreach(table.rows, i, row) column->width =
            wider(column->width, strlen(cell_text(json_object_get(row, column->name), text)));
    }
    return table;
}

/* The first column names the row, and is repeated in each block. */
struct column_block {
    const struct study_table *table;
    size_t from, to; /* of the other columns */
};

static void print_cells(FILE *stream, const struct column_block *block, const json_t *row,
                        bool is_unit)
{
    char text[CELL_BYTES];

    for (size_t k = 0; k < block->to; k = k ? k + 1 : block->from) {
        const struct study_column *column = &block->table->columns[k];
        if (row)
            cell_text(json_object_get(row, column->name), text);
        else
            snprintf(text, sizeof text, "%.*s", is_unit ? CELL_BYTES : column->name_width,
                     is_unit ? escape_shown(column->unit) : escape_shown(column->name));
        fprintf(stream, k ? "%*s%*s" : "%*s%-*s", k ? GAP : INDENT, "", column->width, text);
    }
    fputc('\n', stream);
}

/* A bar would end the cell. */
static void write_cell(FILE *page, const char *text)
{
    fputs("| ", page);
    for (; *text; text++)
        fprintf(page, *text == '|' ? "\\%c" : "%c", *text);
    fputc(' ', page);
}

/* Return all sentences as one paragraph. */
static const char *sentences_of(const json_t *figures)
{
    const json_t *says = json_object_get(figures, "says"), *sentence;
    const char *text = "";
    size_t i;

    json_array_foreach(says, i, sentence) if (text) text =
        keep(file_format_path("%s%s%s", text, i ? " " : "", json_string_value(sentence)));
    return text ? text : "";
}

static void print_paragraph(FILE *stream, const struct study *study, const char *heading,
                            const char *key)
{
    const char *value = study_value(study, "study", key);

    if (heading)
        fprintf(stream, "\n%s\n", heading);
    words_print(stream, "", INDENT, value ? value : "-");
}

/* Return a run's reason with its name or the number of runs that share it. NULL if it
 * has none, or an earlier run has the same. */
static const char *doubt_of(const struct study_plan *plan, size_t run)
{
    const char *reason = plan->runs[run].reason;
    size_t count = 0;

    for (size_t k = 0; reason && k < plan->run_count; k++)
        if (plan->runs[k].reason && strcmp(plan->runs[k].reason, reason) == 0) {
            if (k < run)
                return NULL;
            count++;
        }
    if (!reason)
        return NULL;
    return keep(count > 1 ? file_format_path("%zu runs: %s", count, escape_shown(reason))
                          : file_format_path("%s: %s", plan->runs[run].name, escape_shown(reason)));
}

/* Write the table and the sentences, as text or as the page (Markdown). */
static void study_text(FILE *stream, const struct study_plan *plan, const json_t *figures)
{
    const struct study_table table = table_of(figures);
    const char *title = study_value(plan->study, "study", "title"), *says = sentences_of(figures);

    words_printf(stream, "", 0, "iobench study %s: %s", plan->study->name, title ? title : "");
    fputc('\n', stream);
    /* Columns that do not fit follow in blocks of their own, of at least one column. */
    const int width = (int)terminal_width(STDOUT_FILENO);
    struct column_block block = {.table = &table, .to = 1};
    while (table.count && (block.to < table.count || block.from == 0)) {
        int used = INDENT + table.columns[0].width;
        bool has_units = false;
        const json_t *row;
        size_t i;
        if (block.from)
            fputc('\n', stream);
        block.from = block.to;
        while (block.to < table.count && (used += GAP + table.columns[block.to].width) <= width)
            has_units |= *table.columns[block.to++].unit != '\0';
        if (block.to == block.from && block.to < table.count)
            has_units = *table.columns[block.to++].unit;
        print_cells(stream, &block, NULL, false);
        if (has_units)
            print_cells(stream, &block, NULL, true);
        json_array_foreach(table.rows, i, row) print_cells(stream, &block, row, false);
    }
    for (size_t i = 0; i < plan->run_count; i++) {
        const char *doubt = doubt_of(plan, i);
        if (doubt)
            words_print(stream, "", INDENT, doubt);
    }
    fputs("\nHere\n", stream);
    words_print(stream, "", INDENT, says);
    print_paragraph(stream, plan->study, "Published", "found");
    print_paragraph(stream, plan->study, NULL, "source");
    free(table.columns);
}

/* ---- the page ---- */

static void write_value(FILE *page, const struct study *study, const char *format, const char *key)
{
    char *value = study_value(study, "study", key);

    if (value) {
        for (char *at = value; *at; at++)
            if (*at == '\n')
                *at = ' ';
        fputs(format, page);
        fputs(value, page);
        fputc('\n', page);
    }
}

static int study_page(const struct study_plan *plan, const json_t *figures, bool has_picture)
{
    struct text_stream stream;
    char *text = NULL, cell[CELL_BYTES], nodes[STUDY_NODES_BYTES];
    const char *path = keep(file_join(plan->settings->output, "page.md"));
    size_t bytes = 0;

    if (text_stream_open(&stream))
        return -ENOMEM;
    FILE *page = stream.stream;
    const struct study_table table = table_of(figures);
    const char *machine = load_text(figures, "machine");
    const json_t *row;
    size_t number;
    double seconds = 0;
    fputs(report_page_mark, page);
    write_value(page, plan->study, "# ", "title");
    write_value(page, plan->study, "\n", "question");
    const char *emulated = study_nodes_text(plan->settings, nodes);
    fprintf(page, "\n    iobench study %s --budget %.0f%s%s%s\n\n", plan->study->name,
            (double)plan->settings->budget_ns * 1e-9, emulated ? " " : "", emulated ? emulated : "",
            plan->settings->data ? " --data SET" : "");
    if (has_picture)
        fputs("![the figures of the table, or what they come from](picture.svg)\n\n", page);
    for (size_t k = 0; k < table.count; k++)
        write_cell(page, escape_shown(table.columns[k].name));
    fputs("|\n", page);
    for (size_t k = 0; k < table.count; k++)
        fputs(k ? "|---:" : "|---", page);
    fputs("|\n", page);
    json_array_foreach(table.rows, number, row)
    {
        for (size_t k = 0; k < table.count; k++)
            write_cell(page, cell_text(json_object_get(row, table.columns[k].name), cell));
        fputs("|\n", page);
    }
    fputc('\n', page);
    for (size_t i = 0; i < plan->run_count; i++) {
        const char *doubt = doubt_of(plan, i);
        if (doubt)
            fprintf(page, "%s\n\n", doubt);
    }
    fprintf(page, "**Here.** %s\n", sentences_of(figures));
    write_value(page, plan->study, "\n**Published.** ", "found");
    write_value(page, plan->study, "\nSource: ", "source");
    for (size_t i = 0; i < plan->run_count; i++)
        seconds += plan->runs[i].seconds;
    if (machine)
        fprintf(page, "\nMeasured on %s, in %.0f s.\n", machine, seconds);
    fputs("\n## Commands\n\n", page);
    for (size_t i = 0; i < plan->set_count; i++)
        fprintf(page, "    iobench %s\n", plan->sets[i].command.shown);
    for (size_t i = 0; i < plan->run_count; i++)
        fprintf(page, "    %s%siobench %s\n", plan->runs[i].launch ? plan->runs[i].launch : "",
                plan->runs[i].launch ? " " : "", plan->runs[i].command.shown);
    free(table.columns);
    int code = text_stream_take(&stream, &text, &bytes);
    if (code == 0)
        code = path ? report_write_file(path, text, bytes) : -ENOMEM;
    free(text);
    return code;
}

/* clang-format off: one row each */
#define FIELD(field) .offset = offsetof(struct study_settings, field)
static const struct option_spec study_command_options[] = {
    {"data", 'd', OPTION_TEXT, FIELD(data), .metavar = "PATH", .reach = OPTION_READS_SET,
     .summary = "data set from which to make the study's sets; default: synthetic images"},
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
    {"file-server", 0, OPTION_FLAG, FIELD(has_server), .fallback = "no",
     .summary = "with --emulate-nodes: the nodes read the sets from an NFS server on their network "
                "(nfs-ganesha), not from this machine's disk"},
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
        const char *title = study_value(&study, "study", "title");
        const char *lack = study_lacks(study_value(&study, "study", "needs"), NULL);
        snprintf(text, sizeof text, "  %s", name);
        if (code == 0)
            words_print(stream, text, LIST_COLUMN, title);
        snprintf(text, sizeof text, "-> unavailable here: %s", lack ? lack : "");
        if (code == 0 && lack)
            words_print(stream, "", LIST_COLUMN, text);
        study_close(&study);
    }
    return code;
}

/* ---- one ---- */

/* Run what is due, and show the table, or write --json. */
static int carry_out(const struct invocation *invocation, const struct study *study,
                     const struct study_settings *settings)
{
    struct study_plan plan;
    int status = COMMAND_OK;
    int code = study_plan_make(&plan, study, settings, invocation->allow_commands);

    if (code) {
        status = command_misused(invocation);
    } else if (settings->dry_run) {
        for (size_t i = 0; i < plan.set_count; i++) {
            const char *lack = plan.sets[i].lack;
            printf("iobench %s%s%s\n", plan.sets[i].command.shown, lack ? "  # " : "",
                   lack ? lack : "");
        }
        for (size_t i = 0; i < plan.run_count; i++) {
            const struct study_run *run = &plan.runs[i];
            const bool lacks = run->state == STUDY_LACKING && run->reason;
            printf("%s%siobench %s%s%s\n", run->launch ? run->launch : "", run->launch ? " " : "",
                   run->command.shown, lacks ? "  # " : "", lacks ? run->reason : "");
        }
        json_t *figures = study_figures(&plan); /* check the expressions on no results */
        status = figures ? COMMAND_OK : command_failed(invocation);
        json_decref(figures);
    } else {
        const char *lack = study_lacks(study_value(study, "study", "needs"), settings);
        size_t done = 0;
        command_on_interrupt();
        code = lack ? fail(ENODEV, "%s: %s", study->name, lack) : study_carry_out(&plan);
        for (size_t i = 0; i < plan.run_count; i++)
            done += plan.runs[i].state == STUDY_DONE;
        if (code == 0 && !done)
            code = fail(ENODATA, "no run of this study has a result: %s: %s", plan.runs[0].name,
                        plan.runs[0].reason ? plan.runs[0].reason : "not run");
        json_t *figures = code == 0 ? study_figures(&plan) : NULL;
        /* The runs that were left out or should not be trusted. */
        json_t *doubts = json_put_new(figures, "doubts", json_array());
        for (size_t i = 0; i < plan.run_count; i++)
            if (plan.runs[i].reason)
                json_array_append_new(doubts, json_pack("{s:o, s:b, s:o}", "run",
                                                        json_text(plan.runs[i].name), "in_figures",
                                                        plan.runs[i].state == STUDY_DONE, "reason",
                                                        json_text(plan.runs[i].reason)));
        if (code == 0)
            code = figures ? 0 : -EINVAL;
        if (code == 0) {
            const int drawn = study_picture(&plan, figures);
            if (drawn < 0) /* the figures do not need the picture */
                fprintf(stderr, "iobench study: no picture: %s\n", fail_reason());
            code = study_page(&plan, figures, drawn == 0);
        }
        if (code == 0 && settings->json) {
            code = json_file_write(settings->json, json_incref(figures));
        } else if (code == 0) {
            study_text(stdout, &plan, figures);
            printf("\nPage  %s/page.md\n", settings->output);
        }
        json_decref(figures);
        status = code ? command_failed(invocation) : COMMAND_OK;
        for (size_t i = 0; i < plan.run_count && code == 0; i++)
            if (plan.runs[i].state == STUDY_FAILED)
                status = COMMAND_FAILED;
    }
    study_plan_release(&plan);
    return status;
}

/* Return a path from the root, since commands run in another folder; NULL with a reason. */
static char *absolute(const char *path)
{
    char here[PATH_MAX];

    if (*path == '/')
        return keep(strdup(path));
    if (!getcwd(here, sizeof here)) {
        fail(errno, "the current folder: %s", fail_errno_text(errno));
        return NULL;
    }
    return keep(file_join(here, path));
}

static int run_study(const struct invocation *invocation)
{
    const struct study_settings *settings = invocation->settings;
    struct study study;

    if (invocation->count == 0 || strcmp(invocation->operands[0], "list") == 0)
        return study_list(stdout) ? command_failed(invocation) : COMMAND_OK;
    if (ranks_are_launched()) {
        fail(EINVAL, "start it without mpirun; it starts its own ranks");
        return command_misused(invocation);
    }
    const bool are_both = settings->emulates_nodes && settings->launch;
    const bool need_nodes = settings->link_bytes_per_s || settings->has_server;
    if (are_both || (need_nodes && !settings->emulates_nodes)) {
        fail(EINVAL, are_both ? "only one of --launch and --emulate-nodes can be given"
                     : settings->has_server ? "--file-server needs --emulate-nodes"
                                            : "--link-rate needs --emulate-nodes");
        return command_misused(invocation);
    }
    if (settings->has_server && !store_registry[0]->scheme[0]) {
        fail(ENOTSUP, "--file-server: this build reads from no file server");
        return command_misused(invocation);
    }
    int code = study_open(&study, invocation->operands[0]);
    if (code == -ENOENT) {
        struct nearest nearest = nearest_start(invocation->operands[0]);
        char names[32][32];
        size_t count = 0;
        for (const struct study_shipped *file = study_shipped; file->name && count < 32; file++)
            if (is_study(file)) {
                snprintf(names[count], sizeof names[0], "%.*s", (int)strlen(file->name) - 4,
                         file->name);
                nearest_offer(&nearest, names[count++]);
            }
        fail(ENOENT, "unknown study '%s': 'iobench study' lists them%s", invocation->operands[0],
             nearest_hint(&nearest));
    }
    const char *name = code               ? NULL
                       : settings->output ? settings->output
                                          : keep(file_format_path("study-%s", study.name));
    struct study_settings rooted = *settings;
    rooted.output = name ? absolute(name) : NULL;
    rooted.sets = rooted.output && settings->sets ? absolute(settings->sets) : NULL;
    int status = rooted.output && !rooted.sets == !settings->sets
                     ? carry_out(invocation, &study, &rooted)
                     : command_misused(invocation);
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
