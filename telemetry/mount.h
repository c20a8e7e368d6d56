/* SPDX-License-Identifier: Apache-2.0
 * mount: which file system a path lies on (/proc/self/mountinfo, proc(5)). Any thread. */
#ifndef IOBENCH_TELEMETRY_MOUNT_H
#define IOBENCH_TELEMETRY_MOUNT_H

#include "telemetry/procfile.h"

struct mount {
    unsigned device_major, device_minor;
    char point[512], type[32], source[512];
    char options[256];        /* of this mount */
    char super_options[2048]; /* of the file system: overlay's folders, NFS's rsize, ... */
};

/* Blanks, newlines and backslashes are written as three octal digits there. False when it does not
 * fit, or holds a NUL. */
bool mount_unescape(struct text word, char *copy, size_t copy_bytes);

/* One line of mountinfo; false when it is none, or a name in it does not fit. */
bool mount_parse(struct text line, struct mount *mount);

/* The mount of an absolute path without symbolic links, out of the text of mountinfo: the longest
 * mount point that is a part of it, the last one where several are the same. */
bool mount_find(struct text mountinfo, const char *path, struct mount *mount);

/* tmpfs and its like: nothing is read from anywhere. */
bool mount_is_memory(const struct mount *mount);

/* The same for any path, on this machine. 0, or a negative errno with a reason. */
int mount_of_path(const struct telemetry_roots *roots, const char *path, struct mount *mount);

#endif
