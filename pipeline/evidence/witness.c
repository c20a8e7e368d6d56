/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/evidence/witness.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "cachectl/beneath.h"
#include "cachectl/cold.h"
#include "cachectl/evict.h"
#include "dataset/store.h"
#include "pipeline/evidence/machine.h"
#include "readers/reader.h"
#include "telemetry/storage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct witness {
    const struct cold_settings *settings;
    const struct catalog *catalog;
    const char **paths; /* of the shard files */
    struct storage *storage;
    struct storage_bytes before;
    bool is_blind;  /* the kernel counts none of the reader's bytes */
    bool has_begun; /* `before` was read at the start of the run */
};

struct witness *witness_open(const struct cold_settings *settings, const struct catalog *catalog,
                             const struct plugin *reader)
{
    struct witness *witness = memory_zeroed(sizeof *witness);

    if (!witness)
        return NULL;
    witness->settings = settings;
    witness->catalog = catalog;
    witness->is_blind = reader_of(reader)->is_passthrough;
    witness->paths = memory_array(catalog->shard_count, sizeof *witness->paths);
    for (uint32_t i = 0; witness->paths && i < catalog->shard_count; i++)
        witness->paths[i] = catalog->shards[i].path;
    if (witness->paths)
        witness->storage =
            storage_open(&telemetry_roots_usual, witness->paths, catalog->shard_count);
    if (witness->storage)
        return witness;
    witness_close(witness);
    return NULL;
}

void witness_close(struct witness *witness)
{
    if (!witness)
        return;
    storage_close(witness->storage);
    free(witness->paths);
    free(witness);
}

static void look_beneath(const struct witness *witness, struct result_cold *cold)
{
    struct beneath found;

    if (cold->pages != RESIDENCY_COLD)
        return;
    beneath_look(storage_devices(witness->storage), cold->read_bytes, &found);
    cold->pages = found.state;
    if (found.state == RESIDENCY_COLD)
        return;
    snprintf(cold->reason, sizeof cold->reason, "%s", found.reason);
    if (found.state == RESIDENCY_WARM && cold->read_bytes) {
        cold->resident_bytes = found.resident_bytes;
        cold->residue_percent = 100 * (double)found.resident_bytes / (double)cold->read_bytes;
    }
}

/* The server's files never enter this machine's page cache. */
static void note_no_cache(const struct witness *witness, struct result_cold *cold)
{
    const uint64_t bytes = catalog_data_bytes(witness->catalog);

    *cold = (struct result_cold){.pages = RESIDENCY_COLD,
                                 .metadata_dropped = true,
                                 .total_bytes = bytes,
                                 .read_bytes = bytes};
    snprintf(cold->method, sizeof cold->method, "no page cache on this side");
    result_cold_settle(cold);
}

int witness_make_cold(struct witness *witness, bool leads, const struct reach *reach,
                      const struct cache_observer *observer, struct result_cold *cold)
{
    const struct cold_settings *settings = witness->settings;
    struct cold_result found = {0};
    const bool drops = settings->drop_caches != JOB_DROP_NO;
    const struct cold_request request = {
        .paths = reach ? reach->ranges.paths : witness->paths,
        .count = reach ? reach->ranges.count : witness->catalog->shard_count,
        .ranges = reach ? &reach->ranges : NULL,
        .drop = drops,
        .is_dropped = drops && !leads,
        .timeout_ns = settings->drop_timeout_ns,
        .observer = observer,
    };

    if (!store_is_local(witness->catalog->root)) {
        note_no_cache(witness, cold);
        return 0;
    }
    int code = leads || reach ? cold_make(&request, &found) : 0;
    *cold = (struct result_cold){
        .pages = found.label,
        .metadata_dropped = found.system_wide || !leads,
        .dropped = found.dropped,
        .resident_bytes = found.resident_bytes,
        .read_bytes = found.data_bytes,
        .explained_bytes = reach ? reach->explained_bytes : found.data_bytes,
        .total_bytes = catalog_data_bytes(witness->catalog),
        .residue_percent = found.residue_percent,
        .drop_ns = found.total_ns,
    };
    snprintf(cold->method, sizeof cold->method, "%.110s%s", found.method,
             machine_is_virtual("/proc", "/sys") ? "; the hypervisor's cache is out of sight" : "");
    snprintf(cold->reason, sizeof cold->reason, "%s", found.reason);
    look_beneath(witness, cold);
    result_cold_settle(cold);
    return code;
}

