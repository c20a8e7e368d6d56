/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: the fabric: RDMA ports, network interfaces, NFS mounts, and the way between GPU and
 * adapter. Everything is read below the roots of proc and sysfs.
 */
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/gid.h"
#include "cmd/doctor/doctor.h"
#include "telemetry/counters.h"
#include "telemetry/mount.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* doctor: the ports of RDMA adapters: link, PCIe, MTU, GIDs, congestion, counters, permission.
 */

enum { TEXT_BYTES = 128, GIDS_MAX = 256 };

struct port_view {
    const struct telemetry_roots *roots;
    const struct infiniband_port *port;
    bool is_software; /* rxe, siw: without an adapter */
    bool is_ethernet;
};

/* Read a file of the port, of its adapter, or of the network interface beneath. */
static bool read_port(const struct port_view *view, const char *file, char *text)
{
    return file_peek(text, TEXT_BYTES, "%s/class/infiniband/%s/ports/%u/%s", view->roots->sys,
                     view->port->device, view->port->number, file);
}

static bool read_adapter(const struct port_view *view, const char *file, char *text)
{
    return file_peek(text, TEXT_BYTES, "%s/class/infiniband/%s/%s", view->roots->sys,
                     view->port->device, file);
}

static bool read_interface(const struct port_view *view, const char *file, char *text)
{
    return view->port->interface[0] && file_peek(text, TEXT_BYTES, "%s/class/net/%s/%s",
                                                 view->roots->sys, view->port->interface, file);
}

static uint64_t count_of(const struct port_view *view, const char *file)
{
    char text[TEXT_BYTES];

    return read_port(view, file, text) ? strtoull(text, NULL, 0) : 0;
}

/* "4: ACTIVE" is "ACTIVE". */
static const char *state_word(const char *text)
{
    const char *colon = strstr(text, ": ");

    return colon ? colon + 2 : text;
}

static void look_link(const struct port_view *view, struct doctor_finding *finding)
{
    char state[TEXT_BYTES] = "", physical[TEXT_BYTES] = "", rate[TEXT_BYTES] = "rate unknown";

    read_port(view, "state", state);
    read_port(view, "phys_state", physical);
    read_port(view, "rate", rate);
    const bool narrow = !view->is_software && strstr(rate, "(1X") != NULL;
    const enum doctor_state found = !view->port->active ? DOCTOR_NO
                                    : narrow            ? DOCTOR_WARN
                                                        : DOCTOR_OK;
    if (view->is_software)
        finding_say(finding, found, "software RDMA over %s, %s; no rate of its own",
                    view->port->interface[0] ? view->port->interface : "an interface",
                    state_word(state));
    else
        finding_say(finding, found, "%s, %s (%s), %s",
                    view->is_ethernet ? "RoCE" : view->port->link_layer, state_word(state),
                    state_word(physical), rate);
    if (!view->port->active) {
        const char *interface = view->port->interface;
        if (strstr(physical, "Polling"))
            finding_advise(finding, "no signal: check the cable, and the port at its other end");
        else if (view->is_ethernet)
            finding_advise(finding,
                           "the link is down: ip link set %s up; then check cable and switch",
                           interface[0] ? interface : "INTERFACE");
        else if (strstr(physical, "LinkUp"))
            finding_advise(finding,
                           "the link is up, but no subnet manager has configured it: start "
                           "opensm on one node, or enable the switch's");
        else
            finding_advise(finding, "the port is disabled: ibportstate -D 0 %u enable",
                           view->port->number);
    } else if (narrow)
        finding_advise(finding, "one lane instead of four: reseat the cable, or replace it");
}

static void look_pcie(const struct port_view *view, struct doctor_finding *finding)
{
    char speed[TEXT_BYTES], width[TEXT_BYTES], most[TEXT_BYTES] = "", node[TEXT_BYTES] = "-1";

    if (view->is_software || !read_adapter(view, "device/current_link_speed", speed) ||
        !read_adapter(view, "device/current_link_width", width))
        return;
    read_adapter(view, "device/max_link_width", most);
    read_adapter(view, "device/numa_node", node);
    /* "16.0 GT/s PCIe" and "16" in Gbit/s of data: the encoding takes 2 bits of 130, before PCIe 3
     * of every 10. */
    const double transfers = strtod(speed, NULL);
    const double carries = transfers * strtod(width, NULL) * (transfers < 8 ? 0.8 : 128.0 / 130);
    const bool tight = carries > 0 && carries < view->port->gbit_per_s;
    const bool narrow = atoi(width) < atoi(most);
    finding_say(finding, tight || narrow ? DOCTOR_WARN : DOCTOR_OK,
                "%.16s x%.4s, %.4g Gbit/s%s%.4s", speed, width, carries,
                atoi(node) < 0 ? "" : "; NUMA node ", atoi(node) < 0 ? "" : node);
    if (narrow)
        finding_advise(finding, "the adapter can use x%.4s: move it to a wider slot", most);
    else if (tight)
        finding_advise(finding,
                       "less than the port's %.4g Gbit/s: move the adapter to a faster "
                       "slot",
                       view->port->gbit_per_s);
}

