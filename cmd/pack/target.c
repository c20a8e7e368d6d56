/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/target.h"

#include "base/bytes.h"
#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "dataset/store.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* place: the names in the folder where a data set is made, on this machine or on a server.
 *
 * A name is a path below the folder ("" is the folder itself). Locally each component is opened
 * without following links, so nobody with write access to the folder can redirect a call to another
 * file. Nothing is replaced, and only what was checked is removed. Private to pack; one thread at a
 * time. Returns 0 or a negative errno with a reason.
 */

enum place_kind { PLACE_FILE, PLACE_FOLDER, PLACE_OTHER };

struct place_entry {
    enum place_kind kind; /* of the name itself: a link counts as other */
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t names; /* hard links of a file; 1 on a server */
    uint64_t owner; /* 0 on a server, which checks access itself */
    struct stat made;
};
/* Called for each name in a folder, in no order. A non-zero result ends the listing with that
 * code. */
typedef int (*place_visit)(void *context, const char *name);

static void place_close(struct place *place)
{
    if (place->path && place->is_local)
        folder_close(&place->folder);
    free(place->path);
    *place = (struct place){.folder = {.fd = -1}};
}

static int place_open(struct place *place, const char *path)
{
    *place = (struct place){
        .path = strdup(path), .is_local = store_is_local(path), .folder = {.fd = -1}};
    if (!place->path)
        return fail(ENOMEM, "out of memory for a path");
    int code = place->is_local ? folder_open(&place->folder, path) : 0;
    if (code)
        place_close(place);
    return code;
}

/* ---- local names ---- */

/* Open the folder that contains name, component by component. *last: its last component; NULL for
 * "". */
static int open_parent(const struct place *place, const char *name, struct folder *folder,
                       const char **last)
{
    const char *slash;
    int code = 0;

    *last = *name ? name : NULL;
    *folder = (struct folder){.fd = fcntl(place->folder.fd, F_DUPFD_CLOEXEC, 0),
                              .path = strdup(place->path)};
    if (folder->fd < 0 || !folder->path)
        code = fail(folder->fd < 0 ? errno : ENOMEM, "%s: %s", place->path,
                    fail_errno_text(folder->fd < 0 ? errno : ENOMEM));
    while (code == 0 && (slash = strchr(name, '/'))) {
        struct folder below = {.fd = -1};
        char *part = strndup(name, (size_t)(slash - name));
        code = part ? folder_open_below(&below, folder, part)
                    : fail(ENOMEM, "out of memory for a path");
        free(part);
        folder_close(folder);
        *folder = below;
        *last = name = slash + 1;
    }
    if (code)
        folder_close(folder);
    return code;
}

/* The same for name itself, a folder. */
static int open_folder(const struct place *place, const char *name, struct folder *folder)
{
    struct folder parent;
    const char *last;
    int code = open_parent(place, name, &parent, &last);

    *folder = (struct folder){.fd = -1};
    if (code)
        return code;
    if (!last) {
        *folder = parent;
        return 0;
    }
    code = folder_open_below(folder, &parent, last);
    folder_close(&parent);
    return code;
}

struct visiting {
    place_visit visit;
    void *context;
};

static int visit_here(void *context, const char *name, unsigned char type)
{
    const struct visiting *visiting = context;

    (void)type;
    return visiting->visit(visiting->context, name);
}

static int visit_there(void *context, const struct store_entry *entry)
{
    const struct visiting *visiting = context;

    return visiting->visit(visiting->context, entry->name);
}

/* ---- local or server ---- */

static char *path_of(const struct place *place, const char *name)
{
    return file_format_path("%s%s%s", place->path, *name ? "/" : "", name);
}

/* -ENOENT if missing. */
static int place_look(const struct place *place, const char *name, struct place_entry *entry)
{
    struct store_status status;

    if (place->is_local) {
        struct folder parent;
        struct stat found;
        const char *last;
        int code = open_parent(place, name, &parent, &last);
        if (code)
            return code;
        code = last ? folder_stat(&parent, last, &found)
               : fstat(parent.fd, &found)
                   ? fail(errno, "%s: %s", place->path, fail_errno_text(errno))
                   : 0;
        folder_close(&parent);
        if (code == 0)
            *entry = (struct place_entry){
                .kind = S_ISREG(found.st_mode)   ? PLACE_FILE
                        : S_ISDIR(found.st_mode) ? PLACE_FOLDER
                                                 : PLACE_OTHER,
                .bytes = (uint64_t)found.st_size,
                .mtime_ns = found.st_mtim.tv_sec * INT64_C(1000000000) + found.st_mtim.tv_nsec,
                .names = found.st_nlink,
                .owner = found.st_uid,
                .made = found,
            };
        return code;
    }
    char *path = path_of(place, name);
    int code = path ? store_stat(path, &status) : -ENOMEM;
    free(path);
    if (code == 0)
        *entry = (struct place_entry){.kind = status.kind == STORE_FILE     ? PLACE_FILE
                                              : status.kind == STORE_FOLDER ? PLACE_FOLDER
                                                                            : PLACE_OTHER,
                                      .bytes = status.bytes,
                                      .mtime_ns = status.mtime_ns,
                                      .names = 1};
    return code;
}

