/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/file.h"
#include "dataset/catalog.h"
#include "dataset/sidecar.h"
#include "formats/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SHARDS = 3, RECORDS = 1000, SHARD_BYTES = 100000, KEY = 77 };

static struct catalog *make_catalog(const char *root)
{
    struct catalog *catalog = catalog_create(root, "made");

    for (uint32_t i = 0; i < SHARDS; i++) {
        char *path = file_format_path("%s/shard-%u", root, i);
        assert_int_equal(catalog_begin_shard(catalog, path, NULL, i == 2 ? SHARD_GZIP : 0), 0);
        /* The second shard is empty. */
        for (uint32_t record = 0; i != 1 && record < RECORDS; record++)
            assert_int_equal(catalog_add(catalog, record * 100, 60 + record % 40), 0);
        if (i == 2)
            catalog_last(catalog)->stream_bytes = 200000;
        free(path);
    }
    catalog->left_out = 7;
    assert_int_equal(catalog_remark(catalog, REMARK_COMPANION, "%s/a.md5: x", root), 0);
    assert_int_equal(catalog_seal(catalog), 0);
    return catalog;
}

static int setup(void **unused)
{
    static char bytes[SHARD_BYTES];

    if (folder_setup(unused) || folder_make_path(folder_path("set")))
        return -1;
    folder_write("set/shard-0", bytes, sizeof bytes);
    folder_write("set/shard-1", "", 0);
    folder_write("set/shard-2", bytes, 5000);
    struct catalog *catalog = make_catalog(folder_path("set"));
    char *path = sidecar_path(folder_path("set"), SIDECAR_BESIDE);
    int code = sidecar_save(catalog, path, KEY);
    free(path);
    catalog_destroy(catalog);
    return code;
}

static int load(struct catalog **catalog)
{
    return sidecar_load(folder_path("set/.iobench-index"), folder_path("set"), "made", KEY,
                        catalog);
}

static void what_is_saved_is_loaded(void **unused)
{
    struct catalog *made = make_catalog(folder_path("set")), *loaded;

    if (load(&loaded))
        fail_msg("%s", fail_reason());
    assert_string_equal(loaded->format, made->format);
    assert_string_equal(loaded->root, made->root);
    assert_int_equal(loaded->shard_count, SHARDS);
    assert_int_equal(loaded->record_count, 2 * RECORDS);
    assert_int_equal(loaded->record_bytes_total, made->record_bytes_total);
    assert_int_equal(loaded->record_bytes_max, made->record_bytes_max);
    assert_true(loaded->compressed);
    assert_int_equal(loaded->left_out, 7);
    assert_null(loaded->remarks[REMARK_ODD_LABEL].first);
    assert_int_equal(loaded->remarks[REMARK_COMPANION].count, 1);
    assert_string_equal(loaded->remarks[REMARK_COMPANION].first,
                        made->remarks[REMARK_COMPANION].first);
    assert_memory_equal(loaded->records, made->records, 2 * RECORDS * sizeof(struct extent));
    for (uint32_t i = 0; i < SHARDS; i++) {
        const struct shard *a = &loaded->shards[i], *b = &made->shards[i];
        assert_string_equal(a->path, b->path);
        assert_true(a->bytes == b->bytes && a->mtime_ns == b->mtime_ns && a->flags == b->flags &&
                    a->stream_bytes == b->stream_bytes && a->first_record == b->first_record &&
                    a->record_count == b->record_count && a->label == b->label);
    }
    catalog_destroy(made);
    catalog_destroy(loaded);
}

static void it_moves_with_its_data(void **unused)
{
    struct catalog *catalog;
    char *moved = strdup(folder_path("moved"));

    assert_int_equal(rename(folder_path("set"), moved), 0);
    char *path = sidecar_path(moved, SIDECAR_BESIDE);
    assert_int_equal(sidecar_load(path, moved, "made", KEY, &catalog), 0);
    assert_true(strncmp(catalog->shards[1].path, moved, strlen(moved)) == 0);
    assert_true(strncmp(catalog->remarks[REMARK_COMPANION].first, moved, strlen(moved)) == 0);
    catalog_destroy(catalog);
    assert_int_equal(rename(moved, folder_path("set")), 0);
    free(path);
    free(moved);
}