/* As iboe_get_mtu() of the kernel: the largest size of InfiniBand that fits with all headers. */
static unsigned roce_mtu(unsigned interface_mtu)
{
    const unsigned headers = 40 + 8 + 12 + 4 + 28 + 4; /* GRH UDP BTH XRC AtomicETH ICRC */
    unsigned mtu = 4096;

    while (mtu >= 256 && mtu + headers > interface_mtu)
        mtu /= 2;
    return mtu >= 256 ? mtu : 0;
}

static void look_mtu(const struct port_view *view, struct doctor_finding *finding)
{
    char text[TEXT_BYTES];

    if (strcmp(view->port->link_layer, "InfiniBand") == 0) {
        finding_say(finding, DOCTOR_OK, "set by the subnet manager, not in sysfs");
        finding_advise(finding, "ibv_devinfo -d %s -i %u shows active_mtu; 4096 carries most",
                       view->port->device, view->port->number);
        return;
    }
    if (!view->is_ethernet || !read_interface(view, "mtu", text))
        return;
    const unsigned mtu = roce_mtu((unsigned)atoi(text));
    finding_say(finding, mtu == 4096 ? DOCTOR_OK : DOCTOR_WARN, "RDMA %u, of %.8s of %s", mtu, text,
                view->port->interface);
    if (mtu < 4096)
        finding_advise(finding,
                       "4096 carries more: ip link set %s mtu 9000, on every host and "
                       "switch of this network",
                       view->port->interface);
}

static void look_subnet(const struct port_view *view, struct doctor_finding *finding)
{
    char lid[TEXT_BYTES], manager[TEXT_BYTES];

    if (strcmp(view->port->link_layer, "InfiniBand") != 0 || !read_port(view, "lid", lid) ||
        !read_port(view, "sm_lid", manager))
        return;
    const bool found = strtoul(manager, NULL, 0) != 0;
    finding_say(finding, found ? DOCTOR_OK : DOCTOR_NO, "LID %.12s, subnet manager at LID %.12s",
                lid, manager);
    if (!found)
        finding_advise(finding, "no subnet manager: start opensm on one node, or the switch's");
}

/* ---- GIDs of RoCE: addresses, each with a version of the protocol ---- */

struct gid_found {
    unsigned count, best; /* best: index of the best one */
    int rank;             /* gid_rank() */
    char address[INET6_ADDRSTRLEN];
};

static void look_gids(const struct port_view *view, struct doctor_finding *finding)
{
    if (!view->is_ethernet)
        return;
    struct gid_found found = {.rank = GID_NONE};
    for (unsigned i = 0; i < GIDS_MAX; i++) {
        char address[INET6_ADDRSTRLEN];
        int rank;
        /* "0000:0000:0000:0000:0000:ffff:c0a8:010a" of index i. */
        char file[40], text[TEXT_BYTES], type[TEXT_BYTES] = "";
        struct in6_addr gid;
        snprintf(file, sizeof file, "gids/%u", i);
        if (!read_port(view, file, text) || inet_pton(AF_INET6, text, &gid) != 1)
            rank = GID_NONE;
        else {
            snprintf(file, sizeof file, "gid_attrs/types/%u", i);
            read_port(view, file, type);
            gid_text(&gid, address);
            rank = gid_rank(&gid, strcmp(type, "RoCE v2") == 0);
        }
        found.count += rank > GID_NONE;
        if (rank <= found.rank)
            continue;
        found.rank = rank;
        found.best = i;
        memcpy(found.address, address, sizeof address);
    }
    const char *interface = view->port->interface[0] ? view->port->interface : "its interface";
    if (found.rank == GID_NONE) {
        finding_say(finding, DOCTOR_NO, "no address");
        finding_advise(finding, "RDMA needs one: give %s an IP address and set it up", interface);
        return;
    }
    finding_say(finding, found.rank >= GID_V2 ? DOCTOR_OK : DOCTOR_WARN,
                "index %u: RoCE %s, %s; %u in all", found.best, found.rank == GID_V1 ? "v1" : "v2",
                found.address, found.count);
    if (found.rank == GID_V1)
        finding_advise(finding,
                       "v1 passes no router and ignores IP: enable RoCE v2 in the adapter, "
                       "and give %s an IP address",
                       interface);
    else if (found.rank == GID_LINK_LOCAL)
        finding_advise(finding, "link-local only: give %s an IP address", interface);
    else
        finding_advise(finding,
                       "if a library picks another: UCX_IB_GID_INDEX=%u, "
                       "NCCL_IB_GID_INDEX=%u",
                       found.best, found.best);
}

