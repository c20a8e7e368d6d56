/* SPDX-License-Identifier: Apache-2.0
 *
 * An archive of images as a source: tar or zip, compressed in any way libarchive supports, read
 * twice from front to back: once to number the images and their classes, once for the images.
 *
 * With labels in .cls or .json files, or without folders, it is a shard of WebDataset: adjacent
 * files of a key are a sample with one image (formats/image_names.h). Otherwise each image is a
 * sample, and its class is its folder, numbered in sorted order; a tar inside the archive counts as
 * a folder of its name (ImageNet's training set is a tar of a thousand tars).
 */
#include "cmd/pack/source.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/random.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "formats/image_names.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    BLOCK_BYTES = 64 * 1024,
    FILE_BLOCK_BYTES = 1 << 20,
    IMAGE_LIMIT = 512 << 20,
    LABEL_LIMIT = 1 << 20,
    READ_BYTES = 256 * 1024,
    DETECT_ENTRIES = 64
};

/* ---- one pass over the files of an archive and of the tars in it ---- */

/* What would be lost: its first place, and how often. */
struct archive_loss {
    uint64_t count;
    char first[256];
};

static void note_loss(struct archive_loss *loss, const char *name)
{
    if (loss->count++ == 0)
        snprintf(loss->first, sizeof loss->first, "%s", name);
}

struct archive_walk {
    const char *path;
    struct archive *outer, *inner, *from; /* from: where the current file's bytes come from */
    char *inner_name;                     /* "n01440764" for n01440764.tar */
    char *name;                           /* of the current file, prefixed by inner_name */
    struct archive_loss links;            /* images and labels whose contents are elsewhere */
    uint64_t bytes;                       /* of the current file, according to its header */
    struct store_file *file;
    uint64_t at; /* for the outer archive's next read */
    char block[BLOCK_BYTES];
    char file_block[FILE_BLOCK_BYTES];
};

static int walk_failed(struct archive_walk *walk, struct archive *archive)
{
    const char *text = archive_error_string(archive);
    int code = archive_errno(archive);

    return fail(code > 0 ? code : EBADMSG, "%s: offset %lld: %s", walk->path,
                (long long)archive_filter_bytes(walk->outer, -1), text ? text : "not an archive");
}

static struct archive *new_archive(void)
{
    struct archive *archive = archive_read_new();

    if (!archive) {
        fail(ENOMEM, "out of memory for an archive");
        return NULL;
    }
    /* Not all filters: some run a program, or allocate as much as a header of 14 bytes demands. */
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_bzip2(archive);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_zstd(archive);
    archive_read_support_format_tar(archive);
    archive_read_support_format_zip(archive);
    return archive;
}

static void walk_close(struct archive_walk *walk)
{
    if (!walk)
        return;
    archive_read_free(walk->inner);
    archive_read_free(walk->outer);
    store_close(walk->file, false);
    free(walk->inner_name);
    free(walk->name);
    free(walk);
}

/* ---- the file, for libarchive ---- */

static la_ssize_t file_read(struct archive *archive, void *context, const void **block)
{
    struct archive_walk *walk = context;
    ssize_t got = store_read_at(walk->file, walk->file_block, sizeof walk->file_block, walk->at);

    *block = walk->file_block;
    if (got < 0)
        archive_set_error(archive, (int)-got, "%s", fail_errno_text((int)got));
    else
        walk->at += (uint64_t)got;
    return got < 0 ? ARCHIVE_FATAL : got;
}

static la_int64_t file_seek(struct archive *archive, void *context, la_int64_t offset, int whence)
{
    struct archive_walk *walk = context;
    const int64_t from[] = {[SEEK_SET] = 0,
                            [SEEK_CUR] = (int64_t)walk->at,
                            [SEEK_END] = (int64_t)walk->file->status.bytes};

    (void)archive;
    if (whence < 0 || whence > SEEK_END || offset < -from[whence])
        return ARCHIVE_FATAL;
    walk->at = (uint64_t)(from[whence] + offset);
    return (la_int64_t)walk->at;
}

