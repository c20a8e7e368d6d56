/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench doctor: checks what works on this machine, and how to fix what does not.
 */
#include "base/bytes.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/draft.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/gid.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/landlock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cachectl/drop.h"
#include "cachectl/residency.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/families.h"
#include "cmd/json_file.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "readers/reader.h"
#include "report/words.h"
#include "telemetry/counters.h"
#include "telemetry/devices.h"
#include "telemetry/mount.h"
#include "telemetry/series.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum doctor_state {
    OK,
    WARN, /* works, but not as well as it could */
    NO,   /* absent or not working */
};

struct doctor_finding {
    enum doctor_state state;
    char what[200];   /* finding */
    char advice[300]; /* remedy; "" if none is needed */
};

/* Where findings go. */
struct doctor_report {
    const char *section, *heading; /* heading: before the next finding; or NULL */
    json_t *all;                   /* JSON; NULL: a table on standard output */
    bool is_bad;                   /* something does not work */
    const char *reader;            /* whose offers are added */
};

enum { COLUMN = 26 };
static const char *const state_names[] = {[OK] = "ok", [WARN] = "warn", [NO] = "no"};

/* remedy: the advice unless it is ok; NULL: none. */
__attribute__((format(printf, 4, 5))) static void say(struct doctor_finding *finding,
                                                      enum doctor_state state, const char *remedy,
                                                      const char *format, ...)
{
    va_list arguments;

    finding->state = state;
    if (remedy && state != OK)
        snprintf(finding->advice, sizeof finding->advice, "%s", remedy);
    va_start(arguments, format);
    vsnprintf(finding->what, sizeof finding->what, format, arguments);
    va_end(arguments);
}

__attribute__((format(printf, 2, 3))) static void advise(struct doctor_finding *finding,
                                                         const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding->advice, sizeof finding->advice, format, arguments);
    va_end(arguments);
}

static void add_finding(struct doctor_report *report, const char *name,
                        const struct doctor_finding *finding)
{
    char left[96];

    report->is_bad |= finding->state == NO;
    if (report->all) {
        json_t *entry = json_object();
        json_put_text(entry, "section", report->section);
        json_put_text(entry, "name", name);
        json_put_text(entry, "state", state_names[finding->state]);
        json_put_text(entry, "what", finding->what);
        json_object_set_new(entry, "advice",
                            finding->advice[0] ? json_text(finding->advice) : json_null());
        json_array_append_new(report->all, entry);
        return;
    }
    if (report->heading)
        puts(report->heading);
    report->heading = NULL;
    snprintf(left, sizeof left, "  %-4s  %s", state_names[finding->state], name);
    words_print(stdout, left, COLUMN, finding->what[0] ? escape_shown(finding->what) : "unknown");
    if (finding->advice[0])
        words_print(stdout, "", COLUMN, escape_shown(finding->advice));
}

/* ---- the fabric: RDMA ports, network interfaces, NFS mounts, and the way between GPU and
 * adapter. Everything is read below the roots of proc and sysfs.
 */

/* Ports of RDMA adapters: link, PCIe, MTU, GIDs, congestion, counters, permission. */

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
    const enum doctor_state found = !view->port->active ? NO : narrow ? WARN : OK;
    if (view->is_software)
        say(finding, found, NULL, "software RDMA over %s, %s; no rate of its own",
            view->port->interface[0] ? view->port->interface : "an interface", state_word(state));
    else
        say(finding, found, NULL, "%s, %s (%s), %s",
            view->is_ethernet ? "RoCE" : view->port->link_layer, state_word(state),
            state_word(physical), rate);
    if (!view->port->active) {
        const char *interface = view->port->interface;
        if (strstr(physical, "Polling"))
            advise(finding, "no signal: check the cable, and the port at its other end");
        else if (view->is_ethernet)
            advise(finding, "the link is down: ip link set %s up; then check cable and switch",
                   interface[0] ? interface : "INTERFACE");
        else if (strstr(physical, "LinkUp"))
            advise(finding, "the link is up, but no subnet manager has configured it: start opensm "
                            "on one node, or enable the switch's");
        else
            advise(finding, "the port is disabled: ibportstate -D 0 %u enable", view->port->number);
    } else if (narrow)
        advise(finding, "one lane instead of four: reseat the cable, or replace it");
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
    say(finding, tight || narrow ? WARN : OK, NULL, "%.16s x%.4s, %.4g Gbit/s%s%.4s", speed, width,
        carries, atoi(node) < 0 ? "" : "; NUMA node ", atoi(node) < 0 ? "" : node);
    if (narrow)
        advise(finding, "the adapter can use x%.4s: move it to a wider slot", most);
    else if (tight)
        advise(finding, "less than the port's %.4g Gbit/s: move the adapter to a faster slot",
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
        say(finding, OK, NULL, "set by the subnet manager, not in sysfs");
        advise(finding, "ibv_devinfo -d %s -i %u shows active_mtu; 4096 carries most",
               view->port->device, view->port->number);
        return;
    }
    if (!view->is_ethernet || !read_interface(view, "mtu", text))
        return;
    const unsigned mtu = roce_mtu((unsigned)atoi(text));
    say(finding, mtu == 4096 ? OK : WARN, NULL, "RDMA %u, of %.8s of %s", mtu, text,
        view->port->interface);
    if (mtu < 4096)
        advise(
            finding,
            "4096 carries more: ip link set %s mtu 9000, on every host and switch of this network",
            view->port->interface);
}

static void look_subnet(const struct port_view *view, struct doctor_finding *finding)
{
    char lid[TEXT_BYTES], manager[TEXT_BYTES];

    if (strcmp(view->port->link_layer, "InfiniBand") != 0 || !read_port(view, "lid", lid) ||
        !read_port(view, "sm_lid", manager))
        return;
    const bool found = strtoul(manager, NULL, 0) != 0;
    say(finding, found ? OK : NO, "no subnet manager: start opensm on one node, or the switch's",
        "LID %.12s, subnet manager at LID %.12s", lid, manager);
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
        say(finding, NO, NULL, "no address");
        advise(finding, "RDMA needs one: give %s an IP address and set it up", interface);
        return;
    }
    say(finding, found.rank >= GID_V2 ? OK : WARN, NULL, "index %u: RoCE %s, %s; %u in all",
        found.best, found.rank == GID_V1 ? "v1" : "v2", found.address, found.count);
    if (found.rank == GID_V1)
        advise(finding,
               "v1 passes no router and ignores IP: enable RoCE v2 in the adapter, and give %s an "
               "IP address",
               interface);
    else if (found.rank == GID_LINK_LOCAL)
        advise(finding, "link-local only: give %s an IP address", interface);
    else
        advise(finding, "if a library picks another: UCX_IB_GID_INDEX=%u, NCCL_IB_GID_INDEX=%u",
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
    say(finding, lost || ecn == 0 ? WARN : OK, NULL,
        "ECN %s; since boot %llu packets lost or out of order, %llu congestion notifications",
        ecn_texts[ecn + 1], (unsigned long long)lost, (unsigned long long)notified);
    if (ecn == 0)
        advise(finding,
               "enable ECN for the priority of RDMA: echo 1 "
               ">/sys/class/net/%s/ecn/roce_np/enable/3, the same for roce_rp, and on the switches",
               interface);
    else if (lost)
        advise(finding,
               "RoCE wants a lossless priority: PFC on the same one in adapter and switches (dcb "
               "pfc show dev %s, or mlnx_qos -i %s), and ECN",
               interface, interface);
    else if (ecn < 0)
        advise(finding, "whether PFC is on: dcb pfc show dev %s, or mlnx_qos -i %s", interface,
               interface);
}