/* Times that a copy keeps do not make it the same files. */
static void the_identity_is_of_the_files(void **unused)
{
    struct catalog *made = make_catalog(folder_path("set")), *loaded;
    char *shard = strdup(folder_path("set/shard-0")), *data = NULL;
    const uint64_t identity = catalog_identity(made);
    const uint64_t below = names_below_identity(folder_path("set"));
    struct stat before;
    size_t bytes;

    assert_int_equal(load(&loaded), 0);
    assert_int_equal(catalog_identity(loaded), identity);
    catalog_destroy(loaded);
    catalog_destroy(made);
    assert_int_equal(stat(shard, &before), 0);
    assert_int_equal(file_load(shard, 1 << 20, &data, &bytes), 0);
    struct timespec times[2] = {before.st_mtim, before.st_mtim};
    do { /* until the clock of the file system has ticked */
        assert_int_equal(unlink(shard), 0);
        folder_write("set/shard-0", data, bytes);
        assert_int_equal(utimensat(AT_FDCWD, shard, times, 0), 0);
        assert_int_equal(load(&loaded), 0); /* the index cannot tell */
        struct stat now;
        assert_int_equal(stat(shard, &now), 0);
        const bool same = now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
                          now.st_ctim.tv_nsec == before.st_ctim.tv_nsec;
        made = make_catalog(folder_path("set"));
        assert_int_equal(catalog_identity(loaded), catalog_identity(made));
        assert_true(same || catalog_identity(loaded) != identity);
        assert_true(same || names_below_identity(folder_path("set")) != below);
        catalog_destroy(made);
        catalog_destroy(loaded);
        if (!same)
            break;
    } while (true);
    free(data);
    free(shard);
}

static void stale_ones_are_not_used(void **unused)
{
    struct catalog *catalog;
    const char *path = folder_path("set/.iobench-index"), *root = folder_path("set");
    struct stat before;

    assert_int_equal(sidecar_load(path, root, "made", KEY + 1, &catalog), -ESTALE);
    assert_int_equal(sidecar_load(path, root, "other", KEY, &catalog), -ESTALE);
    assert_int_equal(sidecar_load(folder_path("set/none"), root, "made", KEY, &catalog), -ENOENT);

    /* Same size, different time. */
    char *shard = strdup(folder_path("set/shard-0"));
    assert_int_equal(stat(shard, &before), 0);
    struct timespec times[2] = {before.st_mtim, before.st_mtim};
    times[1].tv_nsec ^= 1;
    assert_int_equal(utimensat(AT_FDCWD, shard, times, 0), 0);
    assert_refused(load(&catalog), -ESTALE, "shard-0: changed");
    times[1] = before.st_mtim;
    assert_int_equal(utimensat(AT_FDCWD, shard, times, 0), 0);
    assert_int_equal(load(&catalog), 0);
    catalog_destroy(catalog);
    /* Same time, different size. */
    assert_int_equal(truncate(shard, SHARD_BYTES - 1), 0);
    assert_int_equal(utimensat(AT_FDCWD, shard, times, 0), 0);
    assert_int_equal(load(&catalog), -ESTALE);
    assert_int_equal(truncate(shard, SHARD_BYTES), 0);
    assert_int_equal(utimensat(AT_FDCWD, shard, times, 0), 0);
    free(shard);
    /* First a new shard, then a missing one. */
    folder_write("set/shard-3", "", 0);
    assert_int_equal(load(&catalog), -ESTALE);
    assert_int_equal(unlink(folder_path("set/shard-3")), 0);
    assert_int_equal(load(&catalog), 0);
    catalog_destroy(catalog);
    assert_int_equal(rename(folder_path("set/shard-1"), folder_path("gone")), 0);
    assert_int_equal(load(&catalog), -ESTALE);
    assert_int_equal(rename(folder_path("gone"), folder_path("set/shard-1")), 0);
}