static la_int64_t file_skip(struct archive *archive, void *context, la_int64_t bytes)
{
    struct archive_walk *walk = context;
    int64_t left = (int64_t)walk->file->status.bytes - (int64_t)walk->at;

    (void)archive;
    bytes = bytes < left ? bytes : left > 0 ? left : 0;
    walk->at += (uint64_t)bytes;
    return bytes;
}

static struct archive_walk *walk_open(const char *path)
{
    struct archive_walk *walk = memory_zeroed(sizeof *walk);

    if (!walk)
        return NULL;
    walk->path = path;
    walk->outer = store_open(path, STORE_READ, &walk->file) ? NULL : new_archive();
    if (walk->outer) {
        archive_read_set_callback_data(walk->outer, walk);
        archive_read_set_read_callback(walk->outer, file_read);
        archive_read_set_skip_callback(walk->outer, file_skip);
        archive_read_set_seek_callback(walk->outer, file_seek);
        if (archive_read_open1(walk->outer) == ARCHIVE_OK)
            return walk;
        walk_failed(walk, walk->outer);
    }
    walk_close(walk);
    return NULL;
}

static la_ssize_t read_outer(struct archive *inner, void *context, const void **block)
{
    struct archive_walk *walk = context;

    (void)inner;
    *block = walk->block;
    return archive_read_data(walk->outer, walk->block, sizeof walk->block);
}

static bool is_image(const char *name)
{
    return file_name(name)[0] != '.' && image_name_is_read(name);
}

/* Advance to the next regular file. Returns 1, 0 at the end, or a negative errno. */
static int walk_next(struct archive_walk *walk)
{
    for (;;) {
        struct archive_entry *entry;
        struct archive *from = walk->inner ? walk->inner : walk->outer;
        int code = archive_read_next_header(from, &entry);
        if (code == ARCHIVE_EOF) {
            if (!walk->inner)
                return 0;
            archive_read_free(walk->inner);
            walk->inner = NULL;
            continue;
        }
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
            return walk_failed(walk, from);
        const char *name = archive_entry_pathname(entry);
        if (!name || archive_entry_filetype(entry) == AE_IFDIR)
            continue;
        if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry)) {
            size_t key_bytes;
            const char *extension = tar_members_split(name, &key_bytes);
            if (is_image(name) || (extension && tar_members_may_label(extension)))
                note_loss(&walk->links, name);
            continue;
        }
        while (strncmp(name, "./", 2) == 0)
            name += 2;
        if (!walk->inner && image_name_ends(name, ".tar")) {
            const char *base = file_name(name);
            free(walk->inner_name);
            walk->inner_name = strndup(base, strlen(base) - 4);
            walk->inner = new_archive();
            if (!walk->inner || !walk->inner_name)
                return fail(ENOMEM, "out of memory for an archive");
            if (archive_read_open(walk->inner, walk, NULL, read_outer, NULL) != ARCHIVE_OK)
                return walk_failed(walk, walk->inner);
            continue;
        }
        free(walk->name);
        walk->name = walk->inner ? file_join(walk->inner_name, name) : strdup(name);
        if (!walk->name)
            return fail(ENOMEM, "out of memory for a name");
        walk->bytes = (uint64_t)archive_entry_size(entry);
        walk->from = from;
        return 1;
    }
}

/* Read the current file into the buffer. Memory grows with the data actually read: a header alone
 * cannot demand gigabytes, and a zip header need not give the size. Returns the size or a negative
 * errno. */
static int64_t read_whole(struct archive_walk *walk, struct source_buffer *slot)
{
    size_t used = 0;

    for (;;) {
        if (used == slot->record_capacity) {
            const size_t larger = used ? used * 2 : READ_BYTES;
            void *moved = used < IMAGE_LIMIT ? realloc(slot->record, larger) : NULL;
            if (!moved && used >= IMAGE_LIMIT)
                return fail(EBADMSG, "%s: %s is larger than %d bytes, too large", walk->path,
                            walk->name, IMAGE_LIMIT);
            if (!moved)
                return fail(ENOMEM, "out of memory for a sample of %zu bytes", larger);
            slot->record = moved;
            slot->record_capacity = larger;
        }
        assert(used < slot->record_capacity);
        const la_ssize_t got = archive_read_data(walk->from, (char *)slot->record + used,
                                                 slot->record_capacity - used);
        if (got < 0)
            return walk_failed(walk, walk->from);
        if (got == 0)
            return (int64_t)used;
        used += (size_t)got;
    }
}

