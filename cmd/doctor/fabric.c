/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: the fabric: RDMA ports, network interfaces, NFS mounts, and the way between GPU and
 * adapter. Everything is read below the roots of proc and sysfs.
 */
#include "cmd/doctor/doctor.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "telemetry/counters.h"
#include "telemetry/mount.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TEXT_BYTES = 128,
    TYPE_INFINIBAND = 32, /* ARPHRD_INFINIBAND */
    FAST_MBIT_PER_S = 10000,
    CONFIG_BYTES = 4096, /* of a PCIe function; without privileges the first 64 are readable */
    CAPABILITIES = 256,
    ACS_CAPABILITY = 0x000d,
    ACS_REDIRECTS = 1 << 2 | 1 << 3, /* control: requests and completions go up to the root */
};

struct fabric {
    const struct telemetry_roots *roots;
    const struct doctor_report *report;
    struct infiniband_port ports[INFINIBAND_PORTS_MAX];
    uint32_t port_count;
    bool is_active; /* a port is */
};

static void add(const struct fabric *fabric, const char *name, const struct doctor_finding *finding)
{
    fabric->report->add(fabric->report->context, name, finding);
}

/* List a folder below the root of sysfs. */
static void list_below(const struct fabric *fabric, const char *below, struct folder_names *names)
{
    char path[512];

    snprintf(path, sizeof path, "%.400s/%.60s", fabric->roots->sys, below);
    folder_names_of(names, path);
}

static bool has_below(const char *root, const char *below)
{
    char path[512];

    snprintf(path, sizeof path, "%.400s/%.60s", root, below);
    return access(path, F_OK) == 0;
}

/* ---- no port ---- */

/* ---- network interfaces ---- */

static bool read_interface(const struct fabric *fabric, const char *name, const char *file,
                           char *text)
{
    return procfile_peek(text, TEXT_BYTES, "%s/class/net/%s/%s", fabric->roots->sys, name, file);
}

/* ---- NFS ---- */

static void look_nfs(const struct fabric *fabric)
{
    struct procfile file = {0};
    struct text text = {0}, line;
    struct mount *mount = malloc(sizeof *mount);

    if (mount && procfile_open(&file, "%s/self/mountinfo", fabric->roots->proc) == 0 &&
        procfile_read(&file, &text) == 0)
        while (text_line(&text, &line))
            if (mount_parse(line, mount) && nfs_is_type(mount->type)) {
                struct doctor_finding finding = {0};
                char protocol[16] = "unknown";
                const char *option = strstr(mount->super_options, "proto=");
                if (option)
                    snprintf(protocol, sizeof protocol, "%.*s", (int)strcspn(option + 6, ","),
                             option + 6);
                const bool slow = fabric->is_active && strcmp(protocol, "rdma") != 0;
                finding_say(&finding, slow ? DOCTOR_WARN : DOCTOR_OK, "%s of %.100s", protocol,
                            mount->source);
                if (slow && has_below(fabric->roots->sys, "module/rpcrdma"))
                    finding_advise(&finding,
                                   "RDMA is there: mount with proto=rdma,port=20049, if the server "
                                   "listens (rdma=y in its nfs.conf)");
                else if (slow)
                    finding_advise(&finding,
                                   "RDMA is there: modprobe rpcrdma, then mount with "
                                   "proto=rdma,port=20049, if the server listens (rdma=y in its "
                                   "nfs.conf)");
                char name[80];
                snprintf(name, sizeof name, "NFS at %.70s", mount->point);
                add(fabric, name, &finding);
            }
    procfile_close(&file);
    free(mount);
}

/* ---- between GPU and adapter ---- */

/* dma-buf replaces the peer memory module: Linux 5.12 with NVIDIA's open kernel modules. */
static bool has_dmabuf(const struct fabric *fabric)
{
    char release[TEXT_BYTES], driver[TEXT_BYTES];
    unsigned major = 0, minor = 0;

    if (!procfile_peek(release, sizeof release, "%s/sys/kernel/osrelease", fabric->roots->proc) ||
        sscanf(release, "%u.%u", &major, &minor) != 2 ||
        !procfile_peek(driver, sizeof driver, "%s/driver/nvidia/version", fabric->roots->proc))
        return false;
    return (major > 5 || (major == 5 && minor >= 12)) && strstr(driver, "Open Kernel Module");
}

