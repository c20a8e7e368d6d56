/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/catalog.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/random.h"
#include "dataset/store.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct catalog *catalog_create(const char *root, const char *format)
{
    struct catalog *catalog = memory_zeroed(sizeof *catalog);

    if (!catalog)
        return NULL;
    catalog->root = strdup(root);
    catalog->format = strdup(format);
    if (!catalog->root || !catalog->format) {
        catalog_destroy(catalog);
        fail(ENOMEM, "%s: out of memory for the catalog", root);
        return NULL;
    }
    return catalog;
}

static int grow_shards(struct catalog *catalog)
{
    if (catalog->shard_count == UINT32_MAX)
        return fail(EOVERFLOW, "%s: more than 2^32 shards", catalog->root);
    return memory_room(&catalog->shards, catalog->shard_count, sizeof *catalog->shards, "shards");
}

void catalog_set_compressed(struct catalog *catalog, uint32_t flags)
{
    struct shard *shard = catalog_last(catalog);

    assert(flags & SHARD_COMPRESSED && shard->record_count == 0);
    shard->flags = flags;
    shard->stream_bytes = UINT64_MAX; /* until the end is known */
    catalog->compressed = true;
}

int catalog_begin_shard(struct catalog *catalog, const char *path,
                        const struct store_status *status, uint32_t flags)
{
    struct store_status asked;
    int code = status ? 0 : store_stat(path, &asked);

    status = status ? status : &asked;
    if (code == 0 && status->kind != STORE_FILE)
        code =
            fail(status->kind == STORE_FOLDER ? EISDIR : EINVAL,
                 "%s: is %s, expected a regular file", path, file_kind_text((mode_t)status->mode));
    if (code == 0)
        code = grow_shards(catalog);
    if (code)
        return code;
    struct shard *shard = &catalog->shards[catalog->shard_count];
    *shard = (struct shard){
        .path = strdup(path),
        .bytes = status->bytes,
        .mtime_ns = status->mtime_ns,
        .ctime_ns = status->ctime_ns,
        .stream_bytes = status->bytes,
        .first_record = catalog->record_count,
        .flags = flags,
        .label = -1,
    };
    if (!shard->path)
        return fail(ENOMEM, "out of memory for a path");
    catalog->shard_count++;
    if (flags)
        catalog_set_compressed(catalog, flags);
    return 0;
}

int catalog_report(catalog_fault_handler handler, void *context, int code, const char *path,
                   uint64_t offset, const char *what)
{
    const struct catalog_fault fault = {.path = path, .offset = offset, .what = what};

    return handler ? handler(context, &fault)
                   : fail(code, "%s: offset %llu: %s", path, (unsigned long long)offset, what);
}

static int refuse_record(const struct catalog *catalog, int code, uint64_t offset, uint64_t bytes,
                         const char *why)
{
    const char *path = catalog_last(catalog)->path;
    char what[96];

    snprintf(what, sizeof what, "a record of %llu bytes%s", (unsigned long long)bytes, why);
    return catalog_report(catalog->fault, catalog->fault_context, code, path, offset, what);
}

int catalog_add(struct catalog *catalog, uint64_t offset, uint64_t bytes)
{
    struct shard *shard = catalog_last(catalog);

    assert(!catalog->mapping);
    if (bytes == 0)
        return refuse_record(catalog, EBADMSG, offset, bytes, ": empty");
    if (bytes > CATALOG_RECORD_BYTES_MAX)
        return refuse_record(catalog, EFBIG, offset, bytes,
                             " is too large: iobench reads records up to 1 GiB less 128 KiB");
    if (offset > shard->stream_bytes || bytes > shard->stream_bytes - offset)
        return refuse_record(catalog, EBADMSG, offset, bytes, " goes past the end of the file");
    int code =
        memory_room(&catalog->records, catalog->record_count, sizeof *catalog->records, "records");
    if (code)
        return code;
    ((struct extent *)(uintptr_t)catalog->records)[catalog->record_count++] = (struct extent){
        .offset = offset, .bytes = (uint32_t)bytes, .shard = catalog->shard_count - 1};
    shard->record_count++;
    catalog->record_bytes_total += bytes;
    if (bytes > catalog->record_bytes_max)
        catalog->record_bytes_max = (uint32_t)bytes;
    return 0;
}

int catalog_add_unread(struct catalog *catalog, const char *path, uint64_t offset, const char *what)
{
    return catalog->fault
               ? catalog_report(catalog->fault, catalog->fault_context, 0, path, offset, what)
               : catalog_remark(catalog, REMARK_LEFT_OUT, "%s: offset %llu: %s", path,
                                (unsigned long long)offset, what);
}