/* ---- counters ---- */

static void look_counters(const struct port_view *view, struct doctor_finding *finding)
{
    char text[TEXT_BYTES], longer[TEXT_BYTES];

    if (read_port(view, "counters/port_rcv_data", text)) {
        const bool stuck = strcmp(text, "4294967295") == 0 &&
                           !read_port(view, "counters_ext/port_rcv_data_64", longer);
        say(finding, stuck ? WARN : OK,
            "reset them: perfquery -R; newer firmware counts in 64 bits", "%s",
            stuck ? "32 bits, stopped at their maximum" : "bytes received and sent");
    } else if (read_port(view, "hw_counters/rx_bytes", text)) {
        say(finding, OK, NULL, "bytes received and sent (hw_counters)");
    } else if (read_interface(view, "statistics/rx_bytes", text)) {
        say(finding, WARN, NULL, "none of its own: those of %s, with all its other traffic",
            view->port->interface);
    } else {
        char path[512];
        snprintf(path, sizeof path, "%.300s/class/infiniband/%s/ports/%u/counters/port_rcv_data",
                 view->roots->sys, view->port->device, view->port->number);
        const int fd = file_open_quietly(path, O_RDONLY);
        const int cause = fd < 0 ? -fd : EIO;
        if (fd >= 0)
            close(fd);
        if (cause == ENOENT)
            say(finding, NO,
                "bind-mount the host's /sys and name it: iobench monitor --sysfs-root DIR",
                "none, as in a container with its own network namespace");
        else
            say(finding, NO,
                "the kernel keeps them from this user, or the driver fails: run as root, see dmesg",
                "cannot be read: %s", fail_errno_text(cause));
    }
}

/* ---- permission ---- */

static void look_verbs(const struct port_view *view, struct doctor_finding *finding)
{
    char name[64] = "", path[512], text[TEXT_BYTES];
    struct folder_names names;

    /* The device file that user space opens: "uverbs0". */
    snprintf(path, sizeof path, "%.400s/class/infiniband_verbs", view->roots->sys);
    folder_names_of(&names, path);
    for (size_t i = 0; i < names.count && !name[0]; i++)
        if (file_peek(text, sizeof text, "%s/%s/ibdev", path, names.list[i]) &&
            strcmp(text, view->port->device) == 0)
            snprintf(name, sizeof name, "%s", names.list[i]);
    folder_names_release(&names);
    if (!name[0]) {
        say(finding, NO, "modprobe ib_uverbs (package rdma-core)", "no device for programs");
        return;
    }
    if (strcmp(view->roots->sys, telemetry_roots_usual.sys) != 0)
        return say(finding, OK, NULL, "%s", name);
    snprintf(path, sizeof path, "/dev/infiniband/%s", name);
    if (access(path, R_OK | W_OK) == 0)
        return say(finding, OK, NULL, "%s", path);
    say(finding, NO,
        "let this user open it (udev rule of rdma-core: mode 0666); a container needs --device "
        "/dev/infiniband and --ulimit memlock=-1",
        "%s: %s", path, fail_errno_text(errno));
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
    struct doctor_report *report;
    struct infiniband_port ports[INFINIBAND_PORTS_MAX];
    uint32_t port_count;
    bool is_active; /* a port is */
};

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

static bool read_net(const struct fabric *fabric, const char *name, const char *file, char *text)
{
    return file_peek(text, TEXT_BYTES, "%s/class/net/%s/%s", fabric->roots->sys, name, file);
}

/* ---- NFS ---- */

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

static void look_acs(const struct fabric *fabric)
{
    struct doctor_finding finding = {0};
    unsigned count = 0, hidden = 0, redirecting = 0;
    char first[64] = ""; /* of those that redirect */
    struct folder_names names;

    list_below(fabric, "bus/pci/devices", &names);
    for (size_t i = 0; i < names.count; i++) {
        char path[512], class[TEXT_BYTES];
        unsigned char config[CONFIG_BYTES];
        if (!file_peek(class, sizeof class, "%s/bus/pci/devices/%s/class", fabric->roots->sys,
                       names.list[i]) ||
            strncmp(class, "0x0604", 6) != 0)
            continue; /* no bridge */
        snprintf(path, sizeof path, "%.300s/bus/pci/devices/%.40s/config", fabric->roots->sys,
                 names.list[i]);
        const int fd = file_open_quietly(path, O_RDONLY);
        const ssize_t bytes = fd < 0 ? 0 : pread(fd, config, sizeof config, 0);
        if (fd >= 0)
            close(fd);
        count++;
        if (bytes <= 64)
            hidden++;
        else if (bytes == CONFIG_BYTES && redirects(config) && redirecting++ == 0)
            snprintf(first, sizeof first, "%s", names.list[i]);
    }
    folder_names_release(&names);
    if (redirecting) {
        say(&finding, WARN, NULL, "%u of %u PCIe bridges redirect, the first is %s", redirecting,
            count, first);
        advise(&finding,
               "data between GPU and adapter takes the way through the root: disable ACS in the "
               "firmware, or setpci -s %s ECAP_ACS+6.w=0; not where virtual machines rely on it",
               first);
    } else if (hidden) {
        say(&finding, WARN, "run 'iobench doctor' as root", "unknown: this user cannot read it");
    } else {
        say(&finding, OK, NULL, "no redirection at %u PCIe bridges", count);
    }
    add_finding(fabric->report, "ACS", &finding);
}

