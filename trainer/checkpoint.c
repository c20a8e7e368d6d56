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
    LAYOUT_VERSION = 2,
    FIRST_VERSION = 1, /* without settings */
    NAME_AT = 24,
    NUMBERS_AT = NAME_AT + CHECKPOINT_NAME_BYTES,
    NUMBERS = 8,
    RATE_AT = NUMBERS_AT + NUMBERS * 8,
    SETTINGS_AT = RATE_AT + 8,
    HEAD_BYTES = SETTINGS_AT + CHECKPOINT_SETTINGS_BYTES,
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

uint64_t checkpoint_floats(const struct checkpoint *checkpoint)
{
    return 2 * checkpoint->parameter_floats + checkpoint->statistic_floats;
}

int checkpoint_check_replaced(const char *path)
{
    return replaced_check(path, magic, sizeof magic);
}

int checkpoint_write(const char *path, const struct checkpoint *checkpoint, const float *floats)
{
    const uint64_t bytes = checkpoint_floats(checkpoint) * sizeof *floats;
    struct checkpoint copy = *checkpoint;
    uint64_t *numbers[NUMBERS], rate;
    uint8_t head[HEAD_BYTES] = {0}, end[CRC_BYTES];
    /* A fixed name: the next checkpoint replaces what kill -9 leaves, so drafts do not pile up. The
     * caller has locked the folder. */
    const struct file_draft_options again = {.suffix = "next"};
    struct file_draft draft;

    memcpy(head, magic, sizeof magic);
    bytes_put_le32(head + 8, LAYOUT_VERSION);
    bytes_put_le32(head + 12, checkpoint->side);
    bytes_put_le32(head + 16, checkpoint->classes);
    snprintf((char *)head + NAME_AT, CHECKPOINT_NAME_BYTES, "%s", checkpoint->network);
    list_numbers(&copy, numbers);
    for (int i = 0; i < NUMBERS; i++)
        bytes_put_le64(head + NUMBERS_AT + 8 * i, *numbers[i]);
    memcpy(&rate, &checkpoint->rate_before, sizeof rate);
    bytes_put_le64(head + RATE_AT, rate);
    snprintf((char *)head + SETTINGS_AT, CHECKPOINT_SETTINGS_BYTES, "%s", checkpoint->settings);
    bytes_put_le32(end, crc32c(crc32c(0, head, HEAD_BYTES), floats, bytes));
    const bool is_free = file_draft_remove_stale(path, again.suffix) == 0;
    int code = is_free ? file_draft_open(&draft, path, &again) : -EEXIST;
    if (code == -EEXIST)
        code = file_draft_open(&draft, path, NULL);
    if (code)
        return code;
    code = file_write_at(draft.fd, head, HEAD_BYTES, 0, draft.draft_path);
    if (code == 0)
        code = file_write_at(draft.fd, floats, bytes, HEAD_BYTES, draft.draft_path);
    if (code == 0)
        code = file_write_at(draft.fd, end, sizeof end, HEAD_BYTES + bytes, draft.draft_path);
    if (code == 0)
        code = file_draft_commit(&draft);
    file_draft_abandon(&draft);
    return code;
}

/* Read exactly that many bytes. */
static int read_all(int fd, void *to, uint64_t bytes, uint64_t offset, const char *path)
{
    const ssize_t got = file_read_at(fd, to, bytes, offset, path);

    if (got >= 0 && (uint64_t)got < bytes)
        return fail(EBADMSG, "%s: the checkpoint ends early", path);
    return got < 0 ? (int)got : 0;
}

/* Read the head; version 1's ends before the settings. Returns its size or a negative errno. */
static int read_head(int fd, uint8_t head[HEAD_BYTES], const struct checkpoint *wanted,
                     struct checkpoint *found, const char *path)
{
    uint64_t *numbers[NUMBERS], rate;

    memset(head, 0, HEAD_BYTES);
    int bytes = SETTINGS_AT, code = read_all(fd, head, SETTINGS_AT, 0, path);
    const uint32_t version = bytes_le32(head + 8);
    if (code == 0 && version > FIRST_VERSION) {
        code = read_all(fd, head + SETTINGS_AT, CHECKPOINT_SETTINGS_BYTES, SETTINGS_AT, path);
        bytes = HEAD_BYTES;
    }
    if (code)
        return code;
    *found = (struct checkpoint){.side = bytes_le32(head + 12), .classes = bytes_le32(head + 16)};
    memcpy(found->network, head + NAME_AT, CHECKPOINT_NAME_BYTES - 1);
    list_numbers(found, numbers);
    for (int i = 0; i < NUMBERS; i++)
        *numbers[i] = bytes_le64(head + NUMBERS_AT + 8 * i);
    rate = bytes_le64(head + RATE_AT);
    memcpy(&found->rate_before, &rate, sizeof rate);
    memcpy(found->settings, head + SETTINGS_AT, CHECKPOINT_SETTINGS_BYTES - 1);
    if (memcmp(head, magic, sizeof magic) != 0)
        return fail(EINVAL, "%s: not a checkpoint", path);
    if (version < FIRST_VERSION || version > LAYOUT_VERSION)
        return fail(EINVAL, "%s: checkpoint version %u, expected %d to %d", path, version,
                    FIRST_VERSION, LAYOUT_VERSION);
    if (strcmp(found->network, wanted->network) != 0 || found->side != wanted->side ||
        found->classes != wanted->classes || found->parameter_floats != wanted->parameter_floats ||
        found->statistic_floats != wanted->statistic_floats)
        return fail(EINVAL,
                    "%s: a checkpoint of %s for images of %u pixels and %u classes, not of %s for "
                    "%u pixels and %u classes",
                    path, found->network, found->side, found->classes, wanted->network,
                    wanted->side, wanted->classes);
    return bytes;
}

int checkpoint_read(const char *path, const struct checkpoint *wanted,
                    struct checkpoint *checkpoint, float *floats)
{
    const uint64_t bytes = checkpoint_floats(wanted) * sizeof *floats;
    uint8_t head[HEAD_BYTES], end[CRC_BYTES];
    int fd = file_open(path, O_RDONLY, NULL);

    if (fd < 0)
        return fd;
    const int head_bytes = read_head(fd, head, wanted, checkpoint, path);
    int code = head_bytes < 0 ? head_bytes : 0;
    if (code == 0)
        code = read_all(fd, floats, bytes, (uint64_t)head_bytes, path);
    if (code == 0)
        code = read_all(fd, end, sizeof end, (uint64_t)head_bytes + bytes, path);
    if (code == 0 && bytes_le32(end) != crc32c(crc32c(0, head, (size_t)head_bytes), floats, bytes))
        code = fail(EBADMSG, "%s: the checkpoint is damaged: its CRC is wrong", path);
    close(fd);
    return code;
}
