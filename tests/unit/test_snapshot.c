/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/random.h"
#include "cmd/checkpoint/save.h"

#include <errno.h>

static struct snapshot plan(uint32_t number, bool is_single)
{
    struct model_request request = {.bytes = 300000};
    struct model_files files;
    struct snapshot snapshot;

    assert_int_equal(model_choose("8b", &request.model), 0);
    assert_int_equal(model_list(&request, &files), 0);
    assert_int_equal(snapshot_plan(&snapshot, &files, 8192, is_single), 0);
    free(files.list);
    snapshot.number = number;
    snapshot.seed = 7;
    snprintf(snapshot.model, sizeof snapshot.model, "8b");
    for (uint64_t i = 0; i < snapshot.chunk_count; i++)
        snapshot.checksums[i] = (uint32_t)i * 0x9e3779b9u;
    return snapshot;
}

static int parse(const char *text, size_t bytes, struct snapshot *snapshot)
{
    char *copy = malloc(bytes + 1);

    assert_non_null(copy);
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    int code = snapshot_parse(snapshot, copy, bytes, "manifest");
    free(copy);
    return code;
}

static void a_manifest_comes_back_as_it_was(void **unused)
{
    for (int single = 0; single < 2; single++) {
        struct snapshot made = plan(3, single), found;
        char *text = snapshot_text(&made);
        assert_non_null(text);
        assert_int_equal(parse(text, strlen(text), &found), 0);
        assert_int_equal(found.number, 3);
        assert_int_equal(found.ranks, made.ranks);
        assert_int_equal(found.is_single, single);
        assert_int_equal(found.bytes, made.bytes);
        assert_int_equal(found.file_count, made.file_count);
        assert_int_equal(found.chunk_count, made.chunk_count);
        assert_int_equal(found.seed, made.seed);
        assert_memory_equal(found.checksums, made.checksums,
                            made.chunk_count * sizeof *made.checksums);
        for (uint32_t i = 0; i < made.file_count; i++) {
            assert_string_equal(found.files[i].name, made.files[i].name);
            assert_int_equal(found.files[i].offset, made.files[i].offset);
            assert_int_equal(found.files[i].first_chunk, made.files[i].first_chunk);
        }
        free(text);
        snapshot_release(&made);
        snapshot_release(&found);
    }
}

static void any_damaged_or_missing_byte_is_noticed(void **unused)
{
    struct snapshot made = plan(3, false), found;
    char *text = snapshot_text(&made);
    const size_t bytes = strlen(text);

    for (size_t i = 0; i < bytes; i++) {
        text[i] ^= 1;
        assert_int_equal(parse(text, bytes, &found), -EBADMSG);
        snapshot_release(&found);
        text[i] ^= 1;
        assert_int_equal(parse(text, i, &found), -EBADMSG);
        snapshot_release(&found);
    }
    free(text);
    snapshot_release(&made);
}

/* A text with a correct CRC. */
static int parse_sealed(const char *body, struct snapshot *snapshot)
{
    char text[2048];
    int length = snprintf(text, sizeof text, "%s", body);

    length += snprintf(text + length, sizeof text - (size_t)length, "end %08x\n",
                       crc32c(0, body, strlen(body)));
    return parse(text, (size_t)length, snapshot);
}

#define HEAD \
    "iobench checkpoint 1\nmodel 8b\nnumber 3\nseed 1\nranks 2\nlayout sharded\nchunk 4096\n"

static void hostile_manifests_are_refused(void **unused)
{
    static const char *const wrong[] = {
        "",
        HEAD,
        HEAD "file weights-000000.bin 0 4096\n",
        HEAD "crc 00000000\n",
        HEAD "file weights-000000.bin 0 4096\ncrc 00000000 00000000\n",
        HEAD "file weights-000000.bin 0 4096\ncrc 0000000\n",
        HEAD "file weights-000000.bin 0 4096\ncrc 000000000\n",
        HEAD "file weights-000000.bin 2 4096\ncrc 00000000\n",
        HEAD "file weights-000000.bin 0 4095\ncrc 00000000\n",
        HEAD "file weights-000000.bin 0 0\n",
        HEAD "file ../weights-000000.bin 0 4096\ncrc 00000000\n",
        HEAD "file thesis 0 4096\ncrc 00000000\n",
        HEAD "file weights-000000.bin 0 18446744073709547520\ncrc 00000000\n",
        HEAD "file weights-000000.bin 0 4096 x\ncrc 00000000\n",
        HEAD "file weights-000000.bin 0 4096\ncrc 00000000\nmore\n",
        "iobench checkpoint 1\nmodel 8b\nnumber 3\nseed 1\nranks 0\nlayout sharded\nchunk 4096\n",
        "iobench checkpoint 1\nmodel 8b\nnumber 3\nseed 1\nranks 2\nlayout torn\nchunk 4096\n",
        "iobench checkpoint 1\nmodel 8b\nnumber 3\nseed 1\nranks 2\nlayout sharded\nchunk 0\n",
        "iobench checkpoint 2\nmodel 8b\nnumber 3\nseed 1\nranks 2\nlayout sharded\nchunk 4096\n",
    };
    struct snapshot found;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(parse_sealed(wrong[i], &found), -EBADMSG);
        snapshot_release(&found);
    }
    assert_int_equal(parse_sealed(HEAD "file weights-000000.bin 0 4096\ncrc 0a1b2c3d\n", &found),
                     0);
    assert_int_equal(found.checksums[0], 0x0a1b2c3d);
    snapshot_release(&found);
}

