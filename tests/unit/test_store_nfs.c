/* SPDX-License-Identifier: Apache-2.0
 * Both stores, each with a session of its calls; that of NFS on a libnfs made here, whose calls are
 * told, too. Its clock passes in sleeps and silence only. */
#include "tests/unit/allocations.h"
#include "tests/unit/manual_clock.h"
#include "tests/unit/nfs_stand_in.h"
#include "tests/unit/session.h"

#include "dataset/store_nfs.h"
#include "dataset/store.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/random.h>

static struct store_file *file;

static void tell_call(const char *call, int64_t status)
{
    if (status < 0)
        say("    %s: %s\n", call, fail_errno_text((int)status));
    else
        say("    %s\n", call);
}

static const char *kind_text(enum store_kind kind)
{
    return kind == STORE_FILE ? "file" : kind == STORE_FOLDER ? "folder" : "other";
}

/* And whether it is what the kernel says of the same file. */
static void say_status(const char *path, const struct store_status *status, bool of_name)
{
    struct stat found;
    char here[1024];

    snprintf(here, sizeof here, "%s%s", store_is_local(path) ? "" : test_folder,
             store_is_local(path) ? path : path + strlen("nfs://box"));
    const int failed = of_name ? lstat(here, &found) : stat(here, &found);
    const bool same = !failed && status->kind == store_kind_of(found.st_mode) &&
                      status->bytes == (uint64_t)found.st_size && status->owner == found.st_uid &&
                      status->mtime_ns == store_time_ns((uint64_t)found.st_mtim.tv_sec,
                                                        (uint64_t)found.st_mtim.tv_nsec) &&
                      status->ctime_ns == store_time_ns((uint64_t)found.st_ctim.tv_sec,
                                                        (uint64_t)found.st_ctim.tv_nsec) &&
                      status->device == found.st_dev && status->inode == found.st_ino &&
                      (status->mode & 07777) == (found.st_mode & 07777);
    say("  %s", kind_text(status->kind));
    if (status->kind == STORE_FILE)
        say(" of %llu bytes", (unsigned long long)status->bytes);
    say(same ? "\n" : ", not as here\n");
}

static void say_text(const char *text, ssize_t bytes)
{
    for (ssize_t i = 0; i < bytes && i < 80; i++)
        say(text[i] == '\n' ? "|" : "%c", text[i]);
    say("\n");
}

static char listed[32][512];
static int listed_count;

