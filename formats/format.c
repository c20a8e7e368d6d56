/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/format.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/random.h"
#include "dataset/manifest.h"
#include "dataset/sidecar.h"
#include "dataset/store.h"
#include "formats/path_hint.h"
#include "formats/scan.h"
#include "formats/shard_list.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool can_write(const struct format_ops *ops)
{
    return ops->shard_open && ops->shard_append && ops->shard_close && ops->shard_path;
}

/* "recordio, shards": those that may be written, or all. */
static const char *names_of(bool writable, char *text, size_t bytes)
{
    size_t used = 0;

    for (const struct plugin *const *row = format_registry; *row && used < bytes; row++)
        if (!writable || can_write(format_of(*row)))
            used +=
                (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", (*row)->name);
    return text;
}

int format_check_writable(const struct plugin *format)
{
    char names[256];

    if (can_write(format_of(format)))
        return format_of(format)->writable ? format_of(format)->writable() : 0;
    return fail(ENOTSUP, "format %s is read-only; choose one of: %s", format->name,
                names_of(true, names, sizeof names));
}

int format_shard_path(const struct plugin *format, const char *folder, uint32_t shard,
                      uint32_t shards, char **path)
{
    int code = format_check_writable(format);

    *path = NULL;
    return code ? code : format_of(format)->shard_path(folder, shard, shards, path);
}

const struct plugin *format_most_likely(const char *path, int *surest)
{
    const struct plugin *best = NULL;

    *surest = 0;
    for (const struct plugin *const *row = format_registry; *row; row++) {
        const int sure = format_of(*row)->detect(path);
        if (sure > *surest) {
            *surest = sure;
            best = *row;
        }
    }
    return best;
}

/* Recognise for a hint: not by a name alone. */
static const struct plugin *recognised(const char *path)
{
    int surest;
    const struct plugin *best = format_most_likely(path, &surest);

    return surest > FORMAT_BY_NAME ? best : NULL;
}

const struct plugin *format_detect(const char *path)
{
    char names[256];
    int surest;

    if (manifest_check_complete(path))
        return NULL;
    const struct plugin *best = format_most_likely(path, &surest);
    if (surest > FORMAT_BY_NAME)
        return best;
    names_of(false, names, sizeof names);
    return path_hint_survey(path, recognised, best ? NULL : names) ? NULL : best;
}

int format_choose(const char *text, const char *path, struct plugin_choice *choice)
{
    const struct plugin *detected = NULL;

    *choice = (struct plugin_choice){0};
    if (strcmp(text, "auto") == 0 && !(detected = format_detect(path)))
        return -EINVAL;
    return plugin_choose("format", format_registry, detected ? detected->name : text, choice);
}

/* Hash the settings, so that a sidecar made with other settings is not used. */
static uint64_t settings_key(const struct plugin_choice *format)
{
    uint64_t key = 0;
    char text[1024];

    for (const struct option_spec *row = format->plugin->options; row && row->name; row++) {
        option_text(row, format->settings, text, sizeof text);
        key = random_hash_text(key, text);
    }
    return key;
}

static void (*say_remark)(const char *text);

void format_on_remark(void (*say)(const char *text))
{
    say_remark = say;
}

void format_say_remarks(const struct catalog *catalog)
{
    char texts[REMARK_KINDS][REMARK_TEXT_BYTES];
    const uint32_t count = say_remark ? catalog_remarks(catalog, texts) : 0;

    for (uint32_t i = 0; i < count; i++)
        say_remark(texts[i]);
}

int format_catalog_kept(const struct plugin_choice *format, const char *root,
                        struct catalog **catalog)
{
    static const enum sidecar_place places[] = {SIDECAR_BESIDE, SIDECAR_CACHE};
    uint64_t key = settings_key(format);
    int code = -ENOENT;

    *catalog = NULL;
    int complete = manifest_check_complete(root);
    if (complete)
        return complete;
    for (size_t i = 0; code && i < sizeof places / sizeof places[0]; i++) {
        char *path = sidecar_path(root, places[i]);
        int loaded = path ? sidecar_load(path, root, format->plugin->name, key, catalog) : -ENOENT;
        free(path);
        if (loaded == 0 || code == -ENOENT)
            code = loaded;
    }
    return code;
}

int format_catalog(const struct plugin_choice *format, const char *root, bool use_sidecar,
                   const struct format_scan *scan, struct catalog **catalog)
{
    static const struct format_scan plain_scan = {0};
    uint64_t key = settings_key(format);
    int code = manifest_check_complete(root);

    *catalog = NULL;
    if (code)
        return code;
    if (use_sidecar && format_catalog_kept(format, root, catalog) == 0) {
        fail_clear();
        return 0;
    }
    fail_clear();
    struct catalog *made = catalog_create(root, format->plugin->name);
    if (!made)
        return -ENOMEM;
    const struct format_ops *ops = format_of(format->plugin);
    scan = scan ? scan : &plain_scan;
    made->fault = scan->fault;
    made->fault_context = scan->fault_context;
    code = ops->index ? ops->index(format->settings, root, scan, made)
                      : scan_folder(root, *(char *const *)format->settings, ops->takes, ops->walk,
                                    format->settings, scan, made);
    made->fault = NULL;
    if (code == 0)
        code = catalog_seal(made);
    if (code) {
        catalog_destroy(made);
        if (code != -ENOENT && code != -ENODATA)
            return code;
        /* A named format that finds none of its files: say what there is instead. */
        char reason[FAIL_REASON_BYTES];
        snprintf(reason, sizeof reason, "%s", fail_reason());
        const bool is_another = ops->detect(root) == 0;
        const int other = is_another ? path_hint_survey(root, recognised, NULL) : 0;
        if (other)
            return other;
        const struct plugin *detected = is_another ? format_detect(root) : NULL;
        return detected ? fail(code, "%s; it looks like %s", reason, detected->name)
                        : fail(code, "%s", reason);
    }
    /* A scan that continued past faults may have left records out. */
    if (use_sidecar && !scan->fault) {
        /* Save beside the data, else in the user's cache. If neither works, the next start scans
         * again. */
        char *beside = sidecar_path(made->root, SIDECAR_BESIDE);
        if (!beside || sidecar_save(made, beside, key)) {
            char *cached = sidecar_path(made->root, SIDECAR_CACHE);
            if (cached)
                sidecar_save(made, cached, key);
            free(cached);
        }
        free(beside);
        fail_clear();
    }
    *catalog = made;
    return 0;
}

const char *const format_odd_labels_names[] = {"none", "round", "refuse", NULL};

unsigned format_odd_labels_flags(int odd_labels)
{
    return odd_labels == FORMAT_ODD_NONE    ? FORMAT_ODD_LABELS
           : odd_labels == FORMAT_ODD_ROUND ? FORMAT_ODD_LABELS | FORMAT_ROUND_LABELS
                                            : 0;
}

int format_settle_label(unsigned flags, struct sample *sample)
{
    if (sample->has_odd_label && flags & FORMAT_ROUND_LABELS)
        sample_round_label(sample);
    return sample->has_odd_label && !(flags & FORMAT_ODD_LABELS) ? sample_refuse_label(sample) : 0;
}

int format_parse(const struct plugin_choice *format, const struct shard *shard, const void *record,
                 size_t bytes, unsigned flags, struct format_scratch *scratch,
                 struct sample *sample)
{
    *sample = (struct sample){.label = shard->label};
    int code = format_of(format->plugin)
                   ->parse(format->settings, shard, record, bytes, flags, scratch, sample);
    return code ? code : format_settle_label(flags, sample);
}

int format_remark_sample(struct catalog *catalog, const struct extent *extent,
                         const struct sample *sample)
{
    const char *path = catalog->shards[extent->shard].path;
    int code = 0;

    if (sample->has_odd_label && sample_refuse_label(sample))
        code = catalog_remark(catalog, REMARK_ODD_LABEL, "%s: offset %llu: %s", path,
                              (unsigned long long)extent->offset, fail_reason());
    if (code == 0 && sample->image_bytes == 0)
        code = catalog_remark(catalog, REMARK_EMPTY_IMAGE, "%s: offset %llu", path,
                              (unsigned long long)extent->offset);
    fail_clear();
    return code;
}

int format_writer_open(struct format_writer *writer, const struct plugin_choice *format,
                       const char *path)
{
    *writer = (struct format_writer){.ops = format_of(format->plugin)};
    int code = plugin_usable(format->plugin);
    if (code == 0)
        code = format_check_writable(format->plugin);
    if (code)
        return code;
    writer->state = memory_zeroed(format->plugin->state_size);
    if (!writer->state)
        return -ENOMEM;
    return writer->ops->shard_open(writer->state, format->settings, path);
}

int format_writer_append(struct format_writer *writer, const struct sample *sample)
{
    assert(writer->state && (sample->image || sample->image_bytes == 0));
    return writer->ops->shard_append(writer->state, sample);
}

int format_writer_close(struct format_writer *writer, bool commit)
{
    int code = writer->state ? writer->ops->shard_close(writer->state, commit) : 0;

    free(writer->state);
    *writer = (struct format_writer){0};
    return code;
}

/* ---- results apart from data sets ---- */

/* In a folder with data of that format; below it only images count. */
static bool takes(const struct format_ops *format, const char *name, bool is_below)
{
    return format->takes && (!is_below || format->records_are_images) && !shard_list_never(name) &&
           format->takes(name);
}

static bool any_takes(const char *name)
{
    for (const struct plugin *const *row = format_registry; *row; row++)
        if (takes(format_of(*row), name, false))
            return true;
    return false;
}

int format_check_apart(const char *path, const char *set)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char known[PATH_MAX] = "", folder[PATH_MAX];
    char *parent = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int code = parent ? 0 : fail(ENOMEM, "out of memory");

    if (code || !any_takes(name) || !realpath(parent, folder)) {
        free(parent);
        return code; /* without a folder, writing fails and says why */
    }
    free(parent);
    if (!set || !realpath(set, known))
        known[0] = '\0';
    for (bool is_below = false; code == 0 && folder[0]; is_below = true) {
        /* Was the folder made by 'iobench pack', or indexed? */
        char *marks[] = {sidecar_path(folder, SIDECAR_BESIDE), file_join(folder, MANIFEST_SET),
                         file_join(folder, MANIFEST_UNFINISHED)};
        bool is_set = strcmp(folder, known) == 0;
        for (int i = 0; i < 3; i++) {
            is_set |= marks[i] && file_exists(marks[i]);
            free(marks[i]);
        }
        const struct plugin *format = is_set ? format_detect(folder) : NULL;
        if (is_set && !format)
            fail_clear(); /* unfinished, or of a format that an option names: of any */
        if (format ? takes(format_of(format), name, is_below)
                   : is_set && !is_below && any_takes(name))
            code = fail(EINVAL,
                        "%s: is inside the data set %s, of which it would become a part; name a "
                        "file outside, or another suffix",
                        path, folder);
        *strrchr(folder, '/') = '\0';
    }
    return code;
}
