/* SPDX-License-Identifier: Apache-2.0
 *
 * devices: the block devices at the bottom, beneath a path: through partitions, device mapper, md,
 * bcache, loop, overlay and btrfs. Only leaves are named, else bytes would count twice.
 * Off the clock; any thread.
 */
#ifndef IOBENCH_TELEMETRY_DEVICES_H
#define IOBENCH_TELEMETRY_DEVICES_H

#include "telemetry/mount.h"

enum { DEVICES_MAX = 256 };

struct device {
    unsigned device_major, device_minor;
    char name[40]; /* "nvme0n1" */
};

enum { BACKING_FILES_MAX = 8, BACKING_FILE_BYTES = 512, ELSEWHERE_BYTES = 160 };

struct device_list {
    uint32_t count;
    bool cut_off;    /* there are more than DEVICES_MAX, or the search would not end */
    uint32_t visits; /* paths and devices looked at, which is what the search costs */
    struct device devices[DEVICES_MAX];
    /* Files of loop devices between the path and the leaves: their pages are a second cache. */
    uint32_t backing_count;
    char backing[BACKING_FILES_MAX][BACKING_FILE_BYTES];
    /* What lies beneath and is neither this machine's memory nor a disk of its own, so that
     * somebody else may cache it: "nfs4 at /mnt", "nbd0, a disk on the network". "": nothing. */
    char elsewhere[ELSEWHERE_BYTES];
};

/* Add the devices beneath a path to the list, each once. None is not an error: NFS and tmpfs have
 * none. 0, or a negative errno with a reason. */
int devices_of_path(const struct telemetry_roots *roots, const char *path,
                    struct device_list *list);

/* Add the leaves beneath one block device. */
void devices_of_device(const struct telemetry_roots *roots, unsigned device_major,
                       unsigned device_minor, struct device_list *list);

/* "sda, sdb"; "" when there is none. Returns text. */
char *devices_text(const struct device_list *list, char *text, size_t text_bytes);

#endif