/* Several threads look at the files of a large set: none is left out. */
static void each_of_many_files_is_checked(void **unused)
{
    enum { FILES = 600 };
    static const uint32_t changed[] = {0, 1, 298, 599};
    char *root = strdup(folder_path("many")), *path = file_join(root, "index");
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000}};
    const struct timespec other[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000001}};
    struct catalog *catalog;

    assert_int_equal(folder_make_path(root), 0);
    struct catalog *made = catalog_create(root, "made");
    for (uint32_t i = 0; i < FILES; i++) {
        char *name = file_format_path("many/%u", i);
        folder_write(name, "x", 1);
        assert_int_equal(utimensat(AT_FDCWD, folder_path(name), times, 0), 0);
        assert_int_equal(catalog_begin_shard(made, folder_path(name), NULL, 0), 0);
        assert_int_equal(catalog_add(made, 0, 1), 0);
        free(name);
    }
    assert_int_equal(catalog_seal(made), 0);
    folder_write("many/index", "", 0); /* its name is part of the set that is saved */
    assert_int_equal(sidecar_save(made, path, KEY), 0);
    assert_int_equal(sidecar_load(path, root, "made", KEY, &catalog), 0);
    catalog_destroy(catalog);
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        const char *file = made->shards[changed[i]].path;
        assert_int_equal(utimensat(AT_FDCWD, file, other, 0), 0);
        assert_int_equal(sidecar_load(path, root, "made", KEY, &catalog), -ESTALE);
        assert_true(strncmp(fail_reason(), file, strlen(file)) == 0);
        assert_int_equal(utimensat(AT_FDCWD, file, times, 0), 0);
    }
    catalog_destroy(made);
    free(path);
    free(root);
}

/* Flip every bit of the header and the table and some of the rest; truncate at every kind of
 * position. */
static void damage_is_found(void **unused)
{
    struct catalog *catalog;
    char *bytes;
    size_t count;

    assert_int_equal(file_load(folder_path("set/.iobench-index"), 1 << 20, &bytes, &count), 0);
    const char *name = "set/.hurt", *path = folder_path(name), *root = folder_path("set");
    folder_write(name, bytes, count);
    assert_int_equal(sidecar_load(path, root, "made", KEY, &catalog), 0);
    catalog_destroy(catalog);
    for (size_t bit = 0; bit < count * 8; bit += bit < 220 * 8    ? 1
                                                 : bit < 4096 * 8 ? 32768
                                                                  : 4801) {
        bool padding = bit >= 8 * 220 && bit < 8 * 4096;
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        folder_write(name, bytes, count);
        int code = sidecar_load(path, root, "made", KEY, &catalog);
        if (code == 0 && !padding)
            fail_msg("bit %zu of byte %zu is not seen", bit % 8, bit / 8);
        catalog_destroy(catalog);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < count; cut += cut < 4200 ? 13 : 1601) {
        folder_write(name, bytes, cut);
        assert_int_equal(sidecar_load(path, root, "made", KEY, &catalog), -EINVAL);
    }
    free(bytes);
}