uint32_t catalog_remarks(const struct catalog *catalog, char texts[][REMARK_TEXT_BYTES])
{
    static const char *const words[REMARK_KINDS] = {
        [REMARK_LEFT_OUT] = "samples that are left out",
        [REMARK_EMPTY_CLASS] = "folders without images, which get no class number",
        [REMARK_UNUSED_IMAGES] = "samples with further images, which are not used",
        [REMARK_SEVERAL_IMAGES] = "samples with several images, of which the first is used",
        [REMARK_NO_IMAGE] = "samples without an image, which are left out",
        [REMARK_EMPTY_SHARD] = "empty shards",
        [REMARK_COMPANION] = "files of other tools beside shards, which are not read",
        [REMARK_ODD_LABEL] = "labels that are not class numbers",
        [REMARK_EMPTY_IMAGE] = "samples with an empty image",
    };
    uint32_t count = 0;

    for (int i = 0; i < REMARK_KINDS; i++)
        if (catalog->remarks[i].count)
            snprintf(texts[count++], REMARK_TEXT_BYTES, "%s: %llu; the first: %s", words[i],
                     (unsigned long long)catalog->remarks[i].count, catalog->remarks[i].first);
    return count;
}

int catalog_remark(struct catalog *catalog, enum catalog_remark kind, const char *format, ...)
{
    struct remark *remark = &catalog->remarks[kind];
    va_list arguments;

    assert(kind < REMARK_KINDS);
    if (remark->count++ > 0)
        return 0;
    va_start(arguments, format);
    int length = vasprintf(&remark->first, format, arguments);
    va_end(arguments);
    if (length >= 0)
        return 0;
    *remark = (struct remark){0};
    return fail(ENOMEM, "out of memory for a remark");
}

int catalog_append(struct catalog *catalog, struct catalog *part)
{
    assert(!catalog->mapping && !part->mapping);
    uint32_t shard_base = catalog->shard_count;
    const uint64_t base = catalog->record_count;

    for (uint64_t i = 0; i < part->record_count; i++) {
        int code = memory_room(&catalog->records, base + i, sizeof *catalog->records, "records");
        if (code)
            return code;
        struct extent *to = (struct extent *)(uintptr_t)&catalog->records[base + i];
        *to = part->records[i];
        to->shard += shard_base;
    }
    for (uint32_t i = 0; i < part->shard_count; i++) {
        int code = grow_shards(catalog);
        if (code)
            return code;
        struct shard *shard = &catalog->shards[catalog->shard_count++];
        *shard = part->shards[i];
        shard->first_record += base;
        part->shards[i].path = NULL;
    }
    catalog->record_count += part->record_count;
    catalog->record_bytes_total += part->record_bytes_total;
    if (part->record_bytes_max > catalog->record_bytes_max)
        catalog->record_bytes_max = part->record_bytes_max;
    catalog->compressed |= part->compressed;
    for (int i = 0; i < REMARK_KINDS; i++) {
        struct remark *to = &catalog->remarks[i], *add = &part->remarks[i];
        to->count += add->count;
        if (!to->first) {
            to->first = add->first;
            add->first = NULL;
        }
    }
    catalog->left_out += part->left_out;
    part->record_count = 0;
    return 0;
}

int catalog_seal(struct catalog *catalog)
{
    const struct remark *empty = &catalog->remarks[REMARK_EMPTY_SHARD];
    const struct remark *left_out = &catalog->remarks[REMARK_LEFT_OUT];
    const char *instead =
        left_out->count ? left_out->first : catalog->remarks[REMARK_NO_IMAGE].first;

    if (catalog->record_count == 0 && empty->count == catalog->shard_count && empty->first)
        return fail(ENODATA, "%s: the file is empty", empty->first);
    if (catalog->record_count == 0)
        return fail(ENODATA, "%s: no %s record in it%s%s", catalog->root, catalog->format,
                    instead ? "; instead: " : "", instead ? instead : "");
    const size_t bytes = catalog->record_count * sizeof(struct extent);
    struct extent *fitted = memory_pages(bytes); /* huge: a shuffled order looks up any record */
    if (fitted) {
        memcpy(fitted, catalog->records, bytes);
        free((void *)(uintptr_t)catalog->records);
        catalog->records = fitted;
    }
    return 0;
}

void catalog_keep(const struct catalog *catalog)
{
    struct catalog *keep = (struct catalog *)(uintptr_t)catalog;

    if (!flag_test_and_set(&keep->is_kept))
        memory_keep(keep);
}

void catalog_destroy(struct catalog *catalog)
{
    if (!catalog || flag_get(&catalog->is_kept))
        return;
    if (catalog->mapping)
        munmap(catalog->mapping, catalog->mapping_bytes);
    else
        free((void *)(uintptr_t)catalog->records);
    for (uint32_t i = 0; i < catalog->shard_count; i++)
        free(catalog->shards[i].path);
    for (int i = 0; i < REMARK_KINDS; i++)
        free(catalog->remarks[i].first);
    hints_destroy(catalog->hints);
    free(catalog->shards);
    free(catalog->root);
    free(catalog->format);
    free(catalog);
}

uint64_t catalog_data_bytes(const struct catalog *catalog)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < catalog->shard_count; i++)
        bytes += catalog->shards[i].bytes;
    return bytes;
}

