/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/target.h"

#include "base/bytes.h"
#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "dataset/store.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOCK ".iobench-lock"
/* Manifest of a set that an earlier version, which replaced sets, had begun to remove. */
#define REPLACED ".iobench-replaced"

enum { MANIFEST_BYTES_MAX = 1 << 30, LOOKS = 3 };

/* ---- names in the folder, on this machine or on a server ---- */

/* A name: a path below the folder, "" is the folder itself. Locally each component is opened
 * without following links, so nobody with write access to the folder can redirect a call to another
 * file. Nothing is replaced, and only what was checked is removed. */
struct spot {
    char *path;
    struct folder parent; /* local: the open folder that contains it */
    const char *last;     /* its last component */
};

static void spot_close(struct spot *spot)
{
    folder_close(&spot->parent);
    free(spot->path);
}

/* is_folder: open the name itself as the parent. Close in either case. */
static int spot_open(const struct target *target, const char *name, bool is_folder,
                     struct spot *spot)
{
    assert(name[0] != '/' && target->is_open);
    *spot = (struct spot){
        .path = file_format_path("%s%s%s", target->path, *name ? "/" : "", name),
        .parent = {.fd = -1},
        .last = name,
    };
    if (!spot->path || !target->is_local)
        return spot->path ? 0 : -ENOMEM;
    spot->parent.path = strdup(target->path);
    spot->parent.fd = fcntl(target->folder.fd, F_DUPFD_CLOEXEC, 0);
    if (spot->parent.fd < 0 || !spot->parent.path)
        return fail(errno, "%s: %s", target->path, fail_errno_text(errno));
    for (;;) {
        const size_t length = strcspn(spot->last, "/");
        const bool is_last = spot->last[length] == '\0';
        struct folder below = {.fd = -1};
        if (is_last && (!is_folder || length == 0))
            return 0;
        char *part = strndup(spot->last, length);
        int code = part ? folder_open_below(&below, &spot->parent, part)
                        : fail(ENOMEM, "out of memory for a path");
        free(part);
        folder_close(&spot->parent);
        spot->parent = below;
        if (code)
            return code;
        spot->last += is_last ? length : length + 1;
    }
}

struct target_entry {
    struct store_status status; /* of the name itself: a link is STORE_OTHER */
    uint64_t names;             /* hard links of a file; 1 on a server */
    struct stat made;           /* local */
};

/* -ENOENT if missing. */
static int look(const struct target *target, const char *name, struct target_entry *entry)
{
    struct spot spot;
    int code = spot_open(target, name, false, &spot);

    *entry = (struct target_entry){.names = 1};
    if (code == 0 && target->is_local) {
        code = folder_stat(&spot.parent, spot.last, &entry->made);
        entry->names = entry->made.st_nlink;
        entry->status = store_status_of(&entry->made);
    } else if (code == 0) {
        code = store_stat(spot.path, &entry->status);
        entry->status.owner = 0; /* the server checks access itself */
    }
    spot_close(&spot);
    return code;
}

/* Returns 1 if it exists, 0 if not, or a negative errno if unknown. */
static int has(const struct target *target, const char *name)
{
    struct target_entry entry;
    int code = look(target, name, &entry);

    return code == -ENOENT ? 0 : code ? code : 1;
}

static int add_name(void *context, const char *name, unsigned char type)
{
    (void)type;
    return names_number(context, name, strlen(name)) < 0 ? -ENOMEM : 0;
}

static int add_entry(void *context, const struct store_entry *entry)
{
    return add_name(context, entry->name, 0);
}

/* List the names in a folder, in no order. Release them in either case. */
static int list(const struct target *target, const char *name, struct names *names)
{
    struct spot spot;
    int code = spot_open(target, name, true, &spot);

    *names = (struct names){0};
    if (code == 0)
        code = target->is_local ? folder_list(&spot.parent, add_name, names)
                                : store_list(spot.path, add_entry, names);
    spot_close(&spot);
    return code;
}

static int make(const struct target *target, const char *name, bool is_private)
{
    struct folder made;
    struct spot spot;
    int code = spot_open(target, name, false, &spot);

    if (code == 0)
        code =
            target->is_local ? folder_make(&spot.parent, spot.last) : store_make_folders(spot.path);
    if (code == 0 && is_private && target->is_local) {
        code = folder_open_below(&made, &spot.parent, spot.last);
        if (code == 0 && fchmod(made.fd, 0700))
            code = fail(errno, "%s: cannot set its mode: %s", made.path, fail_errno_text(errno));
        folder_close(&made);
    }
    spot_close(&spot);
    return code;
}

