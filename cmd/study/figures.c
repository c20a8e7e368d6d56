/* SPDX-License-Identifier: Apache-2.0
 * The figures of a study: its expressions (cmd/study/evaluate.h) over the results. */
#include "cmd/study/study.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "cmd/study/evaluate.h"
#include "report/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 32 };

/* The expressions of a study; NULL: none. */
enum expression { ROWS, ALL, FIRST, SECOND, THIRD, OVER_TIME, EXPRESSIONS };
static const struct {
    const char *section, *key;
} places[EXPRESSIONS] = {
    [ROWS] = {"table", "rows"},  [ALL] = {"table", "all"},
    [FIRST] = {"says", "first"}, [SECOND] = {"says", "second"},
    [THIRD] = {"says", "third"}, [OVER_TIME] = {"picture", "over-time"},
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

/* Add what a result says: its rows, its line over time, and the machine if it is the first that
 * names one. */
static int add_result(const struct study_run *run, const struct expressions *expressions,
                      json_t *rows, json_t *lines, json_t **machine)
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
    enum { VARIABLES = sizeof scope / sizeof *scope };
    for (i = 1; i < VARIABLES; i++)
        scope[i].outer = &scope[i - 1];
    const struct evaluate_scope *all = &scope[VARIABLES - 1];
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
    json_t *points = value_of(expressions->nodes[OVER_TIME], all);
    if (json_array_size(points))
        json_array_append_new(lines, json_pack("{s:O, s:O}", "name", name, "points", points));
    if (json_is_null(*machine))
        *machine = compute(place, all);
    json_decref(points);
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

/* Return the labels of the picture, and as "lines" its points: bars of columns by run, columns over
 * another, or `lines`, those over time. */
static json_t *picture_of(const struct study *study, const struct evaluate_scope *scope,
                          json_t *lines)
{
    static const char *const labels[] = {"kind", "x", "y", "log", "bars", "across", "up", "by"};
    json_t *picture = json_object();

    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char *value = study_value(study, "picture", labels[i]);
        json_put_text(picture, labels[i], value ? value : "");
        free(value);
    }
    const char *kind = load_text(picture, "kind"), *across = load_text(picture, "across"),
               *by = load_text(picture, "by");
    const bool has_bars = strcmp(kind, "bars") == 0;
    char *names = study_value(study, "picture", has_bars ? "bars" : "up"), *rest = names;
    const bool are_several = names && strchr(names, ';');

    json_object_set(picture, "lines", lines);
    if (!has_bars && strcmp(kind, "lines") != 0)
        rest = NULL;
    for (char *name; rest && (name = next_name(&rest));) {
        char *text =
            has_bars
                ? file_format_path(
                      "[[\"%s\", of(where(rows, it[\"%s\"] != null), [run, it[\"%s\"]])]]", name,
                      name, name)
                : file_format_path(
                      "of(group(where(rows, it[\"%s\"] != null and it[\"%s\"] != null), %s%s%s),"
                      " [\"%s%s%s%s%s\", of(it, [it[\"%s\"], it[\"%s\"]])])",
                      name, across, *by ? "it[\"" : "0", by, *by ? "\"]" : "",
                      *by ? "{it[0][\"" : "", by, *by ? "\"]}" : "", *by && are_several ? ", " : "",
                      *by && !are_several ? "" : name, across, name);
        json_t *groups = compute(text, scope), *group;
        size_t i;
        json_array_foreach(groups, i, group) if (json_array_size(json_array_get(group, 1)))
            json_array_append_new(lines, json_pack("{s:O, s:O}", "name", json_array_get(group, 0),
                                                   "points", json_array_get(group, 1)));
        json_decref(groups);
        free(text);
    }
    free(names);
    return picture;
}

json_t *study_figures(const struct study_plan *plan)
{
    struct expressions expressions = {0};
    json_t *figures = NULL, *machine = json_null(), *rows = json_array(), *lines = json_array(),
           *says = json_array();
    /* Repeated keys of an expression are one; each [table] column is "NAME: EXPRESSION". */
    const struct ini *file = &plan->study->file;
    int code = 0;
    for (size_t i = 0; i < EXPRESSIONS && code == 0; i++) {
        char *text = study_value(plan->study, places[i].section, places[i].key);
        if (text && !(expressions.nodes[i] = evaluate_parse(text)))
            code = fail(EINVAL, "%s: [%s] %s: %s", file->path, places[i].section, places[i].key,
                        fail_reason());
        free(text);
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
                    strndup(entry->value, (size_t)(colon - entry->value));
        }
    }

    for (size_t i = 0; i < plan->run_count && code == 0; i++)
        if (plan->runs[i].state == STUDY_DONE)
            code = add_result(&plan->runs[i], &expressions, rows, lines, &machine);
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
                char *text = file_format_path("Not shown here: %s.",
                                              sentence ? "a figure is missing" : fail_reason());
                json_decref(sentence);
                sentence = json_text(text ? text : "");
                free(text);
                fail_clear();
            }
            if (sentence)
                json_array_append_new(says, sentence);
        }
        json_t *picture = picture_of(plan->study, &scope, lines);
        for (char *name; rest && (name = next_name(&rest));)
            json_array_foreach(rows, k, row) json_object_del(row, name);
        free(hidden);
        figures = json_pack("{s:O, s:O, s:o, s:O}", "rows", rows, "says", says, "picture", picture,
                            "machine", machine);
    }
    for (size_t i = 0; i < EXPRESSIONS; i++)
        evaluate_release(expressions.nodes[i]);
    for (size_t i = 0; i < expressions.column_count; i++) {
        evaluate_release(expressions.columns[i].node);
        free(expressions.columns[i].name);
    }
    json_decref(machine);
    json_decref(rows);
    json_decref(lines);
    json_decref(says);
    return figures;
}

void study_add_doubts(const struct study_plan *plan, json_t *figures)
{
    json_t *doubts = json_array();

    for (size_t i = 0; i < plan->run_count; i++) {
        const struct study_run *run = &plan->runs[i];
        if (!run->reason)
            continue;
        json_t *doubt = json_object();
        json_put_text(doubt, "run", run->name);
        json_object_set_new(doubt, "in_figures", json_boolean(run->state == STUDY_DONE));
        json_put_text(doubt, "reason", run->reason);
        json_array_append_new(doubts, doubt);
    }
    json_object_set_new(figures, "doubts", doubts);
}
