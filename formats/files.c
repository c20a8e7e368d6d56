/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain files: ROOT/CLASS/IMAGE, the layout of torchvision's ImageFolder and im2rec --recursive.
 * The folders in ROOT that hold images, sorted by name, are the classes 0, 1, ...; in a set written
 * by pack their names are the numbers of the classes. A class folder may hold images at any depth.
 * Images in ROOT itself have no class. Each file is a shard of one record.
 *
 * A class may be a link to a folder, and an image a link to a file; other links to folders are not
 * followed, so there is no loop. */
#include "formats/plugins.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/image_header.h"
#include "base/sample.h"
#include "dataset/manifest.h"
#include "dataset/store.h"
#include "formats/image_names.h"
#include "formats/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDER_DEPTH = 32, LABEL_MAX = 99999, LABEL_DIGITS = 5, LOOKED_AT = 64 };

/* ---- the names of one folder ---- */

enum entry_kind { KIND_FOLDER = 'd', KIND_FILE = 'f', KIND_LINKED_FOLDER = 'l', KIND_OTHER = 'o' };

struct class_entry {
    enum entry_kind kind;
    bool status_known;
    struct store_status status;
    char *text;
};

struct class_list {
    struct class_entry *list;
    size_t count, limit; /* limit 0: no limit */
    bool follow;         /* follow links to folders */
};

enum { ENOUGH = 1 };

static void class_list_release(struct class_list *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i].text);
    free(names->list);
    *names = (struct class_list){0};
}

static int compare_names(const void *a, const void *b)
{
    const struct class_entry *x = a, *y = b;

    return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->text, y->text);
}

static int names_add(void *context, const struct store_entry *entry)
{
    struct class_list *names = context;

    if (entry->name[0] == '.')
        return 0;
    if (memory_room(&names->list, names->count, sizeof *names->list, "names"))
        return -ENOMEM;
    struct class_entry *name = &names->list[names->count];
    *name = (struct class_entry){.kind = entry->kind == STORE_FILE ? KIND_FILE : KIND_OTHER,
                                 .text = strdup(entry->name)};
    if (!name->text)
        return fail(ENOMEM, "out of memory for a name");
    names->count++;
    if (entry->kind == STORE_FOLDER)
        name->kind = names->follow || !entry->is_link ? KIND_FOLDER : KIND_LINKED_FOLDER;
    name->status_known = entry->status != NULL;
    if (entry->status)
        name->status = *entry->status;
    return names->count == names->limit ? ENOUGH : 0;
}

/* List the visible names in a folder, folders first, each kind sorted; at most limit, or all if
 * limit is 0. Release the list in either case. */
static int class_list_read(struct class_list *names, const char *path, bool follow, size_t limit)
{
    *names = (struct class_list){.follow = follow, .limit = limit};
    int code = store_list(path, names_add, names);

    if (names->count > 0)
        qsort(names->list, names->count, sizeof names->list[0], compare_names);
    return code == ENOUGH ? 0 : code;
}

/* ---- index ---- */

struct files_scan {
    const struct format_scan *scan;
    struct catalog *catalog;
    int32_t label;
    uint64_t images; /* of any kind, met so far */
};

/* Report a fault whose reason is recorded. */
static int add_fault(const struct files_scan *files, int code, const char *path)
{
    char reason[FAIL_REASON_BYTES];

    if (!files->scan->fault || code == -ENOMEM)
        return code;
    snprintf(reason, sizeof reason, "%s", fail_reason());
    return scan_fault(files->scan, -code, path, 0, reason);
}

/* Add the images among names, and leave out the rest: a file of another kind is counted; what other
 * tools take for a sample is reported: an image of an unsupported kind, an image name that is not a
 * regular file, or a link to a folder. */