/* Does the bridge redirect peer-to-peer traffic? config: its configuration space. */
static bool redirects(const unsigned char *config)
{
    uint32_t at = 0x100;

    for (int i = 0; i < CAPABILITIES && at >= 0x100 && at + 8 <= CONFIG_BYTES; i++) {
        uint32_t words[2];
        memcpy(words, config + at, sizeof words);
        const uint32_t header = le32toh(words[0]);
        if ((header & 0xffff) == ACS_CAPABILITY)
            return le32toh(words[1]) >> 16 & ACS_REDIRECTS;
        at = header >> 20 & ~3U;
    }
    return false;
}

struct bridges {
    unsigned count, hidden, redirecting;
    char first[64]; /* of those that redirect */
};

static void look_bridge(const struct fabric *fabric, const char *name, struct bridges *bridges)
{
    char path[512], class[TEXT_BYTES];
    unsigned char config[CONFIG_BYTES];

    if (!procfile_peek(class, sizeof class, "%s/bus/pci/devices/%s/class", fabric->roots->sys,
                       name) ||
        strncmp(class, "0x0604", 6) != 0)
        return;
    snprintf(path, sizeof path, "%.300s/bus/pci/devices/%.40s/config", fabric->roots->sys, name);
    const int fd = file_open_quietly(path, O_RDONLY);
    const ssize_t bytes = fd < 0 ? 0 : pread(fd, config, sizeof config, 0);
    if (fd >= 0)
        close(fd);
    bridges->count++;
    if (bytes <= 64)
        bridges->hidden++;
    else if (bytes == CONFIG_BYTES && redirects(config) && bridges->redirecting++ == 0)
        snprintf(bridges->first, sizeof bridges->first, "%s", name);
}

static void look_acs(const struct fabric *fabric)
{
    struct doctor_finding finding = {0};
    struct bridges bridges = {0};
    struct folder_names names;

    list_below(fabric, "bus/pci/devices", &names);
    for (size_t i = 0; i < names.count; i++)
        look_bridge(fabric, names.list[i], &bridges);
    folder_names_release(&names);
    if (bridges.redirecting) {
        finding_say(&finding, DOCTOR_WARN, "%u of %u PCIe bridges redirect, the first is %s",
                    bridges.redirecting, bridges.count, bridges.first);
        finding_advise(&finding,
                       "data between GPU and adapter takes the way through the root: "
                       "disable ACS in the firmware, or setpci -s %s ECAP_ACS+6.w=0; not "
                       "where virtual machines rely on it",
                       bridges.first);
    } else if (bridges.hidden) {
        finding_say(&finding, DOCTOR_WARN, "unknown: this user cannot read it");
        finding_advise(&finding, "run 'iobench doctor' as root");
    } else {
        finding_say(&finding, DOCTOR_OK, "no redirection at %u PCIe bridges", bridges.count);
    }
    add(fabric, "ACS", &finding);
}

