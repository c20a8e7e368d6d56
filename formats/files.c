/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain files: ROOT/CLASS/IMAGE, as torchvision's ImageFolder and im2rec --recursive take them.
 * The folders in ROOT, sorted by name, are the classes 0, 1, ...; below one, images may lie in
 * folders of any depth. Images in ROOT itself have no class. Each file is a shard of one record.
 *
 * A class may be a link to a folder, and an image a link to a file; other links to folders are not
 * followed, so there is no loop.
 */
#include "formats/plugins.h"

#include "base/fail.h"
#include "base/file.h"
#include "formats/shard_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_DEPTH = 32, LABEL_MAX = 99999, LOOKED_AT = 64 };

static bool is_image(const char *name)
{
    static const char *const ends[] = {".jpg", ".jpeg", ".png"};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < sizeof ends / sizeof ends[0]; i++)
        if (strcasecmp(dot, ends[i]) == 0)
            return true;
    return false;
}

/* ---- the names of one folder ---- */

struct names {
    char **list; /* each with its kind in front of it */
    size_t count, capacity;
};

enum kind { KIND_FOLDER = 'd', KIND_FILE = 'f', KIND_OTHER = 'o' };

static void names_release(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i]);
    free(names->list);
    *names = (struct names){0};
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum kind kind_of(int folder, const struct dirent *entry, bool follow)
{
    struct stat status;

    if (entry->d_type == DT_REG)
        return KIND_FILE;
    if (entry->d_type == DT_DIR)
        return KIND_FOLDER;
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return KIND_OTHER;
    if (fstatat(folder, entry->d_name, &status, 0))
        return KIND_OTHER; /* a link to nothing */
    if (S_ISREG(status.st_mode))
        return KIND_FILE;
    if (!S_ISDIR(status.st_mode))
        return KIND_OTHER;
    if (!follow && !fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) &&
        S_ISLNK(status.st_mode))
        return KIND_OTHER;
    return KIND_FOLDER;
}

static int names_add(struct names *names, enum kind kind, const char *name)
{
    if (names->count == names->capacity) {
        size_t larger = names->capacity ? names->capacity * 2 : 64;
        char **moved = reallocarray(names->list, larger, sizeof *moved);
        if (!moved)
            return fail(ENOMEM, "out of memory for %zu names", larger);
        names->list = moved;
        names->capacity = larger;
    }
    char *kept = malloc(strlen(name) + 2);
    if (!kept)
        return fail(ENOMEM, "out of memory for a name");
    *kept = (char)kind;
    strcpy(kept + 1, name);
    names->list[names->count++] = kept;
    return 0;
}

/* The visible names in a folder, folders first, each kind sorted; at most limit, 0 for all.
 * Release in either case. No reason is recorded for what the folder itself answers. */
static int names_read(struct names *names, const char *path, bool follow, size_t limit)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    int code = 0;

    *names = (struct names){0};
    if (!folder)
        return -errno;
    for (errno = 0; code == 0 && (entry = readdir(folder)); errno = 0) {
        if (entry->d_name[0] == '.')
            continue;
        code = names_add(names, kind_of(dirfd(folder), entry, follow), entry->d_name);
        if (limit && names->count == limit)
            break;
    }
    if (code == 0 && errno)
        code = -errno;
    closedir(folder);
    if (names->count > 1)
        if (names->count)
            qsort(names->list, names->count, sizeof names->list[0], compare_names);
    return code;
}

/* ---- index ---- */

struct files_scan {
    const struct format_scan *scan;
    struct catalog *catalog;
    int32_t label;
};

static int add_file(struct files_scan *files, const char *path)
{
    char reason[FAIL_REASON_BYTES];
    int code = catalog_begin_shard(files->catalog, path, -1, 0);

    if (code && files->scan->fault) {
        snprintf(reason, sizeof reason, "%s", fail_reason());
        return format_fault(files->scan, -code, path, 0, reason);
    }
    if (code)
        return code;
    catalog_set_label(files->catalog, files->label);
    uint64_t bytes = files->catalog->shards[files->catalog->shard_count - 1].bytes;
    return bytes ? catalog_add(files->catalog, 0, bytes)
                 : format_fault(files->scan, EBADMSG, path, 0, "an empty file");
}