static int add_files(struct files_scan *files, const char *path, const struct class_list *names)
{
    struct catalog *catalog = files->catalog;
    int code = 0;

    for (size_t i = 0; code == 0 && i < names->count; i++) {
        const struct class_entry *name = &names->list[i];
        if (name->kind == KIND_FOLDER)
            continue;
        const enum image_name image = image_name_of_file(name->text);
        const bool is_read = name->kind == KIND_FILE && image == IMAGE_NAME_READ;
        if (!is_read && name->kind != KIND_LINKED_FOLDER && image == IMAGE_NAME_NONE) {
            catalog->left_out++;
            continue;
        }
        files->images++;
        char *file = file_join(path, name->text);
        if (!file) {
            code = -ENOMEM;
        } else if (!is_read) {
            code = catalog_add_unread(catalog, file, 0,
                                      name->kind == KIND_LINKED_FOLDER
                                          ? "a link to a folder, not followed"
                                      : name->kind == KIND_OTHER ? "not a regular file"
                                                                 : "unsupported kind of image");
        } else if ((code = catalog_begin_shard(catalog, file,
                                               name->status_known ? &name->status : NULL, 0))) {
            code = add_fault(files, code, file);
        } else {
            catalog_last(catalog)->label = files->label;
            code = catalog_add(catalog, 0, catalog_last(catalog)->bytes);
        }
        free(file);
    }
    return code;
}

static int add_folder(struct files_scan *files, const char *path, int depth)
{
    struct class_list names;
    int code = class_list_read(&names, path, false, 0);

    if (code)
        code = add_fault(files, code, path);
    else
        code = add_files(files, path, &names);
    for (size_t i = 0; code == 0 && i < names.count && names.list[i].kind == KIND_FOLDER; i++) {
        char *below = file_join(path, names.list[i].text);
        code = !below ? -ENOMEM
               : depth == FOLDER_DEPTH
                   ? scan_fault(files->scan, ELOOP, below, 0, "folders nested too deeply")
                   : add_folder(files, below, depth + 1);
        free(below);
    }
    class_list_release(&names);
    return code;
}

static int files_index(const void *settings, const char *root, const struct format_scan *scan,
                       struct catalog *catalog)
{
    struct files_scan files = {.scan = scan, .catalog = catalog, .label = -1};
    struct class_list names;
    int code = class_list_read(&names, root, true, 0);
    int32_t classes = 0;

    (void)settings;
    /* Are the names of the folders the numbers of their classes? Those of a set that pack wrote,
     * which has no folder for a class without images. */
    char *set = file_join(root, MANIFEST_SET);
    bool is_numbered = code == 0 && set && store_exists(set);
    free(set);
    for (size_t i = 0; is_numbered && i < names.count && names.list[i].kind == KIND_FOLDER; i++)
        is_numbered = strlen(names.list[i].text) == LABEL_DIGITS &&
                      strspn(names.list[i].text, "0123456789") == LABEL_DIGITS;
    if (code == 0)
        code = add_files(&files, root, &names);
    for (size_t i = 0; code == 0 && i < names.count && names.list[i].kind == KIND_FOLDER; i++) {
        /* Add the images of a class. A folder without any is none: it gets no number. */
        const uint64_t before = files.images;
        char *folder = file_join(root, names.list[i].text);
        files.label = is_numbered ? atoi(names.list[i].text) : classes;
        code = folder ? add_folder(&files, folder, 1) : -ENOMEM;
        if (code == 0 && files.images == before)
            code = catalog_remark(files.catalog, REMARK_EMPTY_CLASS, "%s", folder);
        classes += files.images > before;
        free(folder);
        if (scan->progress)
            scan->progress(scan->progress_context, i + 1, names.count);
    }
    class_list_release(&names);
    return code;
}

/* ---- detect and parse ---- */

static int image_count(const char *path, struct class_list *names)
{
    int count = 0;

    if (class_list_read(names, path, true, LOOKED_AT))
        return 0;
    for (size_t i = 0; i < names->count; i++)
        count += names->list[i].kind == KIND_FILE && image_name_is_read(names->list[i].text);
    return count;
}

static bool files_takes(const char *name)
{
    return name[0] != '.' && image_name_of_file(name) != IMAGE_NAME_NONE;
}

static int files_detect(const char *root)
{
    struct class_list names = {0}, below;
    int sure = store_is_folder(root) && image_count(root, &names) ? 40 : 0;

    for (size_t i = 0; sure < 50 && i < names.count && names.list[i].kind == KIND_FOLDER; i++) {
        char *folder = file_join(root, names.list[i].text);
        if (folder && image_count(folder, &below))
            sure = 50;
        if (folder)
            class_list_release(&below);
        free(folder);
    }
    class_list_release(&names);
    return sure;
}

