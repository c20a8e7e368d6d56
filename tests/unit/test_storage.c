/* SPDX-License-Identifier: Apache-2.0
 * The witnesses against reads of known size, and the kernel's files as they look elsewhere. */
#include "tests/unit/folder.h"
#include "tests/unit/mounts.h"

#include "cachectl/residency.h"
#include "telemetry/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { FILE_BYTES = 8 << 20 };

static uint64_t read_through(const char *path)
{
    static char buffer[1 << 20];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;
    uint64_t bytes = 0;

    assert_true(fd >= 0);
    while ((got = read(fd, buffer, sizeof buffer)) > 0)
        bytes += (uint64_t)got;
    close(fd);
    return bytes;
}

/* Measure the device before and after one read of the file. Returns false if others used the device
 * meanwhile and the count is not of this read alone. */
static bool count_read(struct storage *storage, const char *path, uint64_t least, uint64_t most)
{
    struct storage_bytes before, after;
    struct storage_share share;

    storage_read(storage, &before);
    assert_int_equal(read_through(path), FILE_BYTES);
    storage_read(storage, &after);
    storage_between(storage, &before, &after, &share);
    if (!share.known || strstr(share.method, "mountstats")) {
        print_message("not exact on this file system: %s%s\n", share.method, share.reason);
        return true;
    }
    assert_true(share.bytes >= least);
    return share.bytes <= most;
}

static void cold_read_is_counted_and_warm_is_not(void **unused)
{
    static char block[FILE_BYTES];
    const char *path = folder_path("file");
    struct evict_figures figures;
    bool cold = false, warm = false;

    memset(block, 7, sizeof block);
    folder_write("file", block, sizeof block);
    struct storage *storage = storage_open(&telemetry_roots_usual, &path, 1);
    assert_non_null(storage);
    for (int i = 0; i < 20 && !(cold && warm); i++) {
        assert_int_equal(cache_files(CACHE_EVICT_MOUNT, &path, 1, 0, NULL, &figures), 0);
        cold |= count_read(storage, path, FILE_BYTES, FILE_BYTES + FILE_BYTES / 100);
        warm |= count_read(storage, path, 0, FILE_BYTES / 100);
    }
    assert_true(cold && warm);
    storage_close(storage);
}

static void memory_has_no_storage(void **unused)
{
    const char *path = "/dev/shm";
    struct storage_bytes bytes;
    struct storage_share share;
    struct mount mount;

    if (mount_of_path(&telemetry_roots_usual, path, &mount) || strcmp(mount.type, "tmpfs") != 0)
        skip();
    struct storage *storage = storage_open(&telemetry_roots_usual, &path, 1);
    storage_read(storage, &bytes);
    storage_between(storage, &bytes, &bytes, &share);
    assert_true(!share.known && share.in_memory);
    assert_non_null(strstr(share.reason, "memory"));
    storage_close(storage);
}

/* Files of one folder are on one file system, unless they are links. */
static void links_of_a_folder_are_followed(void **unused)
{
    const char *const names[] = {"set/1", "set/2", "set/3"};
    const char *paths[3];
    char store[3][512];
    struct storage_bytes bytes;
    struct storage_share share;
    struct mount mount;

    if (mount_of_path(&telemetry_roots_usual, "/dev/shm", &mount) ||
        strcmp(mount.type, "tmpfs") != 0 ||
        mount_of_path(&telemetry_roots_usual, test_folder, &mount) ||
        strcmp(mount.type, "tmpfs") == 0)
        skip();
    folder_put("set/1", "x");
    folder_put("set/2", "x");
    assert_int_equal(symlink("/dev/shm", folder_path("set/3")), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(store[i], sizeof store[i], "%s", folder_path(names[i]));
        paths[i] = store[i];
    }
    for (size_t count = 2; count <= 3; count++) {
        struct storage *storage = storage_open(&telemetry_roots_usual, paths, count);
        storage_read(storage, &bytes);
        storage_between(storage, &bytes, &bytes, &share);
        assert_int_equal(share.in_memory, count == 3);
        storage_close(storage);
    }
}