/* Returns 1 if it exists, 0 if not, or a negative errno if unknown. */
static int place_has(const struct place *place, const char *name)
{
    struct place_entry entry;
    int code = place_look(place, name, &entry);

    return code == -ENOENT ? 0 : code ? code : 1;
}

static int place_list(const struct place *place, const char *name, place_visit visit, void *context)
{
    struct visiting visiting = {visit, context};
    struct folder folder;

    if (place->is_local) {
        int code = open_folder(place, name, &folder);
        if (code == 0)
            code = folder_list(&folder, visit_here, &visiting);
        folder_close(&folder);
        return code;
    }
    char *path = path_of(place, name);
    int code = path ? store_list(path, visit_there, &visiting) : -ENOMEM;
    free(path);
    return code;
}

static int make(const struct place *place, const char *name, bool is_private)
{
    if (place->is_local) {
        struct folder parent, made;
        const char *last;
        int code = open_parent(place, name, &parent, &last);
        if (code)
            return code;
        code = folder_make(&parent, last);
        if (code == 0 && is_private) {
            code = folder_open_below(&made, &parent, last);
            if (code == 0 && fchmod(made.fd, 0700))
                code =
                    fail(errno, "%s: cannot set its mode: %s", made.path, fail_errno_text(errno));
            folder_close(&made);
        }
        folder_close(&parent);
        return code;
    }
    char *path = path_of(place, name);
    int code = path ? store_make_folders(path) : -ENOMEM;
    free(path);
    return code;
}

static int place_move(const struct place *place, const char *from, const char *to)
{
    if (place->is_local) {
        struct folder source, target = {.fd = -1};
        const char *name, *new_name;
        int code = open_parent(place, from, &source, &name);
        if (code)
            return code;
        code = open_parent(place, to, &target, &new_name);
        if (code == 0) {
            code = folder_rename(&source, name, &target, new_name, false);
            folder_close(&target);
        }
        folder_close(&source);
        return code;
    }
    char *old = path_of(place, from), *new = path_of(place, to);
    int code = !old || !new        ? -ENOMEM
               : store_exists(new) ? fail(EEXIST, "%s: exists and is not replaced", new)
                                   : store_rename(old, new);
    free(old);
    free(new);
    return code;
}

/* -EEXIST: exists */
static int place_remove(const struct place *place, const char *name,
                        const struct place_entry *entry)
{
    struct folder parent;
    const char *last;

    if (!place->is_local) {
        char *path = path_of(place, name);
        int code = path ? store_remove(path) : -ENOMEM;
        free(path);
        return code;
    }
    int code = open_parent(place, name, &parent, &last);
    if (code == 0) {
        code = folder_remove(&parent, last, &entry->made);
        folder_close(&parent);
    }
    return code;
}

/* Remove a folder of ours and its contents; other users' files stay and are an error. */
static int place_remove_tree(const struct place *place, const char *name)
{
    struct folder parent;
    const char *last;

    if (!place->is_local) {
        char *path = path_of(place, name);
        int code = path ? store_remove_tree(path) : -ENOMEM;
        free(path);
        return code;
    }
    int code = open_parent(place, name, &parent, &last);
    if (code == 0) {
        code = folder_remove_tree(&parent, last, NULL, NULL);
        folder_close(&parent);
    }
    return code;
}

static int place_remove_itself(const struct place *place)
{
    struct folder parent;
    struct stat made;
    const char *name;

    if (!place->is_local)
        return store_remove(place->path);
    int code = folder_open_parent(&parent, place->path, &name);
    if (code)
        return code;
    code = fstat(place->folder.fd, &made) || !name
               ? fail(EINVAL, "%s: cannot be removed", place->path)
               : folder_remove(&parent, name, &made);
    folder_close(&parent);
    return code;
}

