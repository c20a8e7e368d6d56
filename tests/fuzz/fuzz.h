/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the fuzz targets. A target is a libFuzzer function; tests/fuzz/replay.c runs its corpus
 * in `make check`, tests/fuzz/run.sh fuzzes it. Single-threaded programs only.
 */
#ifndef IOBENCH_TESTS_FUZZ_FUZZ_H
#define IOBENCH_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* Checked in every build. */
#define FUZZ_CHECK(condition)                                                       \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

static char fuzz_folder[64];

static inline void fuzz_remove_folder(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf '%s'", fuzz_folder);
    if (system(command) != 0)
        fprintf(stderr, "%s is left behind\n", fuzz_folder);
}

/* Return the path of a name in a folder of this process; valid for the next three calls. */
static inline const char *fuzz_path(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];

    if (!*fuzz_folder) {
        snprintf(fuzz_folder, sizeof fuzz_folder, "%s/iobench-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        FUZZ_CHECK(mkdtemp(fuzz_folder));
        atexit(fuzz_remove_folder);
    }
    snprintf(path, sizeof paths[0], "%s/%s", fuzz_folder, name);
    return path;
}

static inline const char *fuzz_write(const char *name, const void *bytes, size_t count)
{
    const char *path = fuzz_path(name);
    FILE *file = fopen(path, "we");

    FUZZ_CHECK(file && (count == 0 || fwrite(bytes, 1, count, file) == count));
    FUZZ_CHECK(fclose(file) == 0);
    return path;
}

/* Return a copy of exact size, so a sanitizer detects reads past the end. free() it. */
static inline uint8_t *fuzz_exact(const uint8_t *bytes, size_t count)
{
    uint8_t *copy = malloc(count ? count : 1);

    FUZZ_CHECK(copy);
    if (count)
        memcpy(copy, bytes, count);
    return copy;
}

#endif
