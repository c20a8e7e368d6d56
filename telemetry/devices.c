/* SPDX-License-Identifier: Apache-2.0
 *
 * Documentation/ABI/stable/sysfs-block: entries of /sys/dev/block link to the device's folder; a
 * partition's folder is inside its disk's, and slaves/ lists what a device is made of.
 */
#include "telemetry/devices.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- the file system of a path ---- */

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
    /* 0: not reported by this libc or the kernel (before 5.8), or files of another machine are
     * read. */
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

/* ---- devices ---- */

/* Limits of one search: layers that refer to each other would make its cost exponential in
 * depth. */
enum { DEPTH_MAX = 16, VISITS_MAX = 1024, FOLDER_BYTES = 768 };

static void leaves_of_path(const struct telemetry_roots *roots, const char *path, unsigned depth,
                           struct device_list *list);

/* Keep only the first note. */
__attribute__((format(printf, 2, 3))) static void note_once(char text[ELSEWHERE_BYTES],
                                                            const char *format, ...)
{
    va_list arguments;

    if (text[0])
        return;
    va_start(arguments, format);
    vsnprintf(text, ELSEWHERE_BYTES, format, arguments);
    va_end(arguments);
}

static bool may_visit(struct device_list *list, unsigned depth)
{
    if (depth <= DEPTH_MAX && list->visits < VISITS_MAX) {
        list->visits++;
        return true;
    }
    list->cut_off = true;
    note_once(list->elsewhere, "too many layers to search");
    return false;
}

static bool read_number(const char *folder, const char *file, unsigned *device_major,
                        unsigned *device_minor)
{
    char text[64];

    return file_peek(text, sizeof text, "%s/%s", folder, file) &&
           sscanf(text, "%u:%u", device_major, device_minor) == 2;
}

static bool exists(const char *folder, const char *file)
{
    char path[1312];

    snprintf(path, sizeof path, "%.1000s/%.300s", folder, file);
    return access(path, F_OK) == 0;
}

/* Add the leaves of each link in a folder of devices. Returns whether there was one. */
static bool leaves_of_folder(const struct telemetry_roots *roots, const char *folder,
                             unsigned depth, struct device_list *list)
{
    unsigned device_major, device_minor;
    struct folder_names names;
    bool any = false;

    folder_names_of(&names, folder);
    for (size_t i = 0; i < names.count; i++) {
        char file[300];
        snprintf(file, sizeof file, "%s/dev", names.list[i]);
        if (names.list[i][0] == '.' || !read_number(folder, file, &device_major, &device_minor))
            continue;
        devices_of_device(roots, device_major, device_minor, depth + 1, list);
        any = true;
    }
    folder_names_release(&names);
    return any;
}

static bool is_fabric(const char *folder, const char *controller)
{
    char transport[16];

    return file_peek(transport, sizeof transport, "%s/%s/transport", folder, controller) &&
           strncmp(transport, "pcie", 4) != 0;
}