static void look_fabric(const struct telemetry_roots *roots, struct doctor_report *report)
{
    struct fabric *fabric = calloc(1, sizeof *fabric);

    if (!fabric)
        return;
    fabric->roots = roots;
    fabric->report = report;
    report->section = report->heading = "Fabric";
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
                add_finding(report, name, &finding);
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
        if (adapter[0])
            say(&finding, NO,
                "load its driver: modprobe mlx5_ib (package rdma-core); in a container the host "
                "must share it",
                "adapter %s has no RDMA port", adapter);
        else
            say(&finding, NO,
                "not required: TCP works; to try RDMA without an adapter: rdma link add rxe0 type "
                "rxe netdev INTERFACE",
                "no InfiniBand or RoCE port");
        add_finding(fabric->report, "RDMA", &finding);
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
            say(&finding, small ? WARN : OK, NULL, "IP over InfiniBand, %s, MTU %s", mode, mtu);
            if (small)
                advise(&finding,
                       "packets of 4092 (subnet manager: mtu=5) or connected mode carry more: echo "
                       "connected >/sys/class/net/%s/mode; ip link set %s mtu 65520; newer "
                       "adapters have datagram only",
                       name, name);
        } else {
            char speed[TEXT_BYTES] = "-1";
            read_net(fabric, name, "speed", speed);
            const int mbit_per_s = atoi(speed);
            const bool small = mbit_per_s >= FAST_MBIT_PER_S && atoi(mtu) < 9000;
            if (mbit_per_s > 0)
                say(&finding, small ? WARN : OK, NULL, "%g Gbit/s, MTU %s", mbit_per_s / 1000.0,
                    mtu);
            else
                say(&finding, OK, NULL, "up, speed unknown (virtual?), MTU %s", mtu);
            if (small)
                advise(&finding,
                       "larger packets cost less CPU time: ip link set %s mtu 9000, on every host "
                       "and switch of this network",
                       name);
        }
        add_finding(fabric->report, name, &finding);
    }
    folder_names_release(&names);
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
                say(&finding, slow ? WARN : OK, NULL, "%s of %.100s", protocol, mount->source);
                if (slow && has_below(fabric->roots->sys, "module/rpcrdma"))
                    advise(&finding, "RDMA is there: mount with proto=rdma,port=20049, if the "
                                     "server listens (rdma=y in its nfs.conf)");
                else if (slow)
                    advise(&finding,
                           "RDMA is there: modprobe rpcrdma, then mount with "
                           "proto=rdma,port=20049, if the server listens (rdma=y in its nfs.conf)");
                char name[80];
                snprintf(name, sizeof name, "NFS at %.70s", mount->point);
                add_finding(fabric->report, name, &finding);
            }
    procfile_close(&file);
    free(mount);
    if (fabric->port_count && has_below(roots->proc, "driver/nvidia/gpus")) {
        struct doctor_finding finding = {0};
        const char *sys = fabric->roots->sys;
        if (has_below(sys, "module/nvidia_peermem") || has_below(sys, "module/nv_peer_mem"))
            say(&finding, OK, NULL, "module nvidia-peermem is loaded");
        else if (has_dmabuf(fabric))
            say(&finding, OK, NULL, "by dma-buf");
        else
            say(&finding, NO,
                "modprobe nvidia-peermem, or use NVIDIA's open kernel modules and Linux 5.12",
                "adapters cannot read GPU memory: data goes through the host's");
        add_finding(fabric->report, "peer memory", &finding);
        look_acs(fabric);
    }
    free(fabric);
}

/* doctor --launch: the job that a launcher started: whether its processes find each other, by which
 * MPI and transport, on which nodes and CPUs, with which clocks. */

enum { LIST_BYTES = 96 };
static const uint64_t OFFSET_MOST_NS = 10000000;

/* By the variables it sets. The first one found counts: processes of an inner launcher inherit
 * those of the outer one. */
static const struct launcher {
    const char *variable;
    const char *name;
    const char *mpi;  /* its MPI's name in ranks_library(); NULL: any */
    const char *cure; /* if the processes do not find each other */
    const char *cpus; /* option that gives a rank more CPUs */
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun", "Open MPI",
     "start it with the mpirun of its own MPI (mpirun.mpich, mpiexec.hydra)", "--bind-to none"},
    {"FLUX_JOB_ID", "flux run", NULL, "choose what this MPI knows: flux run -o pmi=pmix, or simple",
     "--cores-per-task N"},
    {"HYDI_CONTROL_FD", "Hydra's mpiexec (MPICH, Intel MPI)", "MPICH",
     "start it with the mpirun of its own MPI (mpirun.openmpi)", "-bind-to none"},
    {"SLURM_STEP_NUM_TASKS", "srun", NULL,
     "choose what this MPI knows: srun --mpi=list; Open MPI and recent MPICH: --mpi=pmix, MPICH: "
     "--mpi=pmi2",
     "--cpus-per-task N"},
    {"PMI_SIZE", "a launcher with PMI (MPICH, Intel MPI, srun --mpi=pmi2)", "MPICH",
     "start it with the mpirun of its own MPI (mpirun.openmpi), or with srun --mpi=pmix",
     "-bind-to none"},
    {"PMIX_RANK", "a launcher with PMIx", "Open MPI", "start it with the mpirun of its own MPI",
     "--bind-to none"},
    {"TORCHELASTIC_RUN_ID", "torchrun", NULL, "torchrun starts no MPI: use mpirun or srun instead",
     "--bind-to none"},
    {NULL, "no launcher", NULL, "", "--bind-to none"},
};

/* The name of this program's MPI, without what it uses. text: RANKS_LIBRARY_BYTES. Returns text. */
static const char *name_library(char *text)
{
    char *parts = strstr(ranks_library(text), "; ");

    if (parts)
        *parts = '\0';
    return text;
}

/* What a rank knows of itself. */
struct launch_seat {
    char library[RANKS_LIBRARY_BYTES];
    cpu_set_t cpus;
    int64_t day_ns;   /* time of day minus monotonic clock */
    uint32_t online;  /* CPUs of its node */
    int64_t ahead_ns; /* of its node's monotonic clock, against rank 0's */
    uint64_t uncertainty_ns;
    bool has_port; /* an active RDMA port */
};

struct job_view {
    const struct ranks *ranks;
    const struct launcher *launcher;
    const char *interface; /* of the launcher to MPI: ", PMIx"; found before joining */
    const struct launch_seat *seats;
    struct doctor_report *report;
};

/* ---- launcher and MPI ---- */

static void look_launcher(const struct job_view *view, struct doctor_finding *finding)
{
    say(finding, view->launcher->variable ? OK : WARN,
        "mpirun -n 4 iobench doctor --launch, or srun -n 4 --mpi=pmix iobench doctor --launch",
        "%s%s%s", view->launcher->name, view->interface,
        getenv("KUBERNETES_SERVICE_HOST") ? ", in Kubernetes" : "");
}

static void look_library(const struct job_view *view, struct doctor_finding *finding)
{
    char library[RANKS_LIBRARY_BYTES];

    (void)view;
    if (name_library(library)[0])
        say(finding, OK, NULL, "%s", library);
    else
        say(finding, NO, "build it where mpicc is (libopenmpi-dev or libmpich-dev)",
            "built without MPI");
}

/* The processes were started together, and each is alone. */
static void look_alone(const struct job_view *view, struct doctor_finding *finding)
{
    char library[RANKS_LIBRARY_BYTES];
    const struct launcher *launcher = view->launcher;
    const char *says = NULL;
    const int started = ranks_started(&says);
    name_library(library);
    const bool is_mixed =
        launcher->mpi && library[0] && strncmp(library, launcher->mpi, strlen(launcher->mpi)) != 0;

    say(finding, NO, NULL, "%d processes, each of them alone: %s=%d", started, says, started);
    if (library[0] == '\0')
        advise(finding, "without MPI they cannot find each other");
    else
        advise(finding, "%s%.60s%s%s", is_mixed ? "two MPIs are mixed; this program's is " : "",
               is_mixed ? library : "", is_mixed ? ": " : "", launcher->cure);
}

static void look_same_library(const struct job_view *view, struct doctor_finding *finding)
{
    const struct ranks *ranks = view->ranks;

    for (uint32_t i = 1; i < ranks->place.ranks; i++) {
        if (strncmp(view->seats[i].library, view->seats[0].library,
                    strcspn(view->seats[0].library, ",;")) == 0)
            continue;
        say(finding, NO, "install the same version on all nodes", "rank %u on %.40s has %.60s", i,
            ranks->peers[i].host, view->seats[i].library);
        return;
    }
}