/* to: a name in the folder itself. */
static int move(const struct target *target, const char *from, const char *to)
{
    struct spot spot;
    int code = spot_open(target, from, false, &spot);

    if (code == 0 && target->is_local)
        code = folder_rename(&spot.parent, spot.last, &target->folder, to, false);
    else if (code == 0) {
        char *new = file_join(target->path, to);
        code = !new                ? -ENOMEM
               : store_exists(new) ? fail(EEXIST, "%s: exists and is not replaced", new)
                                   : store_rename(spot.path, new);
        free(new);
    }
    spot_close(&spot);
    return code;
}

/* entry: the file or empty folder that was looked at; NULL: a folder of ours and its contents;
 * other users' files stay and are an error. */
static int take_away(const struct target *target, const char *name,
                     const struct target_entry *entry)
{
    struct spot spot;
    int code = spot_open(target, name, false, &spot);

    if (code == 0 && target->is_local)
        code = entry ? folder_remove(&spot.parent, spot.last, &entry->made)
                     : folder_remove_tree(&spot.parent, spot.last, NULL, NULL);
    else if (code == 0)
        code = entry ? store_remove(spot.path) : store_remove_tree(spot.path);
    spot_close(&spot);
    return code;
}

/* Remove what may be missing. name: may be NULL. */
static int drop(const struct target *target, const char *name, bool is_tree)
{
    struct target_entry entry;
    int code = name ? look(target, name, &entry) : -ENOENT;

    return code == -ENOENT ? 0 : code ? code : take_away(target, name, is_tree ? NULL : &entry);
}

static int sync_names(const struct target *target, const char *name)
{
    struct spot spot;

    if (!target->is_local) /* names on a server are durable when it has answered */
        return 0;
    int code = spot_open(target, name, true, &spot);
    if (code == 0)
        code = folder_sync(&spot.parent);
    spot_close(&spot);
    return code;
}

/* Append to the manifest, creating it if missing; synced. Frees the text; NULL: out of memory. */
static int append_manifest(const struct target *target, char *text)
{
    char *path = text ? file_join(target->path, MANIFEST_UNFINISHED) : NULL;
    int code = path ? 0 : fail(ENOMEM, "%s: out of memory for the manifest", target->path);

    if (path && target->is_local) {
        struct stat found = {0};
        int fd = folder_open_file(&target->folder, MANIFEST_UNFINISHED, O_RDWR, &found);
        if (fd == -ENOENT)
            fd = folder_create_file(&target->folder, MANIFEST_UNFINISHED);
        code = fd < 0
                   ? fd
                   : file_write_at(fd, text, strlen(text), (uint64_t)found.st_size, target->path);
        if (code == 0 && fsync(fd))
            code = fail(errno, "%s: cannot sync: %s", path, fail_errno_text(errno));
        if (fd >= 0)
            close(fd);
    } else if (path) {
        struct store_file *file;
        code = store_open(path, STORE_EXTEND, &file);
        if (code == 0) {
            code = store_write_at(file, text, strlen(text), file->status.bytes);
            int closed = store_close(file, code == 0);
            code = code ? code : closed;
        }
    }
    free(path);
    free(text);
    return code;
}

/* ---- existing contents ---- */

static int load_unfinished(struct target *target)
{
    struct target_entry entry;
    char *text = NULL;
    size_t bytes;
    int code = look(target, MANIFEST_UNFINISHED, &entry);

    if (code)
        return code == -ENOENT ? 0 : code;
    char *path = file_join(target->path, MANIFEST_UNFINISHED);
    if (!path)
        return -ENOMEM;
    if (!target->is_local)
        code = store_load(path, MANIFEST_BYTES_MAX, &text, &bytes);
    else { /* only its owner may write it: root, this user or the owner of the folder */
        struct stat found, owner;
        int fd = folder_open_file(&target->folder, MANIFEST_UNFINISHED, O_RDONLY, &found);
        code = fd < 0 ? fd
               : fstat(target->folder.fd, &owner)
                   ? fail(errno, "%s: %s", target->path, fail_errno_text(errno))
                   : file_trusted(&found, &owner, path);
        if (code == 0 && found.st_size > MANIFEST_BYTES_MAX)
            code = fail(EFBIG, "%s: larger than %d bytes", path, MANIFEST_BYTES_MAX);
        if (code == 0 && !(text = file_read_all(fd, &bytes, path)))
            code = -EIO;
        if (fd >= 0)
            close(fd);
    }
    if (code == 0) {
        code = manifest_parse(&target->unfinished, text, bytes, path);
        target->has_unfinished = code == 0;
        code = code == -ENODATA ? 0 : code; /* cut before anything was made? */
    }
    free(path);
    free(text);
    if (!target->has_unfinished)
        return code;
    target->unfinished_owner = entry.status.owner;
    target->is_resumed = target->unfinished.plan == target->request.plan &&
                         target->unfinished.shards == target->request.shards;
    target->draft = file_format_path("%s%s", MANIFEST_DRAFT, target->unfinished.suffix);
    return target->draft ? 0 : -ENOMEM;
}

