/* SPDX-License-Identifier: Apache-2.0
 * mount: the file system of a path (/proc/self/mountinfo, proc(5)). Any thread. */
#ifndef IOBENCH_TELEMETRY_MOUNT_H
#define IOBENCH_TELEMETRY_MOUNT_H

#include "telemetry/procfile.h"

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

#endif