/* ---- the first pass: numbers and labels ---- */

struct archive_image {
    int32_t class; /* at first in order of appearance */
    int32_t label; /* from the files of its key, -1 if none */
    uint8_t rank;
    bool is_spare; /* beside another of its key */
    bool is_left_out;
};

struct archive_source {
    char *path;
    uint64_t image_count;
    struct archive_image *images;
    struct names classes;
};

/* State of the first pass, and the files of one key. */
struct archive_listing {
    const struct source_config *config;
    struct source_traits *traits;
    struct source_buffer buffer;
    uint64_t labelled; /* keys with image and label */
    struct archive_loss apart, several;
    char *key;
    uint64_t first_image;
    struct sample sample; /* its label */
    bool has_class;       /* from a .cls file */
    bool is_damaged;      /* no label, perhaps */
};

static int add_image(struct archive_source *source, const char *name)
{
    static const struct tar_members usual = {0};
    size_t key_bytes;
    const char *extension = tar_members_split(name, &key_bytes);

    if (memory_room(&source->images, source->image_count, sizeof *source->images, "images"))
        return -ENOMEM;
    /* Find the class of an image by its folder. */
    const char *base = file_name(name), *folder = base;
    int64_t class = -1;
    if (base != name) {
        for (folder = base - 1; folder > name && folder[-1] != '/';)
            folder--;
        class = names_number(&source->classes, folder, (size_t)(base - 1 - folder));
        if (class < 0)
            return -ENOMEM;
    }
    source->images[source->image_count++] = (struct archive_image){
        .class = (int32_t) class,
        .label = -1,
        .rank = extension ? (uint8_t)tar_members_rank(&usual, extension) : TAR_IMAGE_OF_PARTS};
    return 0;
}

static int end_key(struct archive_source *source, struct archive_listing *listing)
{
    struct sample *sample = &listing->sample;
    const bool has_label = sample->label >= 0 || sample->has_odd_label;
    int code = 0;

    if (source->image_count > listing->first_image) {
        /* The image is the first of the highest rank (formats/tar.c). */
        struct archive_image *images = &source->images[listing->first_image];
        const uint64_t count = source->image_count - listing->first_image;
        uint64_t plain = 0, best = 0;
        for (uint64_t i = 0; i < count; i++) {
            plain += images[i].rank == TAR_PLAIN_IMAGE;
            best = images[i].rank > images[best].rank ? i : best;
        }
        for (uint64_t i = 0; i < count; i++)
            images[i].is_spare = i != best;
        if (count > 1 && plain != 1)
            note_loss(&listing->several, listing->key);
        if (format_settle_label(format_odd_labels_flags(listing->config->odd_labels), sample)) {
            /* The label is refused, for the last reason. */
            struct source_traits *traits = listing->traits;
            if (!listing->config->skip)
                code = fail(EBADMSG, "%s: %s: %s; --odd-labels none drops it", source->path,
                            listing->key, fail_reason());
            else {
                if (traits->skipped++ == 0)
                    snprintf(traits->first_skipped, sizeof traits->first_skipped, "%.150s: %.300s",
                             listing->key, fail_reason());
                for (uint64_t i = listing->first_image; i < source->image_count; i++)
                    source->images[i].is_left_out = true;
            }
        }
        listing->labelled += has_label;
    } else if (has_label && !listing->is_damaged) {
        note_loss(&listing->apart, listing->key);
    }
    for (uint64_t i = listing->first_image; i < source->image_count; i++)
        source->images[i].label = sample->label;
    listing->first_image = source->image_count;
    listing->has_class = listing->is_damaged = false;
    *sample = (struct sample){.label = -1};
    return code;
}

/* List at most `most` files. */
static int list_files(struct archive_source *source, struct archive_walk *walk,
                      struct archive_listing *listing, uint64_t most)
{
    const struct source_config *config = listing->config;
    size_t key_bytes;
    int code = 0;

