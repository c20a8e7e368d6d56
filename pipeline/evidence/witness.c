/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/evidence/witness.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/landlock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cachectl/cold.h"
#include "cachectl/residency.h"
#include "dataset/store.h"
#include "pipeline/result/result.h"
#include "readers/reader.h"
#include "telemetry/storage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* ---- the parts of its files that this rank reads ---- */

enum { OPS = 256 };

static bool join_ranges(struct range *last, const struct range *next)
{
    const uint64_t last_end = last->offset + last->bytes, end = next->offset + next->bytes;

    if (next->offset < last->offset || next->offset > last_end)
        return false;
    if (end > last_end)
        last->bytes = end - last->offset;
    return true;
}

static int by_offset(const void *a, const void *b)
{
    const struct range *one = a, *other = b;

    return (one->offset > other->offset) - (one->offset < other->offset);
}

/* Records need not be numbered as they are stored. */
static int add_shard(struct reach *reach, const struct catalog *catalog, const struct shard *shard,
                     const uint8_t *marks, uint64_t ahead_bytes)
{
    struct ranges *ranges = &reach->ranges;
    const bool whole = shard->flags & SHARD_COMPRESSED;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const size_t first = ranges->first[ranges->count];
    size_t count = first, last = first;
    uint64_t explained = 0;

    for (uint64_t i = shard->first_record; i < shard->first_record + shard->record_count; i++) {
        const struct extent *extent = catalog_extent(catalog, i);
        const uint64_t start = whole ? 0 : bytes_align_down(extent->offset, page);
        const uint64_t end = bytes_align_up(extent->offset + extent->bytes, page);
        const uint64_t stop = whole || end > shard->bytes ? shard->bytes : end;
        const struct range pages = {start, stop > start ? stop - start : 0};
        if (!(marks[i / 8] >> i % 8 & 1) ||
            (count > first && join_ranges(&ranges->list[count - 1], &pages)))
            continue;
        if (memory_room(&ranges->list, count, sizeof *ranges->list, "parts of files"))
            return -ENOMEM;
        ranges->list[count++] = pages;
    }
    if (count == first)
        return 0;
    qsort(ranges->list + first, count - first, sizeof *ranges->list, by_offset);
    for (size_t i = first + 1; i < count; i++)
        if (!join_ranges(&ranges->list[last], &ranges->list[i]))
            ranges->list[++last] = ranges->list[i];
    for (size_t i = first; i <= last; i++)
        explained += ranges->list[i].bytes + 2 * ahead_bytes;
    reach->explained_bytes += explained < shard->bytes ? explained : shard->bytes;
    ranges->paths[ranges->count++] = shard->path;
    ranges->first[ranges->count] = last + 1;
    return 0;
}

int reach_make(struct reach *reach, struct plan *plan, const struct resume_point *from,
               uint64_t draws, uint64_t ahead_bytes)
{
    const struct catalog *catalog = plan->scope.catalog;
    struct ranges *ranges = &reach->ranges;
    uint8_t *marks = memory_zeroed(catalog->record_count / 8 + 1); /* what the plan fetches */
    struct plan_op ops[OPS];
    uint64_t drawn = 0;

    *reach = (struct reach){0};
    ranges->paths = memory_array(catalog->shard_count, sizeof *ranges->paths);
    ranges->first = memory_array(catalog->shard_count + 1, sizeof *ranges->first);
    int code = marks && ranges->paths && ranges->first ? plan_begin(plan, from->epoch) : -ENOMEM;
    if (code == 0 && from->sample)
        code = plan_seek(plan, from->sample);
    for (int count = 0; code == 0 && (draws == 0 || drawn < draws);) {
        count = plan_next(plan, ops, OPS);
        if (count <= 0) {
            code = count;
            break;
        }
        for (int i = 0; i < count && (draws == 0 || drawn < draws); i++)
            if (ops[i].kind == PLAN_DRAW)
                drawn++;
            else
                marks[ops[i].record / 8] |= (uint8_t)(1 << ops[i].record % 8);
    }
    for (uint32_t i = 0; code == 0 && i < catalog->shard_count; i++)
        code = add_shard(reach, catalog, &catalog->shards[i], marks, ahead_bytes);
    free(marks);
    return code;
}

void reach_clear(struct reach *reach)
{
    free(reach->ranges.paths);
    free(reach->ranges.first);
    free(reach->ranges.list);
    *reach = (struct reach){0};
}

/* ---- the machine ---- */

enum { PATH_BYTES = 512, TEXT_BYTES = 256 };

/* Find a line of the first CPU. */
static bool find_cpu(const char *proc, const char *key, char *value, size_t bytes)
{
    char path[PATH_BYTES], line[8192];
    bool found = false;

    snprintf(path, sizeof path, "%s/cpuinfo", proc);
    FILE *file = file_stream_kernel(path);
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *colon = strstr(line, ": ");
        found = colon && strncmp(line, key, strlen(key)) == 0;
        line[strcspn(line, "\n")] = '\0';
        if (found)
            snprintf(value, bytes, "%s", colon + 2);
    }
    if (file)
        fclose(file);
    return found;
}