static void look_transport(const struct job_view *view, struct doctor_finding *finding)
{
    static const char *const fast[] = {"ucx", "ofi", "openib", "psm"};
    const char *library = view->seats[0].library;
    const char *parts = strstr(library, "; ");
    bool is_fast = parts == NULL, has_ports = true;

    if (view->ranks->place.ranks == 1)
        return;
    for (size_t i = 0; parts && i < sizeof fast / sizeof *fast; i++)
        is_fast |= strstr(parts, fast[i]) != NULL;
    for (uint32_t i = 0; i < view->ranks->place.ranks; i++)
        has_ports &= view->seats[i].has_port;
    const bool slow = has_ports && !is_fast && view->ranks->place.nodes > 1;
    say(finding, slow ? WARN : OK,
        "all nodes have RDMA ports, and MPI uses TCP: mpirun --mca pml ucx, with an Open MPI that "
        "has UCX (ompi_info | grep ucx)",
        "%s", parts ? parts + 2 : "not told by this MPI");
}

/* ---- CPUs ---- */

/* "0-3,8": as taskset -c takes it. text: LIST_BYTES. */
static const char *list_cpus(const cpu_set_t *cpus, char *text)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t first = 0; first < CPU_SETSIZE; first++) {
        size_t last = first;
        if (!CPU_ISSET(first, cpus))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
            last++;
        if (used + 16 > LIST_BYTES) {
            snprintf(text + used, LIST_BYTES - used, ",...");
            break;
        }
        used += (size_t)snprintf(text + used, LIST_BYTES - used, "%s%zu", used ? "," : "", first);
        if (last > first)
            used += (size_t)snprintf(text + used, LIST_BYTES - used, "-%zu", last);
        first = last;
    }
    return text;
}

struct node_cpus {
    uint32_t ranks, first; /* first: its lowest rank */
    cpu_set_t all;
    bool is_equal; /* all ranks have the same CPUs */
    bool overlaps;
    int fewest;
};

/* ---- clocks ---- */

/* Time of day of a node minus rank 0's. */
static int64_t day_offset(const struct job_view *view, uint32_t rank)
{
    return view->seats[rank].day_ns - view->seats[0].day_ns + view->seats[rank].ahead_ns;
}

static void look_clocks(const struct job_view *view, struct doctor_finding *finding)
{
    char offset[WORDS_BYTES], trip[WORDS_BYTES];
    uint32_t worst = 0;
    uint64_t slowest_ns = 0;

    if (view->ranks->place.nodes == 1)
        return;
    for (uint32_t i = 0; i < view->ranks->place.ranks; i++) {
        if (!view->ranks->peers[i].leads)
            continue;
        if (llabs(day_offset(view, i)) > llabs(day_offset(view, worst)))
            worst = i;
        if (view->seats[i].uncertainty_ns > slowest_ns)
            slowest_ns = view->seats[i].uncertainty_ns;
    }
    const uint64_t most_ns = (uint64_t)llabs(day_offset(view, worst));
    say(finding, most_ns > OFFSET_MOST_NS ? WARN : OK,
        "logs of the nodes will not match: run chrony on all; series are aligned without it",
        "times of day differ by up to %s (%.40s); slowest round trip %s",
        words_duration(most_ns, offset), view->ranks->peers[worst].host,
        words_duration(2 * slowest_ns, trip));
}

/* ---- the job ---- */

static int sit_down(struct ranks *ranks, struct launch_seat *seats)
{
    struct infiniband_port ports[4];
    struct launch_seat mine = {0};
    struct ranks_clock clock;
    const struct series_anchor now = series_anchor_now();
    int code = ranks_compare_clocks(ranks, &clock);

    if (code)
        return code;
    const uint32_t count = infiniband_list(&telemetry_roots_usual, ports, 4);
    for (uint32_t i = 0; i < count; i++)
        mine.has_port |= ports[i].active;
    ranks_library(mine.library);
    if (sched_getaffinity(0, sizeof mine.cpus, &mine.cpus))
        CPU_ZERO(&mine.cpus);
    mine.day_ns = (int64_t)(now.unix_ns - now.monotonic_ns);
    mine.online = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    mine.ahead_ns = clock.ahead_ns;
    mine.uncertainty_ns = clock.uncertainty_ns;
    return ranks_gather(ranks, &mine, sizeof mine, seats);
}

/* path: of the data, or NULL. A table ends with a NULL name. */
struct doctor_check {
    const char *name;
    void (*look)(const char *path, struct doctor_finding *finding);
};

enum { SMALL_FILES = 4096, SUDO_WAIT_NS = 2000000000 };
static const uint64_t PROBE_WAIT_NS = 10000000000;
static const uint64_t PINNED_LEAST = 256 << 20, MEMORY_LEAST = 1ull << 30;

static size_t count_matches(const char *pattern)
{
    struct folder_names found;

    folder_names_matching(&found, pattern);
    size_t count = found.count;
    folder_names_release(&found);
    return count;
}

static void look_kernel(const char *path, struct doctor_finding *finding)
{
    struct utsname name;
    unsigned major = 0, minor = 0;

    (void)path;
    if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
        return say(finding, WARN, NULL, "kernel version unknown");
    bool recent = major > 6 || (major == 6 && minor >= 5);
    say(finding, recent ? OK : WARN,
        "Linux 6.5 and later report cached pages faster and more reliably (cachestat)", "%s %s",
        name.sysname, name.release);
    if (access("/proc/self", F_OK))
        say(finding, WARN,
            "modules of iobench, memory, devices and cached pages cannot be found: mount -t proc "
            "proc /proc",
            "%s %s, without /proc", name.sysname, name.release);
}

/* Its first bytes are a record. */
static int index_file(const char *path, struct catalog **catalog)
{
    *catalog = catalog_create(path, "none");
    int code = *catalog ? catalog_begin_shard(*catalog, path, NULL, 0) : -ENOMEM;

    if (code == 0) {
        const uint64_t bytes = (*catalog)->shards[0].bytes;
        code = catalog_add(*catalog, 0, bytes < SMALL_FILES ? bytes : SMALL_FILES);
    }
    return code ? code : catalog_seal(*catalog);
}

/* Open a reader and a file and read the file's first bytes, as a run does. falls_back: see struct
 * reader_config. Returns 0 or a negative errno with a reason. */
static int doctor_try_reader(const struct plugin *plugin, const char *path, bool falls_back,
                             struct reader_traits *traits)
{
    static char buffer[SMALL_FILES] __attribute__((aligned(HEAP_ALIGNMENT)));
    struct plugin_choice choice = {0};
    struct iovec region = {.iov_base = buffer, .iov_len = sizeof buffer};
    struct reader_config site = {.regions = &region,
                                 .region_count = 1,
                                 .depth = 1,
                                 .bytes_max = sizeof buffer,
                                 .timeout_ns = PROBE_WAIT_NS,
                                 .falls_back = falls_back};
    struct reader reader = {0};
    struct catalog *catalog = NULL;