void doctor_look_fabric(const struct telemetry_roots *roots, const struct doctor_report *report)
{
    struct fabric *fabric = calloc(1, sizeof *fabric);

    if (!fabric)
        return;
    fabric->roots = roots;
    fabric->report = report;
    fabric->port_count = infiniband_list(roots, fabric->ports, INFINIBAND_PORTS_MAX);
    for (uint32_t i = 0; i < fabric->port_count; i++) {
        fabric->is_active |= fabric->ports[i].active;
        doctor_look_port(roots, &fabric->ports[i], report);
    }
    if (fabric->port_count == 0) {
        struct doctor_finding finding = {0};
        char adapter[64];
        /* An adapter by its PCI class or maker; "" if none. */
        struct folder_names names;
        char class[TEXT_BYTES], vendor[TEXT_BYTES];
        adapter[0] = '\0';
        list_below(fabric, "bus/pci/devices", &names);
        for (size_t i = 0; i < names.count && !adapter[0]; i++) {
            const char *sys = fabric->roots->sys, *name = names.list[i];
            if (procfile_peek(class, sizeof class, "%s/bus/pci/devices/%s/class", sys, name) &&
                procfile_peek(vendor, sizeof vendor, "%s/bus/pci/devices/%s/vendor", sys, name) &&
                (strncmp(class, "0x0207", 6) == 0 ||
                 (strcmp(vendor, "0x15b3") == 0 && strncmp(class, "0x02", 4) == 0)))
                snprintf(adapter, sizeof adapter, "%s", name);
        }
        folder_names_release(&names);
        if (adapter[0]) {
            finding_say(&finding, DOCTOR_NO, "adapter %s has no RDMA port", adapter);
            finding_advise(&finding, "load its driver: modprobe mlx5_ib (package rdma-core); in a "
                                     "container the host must share it");
        } else {
            finding_say(&finding, DOCTOR_NO, "no InfiniBand or RoCE port");
            finding_advise(&finding,
                           "not required: TCP works; to try RDMA without an adapter: rdma "
                           "link add rxe0 type rxe netdev INTERFACE");
        }
        add(fabric, "RDMA", &finding);
    }
    struct folder_names names;
    char type[TEXT_BYTES], state[TEXT_BYTES], mtu[TEXT_BYTES], below[64];
    list_below(fabric, "class/net", &names);
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.list[i];
        struct doctor_finding finding = {0};
        snprintf(below, sizeof below, "class/net/%.31s/device", name);
        if (!has_below(fabric->roots->sys, below) || !read_interface(fabric, name, "type", type) ||
            !read_interface(fabric, name, "operstate", state) || strcmp(state, "down") == 0 ||
            !read_interface(fabric, name, "mtu", mtu))
            continue;
        if (atoi(type) == TYPE_INFINIBAND) {
            char mode[TEXT_BYTES] = "mode unknown";
            read_interface(fabric, name, "mode", mode);
            const bool small = atoi(mtu) < 4092;
            finding_say(&finding, small ? DOCTOR_WARN : DOCTOR_OK, "IP over InfiniBand, %s, MTU %s",
                        mode, mtu);
            if (small)
                finding_advise(&finding,
                               "packets of 4092 (subnet manager: mtu=5) or connected mode carry "
                               "more: echo connected >/sys/class/net/%s/mode; ip link set %s mtu "
                               "65520; newer adapters have datagram only",
                               name, name);
        } else {
            char speed[TEXT_BYTES] = "-1";
            read_interface(fabric, name, "speed", speed);
            const int mbit_per_s = atoi(speed);
            const bool small = mbit_per_s >= FAST_MBIT_PER_S && atoi(mtu) < 9000;
            if (mbit_per_s > 0)
                finding_say(&finding, small ? DOCTOR_WARN : DOCTOR_OK, "%g Gbit/s, MTU %s",
                            mbit_per_s / 1000.0, mtu);
            else
                finding_say(&finding, DOCTOR_OK, "up, speed unknown (virtual?), MTU %s", mtu);
            if (small)
                finding_advise(&finding,
                               "larger packets cost less CPU time: ip link set %s mtu 9000, on "
                               "every host and switch of this network",
                               name);
        }
        add(fabric, name, &finding);
    }
    folder_names_release(&names);
    look_nfs(fabric);
    if (fabric->port_count && has_below(roots->proc, "driver/nvidia/gpus")) {
        struct doctor_finding finding = {0};
        const char *sys = fabric->roots->sys;
        if (has_below(sys, "module/nvidia_peermem") || has_below(sys, "module/nv_peer_mem")) {
            finding_say(&finding, DOCTOR_OK, "module nvidia-peermem is loaded");
        } else if (has_dmabuf(fabric)) {
            finding_say(&finding, DOCTOR_OK, "by dma-buf");
        } else {
            finding_say(&finding, DOCTOR_NO,
                        "adapters cannot read GPU memory: data goes through the "
                        "host's");
            finding_advise(&finding,
                           "modprobe nvidia-peermem, or use NVIDIA's open kernel modules and "
                           "Linux 5.12");
        }
        add(fabric, "peer memory", &finding);
        look_acs(fabric);
    }
    free(fabric);
}
