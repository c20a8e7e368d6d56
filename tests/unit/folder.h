/* SPDX-License-Identifier: Apache-2.0
 * A folder for a test's files, removed with its contents. */
#ifndef IOBENCH_TESTS_UNIT_FOLDER_H
#define IOBENCH_TESTS_UNIT_FOLDER_H

#include "tests/unit/unit.h"

#include "base/file.h"
#include "base/folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char test_folder[256];

static int folder_setup(void **unused)
{
    const char *below = getenv("TMPDIR");

    below = below ? below : "/tmp";
    if (snprintf(test_folder, sizeof test_folder, "%.230s/iobench-test-XXXXXX", below) !=
        (int)(strlen(below) + strlen("/iobench-test-XXXXXX"))) {
        fprintf(stderr, "TMPDIR is too long: %s\n", below);
        return -1;
    }
    return mkdtemp(test_folder) ? 0 : -1;
}

static int folder_remove_one(const char *path, const struct stat *status, int type,
                             struct FTW *walk)
{
    return remove(path);
}

static int folder_teardown(void **unused)
{
    return nftw(test_folder, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Path of a name in the folder; valid for the next seven calls. */
static inline const char *folder_path(const char *name)
{
    static char paths[8][768];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%.440s", test_folder, name);
    return path;
}

static inline void folder_write(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(folder_path(name), "we");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* A test with a folder of its own. */
#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

static inline bool is_there(const char *name)
{
    struct stat status;

    return lstat(folder_path(name), &status) == 0;
}

static inline void assert_text(const char *name, const char *expected)
{
    char *text;
    size_t bytes;

    assert_int_equal(file_load(folder_path(name), 1 << 20, &text, &bytes), 0);
    assert_string_equal(text, expected);
    free(text);
}

static inline struct folder open_test_folder(void)
{
    struct folder folder;

    assert_int_equal(folder_open(&folder, test_folder), 0);
    return folder;
}

/* Write a text file, creating its parent folders. */
static inline void folder_put(const char *name, const char *text)
{
    char parent[768];

    snprintf(parent, sizeof parent, "%s", folder_path(name));
    *strrchr(parent, '/') = '\0';
    assert_int_equal(folder_make_path(parent), 0);
    folder_write(name, text, strlen(text));
}

static inline int folder_see_draft(void *context, const char *name, unsigned char type)
{
    size_t length = strlen(name);

    return length > 8 && strcmp(name + length - 8, ".partial") == 0;
}

/* Return whether the folder contains drafts. */
static inline bool folder_has_draft(const char *name)
{
    struct folder folder;

    assert_int_equal(folder_open(&folder, folder_path(name)), 0);
    int found = folder_list(&folder, folder_see_draft, NULL);
    folder_close(&folder);
    return found != 0;
}

#endif
