/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/storage.h"

#include "base/memory.h"
#include "telemetry/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES_MAX = 32 };

/* How reads of a file system are accounted. */
enum storage_place_kind {
    PLACE_BLOCK,   /* reads from a device are charged to the process */
    PLACE_NFS,     /* and so are reads from the server */
    PLACE_MEMORY,  /* reads never reach storage */
    PLACE_UNKNOWN, /* FUSE, ZFS, ...: the kernel charges no process */
};

struct storage_place {
    uint64_t device; /* devices_number() */
    enum storage_place_kind kind;
    char type[32];
    char point[512];
};

struct storage {
    struct storage_place places[PLACES_MAX];
    uint32_t place_count;
    bool cut_off;
    struct mount mount;
    bool mount_known;
    struct device_list devices;
    struct procfile *device_files; /* one per device */
    struct procfile process, mountstats;
    bool uncounted; /* a device's statistics are off (queue/iostats) */
};

/* Learn how reads of a file's file system are accounted, once for each. */
static void add_place(struct storage *storage, const struct telemetry_roots *roots,
                      const char *path)
{
    struct mount mount = {0};
    struct device_list devices = {0};
    uint64_t device;
    uint32_t i = 0;

    if (!devices_number(path, &device))
        return;
    while (i < storage->place_count && storage->places[i].device != device)
        i++;
    if (i < storage->place_count)
        return;
    /* In a chroot the mount may be outside; the device is known all the same. */
    const bool is_mounted = mount_of_path(roots, path, &mount) == 0;
    devices_of_path(roots, path, &devices);
    if (!is_mounted && devices.count == 0)
        return;
    if (i == PLACES_MAX) {
        storage->cut_off = true;
        return;
    }
    devices_of_path(roots, path, &storage->devices);
    struct storage_place *place = &storage->places[storage->place_count++];
    place->device = device;
    /* overlay and btrfs: container layers whose folders are invisible from inside. */
    place->kind =
        !is_mounted                                    ? PLACE_BLOCK
        : mount_is_memory(&mount) || devices.memory[0] ? PLACE_MEMORY
        : nfs_is_type(mount.type)                      ? PLACE_NFS
        : devices.count || strcmp(mount.type, "overlay") == 0 || strcmp(mount.type, "btrfs") == 0
            ? PLACE_BLOCK
            : PLACE_UNKNOWN;
    memcpy(place->type, mount.type, sizeof place->type);
    memcpy(place->point, mount.point, sizeof place->point);
    if (is_mounted && !storage->mount_known)
        storage->mount = mount;
    storage->mount_known |= is_mounted;
}

struct storage *storage_open(const struct telemetry_roots *roots, const char *const *paths,
                             size_t count)
{
    struct storage *storage = memory_zeroed(sizeof *storage);

    if (!storage)
        return NULL;
    for (size_t i = 0; i < count; i++)
        add_place(storage, roots, paths[i]);
    const struct device_list *list = &storage->devices;
    storage->device_files = memory_array(list->count + 1, sizeof *storage->device_files);
    if (!storage->device_files) {
        storage_close(storage);
        return NULL;
    }
    /* An absent witness is not an error: its figure is unknown. */
    for (uint32_t i = 0; i < list->count; i++) {
        char iostats[8];
        if (file_peek(iostats, sizeof iostats, "%s/dev/block/%u:%u/queue/iostats", roots->sys,
                      list->devices[i].device_major, list->devices[i].device_minor) &&
            iostats[0] == '0')
            storage->uncounted = true;
        procfile_open(&storage->device_files[i], "%s/dev/block/%u:%u/stat", roots->sys,
                      list->devices[i].device_major, list->devices[i].device_minor);
    }
    procfile_open(&storage->process, "%s/self/io", roots->proc);
    for (uint32_t i = 0; i < storage->place_count; i++)
        if (storage->places[i].kind == PLACE_NFS && !storage->mountstats.buffer)
            procfile_open(&storage->mountstats, "%s/self/mountstats", roots->proc);
    return storage;
}

void storage_close(struct storage *storage)
{
    if (!storage)
        return;
    for (uint32_t i = 0; storage->device_files && i < storage->devices.count; i++)
        procfile_close(&storage->device_files[i]);
    procfile_close(&storage->process);
    procfile_close(&storage->mountstats);
    free(storage->device_files);
    free(storage);
}

const struct device_list *storage_devices(const struct storage *storage)
{
    return &storage->devices;
}

const struct mount *storage_mount(const struct storage *storage)
{
    return storage->mount_known ? &storage->mount : NULL;
}

/* ---- counters ---- */