/* Load a small file that only its owner may write: root, this user or the owner of the folder.
 * NUL-terminated; free() it. */
static int place_load(const struct place *place, const char *name, size_t limit, char **text,
                      size_t *bytes)
{
    if (place->is_local) {
        struct folder parent;
        struct stat found, owner;
        const char *last;
        ssize_t got = 0;
        int code = open_parent(place, name, &parent, &last);
        if (code)
            return code;
        int fd = folder_open_file(&parent, last, O_RDONLY, &found);
        char *path = file_join(place->path, name);
        code = fd < 0 ? fd : path ? 0 : -ENOMEM;
        if (code == 0 && fstat(parent.fd, &owner))
            code = fail(errno, "%s: %s", parent.path, fail_errno_text(errno));
        if (code == 0)
            code = file_trusted(&found, &owner, path);
        if (code == 0 && (uint64_t)found.st_size > limit)
            code = fail(EFBIG, "%s: larger than %zu bytes", path, limit);
        if (code == 0) {
            *text = malloc((size_t)found.st_size + 1);
            got = *text ? file_read_at(fd, *text, (size_t)found.st_size, 0, path)
                        : fail(ENOMEM, "%s: out of memory", path);
            code = got < 0 ? (int)got : 0;
            if (code)
                free(*text);
        }
        if (code == 0) {
            *bytes = (size_t)got;
            (*text)[got] = '\0';
        }
        if (fd >= 0)
            close(fd);
        free(path);
        folder_close(&parent);
        return code;
    }
    char *path = path_of(place, name);
    int code = path ? store_load(path, limit, text, bytes) : -ENOMEM;
    free(path);
    return code;
}

/* Append to a file, creating it if missing; synced. */
static int place_append(const struct place *place, const char *name, const char *text)
{
    struct store_file *file;

    if (place->is_local) {
        struct folder parent;
        struct stat found = {0};
        const char *last;
        int code = open_parent(place, name, &parent, &last);
        if (code)
            return code;
        int fd = folder_open_file(&parent, last, O_RDWR, &found);
        if (fd == -ENOENT)
            fd = folder_create_file(&parent, last);
        code = fd < 0 ? fd
                      : file_write_at(fd, text, strlen(text), (uint64_t)found.st_size, place->path);
        if (code == 0 && fsync(fd))
            code = fail(errno, "%s/%s: cannot sync: %s", place->path, name, fail_errno_text(errno));
        if (fd >= 0)
            close(fd);
        folder_close(&parent);
        return code;
    }
    char *path = path_of(place, name);
    int code = path ? store_open(path, STORE_EXTEND, &file) : -ENOMEM;
    free(path);
    if (code)
        return code;
    code = store_write_at(file, text, strlen(text), file->status.bytes);
    int closed = store_close(file, code == 0);
    return code ? code : closed;
}

static int place_sync(const struct place *place, const char *name)
{
    struct folder folder;

    if (!place->is_local) /* names on a server are durable when it has answered */
        return 0;
    int code = open_folder(place, name, &folder);
    if (code == 0)
        code = folder_sync(&folder);
    folder_close(&folder);
    return code;
}

#define LOCK ".iobench-lock"
/* Manifest of a set that an earlier version, which replaced sets, had begun to remove. */
#define REPLACED ".iobench-replaced"

enum { MANIFEST_BYTES_MAX = 1 << 30, LOOKS = 3 };

/* ---- existing contents ---- */

static int load_unfinished(struct target *target)
{
    struct place_entry entry;
    char *text, *path;
    size_t bytes;

    int code = place_look(&target->place, MANIFEST_UNFINISHED, &entry);
    if (code == -ENOENT)
        return 0;
    if (code == 0)
        code = place_load(&target->place, MANIFEST_UNFINISHED, MANIFEST_BYTES_MAX, &text, &bytes);
    if (code)
        return code;
    path = file_join(target->path, MANIFEST_UNFINISHED);
    code = path ? manifest_parse(&target->unfinished, text, bytes, path) : -ENOMEM;
    free(path);
    free(text);
    target->has_unfinished = code == 0;
    if (code) /* cut before anything was made? */
        return code == -ENODATA ? 0 : code;
    target->unfinished_owner = entry.owner;
    target->is_resumed = target->unfinished.plan == target->request.plan &&
                         target->unfinished.shards == target->request.shards;
    target->draft = file_format_path("%s%s", MANIFEST_DRAFT, target->unfinished.suffix);
    return target->draft ? 0 : -ENOMEM;
}

