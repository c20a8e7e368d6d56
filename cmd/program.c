/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/program.h"

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/random.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *program_path(void)
{
    const char *given = getenv("IOBENCH_PROGRAM");
    char path[PATH_MAX];
    const ssize_t length = given ? 0 : readlink("/proc/self/exe", path, sizeof path);

    if (length < 0) {
        fail(errno, "/proc/self/exe: %s", fail_errno_text(errno));
        return NULL;
    }
    return given ? strdup(given) : strndup(path, (size_t)length);
}

/* Hash the notes of the first object, the program; one of them is the build ID. */
static int hash_notes(struct dl_phdr_info *info, size_t bytes, void *build)
{
    (void)bytes;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const void *notes = (const void *)(uintptr_t)(info->dlpi_addr + part->p_vaddr);
        if (part->p_type == PT_NOTE)
            *(uint64_t *)build =
                random_hash(*(uint64_t *)build, crc32c(0, notes, part->p_memsz), part->p_memsz);
    }
    return 1;
}

uint64_t program_build(void)
{
    uint64_t build = random_hash_text(1, PACKAGE_VERSION);

    dl_iterate_phdr(hash_notes, &build);
    return build;
}
