/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/mount.h"

#include "base/fail.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOUNTINFO_BYTES_MAX = 64 << 20 };

bool mount_unescape(struct text word, char *copy, size_t copy_bytes)
{
    size_t used = 0;

    while (word.at < word.end) {
        char letter = *word.at++;
        if (letter == '\\' && word.end - word.at >= 3 && word.at[0] >= '0' && word.at[0] <= '3' &&
            word.at[1] >= '0' && word.at[1] <= '7' && word.at[2] >= '0' && word.at[2] <= '7') {
            letter = (char)((word.at[0] - '0') * 64 + (word.at[1] - '0') * 8 + (word.at[2] - '0'));
            word.at += 3;
        }
        if (letter == '\0' || used == copy_bytes - 1)
            return false;
        copy[used++] = letter;
    }
    copy[used] = '\0';
    return true;
}

bool mount_parse(struct text line, struct mount *mount)
{
    struct text word, first;
    uint64_t number, device_major, device_minor;

    if (!text_u64(&line, &mount->id) || !text_u64(&line, &number) || !text_word(&line, &word) ||
        !text_until(&word, ':', &first) || !text_u64(&first, &device_major) ||
        !text_u64(&word, &device_minor) || !text_word(&line, &word) || /* root: not used */
        !text_word(&line, &word) || !mount_unescape(word, mount->point, sizeof mount->point) ||
        mount->point[0] != '/' || !text_word(&line, &word))
        return false;
    mount->device_major = (unsigned)device_major;
    mount->device_minor = (unsigned)device_minor;
    text_copy(word, mount->options, sizeof mount->options);
    do /* optional fields, up to a dash */
        if (!text_word(&line, &word))
            return false;
    while (!text_is(word, "-"));
    if (!text_word(&line, &word))
        return false;
    text_copy(word, mount->type, sizeof mount->type);
    if (!text_word(&line, &word) || !mount_unescape(word, mount->source, sizeof mount->source))
        return false;
    mount->super_options[0] = '\0';
    if (text_word(&line, &word))
        mount_unescape(word, mount->super_options, sizeof mount->super_options);
    return true;
}

bool mount_find(struct text mountinfo, const char *path, uint64_t id, struct mount *mount)
{
    struct text line;
    struct mount candidate;
    bool found = false;

    while (text_line(&mountinfo, &line)) {
        if (!mount_parse(line, &candidate))
            continue;
        size_t length = strlen(candidate.point);
        length -= candidate.point[length - 1] == '/';
        if (strncmp(path, candidate.point, length) != 0 ||
            (path[length] != '/' && path[length] != '\0'))
            continue;
        const bool is_it = id && candidate.id == id;
        if (is_it || !found || strlen(candidate.point) >= strlen(mount->point))
            *mount = candidate;
        found = true;
        if (is_it)
            break;
    }
    return found;
}

bool mount_is_memory(const struct mount *mount)
{
    static const char *const types[] = {"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(mount->type, types[i]) == 0)
            return true;
    return false;
}

int mount_of_path(const struct telemetry_roots *roots, const char *path, struct mount *mount)
{
    char *real = realpath(path, NULL), *mountinfo = NULL, *name = NULL;
    size_t bytes = 0;
    /* 0: the kernel (before 5.8) or this libc does not say, or another's files are read. */
    uint64_t id = 0;
    int code = real ? 0 : fail(errno, "%s: %s", path, fail_errno_text(errno));

#ifdef STATX_MNT_ID
    struct statx status;
    if (code == 0 && strcmp(roots->proc, telemetry_roots_usual.proc) == 0 &&
        statx(AT_FDCWD, real, AT_STATX_DONT_SYNC, STATX_MNT_ID, &status) == 0 &&
        status.stx_mask & STATX_MNT_ID)
        id = status.stx_mnt_id;
#endif
    if (code == 0) {
        name = file_format_path("%s/self/mountinfo", roots->proc);
        code = name ? file_load(name, MOUNTINFO_BYTES_MAX, &mountinfo, &bytes) : -ENOMEM;
    }
    if (code == 0 && !mount_find(text_of(mountinfo, bytes), real, id, mount))
        code = fail(ENOENT, "%s: %s lists no mount that contains it", path, name);
    free(name);
    free(mountinfo);
    free(real);
    return code;
}