static bool is_as_listed(const struct target *target, const char *name,
                         const struct manifest_file *file, struct place_entry *entry)
{
    return place_look(&target->place, name, entry) == 0 && entry->kind == PLACE_FILE &&
           entry->names == 1 && entry->bytes == file->bytes && entry->mtime_ns == file->mtime_ns &&
           entry->owner == target->unfinished_owner;
}

/* A shard counts as finished if all its files are as pack left them: in its own folder, or already
 * in place. */
static int check_finished(struct target *target)
{
    const struct manifest *manifest = &target->unfinished;
    struct place_entry entry;

    memcpy(target->finished, manifest->done, manifest->shards * sizeof *target->finished);
    for (size_t i = 0; i < manifest->file_count; i++) {
        const struct manifest_file *file = &manifest->files[i];
        if (file->is_folder || !target->finished[file->shard])
            continue;
        char *draft = file_format_path("%s/%u/%s", target->draft, file->shard, file->path);
        if (!draft)
            return -ENOMEM;
        target->finished[file->shard] = is_as_listed(target, draft, file, &entry) ||
                                        is_as_listed(target, file->path, file, &entry);
        free(draft);
    }
    fail_clear();
    return 0;
}

/* Names that are neither pack's own nor made by file systems. */
static int take_name(void *context, const char *name)
{
    struct target *target = context;

    if (strcmp(name, LOCK) == 0 || strcmp(name, "lost+found") == 0 ||
        strcmp(name, MANIFEST_UNFINISHED) == 0 ||
        (target->draft && strcmp(name, target->draft) == 0))
        return 0;
    return fail(EEXIST, "%s: is not empty (%s): remove it yourself or choose another folder",
                target->path, name);
}

/* Can the set be made here? */
static int check_target(struct target *target)
{
    int holds_set = place_has(&target->place, MANIFEST_SET);

    if (holds_set == 0)
        holds_set = place_has(&target->place, REPLACED);
    if (holds_set < 0)
        return holds_set;
    if (target->has_unfinished && !target->is_resumed && !target->request.start_over)
        return fail(EEXIST,
                    "%s: holds an unfinished data set of another source or other options; repeat "
                    "that command%s%.500s, or remove the folder to start over",
                    target->path, target->unfinished.command ? ": " : "",
                    target->unfinished.command ? target->unfinished.command : "");
    return target->is_resumed && !holds_set ? 0 : place_list(&target->place, "", take_name, target);
}

static void forget(struct target *target)
{
    manifest_release(&target->unfinished);
    free(target->draft);
    target->draft = NULL;
    target->has_unfinished = target->is_resumed = false;
    memset(target->finished, 0, target->request.shards * sizeof *target->finished);
}

/* A server has no lock; the manifest must serve as one. */
static int lock(struct target *target)
{
    if (!target->place.is_local || target->lock.fd >= 0)
        return 0;
    char *path = file_join(target->path, LOCK);
    int code = path ? file_lock_acquire(&target->lock, path) : -ENOMEM;
    free(path);
    return code;
}

static int look_once(struct target *target)
{
    struct store_status status;

    forget(target);
    int code = store_stat(target->path, &status);
    if (code == -ENOENT) {
        fail_clear();
        return 0;
    }
    if (code == 0 && status.kind != STORE_FOLDER)
        code = fail(EEXIST, "%s: is a file; expected a folder for the data set", target->path);
    if (code == 0 && !target->is_open) {
        code = place_open(&target->place, target->path);
        target->is_open = code == 0;
    }
    /* The process at work is a better reason than the files it has made so far. */
    if (code == 0)
        code = place_has(&target->place, LOCK);
    if (code > 0)
        code = lock(target);
    if (code == 0)
        code = load_unfinished(target);
    if (code == 0)
        code = check_target(target);
    if (code == 0 && target->is_resumed)
        code = check_finished(target);
    return code;
}

/* Without the lock another pack may change the folder meanwhile: manifest and files may be from two
 * moments. So check again after a refusal, the process at work first. */
static int look_again(struct target *target)
{
    int code = look_once(target);

    for (int i = 1; code && code != -EBUSY && target->lock.fd < 0 && i < LOOKS; i++)
        code = look_once(target);
    return code;
}

