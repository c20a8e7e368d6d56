/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/evidence/witness.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "cachectl/residency.h"
#include "cachectl/cold.h"
#include "dataset/store.h"
#include "pipeline/evidence/machine.h"
#include "pipeline/result/result.h"
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

/* ---- caches before a run ---- */

/* Drop this machine's caches if the settings say so, and inspect them. leads: the first rank of a
 * node drops, for all; the others evict what is left of theirs. Returns 0 or -ENOMEM. */
static int drop_and_look(struct witness *witness, bool leads, const struct reach *reach,
                         const struct cache_observer *observer, struct result_cold *cold)
{
    const struct cold_settings *settings = witness->settings;
    const bool drops = settings->drop_caches != JOB_DROP_NO;
    const uint64_t set_bytes = catalog_data_bytes(witness->catalog);
    const struct cold_request request = {
        .paths = reach ? reach->ranges.paths : witness->paths,
        .count = reach ? reach->ranges.count : witness->catalog->shard_count,
        .ranges = reach ? &reach->ranges : NULL,
        .drop = drops,
        .is_dropped = drops && !leads,
        .timeout_ns = settings->drop_timeout_ns,
        .observer = observer,
    };
    struct cold_result found = {0};
    struct beneath beneath;

    if (!store_is_local(witness->catalog->root)) {
        /* The server's files never enter this machine's page cache. */
        *cold = (struct result_cold){.pages = RESIDENCY_COLD,
                                     .metadata_dropped = true,
                                     .total_bytes = set_bytes,
                                     .read_bytes = set_bytes};
        snprintf(cold->method, sizeof cold->method, "no page cache on this side");
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
        .total_bytes = set_bytes,
        .residue_percent = found.residue_percent,
        .drop_ns = found.total_ns,
    };
    snprintf(cold->method, sizeof cold->method, "%.110s%s", found.method,
             machine_is_virtual("/proc", "/sys") ? "; the hypervisor's cache is out of sight" : "");
    snprintf(cold->reason, sizeof cold->reason, "%s", found.reason);
    if (cold->pages != RESIDENCY_COLD)
        return code;
    beneath_look(storage_devices(witness->storage), cold->read_bytes, &beneath);
    cold->pages = beneath.state;
    if (beneath.state != RESIDENCY_COLD)
        snprintf(cold->reason, sizeof cold->reason, "%s", beneath.reason);
    if (beneath.state == RESIDENCY_WARM && cold->read_bytes) {
        cold->resident_bytes = beneath.resident_bytes;
        cold->residue_percent = 100 * (double)beneath.resident_bytes / (double)cold->read_bytes;
    }
    return 0;
}

/* Request to the server that holds the files. */
static struct server_request request_of(const struct witness *witness, uint64_t read_bytes,
                                        const struct cache_observer *observer)
{
    const struct cold_settings *settings = witness->settings;
    const char *elsewhere = storage_devices(witness->storage)->elsewhere;
    const char *store = store_of(witness->catalog->root)->client;
    const uint64_t set_bytes = catalog_data_bytes(witness->catalog);

    return (struct server_request){
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
}

void witness_ask_server(struct witness *witness, struct result_cold *cold)
{
    const struct server_request request = request_of(witness, 0, NULL);

    server_look_after(&request, &cold->server);
}

/* With strict, refuse a run that is not verified cold, unless the bytes that its devices read can
 * still verify it. */
static int check_strict(const struct witness *witness, bool is_direct,
                        const struct result_cold *cold)
{
    struct result_cold at_best = *cold;

    if (witness->settings->drop_caches != JOB_DROP_STRICT)
        return 0;
    at_best.bypassed = is_direct;
    if (cold->server.state == SERVER_UNVERIFIED && cold->server.looked &&
        cold->server.start.disk_known && !cold->server.start.resident_known)
        at_best.server.state = SERVER_COLD;
    const char *why = result_cold_unproven(&at_best);
    return why ? fail(EPERM, "not verified cold: %s", why) : 0;
}

int witness_make_cold(struct witness *witness, const struct job_plugins *plugins,
                      struct ranks *ranks, const struct reach *reach,
                      const struct cache_observer *observer, struct result_run *run)
{
    const struct cold_settings *settings = witness->settings;
    const struct catalog *catalog = witness->catalog;
    const bool leads = ranks->place.local_rank == 0;
    struct result_cold mine = {0};
    int code = 0;

    ranks->rank_timeout_ns = 0; /* dropping may take any time */
    /* Pages charged to others would bypass the memory limit. */
    if (settings->memory_limit_bytes && run->number == 0 && (leads || reach) &&
        store_is_local(catalog->root)) {
        struct evict_figures figures;
        code = cache_files(CACHE_EVICT_MOUNT, leads ? witness->paths : reach->ranges.paths,
                           leads ? catalog->shard_count : reach->ranges.count,
                           settings->drop_timeout_ns, NULL, &figures);
    }
    /* Dropping and inspecting caches also reaches the server, so all nodes finish before the
     * server's own caches are dropped. */
    code = ranks_meet(ranks, code, NULL);
    for (int turn = 0; turn < 2; turn++) {
        if (code == 0 && leads == (turn == 0))
            code = drop_and_look(witness, leads, reach, observer, &mine);
        code = ranks_meet(ranks, code, NULL);
    }
    /* What the others looked at is in memory again: dentries and inodes. */
    if (code == 0 && leads && reach && ranks->place.local_ranks > 1 && mine.metadata_dropped) {
        const char *how;
        mine.metadata_dropped = drop_system(NULL, settings->drop_timeout_ns, observer, &how) == 0;
    }
    code = ranks_meet(ranks, code, NULL);
    if (code == 0 && ranks->place.rank == 0) {
        const struct server_request request = /* each rank reads about as much */
            request_of(witness, mine.read_bytes * ranks->place.ranks, observer);
        server_make_cold(&request, &mine.server);
        mine.dropped |= mine.server.drop.made && mine.server.drop.status == 0;
    }
    for (int turn = 0; turn < 2; turn++) { /* of several that refuse none is named */
        if (code == 0 && leads == (turn == 0))
            code = check_strict(witness, plugins->direct, &mine);
        code = ranks_meet(ranks, code, NULL);
    }
    storage_read(witness->storage, &witness->before);
    witness->has_begun = true;
    int gathered = gather_cold(ranks, &mine, run);
    return code ? code : gathered;
}

/* ---- bytes that leave storage ---- */

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