/* Sidecars with correct CRCs and wrong contents. */
static void lies_are_found(void **unused)
{
    static const struct {
        size_t at; /* from the first extent */
        uint32_t value;
    } lies[] = {
        {0, SHARD_BYTES},                 /* an offset at the end of the shard */
        {4, 1},                           /* of 4 GiB */
        {8, SHARD_BYTES + 1},             /* longer than the shard */
        {12, 1},                          /* of another shard */
        {12, 4000000},                    /* of no shard */
        {8, 0},                           /* no bytes */
        {16 * (2 * RECORDS - 1), 200000}, /* past the end of the compressed shard's stream */
    };
    struct catalog *catalog;
    char *bytes;
    size_t count;

    assert_int_equal(file_load(folder_path("set/.iobench-index"), 1 << 20, &bytes, &count), 0);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        char *lying = malloc(count);
        memcpy(lying, bytes, count);
        bytes_put_le32(lying + 4096 + lies[i].at, lies[i].value);
        bytes_put_le32(lying + 52, crc32c(0, lying + 4096, count - 4096));
        bytes_put_le32(lying + 60, crc32c(0, lying, 60));
        folder_write("set/.lying", lying, count);
        assert_refused(
            sidecar_load(folder_path("set/.lying"), folder_path("set"), "made", KEY, &catalog),
            -EINVAL, "a record is outside its shard");
        free(lying);
    }
    /* A shard that is not compressed, and inflates to something else. */
    bytes_put_le64(bytes + 64 + 4 + strlen("made") + 16, SHARD_BYTES + 1);
    bytes_put_le32(bytes + 48, crc32c(0, bytes + 64, (size_t)bytes_le64(bytes + 40)));
    bytes_put_le32(bytes + 60, crc32c(0, bytes, 60));
    folder_write("set/.lying", bytes, count);
    assert_refused(
        sidecar_load(folder_path("set/.lying"), folder_path("set"), "made", KEY, &catalog), -EINVAL,
        "wrong length of a shard");
    free(bytes);
    /* Sizes that the file has not: nothing is allocated for them. */
    static const struct {
        size_t at;
        uint32_t value;
        const char *reason;
    } sizes[] = {{12, 100, "wrong table size"},
                 {40, 3, "wrong table size"},
                 {40, 1 << 30, "wrong table size"},
                 {44, 1, "wrong table size"},
                 {16, 0, "does not match its header"},
                 {16, 1, "does not match its header"},
                 {20, 1 << 28, "does not match its header"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(file_load(folder_path("set/.iobench-index"), 1 << 20, &bytes, &count), 0);
        bytes_put_le32(bytes + sizes[i].at, sizes[i].value);
        bytes_put_le32(bytes + 60, crc32c(0, bytes, 60));
        folder_write("set/.lying", bytes, count);
        free(bytes);
        assert_refused(
            sidecar_load(folder_path("set/.lying"), folder_path("set"), "made", KEY, &catalog),
            -EINVAL, sizes[i].reason);
    }
}

/* Save the index of the set with another name for its first shard and correct CRCs. */
static void save_with_name(const char *name)
{
    const size_t at = 64 + 4 + strlen("made") + 52;
    char *bytes;
    size_t count;

    assert_int_equal(strlen(name), strlen("shard-0"));
    assert_int_equal(file_load(folder_path("set/.iobench-index"), 1 << 20, &bytes, &count), 0);
    assert_memory_equal(bytes + at, "shard-0", strlen(name));
    memcpy(bytes + at, name, strlen(name));
    bytes_put_le32(bytes + 48, crc32c(0, bytes + 64, (size_t)bytes_le64(bytes + 40)));
    bytes_put_le32(bytes + 60, crc32c(0, bytes, 60));
    folder_write("set/.planted", bytes, count);
    free(bytes);
}

static int load_planted(struct catalog **catalog)
{
    return sidecar_load(folder_path("set/.planted"), folder_path("set"), "made", KEY, catalog);
}

/* Copy the shard to another name, with its size and time: only the name is wrong. */
static void copy_shard(const char *name)
{
    unlink(folder_path(name));
    assert_int_equal(link(folder_path("set/shard-0"), folder_path(name)), 0);
}

static void a_path_out_of_the_set_is_refused(void **unused)
{
    struct catalog *catalog;

    assert_int_equal(folder_make_path(folder_path("set/.b")), 0);
    copy_shard("secret");
    copy_shard("set/.hidden");
    copy_shard("set/.b/file");
    static const char *const names[] = {"./hidde", "a/../bc", "../secr", ".hidden",
                                        ".b/file", "//secre", "shard//", "/secret"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        save_with_name(names[i]);
        if (load_planted(&catalog) != -EINVAL)
            fail_msg("%s is taken", names[i]);
        assert_reason("is not below the data set");
    }
    copy_shard("secr");
    save_with_name("../secr");
    assert_int_equal(load_planted(&catalog), -EINVAL);
    save_with_name("shard-0");
    assert_int_equal(load_planted(&catalog), 0);
    catalog_destroy(catalog);
}

