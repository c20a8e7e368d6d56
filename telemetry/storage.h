/* SPDX-License-Identifier: Apache-2.0
 *
 * storage: bytes that left storage for a set of files, by witnesses outside the reader:
 *  - reads of this process from block devices and NFS (/proc/self/io read_bytes): exact for local
 *    file systems, io_uring included; a read that a device without polling refuses and that is
 *    retried counts twice;
 *  - bytes sent by the NFS server (mountstats), for any process of this node;
 *  - bytes delivered by the devices beneath the files (sectors of 512 bytes), for any process. Of a
 *    loop device they are the witness: its file is cached, but the process is charged all the same.
 *
 * Open and close off the clock. Reading allocates nothing and costs some ten microseconds.
 * One thread at a time.
 */
#ifndef IOBENCH_TELEMETRY_STORAGE_H
#define IOBENCH_TELEMETRY_STORAGE_H

#include "telemetry/devices.h"

struct storage;

/* Current counters; unknown ones are 0. */
struct storage_bytes {
    bool process_known, server_known, device_known;
    uint64_t process_read_bytes, server_read_bytes, device_read_bytes;
    uint64_t process_write_bytes; /* pages dirtied, or written past the cache */
    uint64_t device_write_bytes;
};

/* Bytes that left storage between two readings. */
struct storage_share {
    bool known;
    bool of_node;               /* of all processes of this node */
    bool in_memory;             /* unknown, as there is memory where storage should be */
    uint64_t bytes;             /* by the witness named in method */
    struct storage_bytes parts; /* of every witness */
    bool devices_hold_all; /* all files are on devices that count, whose bytes are then at least
                              what left storage */
    char method[96];       /* "/proc/self/io read_bytes" */
    char reason[160];      /* why unknown; else "" */
};

/* paths: the files of a data set. Returns NULL with a reason. */
struct storage *storage_open(const struct telemetry_roots *roots, const char *const *paths,
                             size_t count);
void storage_close(struct storage *storage);

void storage_read(struct storage *storage, struct storage_bytes *bytes);
/* Return the growth of each counter; there is no verdict on what was written. */
struct storage_bytes storage_growth(const struct storage_bytes *before,
                                    const struct storage_bytes *after);
void storage_between(const struct storage *storage, const struct storage_bytes *before,
                     const struct storage_bytes *after, struct storage_share *share);

/* The devices beneath, and the mount of the first path (NULL if unknown). */
const struct device_list *storage_devices(const struct storage *storage);
const struct mount *storage_mount(const struct storage *storage);

#endif
