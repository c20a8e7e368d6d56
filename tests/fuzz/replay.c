/* SPDX-License-Identifier: Apache-2.0
 * The main of a fuzz target without libFuzzer: runs every file of its corpus once. */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "base/file.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 16 << 20 };

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

/* replay_NAME runs tests/fuzz/corpus/NAME in the source folder given by automake. */
static char *corpus_of(const char *program)
{
    const char *name = strrchr(program, '/'), *source = getenv("srcdir");

    name = strstr(name ? name : program, "replay_");
    return file_format_path("%s/tests/fuzz/corpus/%s", source ? source : "..",
                            name ? name + strlen("replay_") : "");
}

int main(int argc, char **argv)
{
    char *path = argc > 1 ? strdup(argv[1]) : corpus_of(argv[0]);
    DIR *folder = path ? opendir(path) : NULL;
    struct dirent *entry;
    int files = 0;

    if (!folder) {
        fprintf(stderr, "%s: no corpus\n", path);
        free(path);
        return 1;
    }
    while ((entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        if (replay(path, entry->d_name)) {
            free(path);
            return 1;
        }
        files++;
    }
    closedir(folder);
    printf("%d inputs of %s\n", files, path);
    free(path);
    return files > 0 ? 0 : 1;
}
