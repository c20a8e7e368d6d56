/* SPDX-License-Identifier: Apache-2.0
 *
 * Before a checkpoint gets its name, each of its files and their folder have been synced, and
 * before an older one goes, the name has been synced as well: the calls are watched.
 */
#include "tests/unit/folder.h"

#include "base/fail.h"
#include "cmd/checkpoint/checkpoint.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>

enum { SYNCED_MAX = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char synced[SYNCED_MAX][512]; /* paths, in order */
static int synced_count;
static bool name_is_synced = true; /* of the newest checkpoint */
static unsigned named, removed;

static void path_of(int fd, char path[512])
{
    char link[64];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, 511);
    assert_true(length > 0);
    path[length] = '\0';
}

int fsync(int fd)
{
    const int code = (int)syscall(SYS_fsync, fd);

    pthread_mutex_lock(&lock);
    assert_true(synced_count < SYNCED_MAX);
    path_of(fd, synced[synced_count]);
    const char *name = strrchr(synced[synced_count++], '/') + 1;
    name_is_synced |= strcmp(name, "durable") == 0;
    pthread_mutex_unlock(&lock);
    return code;
}

/* Return when it was last synced; -1: never. */
static int synced_at(const char *path)
{
    int i = synced_count - 1;

    while (i >= 0 && strcmp(synced[i], path) != 0)
        i--;
    return i;
}

static void check_synced(const char *draft)
{
    DIR *folder = opendir(draft);
    const int folder_at = synced_at(draft);
    unsigned files = 0;
    char path[1300];

    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", draft, entry->d_name);
        if (synced_at(path) < 0 || synced_at(path) > folder_at)
            fail_msg("%s: not synced, or after its folder", path);
        files++;
    }
    closedir(folder);
    assert_int_equal(files, 17); /* two of each of 8 ranks, and the manifest */
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    char store[512], draft[1024];

    if (strncmp(to, "checkpoint-", 11) == 0) {
        path_of(from_fd, store);
        snprintf(draft, sizeof draft, "%s/%s", store, from);
        check_synced(draft);
        name_is_synced = false;
        named++;
    } else if (strncmp(from, "checkpoint-", 11) == 0) {
        assert_true(name_is_synced);
        removed++;
    }
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

static void names_follow_syncs(void **unused)
{
    struct ranks ranks = ranks_alone();
    struct checkpoint_result result;
    struct checkpoint_job job = {.path = folder_path("durable"),
                                 .model.bytes = 1 << 20,
                                 .chunk_bytes = 65536,
                                 .depth = 1,
                                 .reader = "auto",
                                 .sync = true,
                                 .leave = true,
                                 .writes = 3,
                                 .keep = 1};

    assert_int_equal(model_choose("8b", &job.model.model), 0);
    const int code = checkpoint_run(&job, &ranks, &result);
    if (code)
        fail_msg("%d: %s", code, fail_reason());
    checkpoint_destroy(&result);
    assert_int_equal(named, 3);
    assert_int_equal(removed, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_follow_syncs),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