/* The images in names. */
static int add_files(struct files_scan *files, const char *path, const struct names *names)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < names->count; i++) {
        const char *name = names->list[i] + 1;
        if (names->list[i][0] != KIND_FILE || !is_image(name)) {
            files->catalog->left_out += names->list[i][0] != KIND_FOLDER;
            continue;
        }
        char *file = file_join(path, name);
        code = file ? add_file(files, file) : -ENOMEM;
        free(file);
    }
    return code;
}

static int add_folder(struct files_scan *files, const char *path, int depth)
{
    struct names names;
    int code = names_read(&names, path, false, 0);

    if (code)
        code = format_fault(files->scan, -code, path, 0, fail_errno_text(code));
    else
        code = add_files(files, path, &names);
    for (size_t i = 0; code == 0 && i < names.count && names.list[i][0] == KIND_FOLDER; i++) {
        char *below = file_join(path, names.list[i] + 1);
        code = !below ? -ENOMEM
               : depth == FOLDER_DEPTH
                   ? format_fault(files->scan, ELOOP, below, 0, "folders are nested too deep")
                   : add_folder(files, below, depth + 1);
        free(below);
    }
    names_release(&names);
    return code;
}

static int files_index(const void *settings, const char *root, const struct format_scan *scan,
                       struct catalog *catalog)
{
    struct files_scan files = {.scan = scan, .catalog = catalog, .label = -1};
    struct names names;
    int code = names_read(&names, root, true, 0);

    (void)settings;
    if (code)
        code = fail(-code, "%s: cannot read the folder: %s", root, fail_errno_text(code));
    if (code == 0)
        code = add_files(&files, root, &names);
    for (size_t i = 0; code == 0 && i < names.count && names.list[i][0] == KIND_FOLDER; i++) {
        char *folder = file_join(root, names.list[i] + 1);
        files.label = (int32_t)i; /* folders come first */
        code = folder ? add_folder(&files, folder, 1) : -ENOMEM;
        free(folder);
        if (scan->progress)
            scan->progress(scan->progress_context, i + 1, names.count);
    }
    names_release(&names);
    return code;
}

/* ---- detect and parse ---- */

static int image_count(const char *path, struct names *names)
{
    int count = 0;

    if (names_read(names, path, true, LOOKED_AT))
        return 0;
    for (size_t i = 0; i < names->count; i++)
        count += names->list[i][0] == KIND_FILE && is_image(names->list[i] + 1);
    return count;
}

static int files_detect(const char *root)
{
    struct names names = {0}, below;
    int sure = file_is_folder(root) && image_count(root, &names) ? 40 : 0;

    for (size_t i = 0; sure < 50 && i < names.count && names.list[i][0] == KIND_FOLDER; i++) {
        char *folder = file_join(root, names.list[i] + 1);
        if (folder && image_count(folder, &below))
            sure = 50;
        if (folder)
            names_release(&below);
        free(folder);
    }
    names_release(&names);
    return sure;
}

/* The name is the folder and the file. */
static int files_parse(const void *settings, const struct shard *shard, const void *record,
                       size_t bytes, unsigned flags, struct format_scratch *scratch,
                       struct sample *sample)
{
    const char *name = shard->path + strlen(shard->path);

    (void)settings, (void)flags, (void)scratch;
    if (bytes == 0)
        return fail(EBADMSG, "an empty file");
    for (int slashes = 0; name > shard->path; name--)
        if (name[-1] == '/' && ++slashes == 2)
            break;
    sample->name = name;
    sample->name_bytes = strlen(name);
    sample->image = record;
    sample->image_bytes = bytes;
    return 0;
}

/* ---- writing ---- */

struct files_writer {
    char *path, *draft_path;
    int draft;       /* the folder written to */
    int32_t classes; /* folders made */
    uint64_t records;
};

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status, (void)type, (void)place;
    return remove(path);
}