static int see(void *context, const struct store_entry *entry)
{
    assert_true(listed_count < 32);
    char *line = listed[listed_count++];
    snprintf(line, sizeof *listed, "%s%s%s", entry->name, entry->is_link ? ", a link to a " : ", ",
             kind_text(entry->kind));
    if (entry->status && !entry->is_link && entry->status->bytes != 0 &&
        entry->status->kind == STORE_FILE)
        sprintf(line + strlen(line), " of %llu bytes", (unsigned long long)entry->status->bytes);
    return *(int *)context && listed_count == *(int *)context ? -ECANCELED : 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static uint8_t suffix; /* of a draft, all eight letters */

ssize_t getrandom(void *bytes, size_t count, unsigned flags)
{
    (void)flags;
    memset(bytes, suffix, count);
    return (ssize_t)count;
}

static int try_command(int count, char **words, const char *input)
{
    static char block[5 << 20];
    const char *path = words[1];
    struct store_status status;
    uint64_t number;
    int code = 0;

#define IS(name) (strcmp(words[0], name) == 0)
    if (IS("put")) {
        folder_put(path, strcmp(input, "\n") == 0 ? "" : input);
    } else if (IS("link")) {
        assert_int_equal(symlink(words[2], folder_path(path)), 0);
    } else if (IS("show")) {
        char *text = NULL;
        code = store_load(path, 64, &text, &(size_t){0});
        if (code == 0)
            say("  "), say_text(text, (ssize_t)strlen(text));
        free(text);
    } else if (IS("timeout")) {
        store_set_timeout(strtoull(path, NULL, 10) * 1000000);
    } else if (IS("trouble")) { /* KIND STATUS|lost|unasked|silence [COUNT] */
        static char kind[16];
        snprintf(kind, sizeof kind, "%s", path);
        nfs_stand_in.trouble_kind = kind;
        nfs_stand_in.trouble = strcmp(words[2], "lost") == 0      ? TROUBLE_LOST
                               : strcmp(words[2], "unasked") == 0 ? TROUBLE_UNASKED
                               : strcmp(words[2], "silence") == 0 ? TROUBLE_SILENCE
                                                                  : TROUBLE_STATUS;
        nfs_stand_in.trouble_status = -atoi(words[2]);
        nfs_stand_in.trouble_count = count > 3 ? (unsigned)atoi(words[3]) : 1;
    } else if (IS("find")) { /* VERSION URL [OTHER]: whether the place holds it */
        const struct nfs_place *place;
        code = nfs_place_find(words[2], atoi(path), &place);
        if (code == 0)
            say("  %s of %s, version %d; below it %s\n", place->folder, place->server,
                place->version, nfs_place_below(place, words[2]));
        if (code == 0 && count > 3)
            say("  %s\n", nfs_place_holds(place, words[3]) ? "holds it" : "not in it");
    } else if (IS("stat")) {
        code = store_stat(path, &status);
        if (code == 0)
            say_status(path, &status, false);
    } else if (IS("list")) {
        int most = count > 2 ? atoi(words[2]) : 0;
        listed_count = 0;
        code = store_list(path, see, &most);
        if (!most)
            qsort(listed, (size_t)listed_count, sizeof *listed, by_text);
        for (int i = 0; i < listed_count && !most; i++)
            say("  %s\n", listed[i]);
    } else if (IS("open")) { /* read|create|extend PATH */
        code = store_open(words[2],
                          *path == 'r'   ? STORE_READ
                          : *path == 'c' ? STORE_CREATE
                                         : STORE_EXTEND,
                          &file);
        if (code == 0)
            say_status(words[2], &file->status, false);
    } else if (IS("read")) { /* BYTES OFFSET */
        const ssize_t got =
            store_read_at(file, block, strtoull(path, NULL, 10), strtoull(words[2], NULL, 10));
        code = got < 0 ? (int)got : 0;
        if (got >= 0)
            say("  %zd bytes: ", got), say_text(block, got < 16 ? got : 16);
    } else if (IS("write")) { /* OFFSET, or BYTES of x */
        memset(block, 'x', sizeof block);
        code = *input ? store_write_at(file, input, strlen(input), strtoull(path, NULL, 10))
                      : store_write_at(file, block, strtoull(path, NULL, 10), 0);
    } else if (IS("data")) {
        say("  %llu\n", (unsigned long long)store_next_data(file, strtoull(path, NULL, 10)));
    } else if (IS("close")) {
        code = store_close(file, count > 1);
    } else if (IS("draft")) { /* PATH SUFFIX */
        suffix = (uint8_t)strtoul(words[2], NULL, 16);
        code = store_draft(path, &file);
    } else if (IS("commit")) {
        code = file ? store_settle(file, 0) : 0;
        file = NULL;
    } else if (IS("abandon")) {
        assert_int_equal(file ? store_settle(file, -EIO) : -EIO, -EIO);
        file = NULL;
    } else if (IS("rename")) {
        code = store_rename(path, words[2]);
    } else if (IS("remove")) {
        code = count > 2 ? store_remove_tree(path) : store_remove(path);
    } else if (IS("folders")) {
        code = store_make_folders(path);
    } else if (IS("within")) {
        say("  %s\n", store_is_within(path, words[2]) ? "within" : "outside");
    } else if (IS("same")) {
        say("  %s\n", store_is_same(path, words[2]) ? "the same" : "another");
    } else {
        assert_string_equal(words[0], "space");
        code = store_free_bytes(path, &number);
        if (code == 0)
            say(store_is_local(path) ? "  some\n" : "  %llu\n", (unsigned long long)number);
    }
    return code;
}

static void run_command(int count, char **words, const char *input)
{
    if (strcmp(words[0], "starve") != 0) {
        say_result(try_command(count, words, input));
        return;
    }
    /* Whichever allocation fails, that is said if the call cannot do without, and nothing is lost.
     */
    void (*const told)(const char *, int64_t) = nfs_stand_in.told;
    const size_t said = strlen(session_said);
    if (!allocations_counted) /* under sanitizers */
        try_command(count - 1, words + 1, input);
    for (uint64_t refused = 1; allocations_counted; refused++) {
        const uint64_t before = counter_get(&allocations) - counter_get(&releases);
        fail_clear();
        session_said[said] = '\0';
        allocation_refused = counter_get(&allocations) + refused;
        const int code = try_command(count - 1, words + 1, input);
        const bool was_refused = counter_get(&allocations) >= allocation_refused;
        allocation_refused = 0;
        if (!was_refused)
            break;
        if (code == 0 && strcmp(words[1], "draft") == 0)
            store_settle(file, -EIO);
        else if (code == 0 && strcmp(words[1], "open") == 0)
            store_close(file, false);
        if (!(code == 0 || (code == -ENOMEM && *fail_reason())) ||
            counter_get(&allocations) - counter_get(&releases) != before + 1)
            fail_msg("%s: allocation %d refused: %d, '%s', %d left", words[1], (int)refused, code,
                     fail_reason(),
                     (int)(counter_get(&allocations) - counter_get(&releases) - before - 1));
    }
    nfs_stand_in.told = told;
    session_said[said] = '\0';
    say("  out of memory\n");
}

static void a_session_with_a_server(void **unused)
{
    nfs_stand_in =
        (struct nfs_stand_in){.root = test_folder, .told = tell_call, .clock_ns = &manual_clock_ns};
    session_run("store-nfs.txt", run_command);
}

static void a_session_with_the_kernel(void **unused)
{
    session_run("store-local.txt", run_command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(a_session_with_a_server),
        FOLDER_TEST(a_session_with_the_kernel),
    };

    alarm(PATIENCE_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