uint64_t catalog_identity(const struct catalog *catalog)
{
    uint64_t identity = random_hash(1, catalog->shard_count, 0);

    for (uint32_t i = 0; i < catalog->shard_count; i++) {
        const struct shard *shard = &catalog->shards[i];
        const char *below = names_below_path(catalog->root, shard->path);
        identity = random_hash_text(identity, below ? below : shard->path);
        identity = random_hash(identity, shard->bytes, (uint64_t)shard->mtime_ns);
        identity = random_hash(identity, (uint64_t)shard->ctime_ns, 0);
    }
    return identity;
}

bool catalog_is_in_order(const struct catalog *catalog)
{
    for (uint64_t i = 1; i < catalog->record_count; i++) {
        const struct extent *before = &catalog->records[i - 1], *record = &catalog->records[i];
        if (record->shard == before->shard && record->offset < before->offset)
            return false;
    }
    return true;
}

/* ---- the names below a root ---- */

enum { FOLDER_DEPTH = 16 };

/* Sum the hashes of a folder's names, so their order does not matter. */
struct names_walk {
    const struct folder *root; /* NULL: not served by the kernel */
    struct names_below *found;
    const char *path, *below; /* of this folder: full path, and path from the root */
    uint64_t seed, sum;
    int depth;
    bool is_dated; /* hash sizes and times, too */
};

static uint64_t hash_status(uint64_t seed, const struct store_status *status)
{
    return random_hash(random_hash(seed, status->bytes, (uint64_t)status->mtime_ns),
                       (uint64_t)status->ctime_ns, 0);
}

static bool is_passed_over(const char *name, size_t length)
{
    static const char lock[] = "lock.mdb", draft[] = ".partial";
    const size_t end = sizeof draft - 1;

    return name[0] == '.' || (length == sizeof lock - 1 && memcmp(name, lock, length) == 0) ||
           (length > end && memcmp(name + length - end, draft, end) == 0);
}

static int add_name(void *context, const struct store_entry *entry)
{
    struct names_walk *into = context;
    const char *name = entry->name;

    if (is_passed_over(name, strlen(name)))
        return 0;
    uint64_t hash = random_hash_text(into->seed, name);
    if (into->is_dated && entry->kind == STORE_FILE) {
        struct store_status status;
        char *path = entry->status ? NULL : file_join(into->path, entry->name);
        const bool known = entry->status || (path && store_stat(path, &status) == 0);
        free(path);
        hash = known ? hash_status(hash, entry->status ? entry->status : &status) : hash;
    }
    if (entry->is_link) {
        char *below = into->root && !into->found->leave
                          ? file_format_path("%s%s%s", into->below, *into->below ? "/" : "", name)
                          : NULL;
        into->found->leave |= !below || !folder_is_beneath(into->root, below);
        free(below);
    } else if (entry->kind == STORE_FOLDER && into->depth + 1 < FOLDER_DEPTH) {
        char *path = file_join(into->path, name);
        char *below = file_format_path("%s%s%s", into->below, *into->below ? "/" : "", name);
        struct names_walk inner = {.root = into->root,
                                   .found = into->found,
                                   .path = path,
                                   .below = below,
                                   .seed = hash,
                                   .is_dated = into->is_dated,
                                   .depth = into->depth + 1};
        if (path && below)
            store_list(path, add_name, &inner);
        hash += inner.sum;
        free(path);
        free(below);
    }
    into->sum += random_mix(hash);
    return 0;
}

struct names_below names_below(const char *root)
{
    struct folder folder = {.fd = -1};
    struct names_below found = {0};
    bool local = store_is_local(root) && folder_open(&folder, root) == 0;
    struct names_walk whole = {
        .root = local ? &folder : NULL, .found = &found, .path = root, .below = "", .seed = 1};

    store_list(root, add_name, &whole);
    folder_close(&folder);
    found.hash = whole.sum;
    return found;
}

uint64_t names_below_identity(const char *root)
{
    struct names_below found = {.leave = true}; /* links are not looked at */
    struct names_walk whole = {
        .found = &found, .path = root, .below = "", .seed = 1, .is_dated = true};
    struct store_status status;

    if (store_stat(root, &status))
        return 0;
    if (status.kind == STORE_FILE)
        return hash_status(1, &status);
    store_list(root, add_name, &whole);
    return random_mix(whole.sum + 1);
}

bool names_below_has(const char *below)
{
    for (int depth = 0; depth < FOLDER_DEPTH; depth++) {
        size_t length = strcspn(below, "/");
        if (length == 0 || is_passed_over(below, length))
            return false;
        if (below[length] == '\0')
            return true;
        below += length + 1;
    }
    return false;
}

const char *names_below_path(const char *root, const char *path)
{
    size_t length = strlen(root);

    while (length > 1 && root[length - 1] == '/')
        length--;
    if (strncmp(root, path, length) != 0)
        return NULL;
    if (path[length] == '\0')
        return path + length;
    if (path[length] != '/' && root[length - 1] != '/')
        return NULL;
    path += length;
    while (*path == '/')
        path++;
    return path;
}

bool names_below_stays(const char *path)
{
    for (;;) {
        size_t length = strcspn(path, "/");
        if (length == 0 || (length == 1 && path[0] == '.') ||
            (length == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        if (path[length] == '\0')
            return true;
        path += length + 1;
    }
}