static void call_server(struct witness *witness, uint64_t read_bytes,
                        const struct cache_observer *observer,
                        void (*call)(const struct server_request *, struct server_result *),
                        struct server_result *server)
{
    const struct cold_settings *settings = witness->settings;
    const char *elsewhere = storage_devices(witness->storage)->elsewhere;
    const char *store = store_of(witness->catalog->root)->client;
    const uint64_t set_bytes = catalog_data_bytes(witness->catalog);
    const struct server_request request = {
        .where = store          ? store
                 : elsewhere[0] ? elsewhere
                                : NULL,
        .drop_command = settings->drop_caches == JOB_DROP_NO ? NULL : settings->server_drop_command,
        .check_command = settings->server_check_command,
        .set_bytes = set_bytes,
        .read_bytes = read_bytes < set_bytes ? read_bytes : set_bytes,
        .timeout_ns = settings->drop_timeout_ns,
        .observer = observer,
    };

    call(&request, server);
}

/* Each rank reads about as much. */
void witness_make_server_cold(struct witness *witness, uint32_t ranks,
                              const struct cache_observer *observer, struct result_cold *cold)
{
    call_server(witness, cold->read_bytes * ranks, observer, server_make_cold, &cold->server);
    cold->dropped |= cold->server.drop.made && cold->server.drop.status == 0;
    result_cold_settle(cold);
}

void witness_ask_server(struct witness *witness, struct result_cold *cold)
{
    call_server(witness, 0, NULL, server_look_after, &cold->server);
    result_cold_settle(cold);
}

int witness_evict(struct witness *witness, const struct reach *reach)
{
    const char *const *paths = reach ? reach->ranges.paths : witness->paths;
    const size_t count = reach ? reach->ranges.count : witness->catalog->shard_count;
    struct evict_figures figures;

    if (!store_is_local(witness->catalog->root))
        return 0; /* not cached on this machine */
    return evict_files(paths, count, true, witness->settings->drop_timeout_ns, NULL, &figures);
}

void witness_begin_run(struct witness *witness)
{
    storage_read(witness->storage, &witness->before);
    witness->has_begun = true;
}

void witness_before(struct witness *witness)
{
    if (!witness->has_begun)
        storage_read(witness->storage, &witness->before);
    witness->has_begun = false;
}

void witness_after(struct witness *witness, struct result_bytes *device)
{
    struct storage_bytes after;
    struct storage_share share;

    storage_read(witness->storage, &after);
    storage_between(witness->storage, &witness->before, &after, &share);
    if (witness->is_blind) {
        *device = (struct result_bytes){0};
        snprintf(device->reason, sizeof device->reason,
                 "the kernel counts no commands that a program sends to a disk");
        return;
    }
    *device = (struct result_bytes){.known = share.known,
                                    .of_node = share.of_node,
                                    .bytes = share.bytes,
                                    .beneath_known = share.devices_hold_all,
                                    .beneath_bytes = share.parts.device_read_bytes};
    snprintf(device->method, sizeof device->method, "%s", share.method);
    snprintf(device->reason, sizeof device->reason, "%s",
             store_is_local(witness->catalog->root)
                 ? share.reason
                 : "it bypasses the kernel's file systems, which do not count it");
}

void witness_environment(const struct witness *witness, struct environment *environment)
{
    const struct mount *mount = storage_mount(witness->storage);
    if (mount) {
        snprintf(environment->file_system, sizeof environment->file_system, "%s", mount->type);
        snprintf(environment->mount_options, sizeof environment->mount_options, "%s",
                 mount->options);
        snprintf(environment->mount_point, sizeof environment->mount_point, "%.255s", mount->point);
    }
    if (!store_is_local(witness->catalog->root)) {
        snprintf(environment->file_system, sizeof environment->file_system, "%s",
                 store_of(witness->catalog->root)->title);
        snprintf(environment->mount_point, sizeof environment->mount_point, "%.255s",
                 witness->catalog->root);
    }
    const struct device_list *devices = storage_devices(witness->storage);
    devices_text(devices, environment->devices, sizeof environment->devices);
    if (!environment->devices[0])
        snprintf(environment->devices, sizeof environment->devices, "%s", devices->memory);
    machine_describe(environment, "/proc", "/sys");
    if (witness->settings->memory_limit_bytes)
        environment->memory_limit_bytes = witness->settings->memory_limit_bytes;
}