static void a_link_out_of_the_set_needs_a_scan(void **unused)
{
    struct catalog *catalog;
    char *target = strdup(folder_path("set/link")), *set = strdup(folder_path("set"));

    assert_int_equal(folder_make_path(folder_path("other")), 0);
    assert_int_equal(symlink("../other", target), 0);
    catalog = make_catalog(set);
    assert_int_equal(sidecar_save(catalog, folder_path("kept"), KEY), -EXDEV);
    /* A link that stays inside the set is fine. */
    assert_int_equal(unlink(target), 0);
    assert_int_equal(symlink("shard-0", target), 0);
    assert_int_equal(sidecar_save(catalog, folder_path("kept"), KEY), 0);
    catalog_destroy(catalog);
    assert_int_equal(sidecar_load(folder_path("kept"), set, "made", KEY, &catalog), 0);
    catalog_destroy(catalog);
    /* Replace a name by a link to the outside, after the index was written. */
    assert_int_equal(unlink(target), 0);
    assert_int_equal(symlink("../other", target), 0);
    assert_int_equal(sidecar_load(folder_path("kept"), set, "made", KEY, &catalog), -ESTALE);
    assert_reason("leads out");
    assert_int_equal(unlink(target), 0);
    free(target);
    free(set);
}

static void what_others_may_have_written_is_not_believed(void **unused)
{
    struct catalog *catalog;
    char *path = strdup(folder_path("set/.iobench-index"));

    assert_int_equal(load(&catalog), 0);
    catalog_destroy(catalog);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(load(&catalog), -EPERM);
    assert_int_equal(chmod(path, 0644), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, 12345), 0);
        assert_int_equal(load(&catalog), -EPERM);
        assert_int_equal(chown(folder_path("set"), 12345, 12345), 0);
        assert_int_equal(load(&catalog), 0); /* the owner of the data */
        catalog_destroy(catalog);
        assert_int_equal(chown(folder_path("set"), 0, 0), 0);
        assert_int_equal(chown(path, 0, 0), 0);
    }
    assert_int_equal(load(&catalog), 0);
    catalog_destroy(catalog);
    free(path);
}

/* The wrapper of formats: a sidecar is written, used, and written again when the data changes. */
static void formats_use_it(void **unused)
{
    struct plugin_choice recordio;
    struct format_writer writer;
    struct sample sample = {.image = "x", .image_bytes = 1, .label = 1};
    struct catalog *catalog;

    assert_int_equal(plugin_choose("format", format_registry, "recordio", &recordio), 0);
    for (uint32_t records = 1; records <= 2; records++) {
        assert_int_equal(format_writer_open(&writer, &recordio, folder_path("a.rec")), 0);
        for (uint32_t i = 0; i < records; i++)
            assert_int_equal(format_writer_append(&writer, &sample), 0);
        assert_int_equal(format_writer_close(&writer, true), 0);
        for (int repeat = 0; repeat < 2; repeat++) {
            assert_int_equal(format_catalog(&recordio, folder_path("a.rec"), true, NULL, &catalog),
                             0);
            assert_int_equal(catalog->record_count, records);
            assert_int_equal(catalog->mapping != NULL, repeat);
            catalog_destroy(catalog);
        }
    }
    assert_true(file_exists(folder_path("a.rec.iobench-index")));
    plugin_release(&recordio);
}

/* Hints come back as they were; every damaged byte, another length, another set and a file that
 * anybody may write are told. */