    int code = index_file(path, &catalog);
    if (code == 0)
        code = plugin_choose("reader", reader_registry, plugin->name, &choice);
    if (code == 0) {
        site.catalog = catalog;
        code = reader_open(&reader, &choice, &site);
        if (code == 0) {
            const uint32_t bytes = (uint32_t)catalog->record_bytes_max;
            static struct read_request
                request; /* as the buffer: an answer may come after the wait */
            struct read_request *done;
            request = (struct read_request){.bytes = bytes, .needed = bytes, .buffer = buffer};
            code = reader_submit(&reader, &request);
            if (code == 0)
                code = reader_reap(&reader, &done, 1, PROBE_WAIT_NS);
            if (code == 0)
                code = fail(ETIMEDOUT, "a read timed out");
            code = code < 0 ? code : request.result;
        }
        *traits = reader.traits;
        reader_close(&reader);
    }
    plugin_release(&choice);
    catalog_destroy(catalog);
    return code < 0 ? code : 0;
}

static void look_uring(const char *path, struct doctor_finding *finding)
{
    const struct plugin *const *row = reader_registry;
    struct reader_traits traits;

    (void)path;
    while (*row && !reader_of(*row)->remedy)
        row++;
    if (!*row) {
        say(finding, NO, "build with liburing-dev; until then use --reader pread", "not built in");
    } else if (doctor_try_reader(*row, "/proc/self/exe", false, &traits)) { /* it is everywhere */
        say(finding, NO, NULL, "%s", fail_reason());
        advise(finding, "%s; meanwhile use --reader pread", reader_of(*row)->remedy);
    } else {
        say(finding, OK, NULL, "opened a ring and read a file: %s", traits.engine);
    }
}

static void look_memlock(const char *path, struct doctor_finding *finding)
{
    struct rlimit limit;
    char text[32];

    (void)path;
    if (getrlimit(RLIMIT_MEMLOCK, &limit))
        return say(finding, WARN, NULL, "limit unknown");
    if (limit.rlim_cur == RLIM_INFINITY || geteuid() == 0)
        return say(finding, OK, NULL, "no limit%s", geteuid() == 0 ? " for root" : "");
    bool enough = limit.rlim_cur >= PINNED_LEAST;
    say(finding, enough ? OK : WARN,
        "buffers cannot be registered with the kernel, which costs CPU time: raise 'ulimit -l'",
        "limit %s", bytes_text(limit.rlim_cur, text, sizeof text));
}

static void look_files(const char *path, struct doctor_finding *finding)
{
    struct rlimit limit;

    (void)path;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return say(finding, WARN, NULL, "limit unknown");
    bool enough = limit.rlim_max >= SMALL_FILES;
    say(finding, enough ? OK : WARN,
        "data sets of many shards will reopen files constantly: raise 'ulimit -Hn'", "limit %llu",
        (unsigned long long)limit.rlim_max);
}

static void look_cpus(const char *path, struct doctor_finding *finding)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned usable = thread_cpu_count();
    double load = 0;

    (void)path;
    if (getloadavg(&load, 1) != 1)
        load = 0;
    bool busy = load > 0.25 * usable + 0.25;
    say(finding, busy || usable < (unsigned)online ? WARN : OK, NULL, "%u of %ld usable, load %.2f",
        usable, online, load);
    if (busy)
        advise(finding, "other processes are running: figures will be low and noisy");
    else if (usable < (unsigned)online)
        advise(finding, "a CPU quota or affinity mask limits decoding");
}

static void look_memory(const char *path, struct doctor_finding *finding)
{
    struct headroom headroom;
    char text[32];

    (void)path;
    headroom_find(&headroom, "/proc", "/sys");
    const bool little = headroom.available_bytes < MEMORY_LEAST;
    say(finding, little ? WARN : OK, "a shuffle buffer may not fit", "%s available, by %s",
        bytes_text(headroom.available_bytes, text, sizeof text), headroom.cause);
}

static void look_clock(const char *path, struct doctor_finding *finding)
{
    const char *source = clock_source();
    bool slow = strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 ||
                strcmp(source, "jiffies") == 0;

    (void)path;
    say(finding, slow ? WARN : OK, "reading this clock takes a system call: latencies suffer", "%s",
        source);
}

static void look_drop(const char *path, struct doctor_finding *finding)
{
    static const char *const sudo[] = {"/usr/bin/sudo", "-n", "true", NULL};
    const struct child_task task = {.argv = sudo, .timeout_ns = SUDO_WAIT_NS};
    struct child_result child;

    (void)path;
    if (drop_is_permitted())
        return say(finding, OK, NULL, "this user can drop all caches");
    if (access(sudo[0], X_OK) == 0 && child_run(&task, &child) == 0 && child.status == 0)
        return say(finding, OK, NULL, "via passwordless sudo");
    say(finding, WARN,
        "dentries and inodes stay cached: run as root, or allow passwordless sudo for cachectl",
        "only file by file (posix_fadvise)");
}

static void look_residency(const char *path, struct doctor_finding *finding)
{
    struct residency_probe *probe = residency_probe_create();
    struct residency residency;

    (void)path;
    if (!probe)
        return say(finding, NO, NULL, "%s", fail_reason());
    residency_file(probe, "/proc/self/exe", &residency);
    residency_probe_destroy(probe);
    if (residency.state == RESIDENCY_UNVERIFIED)
        say(finding, NO, "no run can be verified cold; run as the owner of the data",
            "page cache residency unknown: %s", residency.reason);
    else
        say(finding, OK, NULL, "via %s", residency_method_text(residency.method));
}

static void look_io_counters(const char *path, struct doctor_finding *finding)
{
    char line[64];

    (void)path;
    if (file_peek(line, sizeof line, "/proc/self/io") && *line)
        return say(finding, OK, NULL, "/proc/self/io is readable");
    say(finding, WARN,
        "storage bytes are then taken from the block devices, including all other traffic",
        "/proc/self/io cannot be read");
}

static void look_sandbox(const char *path, struct doctor_finding *finding)
{
    const int abi = landlock_abi();

    (void)path;
    if (abi)
        return say(finding, OK, NULL,
                   "Landlock ABI %d; used for root, for others with --sandbox yes", abi);
    say(finding, WARN,
        "needs Linux 5.13 with CONFIG_SECURITY_LANDLOCK; read untrusted data as another user",
        "kernel without Landlock: root parses data with full privileges");
}

static void look_gpus(const char *path, struct doctor_finding *finding)
{
    size_t count = count_matches("/proc/driver/nvidia/gpus/*");

    (void)path;
    if (count)
        return say(finding, OK, NULL, "%zu NVIDIA", count);
    say(finding, NO, "not required: --trainer replay:h200 simulates one", "none found");
}