    listing->sample.label = -1;
    for (uint64_t files = 0; files < most && (code = walk_next(walk)) > 0; files++) {
        const char *extension = tar_members_split(walk->name, &key_bytes);
        /* A new key begins a new sample: the name up to the first dot of its last component. */
        const char *base = file_name(walk->name);
        size_t length = (size_t)(base - walk->name) + strcspn(base, ".");
        if (listing->key && strncmp(listing->key, walk->name, length) == 0 && !listing->key[length])
            code = 0;
        else {
            code = end_key(source, listing);
            free(listing->key);
            listing->key = strndup(walk->name, length);
            code = listing->key ? code : fail(ENOMEM, "out of memory for a name");
        }
        if (code == 0 && is_image(walk->name)) {
            code = add_image(source, walk->name);
            listing->traits->image_bytes += walk->bytes;
        } else if (code == 0 && extension && tar_members_may_label(extension)) {
            static const struct tar_members usual = {0};
            const bool is_class = strcasecmp(extension, "cls") == 0;
            int64_t got = listing->has_class || walk->bytes > LABEL_LIMIT
                              ? 0
                              : read_whole(walk, &listing->buffer);
            if (got <= 0)
                code = (int)got;
            else {
                listing->sample = (struct sample){.label = -1};
                listing->is_damaged = tar_members_label(&usual, extension, listing->buffer.record,
                                                        (size_t)got, &listing->sample) != 0;
                if (listing->is_damaged)
                    sample_set_label_text(&listing->sample, listing->buffer.record, (size_t)got);
                listing->has_class = is_class;
            }
        }
        if (code)
            return code;
        if (config->progress && source->image_count % 256 == 0)
            config->progress(config->progress_context,
                             (uint64_t)archive_filter_bytes(walk->outer, -1),
                             walk->file->status.bytes);
    }
    return code < 0 ? code : end_key(source, listing);
}

static int compare_classes(const void *a, const void *b)
{
    return strcmp(**(char **const *)a, **(char **const *)b);
}

/* After the first pass: settle which images are samples, and their labels. */
static int settle_samples(struct archive_source *source, struct archive_listing *listing,
                          bool has_keys, const struct archive_walk *walk)
{
    static const struct archive_loss none = {0};
    const struct {
        const struct archive_loss *loss;
        const char *what;
        bool is_left_out;
    } rows[] = {
        {&walk->links, "a link or special file, which is not read", true},
        {&listing->apart, "a label apart from its image; write shards with tar --sort=name", true},
        {has_keys ? &listing->several : &none,
         "several images, of which all but one would be lost; --from tar:image=EXTENSION chooses "
         "one of a tar, not compressed",
         false},
    };
    struct source_traits *traits = listing->traits;
    int code = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct archive_loss *loss = rows[i].loss;
        if (loss->count && !listing->config->skip)
            return fail(ENOTSUP, "%s: %s: %s (%llu such in all); --on-error skip %s", source->path,
                        loss->first, rows[i].what, (unsigned long long)loss->count,
                        rows[i].is_left_out ? "leaves it out" : "takes the first");
        if (loss->count && rows[i].is_left_out && traits->skipped == 0)
            snprintf(traits->first_skipped, sizeof traits->first_skipped, "%s: %s", loss->first,
                     rows[i].what);
        traits->skipped += rows[i].is_left_out ? loss->count : 0;
    }
    if (!has_keys) { /* number the classes in sorted order */
        const struct names *classes = &source->classes;
        char ***sorted = memory_array((size_t)classes->count + 1, sizeof *sorted);
        int32_t *label = memory_array((size_t)classes->count + 1, sizeof *label);
        code = sorted && label ? 0 : -ENOMEM;
        for (uint32_t i = 0; code == 0 && i < classes->count; i++)
            sorted[i] = &classes->texts[i];
        if (code == 0)
            qsort(sorted, classes->count, sizeof *sorted, compare_classes);
        for (uint32_t i = 0; code == 0 && i < classes->count; i++)
            label[sorted[i] - classes->texts] = (int32_t)i;
        for (uint64_t i = 0; code == 0 && i < source->image_count; i++)
            if (source->images[i].class >= 0)
                source->images[i].label = label[source->images[i].class];
        free(sorted);
        free(label);
    }
    for (uint64_t i = 0; code == 0 && i < source->image_count; i++) {
        source->images[i].is_left_out |= has_keys && source->images[i].is_spare;
        traits->count += !source->images[i].is_left_out;
    }
    return code;
}