/* ---- congestion ---- */

static void look_congestion(const struct port_view *view, struct doctor_finding *finding)
{
    static const char *const ecn_texts[] = {"unknown", "off", "on"};
    const char *interface = view->port->interface;

    if (!view->is_ethernet || view->is_software)
        return;
    const uint64_t lost = count_of(view, "hw_counters/out_of_sequence") +
                          count_of(view, "hw_counters/packet_seq_err") +
                          count_of(view, "hw_counters/local_ack_timeout_err");
    const uint64_t notified = count_of(view, "hw_counters/rp_cnp_handled");
    /* Is ECN on for some priority? */
    char pattern[512], text[TEXT_BYTES];
    struct folder_names files;
    int ecn = -1;
    snprintf(pattern, sizeof pattern, "%.300s/class/net/%s/ecn/roce_[nr]p/enable/*",
             view->roots->sys, view->port->interface);
    folder_names_matching(&files, pattern);
    for (size_t i = 0; i < files.count; i++)
        if (file_peek(text, sizeof text, "%s", files.list[i]) && ecn < 1)
            ecn = text[0] == '1';
    folder_names_release(&files);
    finding_say(finding, lost || ecn == 0 ? DOCTOR_WARN : DOCTOR_OK,
                "ECN %s; since boot %llu packets lost or out of order, %llu congestion "
                "notifications",
                ecn_texts[ecn + 1], (unsigned long long)lost, (unsigned long long)notified);
    if (ecn == 0)
        finding_advise(finding,
                       "enable ECN for the priority of RDMA: echo 1 "
                       ">/sys/class/net/%s/ecn/roce_np/enable/3, the same for roce_rp, and "
                       "on the switches",
                       interface);
    else if (lost)
        finding_advise(finding,
                       "RoCE wants a lossless priority: PFC on the same one in adapter and "
                       "switches (dcb pfc show dev %s, or mlnx_qos -i %s), and ECN",
                       interface, interface);
    else if (ecn < 0)
        finding_advise(finding, "whether PFC is on: dcb pfc show dev %s, or mlnx_qos -i %s",
                       interface, interface);
}

/* ---- counters ---- */

static void look_counters(const struct port_view *view, struct doctor_finding *finding)
{
    char text[TEXT_BYTES], longer[TEXT_BYTES];

    if (read_port(view, "counters/port_rcv_data", text)) {
        const bool stuck = strcmp(text, "4294967295") == 0 &&
                           !read_port(view, "counters_ext/port_rcv_data_64", longer);
        finding_say(finding, stuck ? DOCTOR_WARN : DOCTOR_OK, "%s",
                    stuck ? "32 bits, stopped at their maximum" : "bytes received and sent");
        if (stuck)
            finding_advise(finding, "reset them: perfquery -R; newer firmware counts in 64 bits");
    } else if (read_port(view, "hw_counters/rx_bytes", text)) {
        finding_say(finding, DOCTOR_OK, "bytes received and sent (hw_counters)");
    } else if (read_interface(view, "statistics/rx_bytes", text)) {
        finding_say(finding, DOCTOR_WARN,
                    "none of its own: those of %s, with all its other traffic",
                    view->port->interface);
    } else {
        char path[512];
        snprintf(path, sizeof path, "%.300s/class/infiniband/%s/ports/%u/counters/port_rcv_data",
                 view->roots->sys, view->port->device, view->port->number);
        const int fd = file_open_quietly(path, O_RDONLY);
        const int cause = fd < 0 ? -fd : EIO;
        if (fd >= 0)
            close(fd);
        if (cause == ENOENT) {
            finding_say(finding, DOCTOR_NO,
                        "none, as in a container with its own network namespace");
            finding_advise(finding, "bind-mount the host's /sys and name it: iobench monitor "
                                    "--sysfs-root DIR");
        } else {
            finding_say(finding, DOCTOR_NO, "cannot be read: %s", fail_errno_text(cause));
            finding_advise(finding,
                           "the kernel keeps them from this user, or the driver fails: run as "
                           "root, see dmesg");
        }
    }
}