/* A file may be a mount of its own: containers get single files so. */
static bool a_mounted_file_is_seen(const char *const *paths)
{
    char memory[] = "/dev/shm/iobench-test-XXXXXX";
    struct storage_bytes bytes;
    struct storage_share share;
    int fd = mkstemp(memory);

    if (fd < 0 || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount(memory, paths[1], NULL, MS_BIND, NULL)) {
        unlink(memory);
        _exit(77);
    }
    unlink(memory);
    struct storage *storage = storage_open(&telemetry_roots_usual, paths, 3);
    storage_read(storage, &bytes);
    storage_between(storage, &bytes, &bytes, &share);
    storage_close(storage);
    return share.in_memory;
}

static void a_file_that_is_a_mount(void **unused)
{
    static const char *const names[] = {"alone/1", "alone/2", "alone/3"};
    const char *paths[3];
    char store[3][512];
    struct mount mount;
    int status;

    if (mount_of_path(&telemetry_roots_usual, "/dev/shm", &mount) || !mount_is_memory(&mount) ||
        mount_of_path(&telemetry_roots_usual, test_folder, &mount) || mount_is_memory(&mount))
        skip();
    for (int i = 0; i < 3; i++) {
        folder_put(names[i], "x");
        snprintf(store[i], sizeof store[i], "%s", folder_path(names[i]));
        paths[i] = store[i];
    }
    const pid_t pid = fork();
    if (pid == 0)
        _exit(a_mounted_file_is_seen(paths) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* nothing can be mounted here */
    assert_int_equal(status, 0);
}

/* ---- text ---- */

static void words_and_numbers(void **unused)
{
    struct text text = text_of_string("18446744073709551615 18446744073709551616 x1 1x  7"), word;
    uint64_t value = 5;

    assert_true(text_u64(&text, &value) && value == UINT64_MAX);
    assert_false(text_u64(&text, &value)); /* too large: nothing consumed */
    assert_true(text_word(&text, &word) && text_is(word, "18446744073709551616"));
    assert_false(text_u64(&text, &value));
    assert_true(text_word(&text, &word) && text_is(word, "x1"));
    assert_false(text_u64(&text, &value));
    assert_true(text_word(&text, &word) && text_starts(word, "1"));
    assert_true(text_u64(&text, &value) && value == 7);
    assert_false(text_u64(&text, &value));
    assert_false(text_word(&text, &word));
    assert_false(text_line(&text, &word));
}

/* A mount below which a later one was mounted has no files any more, by the kernel's word. */
static void the_kernel_names_the_mount_of_a_path(void **unused)
{
    struct mount found;
    char outer[512];

    snprintf(outer, sizeof outer, "%s", folder_path("mounts"));
    assert_int_equal(folder_make_path(folder_path("mounts/set")), 0);
    if (!own_mounts() || mount("inner", folder_path("mounts/set"), "tmpfs", 0, NULL) ||
        mount("outer", outer, "tmpfs", 0, NULL))
        skip();
    assert_int_equal(folder_make_path(folder_path("mounts/set")), 0);
    assert_int_equal(mount_of_path(&telemetry_roots_usual, folder_path("mounts/set"), &found), 0);
    assert_string_equal(found.source, "outer");
    assert_int_equal(umount(outer), 0);
    assert_int_equal(umount(folder_path("mounts/set")), 0);
}

static int setup(void **state)
{
    setenv("TMPDIR", "/var/tmp", 0);
    return folder_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cold_read_is_counted_and_warm_is_not),
        cmocka_unit_test(memory_has_no_storage),
        cmocka_unit_test(links_of_a_folder_are_followed),
        cmocka_unit_test(a_file_that_is_a_mount),
        cmocka_unit_test(words_and_numbers),
        cmocka_unit_test(the_kernel_names_the_mount_of_a_path),
    };

    return cmocka_run_group_tests(tests, setup, folder_teardown);
}