void storage_read(struct storage *storage, struct storage_bytes *bytes)
{
    struct process_counters process;
    struct disk_counters disk;
    struct nfs_counters nfs;
    struct text text;

    *bytes = (struct storage_bytes){0};
    if (procfile_read(&storage->process, &text) == 0 && process_parse_io(text, &process)) {
        bytes->process_known = true;
        bytes->process_read_bytes = process.read_bytes;
        bytes->process_write_bytes = process.write_bytes;
    }
    bytes->server_known =
        storage->mountstats.buffer && procfile_read(&storage->mountstats, &text) == 0;
    for (uint32_t i = 0; bytes->server_known && i < storage->place_count; i++) {
        const struct storage_place *place = &storage->places[i];
        if (place->kind != PLACE_NFS)
            continue;
        bytes->server_known = nfs_parse(text, place->point, &nfs);
        bytes->server_read_bytes += bytes->server_known ? nfs.server_read_bytes : 0;
    }
    bytes->device_known =
        storage->devices.count > 0 && !storage->devices.cut_off && !storage->uncounted;
    for (uint32_t i = 0; i < storage->devices.count; i++) {
        if (procfile_read(&storage->device_files[i], &text) || !disk_parse_stat(text, &disk)) {
            bytes->device_known = false;
            continue;
        }
        bytes->device_read_bytes += disk.read_sectors * DISK_SECTOR_BYTES;
        bytes->device_write_bytes += disk.write_sectors * DISK_SECTOR_BYTES;
    }
}

/* ---- the verdict ---- */

/* A counter that went back was restarted (a device or mount that returned), so its growth is
 * unknown, not 0: 0 would mean that all came from memory. Returns whether it is known. */
static bool grew(bool known, uint64_t before, uint64_t after, uint64_t *growth)
{
    known = known && after >= before;
    *growth = known ? after - before : 0;
    return known;
}

struct storage_bytes storage_growth(const struct storage_bytes *before,
                                    const struct storage_bytes *after)
{
    const bool process = before->process_known && after->process_known;
    const bool device = before->device_known && after->device_known;
    struct storage_bytes parts = {0};

    parts.process_known = grew(process, before->process_read_bytes, after->process_read_bytes,
                               &parts.process_read_bytes) &&
                          grew(process, before->process_write_bytes, after->process_write_bytes,
                               &parts.process_write_bytes);
    parts.server_known =
        grew(before->server_known && after->server_known, before->server_read_bytes,
             after->server_read_bytes, &parts.server_read_bytes);
    parts.device_known = grew(device, before->device_read_bytes, after->device_read_bytes,
                              &parts.device_read_bytes) &&
                         grew(device, before->device_write_bytes, after->device_write_bytes,
                              &parts.device_write_bytes);
    return parts;
}

static const struct storage_place *find_place(const struct storage *storage,
                                              enum storage_place_kind kind)
{
    for (uint32_t i = 0; i < storage->place_count; i++)
        if (storage->places[i].kind == kind)
            return &storage->places[i];
    return NULL;
}

static void set_witness(struct storage_share *share, bool of_node, uint64_t bytes,
                        const char *method)
{
    share->known = true;
    share->of_node = of_node;
    share->bytes = bytes;
    snprintf(share->method, sizeof share->method, "%s", method);
}

void storage_between(const struct storage *storage, const struct storage_bytes *before,
                     const struct storage_bytes *after, struct storage_share *share)
{
    const char *why = "in memory: nothing leaves storage";
    const struct storage_place *blind = find_place(storage, PLACE_MEMORY);
    const bool local = find_place(storage, PLACE_BLOCK), remote = find_place(storage, PLACE_NFS);

    if (!blind) { /* a file system without a witness, if any */
        blind = find_place(storage, PLACE_UNKNOWN);
        why = "the kernel does not count what it reads from there";
    }
    *share = (struct storage_share){.in_memory = blind && blind->kind == PLACE_MEMORY,
                                    .parts = storage_growth(before, after)};
    const struct storage_bytes *parts = &share->parts;
    share->devices_hold_all =
        local && !remote && !blind && !storage->cut_off && parts->device_known;
    if (storage->place_count == 0)
        snprintf(share->reason, sizeof share->reason,
                 "no mount holds the files (/proc/self/mountinfo)");
    else if (storage->cut_off)
        snprintf(share->reason, sizeof share->reason, "the files are on too many file systems");
    else if (blind)
        snprintf(share->reason, sizeof share->reason, "%s at %.70s: %s", blind->type, blind->point,
                 why);
    else if (remote && !local && parts->server_known)
        set_witness(share, true, parts->server_read_bytes,
                    "NFS bytes from the server (mountstats)");
    else if (storage->devices.backing_count && !storage->devices.elsewhere[0] &&
             share->devices_hold_all)
        set_witness(share, true, parts->device_read_bytes,
                    "sectors read from the devices beneath a loop device, by any process");
    else if (parts->process_known)
        set_witness(share, false, parts->process_read_bytes, "/proc/self/io read_bytes");
    else if (parts->device_known && !remote)
        set_witness(share, true, parts->device_read_bytes,
                    "sectors read from the devices, by any process");
    else
        snprintf(share->reason, sizeof share->reason,
                 "neither the process's nor the devices' counters can be read, or they restarted");
}