/* ---- permission ---- */

/* The device file that user space opens: "uverbs0"; "" if there is none. */
static void find_verbs(const struct port_view *view, char *name, size_t bytes)
{
    char path[512], text[TEXT_BYTES];
    struct folder_names names;

    name[0] = '\0';
    snprintf(path, sizeof path, "%.400s/class/infiniband_verbs", view->roots->sys);
    folder_names_of(&names, path);
    for (size_t i = 0; i < names.count && !name[0]; i++)
        if (file_peek(text, sizeof text, "%s/%s/ibdev", path, names.list[i]) &&
            strcmp(text, view->port->device) == 0)
            snprintf(name, bytes, "%s", names.list[i]);
    folder_names_release(&names);
}

static void look_verbs(const struct port_view *view, struct doctor_finding *finding)
{
    char name[64], path[128];

    find_verbs(view, name, sizeof name);
    if (!name[0]) {
        finding_say(finding, DOCTOR_NO, "no device for programs");
        finding_advise(finding, "modprobe ib_uverbs (package rdma-core)");
        return;
    }
    if (strcmp(view->roots->sys, telemetry_roots_usual.sys) != 0)
        return finding_say(finding, DOCTOR_OK, "%s", name);
    snprintf(path, sizeof path, "/dev/infiniband/%s", name);
    if (access(path, R_OK | W_OK) == 0)
        return finding_say(finding, DOCTOR_OK, "%s", path);
    finding_say(finding, DOCTOR_NO, "%s: %s", path, fail_errno_text(errno));
    finding_advise(finding,
                   "let this user open it (udev rule of rdma-core: mode 0666); a container "
                   "needs --device /dev/infiniband and --ulimit memlock=-1");
}

/* One that leaves the finding empty does not apply. */
static const struct port_check {
    const char *name;
    void (*look)(const struct port_view *view, struct doctor_finding *finding);
} checks[] = {
    {"link", look_link},   {"PCIe", look_pcie},         {"subnet", look_subnet},
    {"MTU", look_mtu},     {"GID", look_gids},          {"congestion", look_congestion},
    {"verbs", look_verbs}, {"counters", look_counters},
};

enum {
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

static bool read_net(const struct fabric *fabric, const char *name, const char *file, char *text)
{
    return file_peek(text, TEXT_BYTES, "%s/class/net/%s/%s", fabric->roots->sys, name, file);
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

    if (!file_peek(release, sizeof release, "%s/sys/kernel/osrelease", fabric->roots->proc) ||
        sscanf(release, "%u.%u", &major, &minor) != 2 ||
        !file_peek(driver, sizeof driver, "%s/driver/nvidia/version", fabric->roots->proc))
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

    if (!file_peek(class, sizeof class, "%s/bus/pci/devices/%s/class", fabric->roots->sys, name) ||
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
        char text[TEXT_BYTES], name[80];
        struct port_view view = {.roots = roots,
                                 .port = &fabric->ports[i],
                                 .is_ethernet =
                                     strcmp(fabric->ports[i].link_layer, "Ethernet") == 0};
        view.is_software =
            read_adapter(&view, "parent", text) || !read_adapter(&view, "device/vendor", text);
        for (size_t k = 0; k < sizeof checks / sizeof *checks; k++) {
            struct doctor_finding finding = {0};
            fail_clear();
            checks[k].look(&view, &finding);
            snprintf(name, sizeof name, "%s/%u %s", fabric->ports[i].device,
                     fabric->ports[i].number, checks[k].name);
            if (finding.what[0])
                report->add(report->context, name, &finding);
        }
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
            if (file_peek(class, sizeof class, "%s/bus/pci/devices/%s/class", sys, name) &&
                file_peek(vendor, sizeof vendor, "%s/bus/pci/devices/%s/vendor", sys, name) &&
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
        if (!has_below(fabric->roots->sys, below) || !read_net(fabric, name, "type", type) ||
            !read_net(fabric, name, "operstate", state) || strcmp(state, "down") == 0 ||
            !read_net(fabric, name, "mtu", mtu))
            continue;
        if (atoi(type) == TYPE_INFINIBAND) {
            char mode[TEXT_BYTES] = "mode unknown";
            read_net(fabric, name, "mode", mode);
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
            read_net(fabric, name, "speed", speed);
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
