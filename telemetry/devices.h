/* SPDX-License-Identifier: Apache-2.0
 *
 * devices: find the lowest block devices beneath a path: through partitions, device mapper, md,
 * bcache, loop, overlay and btrfs. Lists leaves only, since bytes would count twice otherwise.
 * Off the clock; any thread.
 */
#ifndef IOBENCH_TELEMETRY_DEVICES_H
#define IOBENCH_TELEMETRY_DEVICES_H

#include "telemetry/probe.h"

/* ---- the file system of a path (/proc/self/mountinfo, proc(5)) ---- */

struct mount {
    uint64_t id;
    unsigned device_major, device_minor;
    char point[512], type[32], source[512];
    char options[256];        /* of this mount */
    char super_options[2048]; /* of the file system: overlay's folders, NFS's rsize, ... */
};

/* Decode blanks, newlines and backslashes written as three octal digits. Returns false if the
 * result does not fit or contains NUL. */
bool mount_unescape(struct text word, char *copy, size_t copy_bytes);

/* Parse a line of mountinfo. Returns false if malformed, or if a name does not fit. */
bool mount_parse(struct text line, struct mount *mount);

/* Find the mount of an absolute path without symbolic links in mountinfo: that of this id, since a
 * later mount above hides others; if 0 or not listed, the longest mount point that contains it, the
 * last one of equals. */
bool mount_find(struct text mountinfo, const char *path, uint64_t id, struct mount *mount);

bool mount_is_memory(const struct mount *mount); /* tmpfs and similar */

/* Find the mount of any path on this machine. Returns 0, or a negative errno with a reason. */
int mount_of_path(const struct telemetry_roots *roots, const char *path, struct mount *mount);

/* ---- devices ---- */

enum { DEVICES_MAX = 256 };

struct device {
    unsigned device_major, device_minor;
    char name[40]; /* "nvme0n1" */
};

enum { BACKING_FILES_MAX = 8, BACKING_FILE_BYTES = 512, ELSEWHERE_BYTES = 160 };

struct device_list {
    uint32_t count;
    bool cut_off;    /* more than DEVICES_MAX, or too many layers */
    uint32_t visits; /* paths and devices visited: the cost of the search */
    /* How often the search met a device and memory: more than count, as some lie beneath others. */
    uint32_t device_ends, memory_ends;
    struct device devices[DEVICES_MAX];
    /* Backing files of loop devices on the way, unless these read them directly (losetup
     * --direct-io): their pages are a second cache. */
    uint32_t backing_count;
    char backing[BACKING_FILES_MAX][BACKING_FILE_BYTES];
    /* Remote storage beneath the path, which another machine may cache: "nfs4 at /mnt", "nbd0, a
     * network disk". "": none. */
    char elsewhere[ELSEWHERE_BYTES];
    /* Memory beneath the path, which is no device: "tmpfs at /dev/shm", "zram0, a disk in memory".
     * "": none. */
    char memory[ELSEWHERE_BYTES];
};

/* Add the devices beneath a path to the list, without duplicates. NFS and memory have none. Returns
 * 0, or a negative errno with a reason. */
int devices_of_path(const struct telemetry_roots *roots, const char *path,
                    struct device_list *list);

/* The same for many files, each file system once. Files that do not exist have none. */
void devices_of_paths(const struct telemetry_roots *roots, const char *const *paths, size_t count,
                      struct device_list *list);

/* Number of the file system that holds a path, which may be a mount of its own, or of the block
 * device that the path names. By what the kernel knows: asking a server for each of a million files
 * would take minutes. Returns false if the path does not exist. */
bool devices_number(const char *path, uint64_t *number);

/* Add the leaves beneath one block device, itself beneath that many layers. */
void devices_of_device(const struct telemetry_roots *roots, unsigned device_major,
                       unsigned device_minor, unsigned depth, struct device_list *list);

/* Format as "sda, sdb"; "" if empty. Returns text. */
char *devices_text(const struct device_list *list, char *text, size_t text_bytes);

#endif