static int files_shard_open(void *state, const void *settings, const char *path)
{
    struct files_writer *writer = state;
    size_t length = strlen(path);

    (void)settings;
    writer->draft = -1;
    while (length > 1 && path[length - 1] == '/')
        length--;
    writer->path = strndup(path, length);
    writer->draft_path = file_format_path("%.*s.partial", (int)length, path);
    if (!writer->path || !writer->draft_path)
        return fail(ENOMEM, "out of memory for a path");
    nftw(writer->draft_path, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* what was abandoned */
    int code = file_make_folders(writer->draft_path);
    if (code)
        return code;
    writer->draft = open(writer->draft_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (writer->draft < 0)
        return fail(errno, "%s: %s", writer->draft_path, fail_errno_text(errno));
    return 0;
}

/* All classes below have a folder too, so that this one keeps its number. */
static int make_classes(struct files_writer *writer, int32_t label)
{
    char name[16];

    if (label > LABEL_MAX)
        return fail(EINVAL, "%s: class %d is too large for plain files (%d)", writer->path, label,
                    LABEL_MAX);
    for (; writer->classes <= label; writer->classes++) {
        snprintf(name, sizeof name, "%05d", writer->classes);
        if (mkdirat(writer->draft, name, 0777) && errno != EEXIST)
            return fail(errno, "%s/%s: cannot make the folder: %s", writer->draft_path, name,
                        fail_errno_text(errno));
    }
    return 0;
}

static int files_shard_append(void *state, const struct sample *sample)
{
    struct files_writer *writer = state;
    char name[48], class_name[16] = "";

    if (sample->encoding != SAMPLE_ENCODED || sample->image_bytes == 0)
        return fail(EINVAL, "%s: plain files hold encoded images, not bare pixels", writer->path);
    int code = make_classes(writer, sample->label);
    if (code)
        return code;
    bool png = sample->image_bytes > 4 && memcmp(sample->image, "\x89PNG", 4) == 0;
    if (sample->label >= 0)
        snprintf(class_name, sizeof class_name, "%05d/", sample->label);
    snprintf(name, sizeof name, "%s%08llu%s", class_name, (unsigned long long)writer->records++,
             png ? ".png" : ".jpg");
    int fd = openat(writer->draft, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail(errno, "%s/%s: cannot make the file: %s", writer->draft_path, name,
                    fail_errno_text(errno));
    code = file_write_at(fd, sample->image, sample->image_bytes, 0, name);
    if (code)
        fail(-code, "%s/%s", writer->draft_path, fail_reason());
    if (close(fd) && code == 0)
        code = fail(errno, "%s/%s: cannot close: %s", writer->draft_path, name,
                    fail_errno_text(errno));
    return code;
}

/* One sync for all files: one each would take hours for a million. */
static int commit_files(struct files_writer *writer)
{
    if (syncfs(writer->draft))
        return fail(errno, "%s: cannot sync: %s", writer->draft_path, fail_errno_text(errno));
    if (rename(writer->draft_path, writer->path))
        return fail(errno, "%s: cannot rename to its name: %s", writer->draft_path,
                    fail_errno_text(errno));
    return 0;
}

static int files_shard_close(void *state, bool commit)
{
    struct files_writer *writer = state;
    int code = commit && writer->draft >= 0 ? commit_files(writer) : 0;

    if (writer->draft >= 0)
        close(writer->draft);
    if (writer->draft >= 0 && (!commit || code))
        nftw(writer->draft_path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(writer->path);
    free(writer->draft_path);
    return code;
}

/* The whole tree is one shard: classes are shared by all samples. */
static int files_shard_path(const char *folder, uint32_t shard, uint32_t shards, char **path)
{
    size_t length = strlen(folder);

    (void)shard;
    if (shards == 0)
        return 1;
    while (length > 1 && folder[length - 1] == '/')
        length--;
    *path = strndup(folder, length);
    return *path ? 0 : fail(ENOMEM, "out of memory for a path");
}

const struct format_ops format_files = {
    .plugin = {.name = "files",
               .summary = "plain image files, ROOT/CLASS/IMAGE",
               .state_size = sizeof(struct files_writer)},
    .detect = files_detect,
    .index = files_index,
    .parse = files_parse,
    .shard_open = files_shard_open,
    .shard_append = files_shard_append,
    .shard_close = files_shard_close,
    .shard_path = files_shard_path,
};
