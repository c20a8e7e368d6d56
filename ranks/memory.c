/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory shared by the ranks of a node: the lowest rank creates it under a unique name, the others
 * open it, then the name is removed.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "ranks/ranks.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NAME_BYTES = 64 };

struct offer {
    uint32_t node;
    bool leads;
    char name[NAME_BYTES];
};

static int map(int file, struct ranks_memory *memory)
{
    void *start = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE,
                       file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, file, 0);

    if (start == MAP_FAILED)
        return fail(errno, "memory shared by the ranks of a node: %s", fail_errno_text(errno));
    memory->start = start;
    return 0;
}

static int open_named(const char *name, bool makes, struct ranks_memory *memory)
{
    int file = shm_open(name, makes ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
    int code = 0;

    if (file < 0)
        return fail(errno, "%s, memory shared by the ranks of a node: %s", name,
                    fail_errno_text(errno));
    if (makes && ftruncate(file, (off_t)memory->bytes))
        code = fail(errno, "%s: %s", name, fail_errno_text(errno));
    if (code == 0)
        code = map(file, memory);
    close(file);
    return code;
}

int ranks_share(struct ranks *ranks, uint64_t each_bytes, struct ranks_memory *memory)
{
    const uint64_t line_bytes = 64; /* ranks never share a cache line */
    const bool leads = ranks->place.local_rank == 0;
    struct offer mine = {.node = ranks->place.node, .leads = leads};

    each_bytes = (each_bytes + line_bytes - 1) / line_bytes * line_bytes;
    *memory = (struct ranks_memory){.each_bytes = each_bytes,
                                    .bytes = each_bytes * ranks->place.local_ranks};
    if (ranks->place.ranks == 1)
        return map(-1, memory);
    snprintf(mine.name, sizeof mine.name, "/iobench-%d-%llx", (int)getpid(),
             (unsigned long long)clock_now_ns());
    int code = leads ? open_named(mine.name, true, memory) : 0;
    struct offer *offers = ranks_collect(ranks, &code, &mine, sizeof mine);
    for (uint32_t i = 0; offers && !leads && i < ranks->place.ranks; i++)
        if (offers[i].leads && offers[i].node == ranks->place.node)
            code = open_named(offers[i].name, false, memory);
    if (code == 0 && !memory->start)
        code = fail(EPROTO, "no rank of this node shares memory");
    code = ranks_meet(ranks, code, NULL);
    if (leads)
        shm_unlink(mine.name);
    free(offers);
    return code;
}

void ranks_unshare(struct ranks_memory *memory)
{
    if (memory->start)
        munmap(memory->start, memory->bytes);
    memory->start = NULL;
}

void *ranks_memory_of(const struct ranks_memory *memory, uint32_t local_rank)
{
    assert(memory->start && memory->each_bytes * local_rank < memory->bytes);
    return (char *)memory->start + memory->each_bytes * local_rank;
}