/* Only a look: nothing here reads by cuFile. */
static void look_gpu_storage(const char *path, struct doctor_finding *finding)
{
    static const char *const places[] = {"/usr/lib/*/libcufile.so.0", "/usr/lib64/libcufile.so.0",
                                         "/usr/local/cuda*/lib64/libcufile.so.0",
                                         "/usr/local/cuda*/targets/*/lib/libcufile.so.0"};
    size_t libraries = 0;

    (void)path;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        libraries += count_matches(places[i]);
    if (libraries && count_matches("/proc/driver/nvidia-fs"))
        return say(finding, OK, NULL, "cuFile, and the driver nvidia-fs is loaded");
    say(finding, NO,
        "not required: no reader uses it; frameworks do, and without nvidia-fs it copies through "
        "host memory (package nvidia-gds)",
        libraries ? "cuFile, without the driver nvidia-fs" : "no cuFile (libcufile.so.0)");
}

static void look_mpi(const char *path, struct doctor_finding *finding)
{
    (void)path;
    if (file_in_path("mpirun"))
        return say(finding, OK, NULL, "mpirun found");
    say(finding, NO, "not required on one node; start ranks by hand with --ranks N --rank I",
        "no mpirun");
}

static const struct doctor_check doctor_machine[] = {
    {"kernel", look_kernel},
    {"io_uring", look_uring},
    {"pinned memory", look_memlock},
    {"open files", look_files},
    {"CPUs", look_cpus},
    {"memory", look_memory},
    {"clock", look_clock},
    {"drop caches", look_drop},
    {"verify cold", look_residency},
    {"bytes read", look_io_counters},
    {"sandbox", look_sandbox},
    {"GPUs", look_gpus},
    {"GPU storage", look_gpu_storage},
    {"MPI", look_mpi},
    {0},
};

static const uint64_t FREE_LEAST = 2ull << 30;

static void look_access(const char *path, struct doctor_finding *finding)
{
    if (access(path, R_OK) == 0)
        return say(finding, OK, NULL, "readable");
    say(finding, NO, "this user cannot measure anything below it", "%s", fail_errno_text(errno));
}

static void look_format(const char *path, struct doctor_finding *finding)
{
    const struct plugin *format = format_detect(path);

    if (format)
        return say(finding, OK, NULL, "%s (%s)", format->name, format->summary);
    say(finding, WARN, "create a data set in any format with 'iobench pack'", "%s", fail_reason());
}

/* File systems with caches besides the page cache of this machine. */
static const struct {
    const char *type;
    const char *advice;
} special[] = {
    {"tmpfs", "memory, not storage: never cold"},
    {"ramfs", "memory, not storage: never cold"},
    {"overlay", "container layers: put the data on a separate volume"},
    {"zfs", "ZFS caches outside the page cache (ARC): runs cannot be verified cold"},
};

static void look_file_system(const char *path, struct doctor_finding *finding)
{
    struct mount mount;

    if (mount_of_path(&telemetry_roots_usual, path, &mount))
        return say(finding, WARN, NULL, "%s", fail_reason());
    say(finding, OK, NULL, "%s at %.80s (%.80s)", mount.type, mount.point, mount.options);
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        if (strcmp(special[i].type, mount.type) == 0) {
            finding->state = WARN;
            advise(finding, "%s", special[i].advice);
        }
    }
}

static void look_devices(const char *path, struct doctor_finding *finding)
{
    struct device_list *list = calloc(1, sizeof *list);
    char names[160];

    if (!list)
        return say(finding, WARN, NULL, "out of memory");
    if (devices_of_path(&telemetry_roots_usual, path, list))
        say(finding, WARN, NULL, "%s", fail_reason());
    else if (list->memory[0])
        say(finding, WARN, NULL, "%s", list->memory);
    else if (list->count == 0)
        say(finding, OK, NULL, "none: a network file system");
    else
        say(finding, OK, NULL, "%s", devices_text(list, names, sizeof names));
    if (list->memory[0])
        advise(finding, "memory, not storage: never cold");
    if (list->elsewhere[0]) {
        finding->state = WARN;
        advise(finding,
               "%s: the server may cache too; drop its caches with --server-drop-cmd, verify with "
               "--server-check-cmd",
               list->elsewhere);
    }
    free(list);
}

static void look_read_ahead(const char *path, struct doctor_finding *finding)
{
    char text[24];

    /* Of the file system's device, else of the disk beneath: a partition has none of its own. */
    static const char pattern[] = "%s/class/bdi/%u:%u/read_ahead_kb";
    const char *sys = telemetry_roots_usual.sys;
    struct device_list *list = calloc(1, sizeof *list);
    struct mount mount;
    bool found = mount_of_path(&telemetry_roots_usual, path, &mount) == 0 &&
                 file_peek(text, sizeof text, pattern, sys, mount.device_major, mount.device_minor);
    if (!found && list && devices_of_path(&telemetry_roots_usual, path, list) == 0 && list->count)
        found = file_peek(text, sizeof text, pattern, sys, list->devices[0].device_major,
                          list->devices[0].device_minor);
    free(list);
    if (!found)
        return say(finding, OK, NULL, "unknown: not in /sys/class/bdi");
    const bool is_off = strcmp(text, "0") == 0;
    say(finding, is_off ? WARN : OK,
        "reads in file order wait for each piece: write 128 or more to read_ahead_kb of the device "
        "in /sys/class/bdi",
        "%s KiB", text);
}

static void look_free(const char *path, struct doctor_finding *finding)
{
    uint64_t bytes;
    char text[32];

    if (file_free_bytes(path, &bytes))
        return say(finding, WARN, NULL, "%s", fail_reason());
    say(finding, bytes < FREE_LEAST ? WARN : OK, "too little for a useful data set", "%s",
        bytes_text(bytes, text, sizeof text));
}

/* Find a regular file of the data: path itself, the first file in the folder, or a temporary one.
 */
struct sample_file {
    char *path; /* NULL: none */
    struct file_draft made;
};

static int keep_file(void *context, const char *name, unsigned char type)
{
    char **found = context;

    if (type != DT_REG)
        return 0;
    *found = strdup(name);
    return 1;
}

static void some_file(const char *path, struct sample_file *file)
{
    struct folder folder;
    char *name = NULL;

    *file = (struct sample_file){.path = NULL};
    if (!file_is_folder(path)) {
        file->path = strdup(path);
        return;
    }
    if (folder_open(&folder, path) == 0)
        folder_list(&folder, keep_file, &name);
    folder_close(&folder);
    char *wanted = file_join(path, name ? name : "iobench-doctor");
    if (name) {
        file->path = wanted;
    } else if (wanted) {
        if (file_draft_open(&file->made, wanted, NULL) == 0)
            file->path = strdup(file->made.draft_path);
        free(wanted);
    }
    free(name);
}

static void release_file(struct sample_file *file)
{
    file_draft_abandon(&file->made);
    free(file->path);
}

static void look_residency_of(const char *path, struct doctor_finding *finding)
{
    struct residency_probe *probe = residency_probe_create();
    struct residency residency = {0};
    struct sample_file file;

    some_file(path, &file);
    if (!probe || !file.path || file.made.path)
        say(finding, WARN, NULL, "not tested: no file found");
    else {
        residency_file(probe, file.path, &residency);
        if (residency.state == RESIDENCY_UNVERIFIED)
            say(finding, NO, "no run can be verified cold here; run as the owner of the data", "%s",
                residency.reason);
        else
            say(finding, OK, NULL, "by %s",
                residency.method ? residency_method_text(residency.method) : "its being empty");
    }
    release_file(&file);
    residency_probe_destroy(probe);
}

