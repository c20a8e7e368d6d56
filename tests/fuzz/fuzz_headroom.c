/* SPDX-License-Identifier: Apache-2.0
 * The kernel's files of memory and CPUs: form feeds split the input into the files below; a file
 * without text does not exist. */
#include "tests/fuzz/fuzz.h"

#include "base/file.h"

static const char *const file_names[] = {
    "/proc/self/cgroup",      "/proc/meminfo", "/proc/self/statm",  "/memory.max",
    "/memory.current",        "/memory.stat",  "/memory.high",      "/memory.limit_in_bytes",
    "/memory.usage_in_bytes", "/cpu.max",      "/cpu.cfs_quota_us", "/cpu.cfs_period_us"};
enum { FILES = sizeof file_names / sizeof *file_names };

static struct {
    char *text;
    size_t bytes;
} files[FILES];
static unsigned opened;

static FILE *open_text(const char *path)
{
    const size_t length = strlen(path);

    opened++;
    for (int i = 0; i < FILES; i++) {
        const size_t end = strlen(file_names[i]);
        if (files[i].text && length >= end && strcmp(path + length - end, file_names[i]) == 0)
            return fmemopen(files[i].text, files[i].bytes, "r");
    }
    return NULL;
}

static bool is_some_folder(const char *path)
{
    return strlen(path) % 2;
}

/* Replace its functions, not its symbols: it reads the files above. */
#define file_stream_kernel open_text
#define file_is_folder is_some_folder
#include "base/control_group.c"
#include "base/memory.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *copy = (char *)fuzz_exact(bytes, count), *at = copy, *end = copy + count;
    struct headroom headroom;

    for (int i = 0; i < FILES; i++) {
        char *cut = at < end ? memchr(at, '\f', (size_t)(end - at)) : NULL;
        files[i].text = at < end ? at : NULL;
        files[i].bytes = (size_t)((cut ? cut : end) - at);
        at = cut ? cut + 1 : end;
    }
    opened = 0;
    headroom_find(&headroom, "/proc", "/sys");
    control_group_cpus("/proc", "/sys");
    FUZZ_CHECK(headroom.cause && *headroom.cause);
    FUZZ_CHECK(opened <= 4096);
    free(copy);
    return 0;
}