/* Add a device that consists of no others. */
static void add_leaf(const struct telemetry_roots *roots, unsigned device_major,
                     unsigned device_minor, struct device_list *list)
{
    /* brd and zram hold their blocks in memory, null_blk holds none. */
    static const char *const in_memory[] = {"ram", "zram", "nullb"};
    char link[FOLDER_BYTES], target[FOLDER_BYTES], folder[FOLDER_BYTES + 8];
    bool is_memory = false;

    snprintf(link, sizeof link, "%.600s/dev/block/%u:%u", roots->sys, device_major, device_minor);
    ssize_t length = readlink(link, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(target, '/');
    if (!slash)
        snprintf(target, sizeof target, "%u:%u", device_major, device_minor);
    const char *name = slash ? slash + 1 : target;
    /* Served by another machine: nbd, rbd, iSCSI, NVMe over fabrics by one path or, as a subsystem,
     * by several. */
    bool is_remote =
        strncmp(name, "nbd", 3) == 0 || strncmp(name, "rbd", 3) == 0 || strstr(target, "/session");
    if (!is_remote && strncmp(name, "nvme", 4) == 0) {
        struct folder_names names;
        snprintf(folder, sizeof folder, "%s/device", link);
        is_remote = is_fabric(folder, ".");
        folder_names_of(&names, folder);
        for (size_t i = 0; i < names.count && !is_remote; i++)
            is_remote = strncmp(names.list[i], "nvme", 4) == 0 && is_fabric(folder, names.list[i]);
        folder_names_release(&names);
    }
    if (is_remote)
        note_once(list->elsewhere, "%.40s, a network disk", name);
    for (size_t i = 0; i < sizeof in_memory / sizeof in_memory[0]; i++) {
        const size_t bytes = strlen(in_memory[i]);
        is_memory |=
            strncmp(name, in_memory[i], bytes) == 0 && name[bytes] >= '0' && name[bytes] <= '9';
    }
    if (is_memory) {
        list->memory_ends++;
        note_once(list->memory, "%.40s, a disk in memory", name);
        return;
    }
    list->device_ends++;
    for (uint32_t i = 0; i < list->count; i++)
        if (list->devices[i].device_major == device_major &&
            list->devices[i].device_minor == device_minor)
            return;
    if (list->count == DEVICES_MAX) {
        list->cut_off = true;
        note_once(list->elsewhere, "more than %d devices", DEVICES_MAX);
        return;
    }
    struct device *device = &list->devices[list->count++];
    device->device_major = device_major;
    device->device_minor = device_minor;
    snprintf(device->name, sizeof device->name, "%.39s", name);
}

void devices_of_device(const struct telemetry_roots *roots, unsigned device_major,
                       unsigned device_minor, unsigned depth, struct device_list *list)
{
    char folder[FOLDER_BYTES], inner[FOLDER_BYTES + 64], backing[BACKING_FILE_BYTES], direct[8];
    const uint32_t before = list->device_ends + list->memory_ends;

    if (!may_visit(list, depth))
        return;
    snprintf(folder, sizeof folder, "%.600s/dev/block/%u:%u", roots->sys, device_major,
             device_minor);
    if (exists(folder, "partition") &&
        read_number(folder, "../dev", &device_major, &device_minor)) {
        devices_of_device(roots, device_major, device_minor, depth + 1, list);
        return;
    }
    snprintf(inner, sizeof inner, "%s/slaves", folder);
    if (leaves_of_folder(roots, inner, depth, list)) {
        /* Caching devices of a bcache; its backing one is a slave. */
        for (unsigned i = 0; i < 8; i++) {
            snprintf(inner, sizeof inner, "bcache/cache/cache%u/../dev", i);
            if (read_number(folder, inner, &device_major, &device_minor))
                devices_of_device(roots, device_major, device_minor, depth + 1, list);
        }
        return;
    }
    if (file_peek(backing, sizeof backing, "%s/loop/backing_file", folder)) {
        if (!file_peek(direct, sizeof direct, "%s/loop/dio", folder) || direct[0] != '1') {
            uint32_t i = 0;
            while (i < list->backing_count && strcmp(list->backing[i], backing) != 0)
                i++;
            if (i == BACKING_FILES_MAX)
                list->cut_off = true;
            else if (i == list->backing_count)
                memcpy(list->backing[list->backing_count++], backing, sizeof backing);
        }
        leaves_of_path(roots, backing, depth + 1, list);
    }
    if (list->device_ends + list->memory_ends == before)
        add_leaf(roots, device_major, device_minor, list);
}

/* ---- file systems without a device number of their own ---- */

/* Visit each folder of "upperdir=A,lowerdir=B:C". One layer in memory does not tell where a file
 * is: its resident pages do. */
static void leaves_of_overlay(const struct telemetry_roots *roots, const struct mount *mount,
                              unsigned depth, struct device_list *list)
{
    struct text options = text_of_string(mount->super_options), option, folder;
    const bool was_memory = list->memory[0];
    const uint32_t before = list->device_ends;
    char path[512];

    while (text_until(&options, ',', &option)) {
        if (!text_skip(&option, "upperdir=") && !text_skip(&option, "lowerdir=") &&
            !text_skip(&option, "lowerdir+=") && !text_skip(&option, "datadir+="))
            continue;
        while (text_until(&option, ':', &folder))
            if (folder.at < folder.end)
                leaves_of_path(roots, text_copy(folder, path, sizeof path), depth + 1, list);
    }
    if (!was_memory && list->device_ends > before)
        list->memory[0] = '\0';
}

/* Add every device of the btrfs that contains the mount's source. Returns whether there was one. */
static bool leaves_of_btrfs(const struct telemetry_roots *roots, const struct mount *mount,
                            unsigned depth, struct device_list *list)
{
    char root[FOLDER_BYTES], folder[FOLDER_BYTES + 300];
    const char *source = strrchr(mount->source, '/');
    struct folder_names names;
    bool any = false;

    snprintf(root, sizeof root, "%.700s/fs/btrfs", roots->sys);
    folder_names_of(&names, root);
    for (size_t i = 0; source && i < names.count; i++) {
        if (!strchr(names.list[i], '-'))
            continue;
        snprintf(folder, sizeof folder, "%s/%s/devices", root, names.list[i]);
        if (exists(folder, source + 1))
            any |= leaves_of_folder(roots, folder, depth, list);
    }
    folder_names_release(&names);
    return any;
}

static void leaves_of_path(const struct telemetry_roots *roots, const char *path, unsigned depth,
                           struct device_list *list)
{
    struct stat status;
    struct mount mount;
    char folder[FOLDER_BYTES];

    if (!may_visit(list, depth))
        return;
    if (stat(path, &status)) {
        note_once(list->elsewhere, "%.120s, not visible from here", path);
        return;
    }
    dev_t number = S_ISBLK(status.st_mode) ? status.st_rdev : status.st_dev;
    snprintf(folder, sizeof folder, "%.600s/dev/block/%u:%u", roots->sys, major(number),
             minor(number));
    if (major(number) != 0 && access(folder, F_OK) == 0) {
        devices_of_device(roots, major(number), minor(number), depth + 1, list);
        return;
    }
    if (mount_of_path(roots, path, &mount)) {
        note_once(list->elsewhere, "%.120s, whose mount is unknown", path);
        return;
    }
    if (strcmp(mount.type, "overlay") == 0)
        leaves_of_overlay(roots, &mount, depth, list); /* each folder has its own devices */
    else if (strcmp(mount.type, "btrfs") != 0 || !leaves_of_btrfs(roots, &mount, depth, list))
        note_once(mount_is_memory(&mount) ? list->memory : list->elsewhere, "%s at %.100s",
                  mount.type, mount.point);
    list->memory_ends += mount_is_memory(&mount);
}

int devices_of_path(const struct telemetry_roots *roots, const char *path, struct device_list *list)
{
    if (access(path, F_OK))
        return fail(errno, "%s: %s", path, fail_errno_text(errno));
    leaves_of_path(roots, path, 0, list);
    return 0;
}

bool devices_number(const char *path, uint64_t *number)
{
    struct statx status;

    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &status))
        return false;
    *number = S_ISBLK(status.stx_mode) ? makedev(status.stx_rdev_major, status.stx_rdev_minor)
                                       : makedev(status.stx_dev_major, status.stx_dev_minor);
    return true;
}

void devices_of_paths(const struct telemetry_roots *roots, const char *const *paths, size_t count,
                      struct device_list *list)
{
    uint64_t seen[DEVICES_MAX], number;
    uint32_t seen_count = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t k = 0;
        if (!devices_number(paths[i], &number))
            continue;
        while (k < seen_count && seen[k] != number)
            k++;
        if (k < seen_count)
            continue;
        if (seen_count < DEVICES_MAX)
            seen[seen_count++] = number;
        leaves_of_path(roots, paths[i], 0, list);
    }
}

char *devices_text(const struct device_list *list, char *text, size_t text_bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < list->count && used + 1 < text_bytes; i++) {
        int length =
            snprintf(text + used, text_bytes - used, "%s%s", i ? ", " : "", list->devices[i].name);
        used += length > 0 ? (size_t)length : 0;
    }
    return text;
}