static void look_direct(const char *path, struct doctor_finding *finding)
{
    struct sample_file file;

    some_file(path, &file);
    int fd = file.path ? file_open_quietly(file.path, O_RDONLY | O_DIRECT) : -ENOENT;
    if (!file.path)
        say(finding, WARN, "pass a file of the data set instead",
            "not tested: cannot create a file here");
    else if (fd < 0)
        say(finding, NO, "--direct does not work here", "O_DIRECT: %s", fail_errno_text(fd));
    else {
        struct statx status = {0};
#ifdef STATX_DIOALIGN
        if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
            (status.stx_mask & STATX_DIOALIGN) && status.stx_dio_offset_align)
            say(finding, OK, NULL, "works, in multiples of %u bytes", status.stx_dio_offset_align);
        else
#endif
            say(finding, OK, NULL, "opens; alignment found by trial");
        (void)status;
    }
    if (fd >= 0)
        close(fd);
    release_file(&file);
}

/* What --reader auto would be, and if that reads another way than usual, as on FUSE, why. */
static void look_auto_reader(const char *path, struct doctor_finding *finding)
{
    const struct plugin *reader = reader_auto(store_of(path)->scheme, false);
    struct reader_traits traits = {0};
    struct sample_file file;

    some_file(path, &file);
    if (!file.path || file.made.path) {
        say(finding, WARN, NULL, "not tested: no file found");
    } else if (doctor_try_reader(reader, file.path, true, &traits)) {
        say(finding, NO, "--reader pread works everywhere", "%s: %s", reader->name, fail_reason());
    } else {
        say(finding, *traits.notice ? WARN : OK, NULL, "auto is %s: %s", reader->name,
            traits.engine);
        advise(finding, "%s", traits.notice);
    }
    release_file(&file);
}

/* Commands to the disk itself, which only some disks and file systems allow. */
static void look_passthrough(const char *path, struct doctor_finding *finding)
{
    struct reader_traits traits = {0};
    struct sample_file file;

    say(finding, OK, NULL, "not built in");
    some_file(path, &file);
    for (const struct plugin *const *row = reader_registry; *row; row++) {
        if (!reader_of(*row)->is_passthrough)
            continue;
        if (!file.path || file.made.path)
            say(finding, OK, NULL, "not tested: no file found");
        else if (plugin_usable(*row) || doctor_try_reader(*row, file.path, false, &traits))
            say(finding, OK, NULL, "not here: %s", fail_reason());
        else
            say(finding, OK, NULL, "--reader %s: %s", (*row)->name, traits.engine);
    }
    release_file(&file);
}

static const struct doctor_check doctor_path[] = {
    {"access", look_access},
    {"format", look_format},
    {"file system", look_file_system},
    {"devices", look_devices},
    {"O_DIRECT", look_direct},
    {"reader", look_auto_reader},
    {"passthrough", look_passthrough},
    {"verify cold", look_residency_of},
    {"read-ahead", look_read_ahead},
    {"free space", look_free},
    {0},
};

struct doctor_settings {
    char *json; /* file or "-" for standard output; NULL: a table */
    bool launch, fabric;
    char *proc_root, *sysfs_root;
};

static const struct option_spec doctor_options[] = {
    {"json", 0, OPTION_TEXT, offsetof(struct doctor_settings, json), .metavar = "FILE",
     .reach = OPTION_WRITES, .begins = "[{\"section\": \"\", \"name\"", .implied = "-",
     .summary = "write JSON instead; to standard output without FILE"},
    {"fabric", 0, OPTION_FLAG, offsetof(struct doctor_settings, fabric), "no",
     .summary = "only the fabric: ports, interfaces, NFS mounts, GPU to adapter"},
    {"launch", 0, OPTION_FLAG, offsetof(struct doctor_settings, launch), "no",
     .summary = "only the job, under mpirun or srun: MPI, transport, nodes, CPUs, clocks"},
    {"proc-root", 0, OPTION_TEXT, offsetof(struct doctor_settings, proc_root), "/proc",
     .metavar = "DIR", .summary = "mount point of proc, for the fabric"},
    {"sysfs-root", 0, OPTION_TEXT, offsetof(struct doctor_settings, sysfs_root), "/sys",
     .metavar = "DIR", .summary = "mount point of sysfs, such as the host's in a container"},
    {0},
};

/* Returns false if the first check failed and the rest were skipped. */
static bool look_all(struct doctor_report *report, const char *section,
                     const struct doctor_check *list, const char *path)
{
    report->section = report->heading = section;
    for (int i = 0; list[i].name; i++) {
        struct doctor_finding finding = {0};
        fail_clear();
        list[i].look(path, &finding);
        add_finding(report, list[i].name, &finding);
        if (i == 0 && finding.state == NO)
            return false;
    }
    return true;
}

static void add_offer(void *context, const struct reader_offer *offer)
{
    struct doctor_report *report = context;
    struct doctor_finding finding = {0};
    char name[96];

    snprintf(name, sizeof name, "%s %s", report->reader, offer->name);
    if (offer->code == 0)
        say(&finding, OK, NULL, "%s", offer->found);
    else
        say(&finding, WARN, offer->remedy, "missing: %s", fail_errno_text(offer->code));
    add_finding(report, name, &finding);
}

static void look_ranks_per_node(const struct job_view *view, struct doctor_finding *finding)
{
    const struct ranks_place *place = &view->ranks->place;
    uint32_t fewest = place->ranks, most = 0;

    for (uint32_t node = 0; node < place->nodes; node++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < place->ranks; i++)
            count += view->ranks->peers[i].node == node;
        fewest = count < fewest ? count : fewest;
        most = count > most ? count : most;
    }
    say(finding, fewest == most ? OK : WARN, NULL, "%u %s on %u %s", place->ranks,
        place->ranks == 1 ? "rank" : "ranks", place->nodes, place->nodes == 1 ? "node" : "nodes");
    if (fewest != most)
        advise(finding, "%u to %u ranks per node: nodes with more will be slower", fewest, most);
}

/* Each list ends with a NULL name; one that leaves the finding empty does not apply. */
static const struct job_check {
    const char *name;
    void (*look)(const struct job_view *view, struct doctor_finding *finding);
} alone_checks[] = {{"launcher", look_launcher}, {"MPI", look_library}, {"job", look_alone}, {0}},
  job_checks[] = {{"launcher", look_launcher},   {"MPI", look_library},
                  {"job", look_ranks_per_node},  {"versions", look_same_library},
                  {"transport", look_transport}, {0}},
  clock_checks[] = {{"clocks", look_clocks}, {0}};

static void look_job(const struct job_view *view, const struct job_check *list)
{
    for (; list->name; list++) {
        struct doctor_finding finding = {0};
        list->look(view, &finding);
        if (finding.what[0])
            add_finding(view->report, list->name, &finding);
    }
}

/* Join the processes that a launcher started and look at the job; only rank 0 reports. Exits with 1
 * if they do not form one job, so that scripts can ask. */
