/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/checkpoint.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LAYOUT_VERSION = 1,
    NAME_AT = 24,
    NUMBERS_AT = NAME_AT + CHECKPOINT_NAME_BYTES,
    NUMBERS = 8,
    RATE_AT = NUMBERS_AT + NUMBERS * 8,
    HEAD_BYTES = RATE_AT + 8,
    CRC_BYTES = 4
};

static const char magic[8] = {'I', 'O', 'B', 'E', 'N', 'C', 'H', 'K'};

/* Header fields in file order. */
static void list_numbers(struct checkpoint *checkpoint, uint64_t *numbers[NUMBERS])
{
    uint64_t *const list[NUMBERS] = {&checkpoint->parameter_floats,
                                     &checkpoint->statistic_floats,
                                     &checkpoint->seed,
                                     &checkpoint->batch_size,
                                     &checkpoint->epoch,
                                     &checkpoint->step,
                                     &checkpoint->elapsed_ns,
                                     &checkpoint->samples};

    memcpy(numbers, list, sizeof list);
}

static void encode(struct checkpoint checkpoint, uint8_t head[HEAD_BYTES])
{
    uint64_t *numbers[NUMBERS], rate;

    memset(head, 0, HEAD_BYTES);
    memcpy(head, magic, sizeof magic);
    bytes_put_le32(head + 8, LAYOUT_VERSION);
    bytes_put_le32(head + 12, checkpoint.side);
    bytes_put_le32(head + 16, checkpoint.classes);
    snprintf((char *)head + NAME_AT, CHECKPOINT_NAME_BYTES, "%s", checkpoint.network);
    list_numbers(&checkpoint, numbers);
    for (int i = 0; i < NUMBERS; i++)
        bytes_put_le64(head + NUMBERS_AT + 8 * i, *numbers[i]);
    memcpy(&rate, &checkpoint.rate_before, sizeof rate);
    bytes_put_le64(head + RATE_AT, rate);
}

static void decode(const uint8_t head[HEAD_BYTES], struct checkpoint *checkpoint)
{
    uint64_t *numbers[NUMBERS], rate;

    *checkpoint =
        (struct checkpoint){.side = bytes_le32(head + 12), .classes = bytes_le32(head + 16)};
    memcpy(checkpoint->network, head + NAME_AT, CHECKPOINT_NAME_BYTES - 1);
    list_numbers(checkpoint, numbers);
    for (int i = 0; i < NUMBERS; i++)
        *numbers[i] = bytes_le64(head + NUMBERS_AT + 8 * i);
    rate = bytes_le64(head + RATE_AT);
    memcpy(&checkpoint->rate_before, &rate, sizeof rate);
}

/* The file's parts in order, with their CRC. */
struct part {
    void *bytes;
    uint64_t count;
};

static int write_parts(int fd, const struct part *parts, int count, const char *path)
{
    uint64_t offset = 0;
    uint32_t crc = 0;
    int code = 0;

    for (int i = 0; i < count && code == 0; i++) {
        code = file_write_at(fd, parts[i].bytes, parts[i].count, offset, path);
        crc = crc32c(crc, parts[i].bytes, parts[i].count);
        offset += parts[i].count;
    }
    uint8_t end[CRC_BYTES];
    bytes_put_le32(end, crc);
    return code ? code : file_write_at(fd, end, sizeof end, offset, path);
}

