/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/path_hint.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/option.h"
#include "dataset/store.h"
#include "formats/foreign_format.h"
#include "formats/image_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKED_AT = 64, FOLDER_DEPTH = 2, SETS_NAMED = 3 };

struct path_survey {
    const char *folder;
    path_hint_format recognise;
    int depth, left; /* files to look at */
    bool any;
    char sets[256], shards[256], list[128]; /* "train (tar), val (tar)"; below the path itself */
    int set_count;
};

static int survey_folder(struct path_survey *survey, const char *path);

static void note_file(struct path_survey *survey, const char *path, const char *name)
{
    const struct plugin *format = survey->recognise(path);
    const char *dot = strrchr(name, '.');

    if (image_name_ends(name, ".jsonl") || image_name_ends(name, ".ndjson"))
        snprintf(survey->list, sizeof survey->list,
                 "; %.64s lists samples: name the folder that holds "
                 "them",
                 name);
    else if (format && !survey->shards[0] && !option_find(format->options, "match"))
        snprintf(survey->shards, sizeof survey->shards, "; %.64s looks like %s: name that file",
                 name, format->name);
    else if (format && !survey->shards[0])
        snprintf(survey->shards, sizeof survey->shards,
                 "; %.64s looks like %s: --format %s:match=%s%.32s", name, format->name,
                 format->name, dot ? "*" : "", dot ? dot : name);
}

static int look_at(void *context, const struct store_entry *entry)
{
    struct path_survey *survey = context;
    uint8_t head[FOREIGN_HEAD_BYTES];
    int code = 0;

    survey->any = true;
    if (entry->name[0] == '.' || survey->left-- <= 0)
        return 0;
    char *path = file_join(survey->folder, entry->name);
    if (path && entry->kind == STORE_FILE) {
        code = foreign_format_refuse(path, head, store_peek(path, head, sizeof head));
        if (code == 0 && survey->depth == 1)
            note_file(survey, path, entry->name);
    } else if (path && entry->kind == STORE_FOLDER) {
        if (survey->depth == 1) {
            const char *name = entry->name;
            const struct plugin *format = survey->recognise(path);
            const size_t used = strlen(survey->sets);
            if (format && survey->set_count++ < SETS_NAMED)
                snprintf(survey->sets + used, sizeof survey->sets - used, "%s%.48s (%s)",
                         used ? ", " : "; data sets are below it: name one of ", name,
                         format->name);
        }
        if (survey->depth < FOLDER_DEPTH) {
            struct path_survey below = {.recognise = survey->recognise, .depth = survey->depth + 1};
            code = survey_folder(&below, path);
        }
    }
    free(path);
    return code;
}

/* A folder below that cannot be listed holds nothing known. */
static int survey_folder(struct path_survey *survey, const char *path)
{
    survey->folder = path;
    survey->left = LOOKED_AT;
    int code = store_list(path, look_at, survey);
    return code == -ENOTSUP || survey->depth == 1 ? code : 0;
}

int path_hint_survey(const char *path, path_hint_format recognise, const char *supported)
{
    struct path_survey survey = {.recognise = recognise, .depth = 1};
    struct store_status status;
    uint8_t head[FOREIGN_HEAD_BYTES];
    int code = store_stat(path, &status);

    if (code == 0 && status.kind == STORE_FOLDER) {
        code = survey_folder(&survey, path);
        if (code == 0 && !survey.any)
            code = fail(EINVAL, "%s: an empty folder; is its file system mounted?", path);
    } else if (code == 0) {
        struct store_file *file = NULL;
        code = store_open(path, STORE_READ, &file); /* for the reason, if it cannot be read */
        store_close(file, false);
        if (code == 0 && status.bytes == 0)
            code = fail(EINVAL, "%s: an empty file", path);
        const size_t bytes = code ? 0 : store_peek(path, head, sizeof head);
        if (code == 0)
            code = foreign_format_refuse(path, head, bytes);
        if (code == 0 && supported)
            code = foreign_format_refuse_archive(path, head, bytes);
        if (code == 0)
            note_file(&survey, path, path);
        survey.shards[0] = '\0'; /* is the path itself */
    }
    if (code || !supported)
        return code;
    return fail(EINVAL, "%s: unknown format (supported: %s)%s", path, supported,
                survey.sets[0]     ? survey.sets
                : survey.shards[0] ? survey.shards
                : survey.list[0]   ? survey.list
                                   : "; choose one with --format");
}

const char *path_hint_missing(const char *path)
{
    static char text[512];
    char match[128] = "";
    size_t folder = strcspn(path, "{*?["), used = 0;

    if (path[folder] == '\0')
        return "";
    while (folder > 0 && path[folder - 1] != '/')
        folder--;
    for (const char *at = path + folder; *at && used < sizeof match - 1; at++) {
        match[used++] = *at == '{' ? '*' : *at;
        if (*at == '{' && strchr(at, '}'))
            at = strchr(at, '}');
    }
    snprintf(text, sizeof text,
             "; it is a pattern: name the folder %.*s, and its shards by --format NAME:match='%s'",
             folder ? (int)(folder < 256 ? folder : 256) : 1, folder ? path : ".", match);
    return text;
}