static void write_files(const struct snapshot_store *store, const struct snapshot *snapshot)
{
    struct folder draft;

    assert_int_equal(snapshot_open_draft(store, snapshot->number, &draft), 0);
    for (uint32_t i = 0; i < snapshot->file_count && !snapshot->is_single; i++)
        close(folder_create_file(&draft, snapshot->files[i].name));
    folder_close(&draft);
}

static size_t count_of(const struct snapshot_store *store)
{
    uint32_t *numbers;
    size_t count;

    assert_int_equal(snapshot_list(store, &numbers, &count), 0);
    free(numbers);
    return count;
}

static void a_checkpoint_is_there_when_it_is_complete(void **unused)
{
    struct snapshot_store store, second;
    struct snapshot made = plan(1, false), found;
    const char *path = folder_path("store");
    uint32_t number;

    assert_int_equal(snapshot_open(&store, path, true), 0);
    assert_int_equal(snapshot_open(&second, path, true), -EBUSY);
    snapshot_close(&second);
    assert_int_equal(snapshot_next_number(&store, &number), 0);
    assert_int_equal(number, 1);
    assert_int_equal(snapshot_begin(&store, &made), 0);
    write_files(&store, &made);
    assert_int_equal(count_of(&store), 0);
    assert_int_not_equal(snapshot_load(path, 1, &found), 0);
    assert_int_equal(snapshot_commit(&store, &made), 0);
    assert_int_equal(count_of(&store), 1);
    assert_int_equal(snapshot_load(path, 1, &found), 0);
    snapshot_release(&found);
    assert_int_equal(snapshot_next_number(&store, &number), 0);
    assert_int_equal(number, 2);
    assert_int_equal(snapshot_remove(&store, 1), 0);
    assert_int_equal(count_of(&store), 0);
    snapshot_close(&store);
    assert_int_equal(rmdir(path), 0); /* nothing is left */
    snapshot_release(&made);
}

static void commit_whole(const struct snapshot_store *store, bool is_single, uint32_t number)
{
    struct snapshot made = plan(number, is_single);
    struct folder draft;

    assert_int_equal(snapshot_begin(store, &made), 0);
    assert_int_equal(snapshot_open_draft(store, number, &draft), 0);
    for (uint32_t i = 0; i < made.file_count && !is_single; i++) {
        const int fd = folder_create_file(&draft, made.files[i].name);
        assert_int_equal(ftruncate(fd, (off_t)made.files[i].bytes), 0);
        close(fd);
    }
    folder_close(&draft);
    assert_int_equal(snapshot_commit(store, &made), 0);
    snapshot_release(&made);
}

static int count_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* A newer one that lost a file, or the end of one, is no reason to remove a good one. */
static void a_good_one_stays_while_newer_ones_lack_bytes(void **unused)
{
    const int before = count_descriptors();

    for (int single = 0; single < 2; single++) {
        const char *name = single ? SNAPSHOT_SINGLE : "weights-000003.bin";
        char place[64], lost[128];
        struct snapshot_store store;
        uint64_t *sizes;
        size_t count;
        snprintf(place, sizeof place, "lost%d", single);
        snprintf(lost, sizeof lost, "lost%d/checkpoint-000002/%s", single, name);
        assert_int_equal(snapshot_open(&store, folder_path(place), true), 0);
        for (uint32_t number = 1; number <= 3; number++)
            commit_whole(&store, single, number);
        assert_int_equal(truncate(folder_path(lost), 4096), 0);
        snprintf(lost, sizeof lost, "lost%d/checkpoint-000003/%s", single, name);
        assert_int_equal(unlink(folder_path(lost)), 0);
        assert_int_equal(snapshot_sizes(&store, &sizes, &count), 0);
        assert_int_equal(count, 1);
        free(sizes);
        assert_int_equal(snapshot_prune(&store, 1), 0);
        assert_int_equal(count_of(&store), 3);
        commit_whole(&store, single, 4);
        assert_int_equal(snapshot_prune(&store, 1), 0);
        assert_int_equal(count_of(&store), 3); /* the first has gone */
        snprintf(lost, sizeof lost, "lost%d/checkpoint-000001", single);
        assert_false(file_exists(folder_path(lost)));
        snapshot_close(&store);
        assert_int_equal(count_descriptors(), before);
    }
}