int target_open(struct target *target, const struct target_request *request)
{
    size_t length = strlen(request->path);

    *target =
        (struct target){.request = *request, .lock = {.fd = -1}, .place = {.folder = {.fd = -1}}};
    while (length > 1 && request->path[length - 1] == '/')
        length--;
    target->path = strndup(request->path, length);
    target->finished = memory_array(request->shards, sizeof *target->finished);
    if (!target->path || !target->finished)
        return fail(ENOMEM, "out of memory for %u shards", request->shards);
    return look_again(target);
}

void target_release(struct target *target)
{
    if (!target->path)
        return;
    if (target->finished)
        forget(target);
    if (target->is_open)
        place_close(&target->place);
    file_lock_release(&target->lock);
    free(target->finished);
    free(target->path);
    *target = (struct target){.lock = {.fd = -1}};
}

int target_check_room(const struct target *target, uint64_t bytes)
{
    char wanted[32], there[32];
    uint64_t free_bytes = 0;
    int code = store_free_bytes(target->path, &free_bytes);

    if (code == 0 && free_bytes < bytes)
        code = fail(ENOSPC, "%s: needs about %s, only %s free", target->path,
                    bytes_text(bytes, wanted, sizeof wanted),
                    bytes_text(free_bytes, there, sizeof there));
    return code;
}

/* ---- making ---- */

static int remove_name(struct target *target, const char *name)
{
    struct place_entry entry;
    int code = place_look(&target->place, name, &entry);

    return code == -ENOENT ? 0 : code ? code : place_remove(&target->place, name, &entry);
}

static int remove_draft(struct target *target)
{
    int code = target->draft ? place_has(&target->place, target->draft) : 0;

    return code > 0 ? place_remove_tree(&target->place, target->draft) : code;
}

static int append_manifest(struct target *target, char *text)
{
    int code = text ? place_append(&target->place, MANIFEST_UNFINISHED, text) : -ENOMEM;

    free(text);
    return code;
}

static int write_head(struct target *target)
{
    char suffix[FILE_DRAFT_SUFFIX_BYTES];
    int code = remove_draft(target); /* of an interrupted pack of another plan */

    if (code == 0)
        code = remove_name(target, MANIFEST_UNFINISHED);
    if (code == 0)
        code = file_draft_suffix(suffix);
    if (code)
        return code;
    free(target->draft);
    target->draft = file_format_path("%s%s", MANIFEST_DRAFT, suffix);
    if (!target->draft)
        return -ENOMEM;
    code = append_manifest(target,
                           manifest_head(target->request.plan, suffix, target->request.shards));
    return code ? code : place_sync(&target->place, "");
}

int target_begin(struct target *target)
{
    struct store_status status;
    int code = store_stat(target->path, &status) == -ENOENT ? 1 : 0;

    target->is_made = code == 1;
    code = store_make_folders(target->path);
    if (code == 0 && !target->is_open) {
        code = place_open(&target->place, target->path);
        target->is_open = code == 0;
    }
    if (code == 0)
        code = lock(target);
    if (code)
        return code;
    code = look_again(target);
    target->is_begun = code == 0;
    /* A partial line left by a crash must not become the start of the next one. */
    if (code == 0)
        code = target->is_resumed ? place_append(&target->place, MANIFEST_UNFINISHED, "\n")
                                  : write_head(target);
    if (code == 0)
        code = append_manifest(
            target, manifest_start(target->request.command, target->request.is_synthetic));
    if (code == 0) {
        /* The hidden folder belongs to only this user: no other user can have put links into it. */
        struct place_entry entry;
        code = place_look(&target->place, target->draft, &entry);
        if (code == -ENOENT)
            code = make(&target->place, target->draft, true);
        else {
            if (code == 0 && entry.kind != PLACE_FOLDER)
                code = fail(ENOTDIR, "%s/%s: is not a folder made by pack", target->path,
                            target->draft);
            else if (code == 0 && target->place.is_local && entry.owner != geteuid())
                code = fail(EPERM, "%s/%s: made by another user, who must complete the set",
                            target->path, target->draft);
        }
    }
    if (code || !target->is_resumed)
        return code;
    /* Shards that are remade may already have files in place. From the last path to the first,
     * since a folder precedes its contents. */
    const struct manifest *manifest = &target->unfinished;
    struct place_entry entry;
    for (size_t i = manifest->file_count; code == 0 && i-- > 0;) {
        const struct manifest_file *file = &manifest->files[i];
        if (target->finished[file->shard])
            continue;
        if (!file->is_folder && is_as_listed(target, file->path, file, &entry))
            code = place_remove(&target->place, file->path, &entry);
        else if (file->is_folder && place_look(&target->place, file->path, &entry) == 0 &&
                 entry.kind == PLACE_FOLDER)
            place_remove(&target->place, file->path, &entry); /* when it is empty */
    }
    return code;
}

