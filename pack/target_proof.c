/* SPDX-License-Identifier: Apache-2.0
 *
 * Determines which files in the folder are provably ours. */
#include "base/fail.h"
#include "base/file.h"
#include "pack/target_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool ends(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);

    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

bool target_is_neutral(const char *name)
{
    return strcmp(name, TARGET_LOCK) == 0 || strcmp(name, "lost+found") == 0;
}

/* ---- what a manifest proves ---- */

struct proof {
    const struct manifest *manifest;
    uint64_t owner;
};

/* A file created beside a listed one: its index, its hints, the lock of an LMDB. */
static bool lists_neighbour(const struct manifest *manifest, const char *name)
{
    static const struct {
        const char *end, *listed;
    } neighbours[] = {{TARGET_INDEX, ""}, {TARGET_HINTS, ""}, {"lock.mdb", "data.mdb"}};
    bool listed = strcmp(name, TARGET_INDEX) == 0 || strcmp(name, TARGET_HINTS) == 0;

    for (size_t i = 0; !listed && i < sizeof neighbours / sizeof *neighbours; i++) {
        if (!ends(name, neighbours[i].end))
            continue;
        char *path = file_format_path("%.*s%s", (int)(strlen(name) - strlen(neighbours[i].end)),
                                      name, neighbours[i].listed);
        listed = path && manifest_find(manifest, path);
        free(path);
    }
    return listed;
}

static bool proves(const struct proof *proof, const char *name, const struct place_entry *entry)
{
    if (entry->kind == PLACE_FOLDER)
        return manifest_has_folder(proof->manifest, name);
    if (entry->kind != PLACE_FILE || entry->names != 1)
        return false;
    const struct manifest_file *file = manifest_find(proof->manifest, name);
    if (file)
        return !file->is_folder && entry->bytes == file->bytes &&
               entry->mtime_ns == file->mtime_ns && entry->owner == proof->owner;
    return lists_neighbour(proof->manifest, name);
}

/* ---- all names in the folder ---- */

/* Visits folders after their contents. Skips pack's own names. */
struct target_walk {
    struct target *target;
    int (*visit)(struct target_walk *walk, const char *name, const struct place_entry *entry);
    const char *folder;
    /* of the visit */
    struct proof proof;
    target_visit list;
    void *context;
};

static int keep_name(void *context, const char *name)
{
    return folder_names_add(context, name);
}

static bool is_packs_own(const struct target *target, const char *name)
{
    return target_is_neutral(name) || strcmp(name, MANIFEST_SET) == 0 ||
           strcmp(name, MANIFEST_UNFINISHED) == 0 || strcmp(name, TARGET_REPLACED) == 0 ||
           (target->draft && strcmp(name, target->draft) == 0);
}

static int walk_folder(struct target_walk *walk, const char *folder);

static int walk_name(struct target_walk *walk, const char *name)
{
    struct place_entry entry;

    if (is_packs_own(walk->target, name))
        return 0;
    int code = place_look(&walk->target->place, name, &entry);
    if (code == 0 && entry.kind == PLACE_FOLDER)
        code = walk_folder(walk, name);
    return code ? code : walk->visit(walk, name, &entry);
}

/* Collect the names first: removal while listing may skip some. Folders unknown to any manifest are
 * not entered. */
static int walk_folder(struct target_walk *walk, const char *folder)
{
    const struct target *target = walk->target;
    struct folder_names names = {0};
    int code = 0;

    if (!*folder || manifest_has_folder(&target->old, folder) ||
        manifest_has_folder(&target->unfinished, folder))
        code = place_list(&target->place, folder, keep_name, &names);
    for (size_t i = 0; i < names.count; i++) {
        char *name = file_join(folder, names.list[i]);
        if (code == 0)
            code = name ? walk_name(walk, name) : -ENOMEM;
        free(name);
    }
    folder_names_release(&names);
    return code;
}

/* ---- proof ---- */

static int prove_one(struct target_walk *walk, const char *name, const struct place_entry *entry)
{
    const struct target *target = walk->target;
    const struct proof old = {&target->old, target->old_owner},
                       unfinished = {&target->unfinished, target->unfinished_owner};

    if (proves(&old, name, entry) || proves(&unfinished, name, entry))
        return 0;
    return fail(EEXIST,
                "%s/%s: no manifest proves that this is an unmodified file of pack; "
                "nothing was removed: move it away or choose another folder",
                target->path, name);
}

int target_prove(struct target *target)
{
    struct target_walk walk = {.target = target, .visit = prove_one};

    return walk_folder(&walk, "");
}

/* ---- removal ---- */

static int list_one(struct target_walk *walk, const char *name, const struct place_entry *entry)
{
    const struct target *target = walk->target;
    const struct proof old = {&target->old, target->old_owner},
                       unfinished = {&target->unfinished, target->unfinished_owner};

    if (entry->kind == PLACE_FOLDER ||
        !(proves(&old, name, entry) || (!target->is_resumed && proves(&unfinished, name, entry))))
        return 0;
    char *path = file_join(target->path, name);
    int code = path ? walk->list(walk->context, path, entry->bytes) : -ENOMEM;
    free(path);
    return code;
}

int target_list_removed(struct target *target, target_visit visit, void *context)
{
    struct target_walk walk = {
        .target = target, .visit = list_one, .list = visit, .context = context};

    int code = target->is_open ? walk_folder(&walk, "") : 0;
    char *draft = NULL;
    if (code == 0 && target->draft && !target->is_resumed) {
        draft = file_join(target->path, target->draft);
        code = draft ? visit(context, draft, 0) : -ENOMEM;
    }
    free(draft);
    return code;
}

/* A folder that is not empty holds files added meanwhile: it stays, and is reported if the new set
 * has no space beside it. */
static int remove_one(struct target_walk *walk, const char *name, const struct place_entry *entry)
{
    if (!proves(&walk->proof, name, entry))
        return 0;
    int code = place_remove(&walk->target->place, name, entry);
    return entry->kind == PLACE_FOLDER && (code == -ENOTEMPTY || code == -EEXIST) ? 0 : code;
}

int target_remove_listed(struct target *target, const struct manifest *manifest, uint64_t owner)
{
    struct target_walk walk = {.target = target, .visit = remove_one, .proof = {manifest, owner}};

    return walk_folder(&walk, "");
}