static void hints_come_back_or_are_told(void **unused)
{
    struct catalog *catalog = make_catalog(folder_path("set"));
    struct hints *made = hints_create(catalog->record_count), *hints;
    const char *const text = "0123456789";
    char *path, *bytes;
    size_t count;

    assert_int_equal(hints_file_load(catalog, &hints), 0);
    assert_null(hints);
    for (uint64_t i = 0; i < made->count; i += 3)
        assert_int_equal(hints_put(made, i, text + i % 5, 1 + i % 5), 0);
    assert_int_equal(hints_file_save(catalog, made, &path), 0);
    assert_string_equal(path, folder_path("set/.iobench-hints"));
    assert_int_equal(hints_file_load(catalog, &hints), 0);
    assert_int_equal(hints->count, made->count);
    for (uint64_t i = 0; i < made->count; i++) {
        assert_int_equal(hints->rows[i].count, i % 3 ? 0 : 1 + i % 5);
        if (i % 3 == 0)
            assert_memory_equal(hints->rows[i].bytes, text + i % 5, 1 + i % 5);
    }
    hints_destroy(hints);
    hints_destroy(made);
    assert_int_equal(file_load(path, 1 << 20, &bytes, &count), 0);
    for (size_t i = 0; i < count + 2; i += i < 60 || i + 5 > count ? 1 : 37) {
        if (i < count)
            bytes[i] ^= 1;
        folder_write("set/.iobench-hints", bytes, i < count ? count : i - 5);
        assert_true(hints_file_load(catalog, &hints) < 0);
        assert_reason(".iobench-hints");
        assert_null(hints);
        if (i < count)
            bytes[i] ^= 1;
    }
    /* More than all records can have: a sparse file would take all memory. */
    const size_t least = 48 + 2 * catalog->record_count;
    const size_t most = HINT_BYTES_MAX * catalog->record_count;
    char *huge = calloc(1, least + most + 1);
    memcpy(huge, bytes, 48);
    bytes_put_le64(huge + 32, most + 1);
    bytes_put_le32(huge + 44, crc32c(0, huge, 44));
    folder_write("set/.iobench-hints", huge, least + most + 1);
    assert_refused(hints_file_load(catalog, &hints), -EINVAL, "file size");
    free(huge);
    folder_write("set/.iobench-hints", bytes, count);
    catalog->record_bytes_total++;
    assert_int_equal(hints_file_load(catalog, &hints), -ESTALE);
    catalog->record_bytes_total--;
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(hints_file_load(catalog, &hints), -EPERM);
    folder_write("set/.iobench-hints", bytes, count);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(hints_file_load(catalog, &hints), 0);
    hints_destroy(hints);
    assert_int_equal(remove(path), 0);
    free(bytes);
    free(path);
    catalog_destroy(catalog);
}

/* Put hints take the place of loaded ones, also where they say that there is none. Those of another
 * process come in one piece, of which no byte is trusted. */
static void hints_are_merged(void **unused)
{
    struct catalog *catalog = make_catalog(folder_path("set"));
    struct hints *old = hints_create(catalog->record_count), *loaded;
    struct hints *mine = hints_create(catalog->record_count);
    struct hints *other = hints_create(catalog->record_count);
    size_t bytes;
    char *path;

    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(hints_put(old, i, "old", 3), 0);
    assert_int_equal(hints_file_save(catalog, old, &path), 0);
    assert_int_equal(hints_file_load(catalog, &loaded), 0);
    assert_int_equal(hints_put(mine, 1, "mine", 4), 0);
    assert_int_equal(hints_put(other, 1, "other", 5), 0);
    assert_int_equal(hints_put(other, 2, "", 0), 0);
    assert_int_equal(hints_put(other, 4, "other", 5), 0);
    uint8_t *raw = hints_pack(other, 0, HINT_ABSENT, &bytes);
    assert_int_equal(bytes, 2 * catalog->record_count + 10);
    assert_int_equal(hints_unpack(mine, raw, bytes), 0);
    assert_int_equal(hints_count(mine), 2);
    hints_replace(loaded, mine);
    static const char *const wanted[] = {"old", "mine", "", "old", "other", ""};
    for (uint64_t i = 0; i < 6; i++) {
        assert_int_equal(loaded->rows[i].count, strlen(wanted[i]));
        assert_memory_equal(loaded->rows[i].bytes, wanted[i], strlen(wanted[i]));
    }
    assert_int_equal(hints_count(loaded), 4);
    hints_destroy(loaded);
    hints_destroy(mine);
    /* Shorter, longer, or with another length of a hint. */
    for (size_t i = 0; i <= bytes + 1; i++) {
        uint8_t *copy = malloc(bytes + 2);
        memcpy(copy, raw, bytes);
        mine = hints_create(catalog->record_count);
        if (i != bytes)
            assert_int_equal(hints_unpack(mine, copy, i), -EPROTO);
        hints_destroy(mine);
        mine = hints_create(catalog->record_count);
        if (i < 12) {
            copy[i] ^= 1;
            assert_int_equal(hints_unpack(mine, copy, bytes), -EPROTO);
        }
        hints_destroy(mine);
        free(copy);
    }
    hints_destroy(old);
    hints_destroy(other);
    assert_int_equal(remove(path), 0);
    free(raw);
    free(path);
    catalog_destroy(catalog);
}

