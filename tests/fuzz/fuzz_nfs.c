/* SPDX-License-Identifier: Apache-2.0
 * Replies of an NFS server, as returned by libnfs: attributes of any value, names of any bytes. A
 * name with more than one component is never passed on. */
#include "tests/fuzz/fuzz.h"

#include "base/bytes.h"
#include "base/fail.h"

/* Replace its functions, not its symbols: the boundary to libnfs is included. */
#include "dataset/store_nfs.c"

static int check_entry(void *context, const struct store_entry *entry)
{
    (void)context;
    FUZZ_CHECK(*entry->name && !strchr(entry->name, '/') && strcmp(entry->name, ".") != 0 &&
               strcmp(entry->name, "..") != 0);
    FUZZ_CHECK(entry->kind == STORE_FILE || entry->kind == STORE_FOLDER ||
               entry->kind == STORE_OTHER);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    uint64_t numbers[10] = {0};
    char name[256] = "";

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && 8 * i + 8 <= count; i++)
        numbers[i] = bytes_le64(bytes + 8 * i);
    if (count > sizeof numbers)
        memcpy(name, bytes + sizeof numbers,
               count - sizeof numbers < 255 ? count - sizeof numbers : 255);
    const struct nfs_stat_64 found = {.nfs_mode = numbers[0],
                                      .nfs_size = numbers[1],
                                      .nfs_mtime = numbers[2],
                                      .nfs_mtime_nsec = numbers[3],
                                      .nfs_ino = numbers[4]};
    struct store_status status = status_of(&found);
    FUZZ_CHECK(status.bytes == numbers[1]);
    /* Following a link would need a server. */
    const uint32_t mode = (uint32_t)numbers[5];
    struct nfsdirent entry = {.name = name,
                              .inode = numbers[4],
                              .type = (uint32_t)numbers[6],
                              .mode = S_ISLNK(mode) ? 0 : mode,
                              .size = numbers[7],
                              .mtime_nsec = (uint32_t)numbers[8],
                              .mtime.tv_sec = (time_t)numbers[9]};
    const int code = visit_one("nfs://s/e", &entry, check_entry, NULL);
    FUZZ_CHECK(code == (strchr(name, '/') ? -EBADMSG : 0));
    return 0;
}