int checkpoint_write(const char *path, const struct checkpoint *checkpoint, const float *parameters,
                     const float *momenta, const float *statistics)
{
    uint8_t head[HEAD_BYTES];
    const uint64_t bytes = checkpoint->parameter_floats * sizeof(float);
    const struct part parts[] = {
        {head, sizeof head},
        {(void *)(uintptr_t)parameters, bytes},
        {(void *)(uintptr_t)momenta, bytes},
        {(void *)(uintptr_t)statistics, checkpoint->statistic_floats * sizeof(float)},
    };
    /* A fixed name: the next checkpoint replaces what kill -9 leaves, so drafts do not pile up. Not
     * safe if another training run writes to the same folder. */
    const struct file_draft_options again = {.suffix = "next"};
    struct file_draft draft;

    encode(*checkpoint, head);
    const bool is_free = file_draft_remove_stale(path, again.suffix) == 0;
    int code = is_free ? file_draft_open(&draft, path, &again) : -EEXIST;
    if (code == -EEXIST)
        code = file_draft_open(&draft, path, NULL);
    if (code)
        return code;
    code = write_parts(draft.fd, parts, 4, draft.draft_path);
    if (code == 0)
        code = file_draft_commit(&draft);
    file_draft_abandon(&draft);
    return code;
}

static int check_head(const uint8_t head[HEAD_BYTES], const struct checkpoint *wanted,
                      const struct checkpoint *found, const char *path)
{
    if (memcmp(head, magic, sizeof magic) != 0)
        return fail(EINVAL, "%s: not a checkpoint", path);
    if (bytes_le32(head + 8) != LAYOUT_VERSION)
        return fail(EINVAL, "%s: checkpoint version %u, expected %d", path, bytes_le32(head + 8),
                    LAYOUT_VERSION);
    if (strcmp(found->network, wanted->network) != 0 || found->side != wanted->side ||
        found->classes != wanted->classes || found->parameter_floats != wanted->parameter_floats ||
        found->statistic_floats != wanted->statistic_floats)
        return fail(EINVAL,
                    "%s: a checkpoint of %s for images of %u pixels and %u classes, not of %s for "
                    "%u pixels and %u classes",
                    path, found->network, found->side, found->classes, wanted->network,
                    wanted->side, wanted->classes);
    return 0;
}

static int read_parts(int fd, const struct part *parts, int count, const char *path)
{
    uint8_t head[HEAD_BYTES], end[CRC_BYTES];
    uint64_t offset = sizeof head;
    ssize_t got = file_read_at(fd, head, sizeof head, 0, path);
    uint32_t crc = got < 0 ? 0 : crc32c(0, head, (size_t)got);

    for (int i = 0; i < count && got >= 0; i++) {
        got = file_read_at(fd, parts[i].bytes, parts[i].count, offset, path);
        if (got >= 0 && (uint64_t)got < parts[i].count)
            return fail(EBADMSG, "%s: the checkpoint ends early", path);
        crc = crc32c(crc, parts[i].bytes, parts[i].count);
        offset += parts[i].count;
    }
    if (got >= 0)
        got = file_read_at(fd, end, sizeof end, offset, path);
    if (got < 0)
        return (int)got;
    if (got != sizeof end || bytes_le32(end) != crc)
        return fail(EBADMSG, "%s: the checkpoint is damaged: its CRC is wrong", path);
    return 0;
}

int checkpoint_read(const char *path, const struct checkpoint *wanted,
                    struct checkpoint *checkpoint, float *parameters, float *momenta,
                    float *statistics)
{
    uint8_t head[HEAD_BYTES];
    const uint64_t bytes = wanted->parameter_floats * sizeof(float);
    const struct part parts[] = {{parameters, bytes},
                                 {momenta, bytes},
                                 {statistics, wanted->statistic_floats * sizeof(float)}};
    int fd = file_open(path, O_RDONLY, NULL);

    if (fd < 0)
        return fd;
    ssize_t got = file_read_at(fd, head, sizeof head, 0, path);
    int code = got < 0 ? (int)got : 0;
    if (code == 0 && got < HEAD_BYTES)
        code = fail(EBADMSG, "%s: the checkpoint ends early", path);
    if (code == 0) {
        decode(head, checkpoint);
        code = check_head(head, wanted, checkpoint, path);
    }
    if (code == 0)
        code = read_parts(fd, parts, 3, path);
    close(fd);
    return code;
}