/* The sample's name is folder and file. */
static int files_parse(const void *settings, const struct shard *shard, const void *record,
                       size_t bytes, unsigned flags, struct format_scratch *scratch,
                       struct sample *sample)
{
    const size_t length = strlen(shard->path);
    const char *slash = memrchr(shard->path, '/', length);

    (void)settings, (void)flags, (void)scratch;
    if (bytes == 0)
        return fail(EBADMSG, "an empty file");
    if (slash) /* the name is file and folder */
        slash = memrchr(shard->path, '/', (size_t)(slash - shard->path));
    sample->name = slash ? slash + 1 : shard->path;
    sample->name_bytes = length - (size_t)(sample->name - shard->path);
    sample->image = record;
    sample->image_bytes = bytes;
    return 0;
}

/* ---- writing ---- */

struct files_writer {
    char *path; /* without a trailing slash */
    bool open;  /* the folder exists and was empty */
    uint64_t records;
    bool made[LABEL_MAX + 1]; /* the folder of this class */
};

static int any_name(void *context, const struct store_entry *entry)
{
    return fail(ENOTEMPTY, "%s: is not empty (%s)", (const char *)context, entry->name);
}

static int files_shard_open(void *state, const void *settings, const char *path)
{
    struct files_writer *writer = state;

    (void)settings;
    writer->path = strdup(path);
    if (!writer->path)
        return fail(ENOMEM, "out of memory for a path");
    int code = store_make_folders(writer->path);
    if (code == 0)
        code = store_list(writer->path, any_name, writer->path);
    writer->open = code == 0;
    return code;
}

static int files_shard_append(void *state, const struct sample *sample)
{
    struct files_writer *writer = state;
    struct store_file *file;
    char class_name[16] = "";

    if (sample->encoding != SAMPLE_ENCODED || sample->image_bytes == 0)
        return fail(EINVAL, "%s: plain files hold encoded images, not bare pixels", writer->path);
    const int32_t label = sample->label;
    if (label > LABEL_MAX)
        return fail(EINVAL, "%s: class %d is too large for plain files (%d)", writer->path, label,
                    LABEL_MAX);
    if (label >= 0)
        snprintf(class_name, sizeof class_name, "%05d/", label);
    /* A class without images gets no folder, since torchvision refuses a tree with an empty one. */
    if (label >= 0 && !writer->made[label]) {
        char *folder = file_format_path("%s/%05d", writer->path, label);
        int made = folder ? store_make_folders(folder) : -ENOMEM;
        free(folder);
        if (made)
            return made;
        writer->made[label] = true;
    }
    char *path = file_format_path("%s/%s%08llu.%s", writer->path, class_name,
                                  (unsigned long long)writer->records++,
                                  image_extension(sample->image, sample->image_bytes));
    int code = path ? store_open(path, STORE_CREATE, &file) : -ENOMEM;
    if (code == 0) {
        code = store_write_at(file, sample->image, sample->image_bytes, 0);
        int closed = store_close(file, !store_is_local(path));
        code = code ? code : closed;
    }
    free(path);
    return code;
}

static int files_shard_close(void *state, bool commit)
{
    struct files_writer *writer = state;
    int code = 0;

    /* Sync all files at once: one sync each would take hours for a million files. A server has no
     * such call and syncs file by file. */
    if (commit && writer->open && store_is_local(writer->path)) {
        struct folder folder;
        code = folder_open(&folder, writer->path);
        if (code == 0 && syncfs(folder.fd))
            code = fail(errno, "%s: cannot sync: %s", writer->path, fail_errno_text(errno));
        folder_close(&folder);
    }
    if (writer->open && (!commit || code)) {
        fail_hold();
        store_remove_tree(writer->path);
        fail_release();
    }
    free(writer->path);
    return code;
}

const struct format_ops format_files = {
    .plugin = {.name = "files",
               .summary = "plain image files, ROOT/CLASS/IMAGE",
               .state_size = sizeof(struct files_writer)},
    .detect = files_detect,
    .takes = files_takes,
    .index = files_index,
    .records_are_images = true,
    .parse = files_parse,
    .shard_open = files_shard_open,
    .shard_append = files_shard_append,
    .shard_close = files_shard_close,
    .naming = {.alone = "", .most = 1}, /* all samples share the classes */
};