/* As after SIGKILL. */
static void what_is_not_complete_is_removed_later(void **unused)
{
    struct snapshot_store store;
    struct snapshot made = plan(4, true);
    const char *path = folder_path("killed");

    assert_int_equal(snapshot_open(&store, path, true), 0);
    assert_int_equal(snapshot_begin(&store, &made), 0);
    snapshot_close(&store);
    assert_true(folder_has_draft("killed"));
    assert_int_equal(snapshot_open(&store, path, false), 0); /* only reads */
    snapshot_close(&store);
    assert_true(folder_has_draft("killed"));
    assert_int_equal(snapshot_open(&store, path, true), 0);
    assert_false(folder_has_draft("killed"));
    snapshot_close(&store);
    snapshot_release(&made);
}

static void files_of_others_stay(void **unused)
{
    struct snapshot_store store;
    struct snapshot made = plan(1, false);
    const char *path = folder_path("others");
    uint32_t number;

    assert_int_equal(snapshot_open(&store, path, true), 0);
    assert_int_equal(mkdir(folder_path("others/checkpoint-000001"), 0777), 0);
    folder_write("others/checkpoint-000001/thesis", "x", 1);
    assert_int_equal(snapshot_next_number(&store, &number), 0);
    assert_int_equal(number, 2);
    assert_int_equal(snapshot_begin(&store, &made), 0);
    write_files(&store, &made);
    assert_int_equal(snapshot_commit(&store, &made), -EEXIST);
    assert_int_equal(snapshot_abandon(&store, 1), 0);
    assert_int_equal(mkdir(folder_path("others/.checkpoint-000002.partial"), 0777), 0);
    folder_write("others/.checkpoint-000002.partial/thesis", "x", 1);
    snapshot_close(&store);
    assert_int_equal(snapshot_open(&store, path, true), -EPERM);
    snapshot_close(&store);
    assert_true(file_exists(folder_path("others/.checkpoint-000002.partial/thesis")));
    assert_true(file_exists(folder_path("others/checkpoint-000001/thesis")));
    snapshot_release(&made);
}

/* A chunk at another position, in another file or checkpoint, or of another time, has another
 * checksum. */
static void no_two_chunks_are_alike(void **unused)
{
    static uint64_t chunk[2048], other[2048];
    const uint32_t sum =
        (content_fill(chunk, sizeof chunk, 1), content_stamp(chunk, sizeof chunk, 5, 1, 8192));

    content_fill(other, sizeof other, 1);
    struct random random = random_start(1);
    for (size_t i = 0; i < 2048; i++) /* no file system shrinks it */
        assert_int_equal(other[i], random_next(&random));
    assert_int_equal(content_stamp(other, sizeof other, 5, 1, 8192), sum);
    assert_memory_equal(chunk, other, sizeof chunk);
    assert_int_not_equal(content_stamp(other, sizeof other, 6, 1, 8192), sum);
    assert_int_not_equal(content_stamp(other, sizeof other, 5, 2, 8192), sum);
    assert_int_not_equal(content_stamp(other, sizeof other, 5, 1, 0), sum);
    for (size_t i = 512; i < 2048; i += 512)
        assert_int_not_equal(chunk[0], chunk[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_comes_back_as_it_was),
        cmocka_unit_test(any_damaged_or_missing_byte_is_noticed),
        cmocka_unit_test(hostile_manifests_are_refused),
        cmocka_unit_test(a_checkpoint_is_there_when_it_is_complete),
        cmocka_unit_test(a_good_one_stays_while_newer_ones_lack_bytes),
        cmocka_unit_test(what_is_not_complete_is_removed_later),
        cmocka_unit_test(files_of_others_stay),
        cmocka_unit_test(no_two_chunks_are_alike),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
