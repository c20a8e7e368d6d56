/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/hostile.h"

#include "base/crc32c.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONTENTS_LIMIT = 1 << 16, OPEN_FOLDERS = 32 };

static struct tree *taking; /* nftw() does not pass a context */
static const char *taking_allowed, *taking_kept;

static bool ends(const char *text, const char *tail)
{
    size_t length = strlen(text), tail_length = strlen(tail);

    return length >= tail_length && strcmp(text + length - tail_length, tail) == 0;
}

static bool below(const char *path, const char *folder)
{
    const size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* Readers may add only an index next to the data. */
static bool is_allowed(const char *path)
{
    return ends(path, ".iobench-index") || below(path, "./out") || below(path, "./cache") ||
           (taking_allowed && below(path, taking_allowed) &&
            !(taking_kept && below(path, taking_kept)));
}

static uint32_t contents(const char *path, const struct stat *status)
{
    uint8_t bytes[CONTENTS_LIMIT];
    uint32_t crc = 0;

    if (S_ISREG(status->st_mode) && status->st_size <= CONTENTS_LIMIT) {
        int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        ssize_t got = fd >= 0 ? read(fd, bytes, sizeof bytes) : -1;
        crc = got > 0 ? crc32c(0, bytes, (size_t)got) : 1;
        close(fd);
    } else if (S_ISLNK(status->st_mode)) {
        ssize_t got = readlink(path, (char *)bytes, sizeof bytes);
        crc = got > 0 ? crc32c(0, bytes, (size_t)got) : 1;
    }
    return crc;
}

static int add_line(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    const bool is_folder = S_ISDIR(status->st_mode);

    (void)kind;
    (void)where;
    if (is_allowed(path))
        return 0;
    if (taking->count == taking->room) {
        taking->room = taking->room ? taking->room * 2 : 256;
        taking->lines = realloc(taking->lines, taking->room * sizeof *taking->lines);
        if (!taking->lines)
            give_up("out of memory");
    }
    if (asprintf(&taking->lines[taking->count],
                 "%s: mode %o owner %u size %lld time %lld.%09ld crc %08x", path, status->st_mode,
                 status->st_uid, is_folder ? 0LL : (long long)status->st_size,
                 is_folder ? 0LL : (long long)status->st_ctim.tv_sec,
                 is_folder ? 0L : status->st_ctim.tv_nsec, contents(path, status)) < 0)
        give_up("out of memory");
    taking->count++;
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void tree_take(struct tree *tree, const char *folder, const char *allowed, const char *kept)
{
    *tree = (struct tree){0};
    taking = tree;
    taking_allowed = allowed;
    taking_kept = kept;
    if (nftw(folder, add_line, OPEN_FOLDERS, FTW_PHYS))
        give_up("%s: cannot list", folder);
    qsort(tree->lines, tree->count, sizeof *tree->lines, by_text);
}

void tree_free(struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        free(tree->lines[i]);
    free(tree->lines);
    *tree = (struct tree){0};
}

const char *tree_difference(const struct tree *before, const struct tree *after)
{
    static char text[4096];

    for (size_t i = 0; i < before->count || i < after->count; i++) {
        const char *was = i < before->count ? before->lines[i] : "",
                   *is = i < after->count ? after->lines[i] : "";
        if (strcmp(was, is) != 0) {
            snprintf(text, sizeof text,
                     "the files changed:\n    before: %.1900s\n    after:  %.1900s", was, is);
            return text;
        }
    }
    return NULL;
}