static bool is_as_listed(const struct target *target, const char *name,
                         const struct manifest_file *file, struct target_entry *entry)
{
    const struct store_status *status = &entry->status;

    return look(target, name, entry) == 0 && status->kind == STORE_FILE && entry->names == 1 &&
           status->bytes == file->bytes && status->mtime_ns == file->mtime_ns &&
           status->owner == target->unfinished_owner;
}

/* A shard counts as finished if all its files are as pack left them: in its own folder, or already
 * in place. */
static int check_finished(struct target *target)
{
    const struct manifest *manifest = &target->unfinished;
    struct target_entry entry;

    assert(manifest->shards == target->request.shards);
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

/* Can the set be made here? */
static int check_target(struct target *target)
{
    int holds_set = has(target, MANIFEST_SET);

    if (holds_set == 0)
        holds_set = has(target, REPLACED);
    if (holds_set < 0)
        return holds_set;
    if (target->has_unfinished && !target->is_resumed && !target->request.start_over)
        return fail(EEXIST,
                    "%s: holds an unfinished data set of another source or other options; repeat "
                    "that command%s%.500s, or remove the folder to start over",
                    target->path, target->unfinished.command ? ": " : "",
                    target->unfinished.command ? target->unfinished.command : "");
    if (target->is_resumed && !holds_set)
        return 0;
    /* Else all names must be pack's own or made by file systems. */
    struct names names;
    int code = list(target, "", &names);
    for (uint32_t i = 0; code == 0 && i < names.count; i++) {
        const char *name = names.texts[i];
        if (strcmp(name, LOCK) != 0 && strcmp(name, "lost+found") != 0 &&
            strcmp(name, MANIFEST_UNFINISHED) != 0 &&
            !(target->draft && strcmp(name, target->draft) == 0))
            code =
                fail(EEXIST, "%s: is not empty (%s): remove it yourself or choose another folder",
                     target->path, name);
    }
    names_release(&names);
    return code;
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
    if (!target->is_local || target->lock.fd >= 0)
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
        code = target->is_local ? folder_open(&target->folder, target->path) : 0;
        target->is_open = code == 0;
    }
    /* The process at work is a better reason than the files it has made so far. */
    if (code == 0)
        code = has(target, LOCK);
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

    *target = (struct target){.request = *request,
                              .is_local = store_is_local(request->path),
                              .lock = {.fd = -1},
                              .folder = {.fd = -1}};
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
    folder_close(&target->folder);
    file_lock_release(&target->lock);
    free(target->finished);
    free(target->path);
    *target = (struct target){.lock = {.fd = -1}, .folder = {.fd = -1}};
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

int target_begin(struct target *target)
{
    struct store_status status;

    target->is_made = store_stat(target->path, &status) == -ENOENT;
    int code = store_make_folders(target->path);
    if (code == 0)
        code = lock(target);
    if (code)
        return code;
    code = look_again(target);
    if (code == 0 && !target->is_open) /* a server has no lock that keeps others from removing it */
        code = fail(ENOENT, "%s: was removed as the pack began", target->path);
    target->is_begun = code == 0;
    if (code == 0 && target->is_resumed) {
        /* A partial line left by a crash must not become the start of the next one. */
        code = append_manifest(target, strdup("\n"));
    } else if (code == 0) {
        char suffix[FILE_DRAFT_SUFFIX_BYTES];
        code = drop(target, target->draft, true); /* of an interrupted pack of another plan */
        if (code == 0)
            code = drop(target, MANIFEST_UNFINISHED, false);
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
        if (code == 0)
            code = sync_names(target, "");
    }
    if (code == 0)
        code = append_manifest(
            target, manifest_start(target->request.command, target->request.is_synthetic));
    if (code == 0) {
        /* The hidden folder belongs to only this user: no other user can have put links into it. */
        struct target_entry entry;
        code = look(target, target->draft, &entry);
        if (code == -ENOENT)
            code = make(target, target->draft, true);
        else if (code == 0 && entry.status.kind != STORE_FOLDER)
            code =
                fail(ENOTDIR, "%s/%s: is not a folder made by pack", target->path, target->draft);
        else if (code == 0 && target->is_local && entry.status.owner != geteuid())
            code = fail(EPERM, "%s/%s: made by another user, who must complete the set",
                        target->path, target->draft);
    }
    if (code || !target->is_resumed)
        return code;
    /* Shards that are remade may already have files in place. From the last path to the first,
     * since a folder precedes its contents. */
    const struct manifest *manifest = &target->unfinished;
    struct target_entry entry;
    for (size_t i = manifest->file_count; code == 0 && i-- > 0;) {
        const struct manifest_file *file = &manifest->files[i];
        if (target->finished[file->shard])
            continue;
        if (!file->is_folder && is_as_listed(target, file->path, file, &entry))
            code = take_away(target, file->path, &entry);
        else if (file->is_folder && look(target, file->path, &entry) == 0 &&
                 entry.status.kind == STORE_FOLDER)
            take_away(target, file->path, &entry); /* when it is empty */
    }
    return code;
}

static char *shard_folder(const struct target *target, uint32_t shard)
{
    assert(target->draft && shard < target->request.shards);
    return file_format_path("%s/%u", target->draft, shard);
}

int target_shard_begin(struct target *target, uint32_t shard, char **path)
{
    char *folder = shard_folder(target, shard), *whole = NULL;
    int code = folder ? 0 : -ENOMEM;

    *path = NULL;
    if (code == 0)
        code = drop(target, folder, true);
    if (code == 0)
        code = make(target, folder, false);
    if (code == 0)
        whole = file_join(target->path, folder);
    if (whole)
        code = format_shard_path(target->request.format->plugin, whole, shard,
                                 target->request.shards, path);
    free(whole);
    free(folder);
    return code ? code : *path ? 0 : -ENOMEM;
}

/* Add the files of a shard to its block of the manifest. below: a folder within its own, or "". */
static int list_files(const struct target *target, struct text_stream *block, const char *folder,
                      const char *below)
{
    char *path = file_format_path("%s%s%s", folder, *below ? "/" : "", below);
    struct names names = {0};
    int code = path ? list(target, path, &names) : -ENOMEM;

    for (uint32_t i = 0; code == 0 && i < names.count; i++) {
        char *inner = file_join(below, names.texts[i]);
        char *whole = inner ? file_join(folder, inner) : NULL;
        struct target_entry entry = {0};
        code = whole ? look(target, whole, &entry) : -ENOMEM;
        struct manifest_file file = {.path = inner, .is_folder = entry.status.kind == STORE_FOLDER};
        if (!file.is_folder) {
            file.bytes = entry.status.bytes;
            file.mtime_ns = entry.status.mtime_ns;
        }
        if (code == 0)
            code = manifest_block_add(block, &file);
        if (code == 0 && file.is_folder)
            code = list_files(target, block, folder, inner);
        free(whole);
        free(inner);
    }
    names_release(&names);
    free(path);
    return code;
}

/* The shard's files are synced; now sync their names, then the lines that list them. */
int target_shard_done(struct target *target, uint32_t shard)
{
    char *folder = shard_folder(target, shard);
    struct text_stream block;
    const bool is_begun = folder && manifest_block_begin(&block, shard) == 0;
    int code = is_begun ? list_files(target, &block, folder, "") : -ENOMEM;

    assert(shard < target->request.shards && target->is_begun);
    if (code == 0)
        code = sync_names(target, folder);
    if (code == 0)
        code = sync_names(target, target->draft);
    char *text = is_begun ? manifest_block_end(&block, shard) : NULL;
    if (code == 0)
        code = append_manifest(target, text);
    else
        free(text);
    free(folder);
    target->finished[shard] = code == 0;
    return code;
}

/* ---- completing ---- */

int target_finish(struct target *target)
{
    int code = 0;
    for (uint32_t shard = 0; code == 0 && shard < target->request.shards; shard++) {
        char *folder = shard_folder(target, shard);
        struct names names = {0};
        code = folder ? has(target, folder) : -ENOMEM;
        if (code > 0)
            code = list(target, folder, &names);
        for (uint32_t i = 0; code == 0 && i < names.count; i++) {
            char *from = file_join(folder, names.texts[i]);
            code = from ? move(target, from, names.texts[i]) : -ENOMEM;
            free(from);
        }
        names_release(&names);
        free(folder);
    }
    if (code == 0)
        code = drop(target, target->draft, true);
    if (code == 0)
        code = sync_names(target, "");
    if (code == 0)
        code = move(target, MANIFEST_UNFINISHED, MANIFEST_SET);
    if (code == 0)
        code = sync_names(target, "");
    file_lock_release(&target->lock);
    return code;
}

void target_leave(struct target *target)
{
    struct folder parent;
    struct stat made;
    const char *name;
    bool any = false;

    fail_hold();
    for (uint32_t shard = 0; shard < target->request.shards; shard++)
        any = any || target->finished[shard];
    if (target->is_begun && !any && drop(target, target->draft, true) == 0)
        drop(target, MANIFEST_UNFINISHED, false);
    file_lock_release(&target->lock);
    if (target->is_made && target->is_open && !target->is_local)
        store_remove(target->path);
    else if (target->is_made && target->is_open) {
        if (folder_open_parent(&parent, target->path, &name) == 0 && name &&
            fstat(target->folder.fd, &made) == 0)
            folder_remove(&parent, name, &made);
        folder_close(&parent);
    }
    fail_release();
}