static int look_launch(const struct invocation *invocation, bool speaks,
                       struct doctor_report *report)
{
    struct ranks ranks;
    struct job_view view = {.ranks = &ranks,
                            .launcher = launchers,
                            .interface = getenv("PMIX_NAMESPACE") ? ", PMIx"
                                         : getenv("PMI_RANK")     ? ", PMI"
                                                                  : "",
                            .report = report};
    const char *says;

    while (view.launcher->variable && !getenv(view.launcher->variable))
        view.launcher++;
    report->section = "Launch";
    if (!report->all && speaks)
        puts(report->section);
    int code = command_join(&ranks);
    if (code == 0) {
        struct launch_seat *seats = memory_array(ranks.place.ranks, sizeof *seats);
        code = ranks_meet(&ranks, seats ? sit_down(&ranks, seats) : -ENOMEM, NULL);
        view.seats = seats;
        if (code == 0 && ranks.place.rank == 0) {
            look_job(&view, job_checks);
            for (uint32_t node = 0; node < ranks.place.nodes; node++) {
                struct node_cpus sum = {.is_equal = true, .fewest = CPU_SETSIZE};
                for (uint32_t i = 0; i < view.ranks->place.ranks; i++) {
                    const cpu_set_t *cpus = &view.seats[i].cpus;
                    cpu_set_t both;
                    if (view.ranks->peers[i].node != node)
                        continue;
                    if (sum.ranks++ == 0)
                        sum.first = i;
                    CPU_AND(&both, &sum.all, cpus);
                    sum.overlaps |= CPU_COUNT(&both) > 0;
                    CPU_OR(&sum.all, &sum.all, cpus);
                    sum.is_equal &= CPU_EQUAL(cpus, &view.seats[sum.first].cpus);
                    sum.fewest = CPU_COUNT(cpus) < sum.fewest ? CPU_COUNT(cpus) : sum.fewest;
                }
                struct doctor_finding finding = {0};
                char list[LIST_BYTES], name[80];
                const int count = CPU_COUNT(&sum.all);
                const bool crowded = (uint32_t)count < sum.ranks;
                const bool partly = sum.overlaps && !sum.is_equal;

                say(&finding, crowded || partly ? WARN : OK, NULL, "%u %s, CPUs %s%s", sum.ranks,
                    sum.ranks == 1 ? "rank" : "ranks", list_cpus(&sum.all, list),
                    sum.ranks == 1 ? ""
                    : sum.is_equal ? ", shared by all"
                    : partly       ? ", some in several ranks"
                                   : ", each its own");
                if (crowded && (uint32_t)count < view.seats[sum.first].online)
                    advise(&finding, "fewer CPUs (%d) than ranks, of %u here: %s", count,
                           view.seats[sum.first].online, view.launcher->cpus);
                else if (crowded)
                    advise(&finding, "fewer CPUs (%d) than ranks: start fewer per node", count);
                else if (partly)
                    advise(
                        &finding,
                        "ranks that share a CPU will be slower: bind each to its own, or none (%s)",
                        view.launcher->cpus);
                else if (sum.fewest == 1 && sum.ranks > 1)
                    advise(&finding, "one CPU per rank leaves none for decode threads: %s",
                           view.launcher->cpus);
                snprintf(name, sizeof name, "node %.60s", view.ranks->peers[sum.first].host);
                add_finding(view.report, name, &finding);
            }
            look_job(&view, clock_checks);
        }
        free(seats);
    } else if (!speaks) {
        command_fails_last();
    } else if (ranks.place.ranks == 1 && ranks_started(&says) > 1) {
        look_job(&view, alone_checks);
    }
    ranks_leave(&ranks, code != 0);
    if (code && !report->is_bad && speaks)
        return command_failed(invocation);
    return code || report->is_bad ? COMMAND_FAILED : COMMAND_OK;
}

static int doctor_run(const struct invocation *invocation)
{
    const struct doctor_settings *settings = invocation->settings;
    const struct telemetry_roots roots = {.proc = settings->proc_root, .sys = settings->sysfs_root};
    const bool speaks = ranks_speaks(); /* joining changes what the environment says */
    struct doctor_report report = {.all = settings->json ? json_array() : NULL};
    int status = COMMAND_OK;

    if (settings->launch && (settings->fabric || invocation->count)) {
        fail(EINVAL, "--launch looks at the job only: no --fabric, no PATH");
        status = command_misused(invocation);
    } else if (settings->launch) {
        status = look_launch(invocation, speaks, &report);
    } else if (settings->fabric) {
        look_fabric(&roots, &report);
    } else {
        const char *path = invocation->count ? invocation->operands[0] : NULL;
        look_all(&report, "This machine", doctor_machine, path);
        report.section = "Readers";
        report.heading = "\nReaders";
        for (const struct plugin *const *row = reader_registry; *row; row++) {
            report.reader = (*row)->name;
            reader_offers(*row, add_offer, &report);
        }
        if (!report.all)
            putchar('\n');
        look_fabric(&roots, &report);
        /* Plug-ins that are built in but unusable here. */
        report.section = "plug-ins";
        report.heading = "\nPlug-ins not usable here";
        for (const struct family *family = family_table; family->name; family++)
            for (int i = 0; family->registry[i]; i++) {
                struct doctor_finding finding = {0};
                char name[96];
                if (plugin_usable(family->registry[i]) == 0)
                    continue;
                say(&finding, NO, NULL, "%s", fail_reason());
                snprintf(name, sizeof name, "%s %s", family->name, family->registry[i]->name);
                add_finding(&report, name, &finding);
            }
        for (int i = 0; i < invocation->count; i++) {
            if (!report.all)
                putchar('\n');
            if (!look_all(&report, invocation->operands[i], doctor_path, invocation->operands[i]))
                status = COMMAND_FAILED;
        }
        if (!report.all && !path)
            puts("\nTo check the storage of a data set too: iobench doctor PATH\n"
                 "To check how a job is started: mpirun ... iobench doctor --launch");
    }
    if (report.all && status != COMMAND_USAGE && (!settings->launch || speaks))
        return json_file_write(settings->json, report.all) ? command_failed(invocation) : status;
    json_decref(report.all);
    return status;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "check what works on this machine, and how to fix what does not",
    .operands = "[PATH...]",
    .operands_maximum = -1,
    .description =
        "Checks what a measurement needs: io_uring, limits, permission to drop caches and means to "
        "verify them cold, GPUs; what each reader can use; of the fabric each port, network "
        "interface, NFS mount and the way between GPU and adapter; and of each PATH the file "
        "system, devices, O_DIRECT, the reader that --reader auto is there, passthrough and free "
        "space. Each line is ok, warn or no, with a remedy.\n"
        "--launch, under mpirun or srun, checks the job instead: which MPI and transport, ranks "
        "and nodes, the CPUs of each rank, clocks, and why processes do not find each other. It "
        "exits with 1 if something does not work.",
    .examples = "iobench doctor /mnt/imagenet\tbefore the first run on a machine\n"
                "iobench doctor --fabric\tits ports, interfaces and NFS mounts\n"
                "mpirun -n 16 --hostfile hosts iobench doctor --launch\tbefore the first job\n",
    .options = doctor_options,
    .settings_size = sizeof(struct doctor_settings),
    .run = doctor_run,
};
