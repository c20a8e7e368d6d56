/* SPDX-License-Identifier: Apache-2.0
 *
 * storage: how many bytes left storage for a set of files, by witnesses outside the reader:
 *  - what this process made block devices and NFS read (/proc/self/io read_bytes): exact for local
 *    file systems, through io_uring too; a read that a device without polling refuses and that is
 *    tried again counts twice;
 *  - what the NFS server sent (mountstats), by whomever of this node it was asked;
 *  - what the devices beneath the files delivered (sectors of 512 bytes), to whomever.
 *
 * Open and close off the clock. Reading allocates nothing and costs some ten microseconds.
 * One thread at a time.
 */
#ifndef IOBENCH_TELEMETRY_STORAGE_H
#define IOBENCH_TELEMETRY_STORAGE_H

#include "telemetry/devices.h"

struct storage;

/* Counters as they stand. What is not known is 0. */
struct storage_bytes {
    bool process_known, server_known, device_known;
    uint64_t process_read_bytes, server_read_bytes, device_read_bytes;
};

/* What left storage between two looks. */
struct storage_share {
    bool known;
    bool of_node;               /* of all processes of this machine, not of this one alone */
    uint64_t bytes;             /* by the witness that method names */
    struct storage_bytes parts; /* of every witness that there is */
    bool devices_hold_all; /* all of the files lie on devices that count: what these gave is then
                              at least what left storage */
    char method[96];       /* "/proc/self/io read_bytes" */
    char reason[160];      /* why it is not known; else "" */
};

/* paths: the files of a data set; of neighbours in one folder only the first is looked at.
 * NULL with a reason. */
struct storage *storage_open(const struct telemetry_roots *roots, const char *const *paths,
                             size_t count);
void storage_close(struct storage *storage);

void storage_read(struct storage *storage, struct storage_bytes *bytes);
void storage_between(const struct storage *storage, const struct storage_bytes *before,
                     const struct storage_bytes *after, struct storage_share *share);

/* The devices beneath, and the mount of the first path (NULL when it is not known). */
const struct device_list *storage_devices(const struct storage *storage);
const struct mount *storage_mount(const struct storage *storage);

#endif