static int archive_open(void *state, const void *settings, const char *path,
                        const struct source_config *config, struct source_traits *traits)
{
    struct archive_source *source = state;
    struct archive_listing listing = {.config = config, .traits = traits};
    struct store_status status;

    (void)settings;
    int code = store_stat(path, &status);
    if (code)
        return code;
    source->path = strdup(path);
    struct archive_walk *walk = source->path ? walk_open(source->path) : NULL;
    if (!walk)
        return -EBADMSG;
    code = list_files(source, walk, &listing, UINT64_MAX);
    const bool has_keys = listing.labelled || source->classes.count == 0;
    if (code == 0)
        code = settle_samples(source, &listing, has_keys, walk);
    walk_close(walk);
    source_buffer_release(&listing.buffer);
    free(listing.key);
    traits->in_order = true;
    traits->fingerprint = random_hash(status.bytes, (uint64_t)status.mtime_ns, 0);
    snprintf(traits->what, sizeof traits->what, "archive, labels from %s",
             listing.labelled ? ".cls or .json files"
             : has_keys       ? "nowhere"
                              : "folders");
    return code;
}

static void archive_close(void *state)
{
    struct archive_source *source = state;

    names_release(&source->classes);
    free(source->images);
    free(source->path);
}

/* ---- the second pass: images ---- */

struct archive_cursor {
    struct archive_walk *walk;
    uint64_t next, next_image;
};

static int archive_cursor_open(void *state, void **made)
{
    struct archive_source *source = state;
    struct archive_cursor *cursor = memory_zeroed(sizeof *cursor);

    if (!cursor)
        return -ENOMEM;
    cursor->walk = walk_open(source->path);
    *made = cursor;
    return cursor->walk ? 0 : -EBADMSG;
}

static void archive_cursor_close(void *state, void *made)
{
    struct archive_cursor *cursor = made;

    (void)state;
    walk_close(cursor->walk);
    free(cursor);
}

static int archive_read(void *state, void *made, uint64_t number, struct source_buffer *slot,
                        struct sample *sample)
{
    struct archive_source *source = state;
    struct archive_cursor *cursor = made;
    struct archive_walk *walk = cursor->walk;

    assert(number >= cursor->next);
    while (cursor->next <= number) {
        int code = walk_next(walk);
        if (code <= 0)
            return code ? code : fail(ESTALE, "%s: has fewer images than before", source->path);
        if (!is_image(walk->name))
            continue;
        if (cursor->next_image == source->image_count)
            return fail(ESTALE, "%s: has more images than before", source->path);
        cursor->next += !source->images[cursor->next_image++].is_left_out;
    }
    int64_t got = read_whole(walk, slot);
    if (got < 0)
        return (int)got;
    sample->image = slot->record;
    sample->image_bytes = (size_t)got;
    sample->label = source->images[cursor->next_image - 1].label;
    sample->id = number;
    sample->name_bytes = strlen(walk->name);
    int code = source_reserve(&slot->scratch, &slot->scratch_capacity, sample->name_bytes);
    if (code)
        return code;
    memcpy(slot->scratch, walk->name, sample->name_bytes);
    sample->name = slot->scratch;
    return 0;
}

/* A plain tar with labels is better read as a data set: in any order, by many threads. */
static int archive_detect(const char *path)
{
    const struct source_config config = {.skip = true};
    struct source_traits traits = {0};
    struct archive_source source = {0};
    struct archive_listing listing = {.config = &config, .traits = &traits};
    struct archive_walk *walk = walk_open(path);

    if (walk)
        list_files(&source, walk, &listing, DETECT_ENTRIES);
    const bool is_archive = source.image_count > 0 && listing.labelled == 0;
    walk_close(walk);
    source_buffer_release(&listing.buffer);
    free(listing.key);
    archive_close(&source);
    return is_archive ? 100 : 0;
}

extern const struct source_ops iobench_source_archive;

const struct source_ops iobench_source_archive = {
    .plugin = {.name = "archive", .state_size = sizeof(struct archive_source)},
    .detect = archive_detect,
    .open = archive_open,
    .close = archive_close,
    .cursor_open = archive_cursor_open,
    .cursor_close = archive_cursor_close,
    .read = archive_read,
};
