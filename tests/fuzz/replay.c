/* SPDX-License-Identifier: Apache-2.0
 * The main of a fuzz target without libFuzzer: every file of its corpus, once. */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "base/file.h"

#include <dirent.h>

enum { LIMIT = 16 << 20, SKIP = 77 };

static int replay(const char *folder, const char *name)
{
    char *path = file_join(folder, name), *bytes = NULL;
    size_t count = 0;
    int code = path ? file_load(path, LIMIT, &bytes, &count) : -1;

    if (code)
        fprintf(stderr, "%s\n", fail_reason());
    else
        LLVMFuzzerTestOneInput((const uint8_t *)bytes, count);
    free(bytes);
    free(path);
    return code;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : CORPUS;
    DIR *folder = opendir(path);
    struct dirent *entry;
    int files = 0;

    if (!folder) {
        fprintf(stderr, "%s: no corpus\n", path);
        return SKIP;
    }
    while ((entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        if (replay(path, entry->d_name))
            return 1;
        files++;
    }
    closedir(folder);
    printf("%d inputs of %s\n", files, path);
    return files > 0 ? 0 : 1;
}