/* The first line, or string of a device tree, of a file below a root. */
static bool find_text(const char *root, const char *name, char text[static TEXT_BYTES])
{
    return file_peek(text, TEXT_BYTES, "%s/%s", root, name) && text[0];
}

/* Kernels of AArch64 give no name, but the main ID register: MIDR_EL1, implementer and part. */
static void name_cpu(const char *proc, char *name, size_t bytes)
{
    static const struct {
        const char *implementer, *part, *name;
    } known[] = {
        {"0x41", "0xd0c", "Arm Neoverse N1"},
        {"0x41", "0xd40", "Arm Neoverse V1"},
        {"0x41", "0xd49", "Arm Neoverse N2"},
        {"0x41", "0xd4f", "Arm Neoverse V2"},
        {"0x41", "0xd83", "Arm Neoverse V3AE"},
        {"0x41", "0xd84", "Arm Neoverse V3"},
        {"0x41", "0xd8e", "Arm Neoverse N3"},
        {"0x41", "0xd08", "Arm Cortex-A72"},
        {"0x46", "0x001", "Fujitsu A64FX"},
        {"0x48", "0xd01", "HiSilicon TaiShan v110"},
        {"0x48", "0xd02", "HiSilicon TaiShan v120"},
        {"0xc0", "0xac3", "Ampere-1"},
        {"0xc0", "0xac4", "Ampere-1a"},
    };
    char implementer[16], part[16];

    if (find_cpu(proc, "model name", name, bytes))
        return;
    if (!find_cpu(proc, "CPU implementer", implementer, sizeof implementer) ||
        !find_cpu(proc, "CPU part", part, sizeof part)) {
        snprintf(name, bytes, "unknown");
        return;
    }
    snprintf(name, bytes, "Arm implementer %s part %s", implementer, part);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(implementer, known[i].implementer) == 0 && strcmp(part, known[i].part) == 0)
            snprintf(name, bytes, "%s", known[i].name);
}

/* On x86 the hypervisor bit (CPUID leaf 1, ECX bit 31) is among the CPU flags. AArch64 has no such
 * bit: there look for a device tree (linux,dummy-virt is a machine that exists only under QEMU and
 * the like), Xen, or DMI. */
bool machine_is_virtual(const char *proc, const char *sys)
{
    static const char *const files[] = {"class/dmi/id/product_name", "class/dmi/id/sys_vendor",
                                        "class/dmi/id/board_vendor", "class/dmi/id/bios_vendor"};
    static const char *const names[] = {
        "KVM",
        "QEMU",
        "Amazon EC2",
        "Google Compute Engine",
        "Virtual Machine",
        "OpenStack",
        "KubeVirt",
        "Alibaba Cloud ECS",
        "VMware",
        "VMW",
        "Xen",
        "Parallels",
        "BHYVE",
        "Apple Virtualization",
        "VirtualBox",
        "innotek GmbH",
    };
    char flags[8192], text[TEXT_BYTES];

    if (find_cpu(proc, "flags", flags, sizeof flags))
        return strstr(flags, " hypervisor");
    if (find_text(proc, "device-tree/hypervisor/compatible", text) ||
        find_text(sys, "hypervisor/type", text))
        return true;
    if (find_text(proc, "device-tree/compatible", text) && strcmp(text, "linux,dummy-virt") == 0)
        return true;
    /* Firmware strings of hypervisors: those that systemd-detect-virt knows, and Azure and
     * Alibaba. */
    /* Amazon's machines without a hypervisor: c7g.metal, m8g.metal-24xl. */
    if (find_text(sys, files[0], text) && strstr(text, ".metal"))
        return false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (size_t k = 0; find_text(sys, files[i], text) && k < sizeof names / sizeof *names; k++)
            if (strncmp(text, names[k], strlen(names[k])) == 0)
                return true;
    return false;
}

void machine_describe(struct environment *environment, const char *proc, const char *sys)
{
    struct utsname names;
    struct sysinfo memory;
    struct headroom headroom;
    time_t now = time(NULL);
    struct tm utc;

    uname(&names);
    snprintf(environment->host, sizeof environment->host, "%s", names.nodename);
    snprintf(environment->kernel, sizeof environment->kernel, "%.70s %.70s", names.sysname,
             names.release);
    name_cpu(proc, environment->cpu, sizeof environment->cpu);
    snprintf(environment->clock_source, sizeof environment->clock_source, "%s", clock_source());
    snprintf(environment->sandbox, sizeof environment->sandbox, "none");
    if (landlock_is_on())
        snprintf(environment->sandbox, sizeof environment->sandbox, "landlock ABI %d",
                 landlock_abi());
    environment->cpu_count = thread_cpu_count();
    headroom_find(&headroom, proc, sys);
    environment->memory_limit_bytes = headroom.limit_bytes;
    if (sysinfo(&memory) == 0)
        environment->memory_bytes = (uint64_t)memory.totalram * memory.mem_unit;
    gmtime_r(&now, &utc);
    strftime(environment->started, sizeof environment->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* ---- the witness ---- */

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
    /* The other ranks' checks brought dentries and inodes into memory again. */
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
    for (int turn = 0; turn < 2; turn++) { /* no rank is named if several refuse */
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