static char *shard_folder(const struct target *target, uint32_t shard)
{
    return file_format_path("%s/%u", target->draft, shard);
}

int target_shard_begin(struct target *target, uint32_t shard, char **path)
{
    char *folder = shard_folder(target, shard), *whole = NULL;
    int code = folder ? 0 : -ENOMEM;

    *path = NULL;
    if (code == 0)
        code = place_has(&target->place, folder);
    if (code > 0)
        code = place_remove_tree(&target->place, folder);
    if (code == 0)
        code = make(&target->place, folder, false);
    if (code == 0)
        whole = file_join(target->path, folder);
    if (whole)
        code = format_shard_path(target->request.format->plugin, whole, shard,
                                 target->request.shards, path);
    free(whole);
    free(folder);
    return code ? code : *path ? 0 : -ENOMEM;
}

struct target_listing {
    struct target *target;
    struct text_stream *block;
    const char *folder; /* of the shard */
    const char *below;  /* within that */
};

static int list_one(void *context, const char *name)
{
    const struct target_listing *listing = context;
    struct place *place = &listing->target->place;
    struct place_entry entry;
    char *below = file_join(listing->below, name);
    char *path = below ? file_join(listing->folder, below) : NULL;
    int code = path ? place_look(place, path, &entry) : -ENOMEM;

    if (code == 0 && entry.kind == PLACE_FOLDER) {
        struct target_listing inner = *listing;
        inner.below = below;
        code = manifest_block_add(listing->block,
                                  &(struct manifest_file){.path = below, .is_folder = true});
        if (code == 0)
            code = place_list(place, path, list_one, &inner);
    } else if (code == 0) {
        code = manifest_block_add(
            listing->block, &(struct manifest_file){
                                .path = below, .bytes = entry.bytes, .mtime_ns = entry.mtime_ns});
    }
    free(path);
    free(below);
    return code;
}

/* The shard's files are synced; now sync their names, then the lines that list them. */
int target_shard_done(struct target *target, uint32_t shard)
{
    char *folder = shard_folder(target, shard);
    struct text_stream block;
    struct target_listing listing = {
        .target = target, .block = &block, .folder = folder, .below = ""};
    const bool is_begun = folder && manifest_block_begin(&block, shard) == 0;
    int code = is_begun ? place_list(&target->place, folder, list_one, &listing) : -ENOMEM;

    if (code == 0)
        code = place_sync(&target->place, folder);
    if (code == 0)
        code = place_sync(&target->place, target->draft);
    char *text = is_begun ? manifest_block_end(&block, shard) : NULL;
    if (code == 0)
        code = text ? place_append(&target->place, MANIFEST_UNFINISHED, text) : -ENOMEM;
    free(text);
    free(folder);
    target->finished[shard] = code == 0;
    return code;
}

/* ---- completing ---- */

struct moving {
    struct place *place;
    const char *folder;
};

static int move_one(void *context, const char *name)
{
    const struct moving *moving = context;
    char *from = file_join(moving->folder, name);
    int code = from ? place_move(moving->place, from, name) : -ENOMEM;

    free(from);
    return code;
}

int target_finish(struct target *target)
{
    int code = 0;
    for (uint32_t shard = 0; code == 0 && shard < target->request.shards; shard++) {
        char *folder = shard_folder(target, shard);
        struct moving moving = {&target->place, folder};
        code = folder ? 0 : -ENOMEM;
        if (code == 0)
            code = place_has(&target->place, folder);
        if (code > 0)
            code = place_list(&target->place, folder, move_one, &moving);
        free(folder);
    }
    if (code == 0)
        code = remove_draft(target);
    if (code == 0)
        code = place_sync(&target->place, "");
    if (code == 0)
        code = place_move(&target->place, MANIFEST_UNFINISHED, MANIFEST_SET);
    if (code == 0)
        code = place_sync(&target->place, "");
    file_lock_release(&target->lock);
    return code;
}

void target_leave(struct target *target)
{
    bool any = false;

    fail_hold();
    for (uint32_t shard = 0; shard < target->request.shards; shard++)
        any = any || target->finished[shard];
    if (target->is_begun && !any && remove_draft(target) == 0)
        remove_name(target, MANIFEST_UNFINISHED);
    file_lock_release(&target->lock);
    if (target->is_made && target->is_open)
        place_remove_itself(&target->place);
    fail_release();
}