static char *save_hint(const struct catalog *catalog, const char *text)
{
    struct hints *made = hints_create(catalog->record_count);
    char *path;

    assert_int_equal(hints_put(made, 0, text, strlen(text)), 0);
    assert_int_equal(hints_file_save(catalog, made, &path), 0);
    hints_destroy(made);
    return path;
}

/* Where hints beside the data cannot be replaced they are saved to the cache. Of both the newer are
 * used, and a bad one is not in the way. */
static void newer_hints_are_used(void **unused)
{
    static const struct timespec older[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    static const struct timespec newer[2] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};
    struct catalog *catalog = make_catalog(folder_path("set"));
    struct hints *hints;

    setenv("XDG_CACHE_HOME", folder_path("cache"), 1);
    char *cached = sidecar_path(catalog->root, SIDECAR_CACHE);
    memcpy(strrchr(cached, '.'), ".hints", 6); /* in place of ".index" */
    assert_int_equal(mkdir(folder_path("cache"), 0700), 0);
    assert_int_equal(mkdir(folder_path("cache/iobench"), 0700), 0);
    char *path = save_hint(catalog, "of the cache");
    assert_int_equal(rename(path, cached), 0);
    free(path);
    path = save_hint(catalog, "beside");
    for (int beside = 0; beside < 2; beside++) {
        assert_int_equal(utimensat(AT_FDCWD, path, beside ? newer : older, 0), 0);
        assert_int_equal(utimensat(AT_FDCWD, cached, beside ? older : newer, 0), 0);
        assert_int_equal(hints_file_load(catalog, &hints), 0);
        assert_int_equal(hints->rows[0].count, strlen(beside ? "beside" : "of the cache"));
        hints_destroy(hints);
    }
    folder_write("set/.iobench-hints", "bad", 3);
    assert_int_equal(hints_file_load(catalog, &hints), 0);
    assert_int_equal(hints->rows[0].count, strlen("of the cache"));
    hints_destroy(hints);
    folder_write("cache/iobench/bad", "bad", 3);
    assert_int_equal(rename(folder_path("cache/iobench/bad"), cached), 0);
    assert_int_equal(utimensat(AT_FDCWD, cached, older, 0), 0);
    assert_refused(hints_file_load(catalog, &hints), -EINVAL, path);
    assert_int_equal(remove(cached), 0);
    unsetenv("XDG_CACHE_HOME");
    free(cached);
    free(path);
    catalog_destroy(catalog);
}

/* What the specification of XDG says: a relative path is ignored. */
static void the_cache_is_below_an_absolute_path(void **unused)
{
    static const struct {
        const char *cache, *home, *wanted;
    } cases[] = {
        {"/c", "/h", "/c/iobench/x"},
        {"", "/h", "/h/.cache/iobench/x"},
        {"c", "/h", "/h/.cache/iobench/x"},
        {"", "h", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("XDG_CACHE_HOME", cases[i].cache, 1);
        setenv("HOME", cases[i].home, 1);
        char *path = file_cache_path("x");
        if (cases[i].wanted)
            assert_string_equal(path, cases[i].wanted);
        else
            assert_null(path);
        free(path);
    }
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    assert_null(file_cache_path(""));
    assert_reason("neither XDG_CACHE_HOME nor HOME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(it_moves_with_its_data),
        cmocka_unit_test(the_identity_is_of_the_files),
        cmocka_unit_test(stale_ones_are_not_used),
        cmocka_unit_test(each_of_many_files_is_checked),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(a_path_out_of_the_set_is_refused),
        cmocka_unit_test(a_link_out_of_the_set_needs_a_scan),
        cmocka_unit_test(what_others_may_have_written_is_not_believed),
        cmocka_unit_test(lies_are_found),
        cmocka_unit_test(formats_use_it),
        cmocka_unit_test(hints_come_back_or_are_told),
        cmocka_unit_test(hints_are_merged),
        cmocka_unit_test(newer_hints_are_used),
        cmocka_unit_test(the_cache_is_below_an_absolute_path), /* last: changes the environment */

    };

    return cmocka_run_group_tests(tests, setup, folder_teardown);
}
