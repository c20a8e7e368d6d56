/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench doctor: checks what works on this machine, and how to fix what does not.
 */
#include "base/bytes.h"
#include "base/child.h"
#include "base/landlock.h"
#include "base/clock.h"
#include "base/draft.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/gid.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cachectl/cold.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "readers/reader.h"
#include "report/words.h"
#include "telemetry/probe.h"
#include "telemetry/devices.h"
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

/* Where findings go, and the current one. */
struct doctor {
    const struct telemetry_roots *roots; /* of the fabric */
    const char *section, *heading;       /* heading: before the next finding; or NULL */
    json_t *all;                         /* JSON; NULL: a table on standard output */
    bool is_bad;                         /* something does not work */
    const char *reader;                  /* whose offers are added */
    const struct infiniband_port *port;  /* looked at */
    bool is_software;                    /* it: rxe, siw, without an adapter */
    bool is_ethernet;
    enum doctor_state state;
    char what[200];   /* "": the check does not apply */
    char advice[300]; /* remedy; "" if none is needed */
};

/* Set the finding. remedy: the advice unless it is ok; NULL: none. */
__attribute__((format(printf, 4, 5))) static void
say(struct doctor *doctor, enum doctor_state state, const char *remedy, const char *format, ...)
{
    va_list arguments;

    doctor->state = state;
    if (remedy && state != OK)
        snprintf(doctor->advice, sizeof doctor->advice, "%s", remedy);
    va_start(arguments, format);
    vsnprintf(doctor->what, sizeof doctor->what, format, arguments);
    va_end(arguments);
}

__attribute__((format(printf, 2, 3))) static void advise(struct doctor *doctor, const char *format,
                                                         ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(doctor->advice, sizeof doctor->advice, format, arguments);
    va_end(arguments);
}

/* Add the finding under this name, and begin another one. */
__attribute__((format(printf, 2, 3))) static void found(struct doctor *doctor, const char *format,
                                                        ...)
{
    static const char *const states[] = {[OK] = "ok", [WARN] = "warn", [NO] = "no"};
    enum { COLUMN = 26 };
    char name[96], left[112];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    doctor->is_bad |= doctor->state == NO;
    if (doctor->all) {
        json_array_append_new(
            doctor->all, json_pack("{s:o, s:o, s:s, s:o, s:o}", "section",
                                   json_text(doctor->section), "name", json_text(name), "state",
                                   states[doctor->state], "what", json_text(doctor->what), "advice",
                                   doctor->advice[0] ? json_text(doctor->advice) : json_null()));
    } else {
        if (doctor->heading)
            puts(doctor->heading);
        doctor->heading = NULL;
        snprintf(left, sizeof left, "  %-4s  %s", states[doctor->state], name);
        words_print(stdout, left, COLUMN, doctor->what[0] ? escape_shown(doctor->what) : "unknown");
        if (doctor->advice[0])
            words_print(stdout, "", COLUMN, escape_shown(doctor->advice));
    }
    doctor->what[0] = doctor->advice[0] = '\0';
    fail_clear();
}

/* ---- the fabric: RDMA ports, network interfaces, NFS mounts, and the way between GPU and
 * adapter. Everything is read below the roots of proc and sysfs.
 */

/* Ports of RDMA adapters: link, PCIe, MTU, GIDs, congestion, counters, permission. */

enum { TEXT_BYTES = 128, GIDS_MAX = 256 };

/* Read a file of the port, of its adapter, or of the network interface beneath. */
static bool read_port(const struct doctor *doctor, const char *file, char *text)
{
    return file_peek(text, TEXT_BYTES, "%s/class/infiniband/%s/ports/%u/%s", doctor->roots->sys,
                     doctor->port->device, doctor->port->number, file);
}

static bool read_adapter(const struct doctor *doctor, const char *file, char *text)
{
    return file_peek(text, TEXT_BYTES, "%s/class/infiniband/%s/%s", doctor->roots->sys,
                     doctor->port->device, file);
}

static bool read_net(const struct telemetry_roots *roots, const char *name, const char *file,
                     char *text)
{
    return name[0] && file_peek(text, TEXT_BYTES, "%s/class/net/%s/%s", roots->sys, name, file);
}

static uint64_t count_of(const struct doctor *doctor, const char *file)
{
    char text[TEXT_BYTES];

    return read_port(doctor, file, text) ? strtoull(text, NULL, 0) : 0;
}

/* "4: ACTIVE" is "ACTIVE". */
static const char *state_word(const char *text)
{
    const char *colon = strstr(text, ": ");

    return colon ? colon + 2 : text;
}

static void look_link(struct doctor *doctor)
{
    char state[TEXT_BYTES] = "", physical[TEXT_BYTES] = "", rate[TEXT_BYTES] = "rate unknown";

    read_port(doctor, "state", state);
    read_port(doctor, "phys_state", physical);
    read_port(doctor, "rate", rate);
    const bool narrow = !doctor->is_software && strstr(rate, "(1X") != NULL;
    const enum doctor_state found = !doctor->port->active ? NO : narrow ? WARN : OK;
    if (doctor->is_software)
        say(doctor, found, NULL, "software RDMA over %s, %s; no rate of its own",
            doctor->port->interface[0] ? doctor->port->interface : "an interface",
            state_word(state));
    else
        say(doctor, found, NULL, "%s, %s (%s), %s",
            doctor->is_ethernet ? "RoCE" : doctor->port->link_layer, state_word(state),
            state_word(physical), rate);
    if (!doctor->port->active) {
        const char *interface = doctor->port->interface;
        if (strstr(physical, "Polling"))
            advise(doctor, "no signal: check the cable, and the port at its other end");
        else if (doctor->is_ethernet)
            advise(doctor, "the link is down: ip link set %s up; then check cable and switch",
                   interface[0] ? interface : "INTERFACE");
        else if (strstr(physical, "LinkUp"))
            advise(doctor, "the link is up, but no subnet manager has configured it: start opensm "
                           "on one node, or enable the switch's");
        else
            advise(doctor, "the port is disabled: ibportstate -D 0 %u enable",
                   doctor->port->number);
    } else if (narrow)
        advise(doctor, "one lane instead of four: reseat the cable, or replace it");
}

static void look_pcie(struct doctor *doctor)
{
    char speed[TEXT_BYTES], width[TEXT_BYTES], most[TEXT_BYTES] = "", node[TEXT_BYTES] = "-1";

    if (doctor->is_software || !read_adapter(doctor, "device/current_link_speed", speed) ||
        !read_adapter(doctor, "device/current_link_width", width))
        return;
    read_adapter(doctor, "device/max_link_width", most);
    read_adapter(doctor, "device/numa_node", node);
    /* "16.0 GT/s PCIe" and "16" in Gbit/s of data: the encoding takes 2 bits of 130, before PCIe 3
     * of every 10. */
    const double transfers = strtod(speed, NULL);
    const double carries = transfers * strtod(width, NULL) * (transfers < 8 ? 0.8 : 128.0 / 130);
    const bool tight = carries > 0 && carries < doctor->port->gbit_per_s;
    const bool narrow = atoi(width) < atoi(most);
    say(doctor, tight || narrow ? WARN : OK, NULL, "%.16s x%.4s, %.4g Gbit/s%s%.4s", speed, width,
        carries, atoi(node) < 0 ? "" : "; NUMA node ", atoi(node) < 0 ? "" : node);
    if (narrow)
        advise(doctor, "the adapter can use x%.4s: move it to a wider slot", most);
    else if (tight)
        advise(doctor, "less than the port's %.4g Gbit/s: move the adapter to a faster slot",
               doctor->port->gbit_per_s);
}

static void look_mtu(struct doctor *doctor)
{
    const int headers = 40 + 8 + 12 + 4 + 28 + 4; /* GRH UDP BTH XRC AtomicETH ICRC */
    char text[TEXT_BYTES];
    int mtu = 4096;

    if (strcmp(doctor->port->link_layer, "InfiniBand") == 0) {
        say(doctor, OK, NULL, "set by the subnet manager, not in sysfs");
        advise(doctor, "ibv_devinfo -d %s -i %u shows active_mtu; 4096 carries most",
               doctor->port->device, doctor->port->number);
        return;
    }
    if (!doctor->is_ethernet || !read_net(doctor->roots, doctor->port->interface, "mtu", text))
        return;
    /* As the kernel's iboe_get_mtu(): the largest size of InfiniBand that fits with all headers. */
    while (mtu >= 256 && mtu + headers > atoi(text))
        mtu /= 2;
    mtu = mtu >= 256 ? mtu : 0;
    say(doctor, mtu == 4096 ? OK : WARN, NULL, "RDMA %d, of %.8s of %s", mtu, text,
        doctor->port->interface);
    if (mtu < 4096)
        advise(
            doctor,
            "4096 carries more: ip link set %s mtu 9000, on every host and switch of this network",
            doctor->port->interface);
}

static void look_subnet(struct doctor *doctor)
{
    char lid[TEXT_BYTES], manager[TEXT_BYTES];

    if (strcmp(doctor->port->link_layer, "InfiniBand") != 0 || !read_port(doctor, "lid", lid) ||
        !read_port(doctor, "sm_lid", manager))
        return;
    const bool found = strtoul(manager, NULL, 0) != 0;
    say(doctor, found ? OK : NO, "no subnet manager: start opensm on one node, or the switch's",
        "LID %.12s, subnet manager at LID %.12s", lid, manager);
}

/* ---- GIDs of RoCE: addresses, each with a version of the protocol ---- */

static void look_gids(struct doctor *doctor)
{
    if (!doctor->is_ethernet)
        return;
    unsigned count = 0, best = 0; /* best: index of the best one */
    int best_rank = GID_NONE;
    char best_address[INET6_ADDRSTRLEN] = "";
    for (unsigned i = 0; i < GIDS_MAX; i++) {
        char address[INET6_ADDRSTRLEN];
        int rank;
        /* "0000:0000:0000:0000:0000:ffff:c0a8:010a" of index i. */
        char file[40], text[TEXT_BYTES], type[TEXT_BYTES] = "";
        struct in6_addr gid;
        snprintf(file, sizeof file, "gids/%u", i);
        if (!read_port(doctor, file, text) || inet_pton(AF_INET6, text, &gid) != 1)
            rank = GID_NONE;
        else {
            snprintf(file, sizeof file, "gid_attrs/types/%u", i);
            read_port(doctor, file, type);
            gid_text(&gid, address);
            rank = gid_rank(&gid, strcmp(type, "RoCE v2") == 0);
        }
        count += rank > GID_NONE;
        if (rank <= best_rank)
            continue;
        best_rank = rank;
        best = i;
        memcpy(best_address, address, sizeof address);
    }
    const char *interface = doctor->port->interface[0] ? doctor->port->interface : "its interface";
    if (best_rank == GID_NONE) {
        say(doctor, NO, NULL, "no address");
        advise(doctor, "RDMA needs one: give %s an IP address and set it up", interface);
        return;
    }
    say(doctor, best_rank >= GID_V2 ? OK : WARN, NULL, "index %u: RoCE %s, %s; %u in all", best,
        best_rank == GID_V1 ? "v1" : "v2", best_address, count);
    if (best_rank == GID_V1)
        advise(doctor,
               "v1 cannot be routed and ignores IP: enable RoCE v2 in the adapter, and give %s an "
               "IP address",
               interface);
    else if (best_rank == GID_LINK_LOCAL)
        advise(doctor, "link-local only: give %s an IP address", interface);
    else
        advise(doctor, "if a library picks another: UCX_IB_GID_INDEX=%u, NCCL_IB_GID_INDEX=%u",
               best, best);
}

/* ---- congestion ---- */

static void look_congestion(struct doctor *doctor)
{
    static const char *const ecn_texts[] = {"unknown", "off", "on"};
    const char *interface = doctor->port->interface;

    if (!doctor->is_ethernet || doctor->is_software)
        return;
    const uint64_t lost = count_of(doctor, "hw_counters/out_of_sequence") +
                          count_of(doctor, "hw_counters/packet_seq_err") +
                          count_of(doctor, "hw_counters/local_ack_timeout_err");
    const uint64_t notified = count_of(doctor, "hw_counters/rp_cnp_handled");
    /* Is ECN on for some priority? */
    char pattern[512], text[TEXT_BYTES];
    struct folder_names files;
    int ecn = -1;
    snprintf(pattern, sizeof pattern, "%.300s/class/net/%s/ecn/roce_[nr]p/enable/*",
             doctor->roots->sys, doctor->port->interface);
    folder_names_matching(&files, pattern);
    for (size_t i = 0; i < files.count; i++)
        if (file_peek(text, sizeof text, "%s", files.list[i]) && ecn < 1)
            ecn = text[0] == '1';
    folder_names_release(&files);
    say(doctor, lost || ecn == 0 ? WARN : OK, NULL,
        "ECN %s; since boot %llu packets lost or out of order, %llu congestion notifications",
        ecn_texts[ecn + 1], (unsigned long long)lost, (unsigned long long)notified);
    if (ecn == 0)
        advise(doctor,
               "enable ECN for the priority of RDMA: echo 1 "
               ">/sys/class/net/%s/ecn/roce_np/enable/3, the same for roce_rp, and on the switches",
               interface);
    else if (lost)
        advise(doctor,
               "RoCE wants a lossless priority: PFC on the same one in adapter and switches (dcb "
               "pfc show dev %s, or mlnx_qos -i %s), and ECN",
               interface, interface);
    else if (ecn < 0)
        advise(doctor, "whether PFC is on: dcb pfc show dev %s, or mlnx_qos -i %s", interface,
               interface);
}

/* ---- counters ---- */

static void look_counters(struct doctor *doctor)
{
    char text[TEXT_BYTES], longer[TEXT_BYTES];

    if (read_port(doctor, "counters/port_rcv_data", text)) {
        const bool stuck = strcmp(text, "4294967295") == 0 &&
                           !read_port(doctor, "counters_ext/port_rcv_data_64", longer);
        say(doctor, stuck ? WARN : OK, "reset them: perfquery -R; newer firmware counts in 64 bits",
            "%s", stuck ? "32 bits, stopped at their maximum" : "bytes received and sent");
    } else if (read_port(doctor, "hw_counters/rx_bytes", text)) {
        say(doctor, OK, NULL, "bytes received and sent (hw_counters)");
    } else if (read_net(doctor->roots, doctor->port->interface, "statistics/rx_bytes", text)) {
        say(doctor, WARN, NULL, "none of its own: those of %s, with all its other traffic",
            doctor->port->interface);
    } else {
        char path[512];
        snprintf(path, sizeof path, "%.300s/class/infiniband/%s/ports/%u/counters/port_rcv_data",
                 doctor->roots->sys, doctor->port->device, doctor->port->number);
        const int fd = file_open_quietly(path, O_RDONLY);
        const int cause = fd < 0 ? -fd : EIO;
        if (fd >= 0)
            close(fd);
        if (cause == ENOENT)
            say(doctor, NO,
                "bind-mount the host's /sys and name it: iobench monitor --sysfs-root DIR",
                "none, as in a container with its own network namespace");
        else
            say(doctor, NO,
                "this user may not read them, or the driver fails: run as root, see dmesg",
                "cannot be read: %s", fail_errno_text(cause));
    }
}

/* ---- permission ---- */

static void look_verbs(struct doctor *doctor)
{
    char name[64] = "", path[512], text[TEXT_BYTES];
    struct folder_names names;

    /* The device file that user space opens: "uverbs0". */
    snprintf(path, sizeof path, "%.400s/class/infiniband_verbs", doctor->roots->sys);
    folder_names_of(&names, path);
    for (size_t i = 0; i < names.count && !name[0]; i++)
        if (file_peek(text, sizeof text, "%s/%s/ibdev", path, names.list[i]) &&
            strcmp(text, doctor->port->device) == 0)
            snprintf(name, sizeof name, "%s", names.list[i]);
    folder_names_release(&names);
    if (!name[0]) {
        say(doctor, NO, "modprobe ib_uverbs (package rdma-core)", "no device for programs");
        return;
    }
    if (strcmp(doctor->roots->sys, telemetry_roots_usual.sys) != 0)
        return say(doctor, OK, NULL, "%s", name);
    snprintf(path, sizeof path, "/dev/infiniband/%s", name);
    if (access(path, R_OK | W_OK) == 0)
        return say(doctor, OK, NULL, "%s", path);
    say(doctor, NO,
        "let this user open it (udev rule of rdma-core: mode 0666); a container needs --device "
        "/dev/infiniband and --ulimit memlock=-1",
        "%s: %s", path, fail_errno_text(errno));
}

static const struct port_check {
    const char *name;
    void (*look)(struct doctor *doctor);
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

/* List a folder below the root of sysfs. */
static void list_below(const struct doctor *doctor, const char *below, struct folder_names *names)
{
    char path[512];

    snprintf(path, sizeof path, "%.400s/%.60s", doctor->roots->sys, below);
    folder_names_of(names, path);
}

static bool has_below(const char *root, const char *below)
{
    char path[512];

    snprintf(path, sizeof path, "%.400s/%.60s", root, below);
    return access(path, F_OK) == 0;
}

/* ---- between GPU and adapter ---- */

/* dma-buf replaces the peer memory module: Linux 5.12 with NVIDIA's open kernel modules. */
static bool has_dmabuf(const struct doctor *doctor)
{
    char release[TEXT_BYTES], driver[TEXT_BYTES];
    unsigned major = 0, minor = 0;

    if (!file_peek(release, sizeof release, "%s/sys/kernel/osrelease", doctor->roots->proc) ||
        sscanf(release, "%u.%u", &major, &minor) != 2 ||
        !file_peek(driver, sizeof driver, "%s/driver/nvidia/version", doctor->roots->proc))
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

static void look_acs(struct doctor *doctor)
{
    unsigned count = 0, hidden = 0, redirecting = 0;
    char first[64] = ""; /* of those that redirect */
    struct folder_names names;

    list_below(doctor, "bus/pci/devices", &names);
    for (size_t i = 0; i < names.count; i++) {
        char path[512], class[TEXT_BYTES];
        unsigned char config[CONFIG_BYTES];
        if (!file_peek(class, sizeof class, "%s/bus/pci/devices/%s/class", doctor->roots->sys,
                       names.list[i]) ||
            strncmp(class, "0x0604", 6) != 0)
            continue; /* no bridge */
        snprintf(path, sizeof path, "%.300s/bus/pci/devices/%.40s/config", doctor->roots->sys,
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
        say(doctor, WARN, NULL, "%u of %u PCIe bridges redirect, the first is %s", redirecting,
            count, first);
        advise(doctor,
               "data between GPU and adapter goes through the root complex: disable ACS in the "
               "firmware, or setpci -s %s ECAP_ACS+6.w=0; not where virtual machines rely on it",
               first);
    } else if (hidden) {
        say(doctor, WARN, "run 'iobench doctor' as root", "unknown: this user cannot read it");
    } else {
        say(doctor, OK, NULL, "no redirection at %u PCIe bridges", count);
    }
    found(doctor, "ACS");
}

static void look_fabric(struct doctor *doctor)
{
    const char *sys = doctor->roots->sys, *proc = doctor->roots->proc;
    struct infiniband_port ports[INFINIBAND_PORTS_MAX];
    const uint32_t count = infiniband_list(doctor->roots, ports, INFINIBAND_PORTS_MAX);
    char class[TEXT_BYTES], vendor[TEXT_BYTES], text[TEXT_BYTES];
    struct folder_names names;
    bool is_active = false; /* a port is */

    doctor->section = doctor->heading = "Fabric";
    for (uint32_t i = 0; i < count; i++) {
        doctor->port = &ports[i];
        doctor->is_ethernet = strcmp(ports[i].link_layer, "Ethernet") == 0;
        doctor->is_software =
            read_adapter(doctor, "parent", text) || !read_adapter(doctor, "device/vendor", text);
        is_active |= ports[i].active;
        for (size_t k = 0; k < sizeof checks / sizeof *checks; k++) {
            checks[k].look(doctor);
            if (doctor->what[0])
                found(doctor, "%s/%u %s", ports[i].device, ports[i].number, checks[k].name);
        }
    }
    if (count == 0) {
        /* An adapter by its PCI class or maker; "" if none. */
        char adapter[64] = "";
        list_below(doctor, "bus/pci/devices", &names);
        for (size_t i = 0; i < names.count && !adapter[0]; i++) {
            const char *name = names.list[i];
            if (file_peek(class, sizeof class, "%s/bus/pci/devices/%s/class", sys, name) &&
                file_peek(vendor, sizeof vendor, "%s/bus/pci/devices/%s/vendor", sys, name) &&
                (strncmp(class, "0x0207", 6) == 0 ||
                 (strcmp(vendor, "0x15b3") == 0 && strncmp(class, "0x02", 4) == 0)))
                snprintf(adapter, sizeof adapter, "%s", name);
        }
        folder_names_release(&names);
        if (adapter[0])
            say(doctor, NO,
                "load its driver: modprobe mlx5_ib (package rdma-core); in a container the host "
                "must share it",
                "adapter %s has no RDMA port", adapter);
        else
            say(doctor, NO,
                "not required: TCP works; to try RDMA without an adapter: rdma link add rxe0 type "
                "rxe netdev INTERFACE",
                "no InfiniBand or RoCE port");
        found(doctor, "RDMA");
    }
    char type[TEXT_BYTES], state[TEXT_BYTES], mtu[TEXT_BYTES], below[64];
    list_below(doctor, "class/net", &names);
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.list[i];
        snprintf(below, sizeof below, "class/net/%.31s/device", name);
        if (!has_below(sys, below) || !read_net(doctor->roots, name, "type", type) ||
            !read_net(doctor->roots, name, "operstate", state) || strcmp(state, "down") == 0 ||
            !read_net(doctor->roots, name, "mtu", mtu))
            continue;
        if (atoi(type) == TYPE_INFINIBAND) {
            char mode[TEXT_BYTES] = "mode unknown";
            read_net(doctor->roots, name, "mode", mode);
            const bool small = atoi(mtu) < 4092;
            say(doctor, small ? WARN : OK, NULL, "IP over InfiniBand, %s, MTU %s", mode, mtu);
            if (small)
                advise(doctor,
                       "packets of 4092 (subnet manager: mtu=5) or connected mode carry more: echo "
                       "connected >/sys/class/net/%s/mode; ip link set %s mtu 65520; newer "
                       "adapters have datagram only",
                       name, name);
        } else {
            char speed[TEXT_BYTES] = "-1";
            read_net(doctor->roots, name, "speed", speed);
            const int mbit_per_s = atoi(speed);
            const bool small = mbit_per_s >= FAST_MBIT_PER_S && atoi(mtu) < 9000;
            if (mbit_per_s > 0)
                say(doctor, small ? WARN : OK, NULL, "%g Gbit/s, MTU %s", mbit_per_s / 1000.0, mtu);
            else
                say(doctor, OK, NULL, "up, speed unknown (virtual?), MTU %s", mtu);
            if (small)
                advise(doctor,
                       "larger packets cost less CPU time: ip link set %s mtu 9000, on every host "
                       "and switch of this network",
                       name);
        }
        found(doctor, "%s", name);
    }
    folder_names_release(&names);
    struct procfile file = {0};
    struct text lines = {0}, line;
    struct mount *mount = malloc(sizeof *mount);
    if (mount && procfile_open(&file, "%s/self/mountinfo", proc) == 0 &&
        procfile_read(&file, &lines) == 0)
        while (text_line(&lines, &line))
            if (mount_parse(line, mount) && nfs_is_type(mount->type)) {
                char protocol[16] = "unknown";
                const char *option = strstr(mount->super_options, "proto=");
                if (option)
                    snprintf(protocol, sizeof protocol, "%.*s", (int)strcspn(option + 6, ","),
                             option + 6);
                const bool slow = is_active && strcmp(protocol, "rdma") != 0;
                say(doctor, slow ? WARN : OK, NULL, "%s of %.100s", protocol, mount->source);
                if (slow && has_below(sys, "module/rpcrdma"))
                    advise(doctor, "RDMA is available: mount with proto=rdma,port=20049, if the "
                                   "server listens (rdma=y in its nfs.conf)");
                else if (slow)
                    advise(doctor,
                           "RDMA is available: modprobe rpcrdma, then mount with "
                           "proto=rdma,port=20049, if the server listens (rdma=y in its nfs.conf)");
                found(doctor, "NFS at %.70s", mount->point);
            }
    procfile_close(&file);
    free(mount);
    if (count && has_below(proc, "driver/nvidia/gpus")) {
        if (has_below(sys, "module/nvidia_peermem") || has_below(sys, "module/nv_peer_mem"))
            say(doctor, OK, NULL, "module nvidia-peermem is loaded");
        else if (has_dmabuf(doctor))
            say(doctor, OK, NULL, "by dma-buf");
        else
            say(doctor, NO,
                "modprobe nvidia-peermem, or use NVIDIA's open kernel modules and Linux 5.12",
                "adapters cannot read GPU memory: data goes through the host's");
        found(doctor, "peer memory");
        look_acs(doctor);
    }
}

/* doctor --launch: the job that a launcher started: whether its processes find each other, by which
 * MPI and transport, on which nodes and CPUs, with which clocks. */

enum { LIST_BYTES = 96 };
static const uint64_t OFFSET_MOST_NS = 10000000;

/* Launchers, found by the variables they set. The first one found counts: processes of an inner
 * launcher inherit those of the outer one. */
static const struct launcher {
    const char *variable;
    const char *name;
    const char *mpi;  /* its MPI's name in ranks_library(); NULL: any */
    const char *cure; /* if the processes do not find each other */
    const char *cpus; /* option that gives a rank more CPUs */
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun", "Open MPI",
     "start it with the mpirun of its own MPI (mpirun.mpich, mpiexec.hydra)", "--bind-to none"},
    {"FLUX_JOB_ID", "flux run", NULL,
     "choose what this MPI supports: flux run -o pmi=pmix, or simple", "--cores-per-task N"},
    {"HYDI_CONTROL_FD", "Hydra's mpiexec (MPICH, Intel MPI)", "MPICH",
     "start it with the mpirun of its own MPI (mpirun.openmpi)", "-bind-to none"},
    {"SLURM_STEP_NUM_TASKS", "srun", NULL,
     "choose what this MPI supports: srun --mpi=list; Open MPI and recent MPICH: --mpi=pmix, "
     "MPICH: --mpi=pmi2",
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

/* Facts that a rank reports of its own machine. */
struct launch_seat {
    char library[RANKS_LIBRARY_BYTES];
    cpu_set_t cpus;
    int64_t day_ns;   /* time of day minus monotonic clock */
    uint32_t online;  /* CPUs of its node */
    int64_t ahead_ns; /* of its node's monotonic clock, against rank 0's */
    uint64_t uncertainty_ns;
    bool has_port; /* an active RDMA port */
};

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

/* Time of day of a node minus rank 0's. */
static int64_t day_offset(const struct launch_seat *seats, uint32_t rank)
{
    return seats[rank].day_ns - seats[0].day_ns + seats[rank].ahead_ns;
}

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

/* Launcher, MPI, the job, its nodes and CPUs, and clocks. interface: of the launcher to MPI, ",
 * PMIx". seats: NULL if each process is alone. */
static void look_job(struct doctor *doctor, const struct ranks *ranks,
                     const struct launcher *launcher, const char *interface,
                     const struct launch_seat *seats)
{
    static const char *const fast[] = {"ucx", "ofi", "openib", "psm"};
    const struct ranks_place *place = &ranks->place;
    char library[RANKS_LIBRARY_BYTES];

    say(doctor, launcher->variable ? OK : WARN,
        "mpirun -n 4 iobench doctor --launch, or srun -n 4 --mpi=pmix iobench doctor --launch",
        "%s%s%s", launcher->name, interface,
        getenv("KUBERNETES_SERVICE_HOST") ? ", in Kubernetes" : "");
    found(doctor, "launcher");
    char *details = strstr(ranks_library(library), "; "); /* what this program's MPI uses */
    if (details)
        *details = '\0';
    if (library[0])
        say(doctor, OK, NULL, "%s", library);
    else
        say(doctor, NO, "build it where mpicc is (libopenmpi-dev or libmpich-dev)",
            "built without MPI");
    found(doctor, "MPI");

    if (!seats) {
        const char *says = NULL;
        const int started = ranks_started(&says);
        const bool is_mixed = launcher->mpi && library[0] &&
                              strncmp(library, launcher->mpi, strlen(launcher->mpi)) != 0;
        say(doctor, NO, NULL, "%d processes, each of them alone: %s=%d", started, says, started);
        if (library[0] == '\0')
            advise(doctor, "without MPI they cannot find each other");
        else
            advise(doctor, "%s%.60s%s%s", is_mixed ? "two MPIs are mixed; this program's is " : "",
                   is_mixed ? library : "", is_mixed ? ": " : "", launcher->cure);
        found(doctor, "job");
        return;
    }
    uint32_t fewest = place->ranks, most = 0, worst = 0;
    for (uint32_t node = 0; node < place->nodes; node++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < place->ranks; i++)
            count += ranks->peers[i].node == node;
        fewest = count < fewest ? count : fewest;
        most = count > most ? count : most;
    }
    say(doctor, fewest == most ? OK : WARN, NULL, "%u %s on %u %s", place->ranks,
        place->ranks == 1 ? "rank" : "ranks", place->nodes, place->nodes == 1 ? "node" : "nodes");
    if (fewest != most)
        advise(doctor, "%u to %u ranks per node: nodes with more will be slower", fewest, most);
    found(doctor, "job");

    bool has_ports = true;
    for (uint32_t i = 0; i < place->ranks; i++) {
        has_ports &= seats[i].has_port;
        if (doctor->what[0] == '\0' &&
            strncmp(seats[i].library, seats[0].library, strcspn(seats[0].library, ",;")) != 0)
            say(doctor, NO, "install the same version on all nodes", "rank %u on %.40s has %.60s",
                i, ranks->peers[i].host, seats[i].library);
    }
    if (doctor->what[0])
        found(doctor, "versions");
    if (place->ranks > 1) {
        const char *parts = strstr(seats[0].library, "; ");
        bool is_fast = parts == NULL;
        for (size_t i = 0; parts && i < sizeof fast / sizeof *fast; i++)
            is_fast |= strstr(parts, fast[i]) != NULL;
        say(doctor, has_ports && !is_fast && place->nodes > 1 ? WARN : OK,
            "all nodes have RDMA ports, but MPI uses TCP: mpirun --mca pml ucx, with an Open MPI "
            "that has UCX (ompi_info | grep ucx)",
            "%s", parts ? parts + 2 : "not reported by this MPI");
        found(doctor, "transport");
    }
    for (uint32_t node = 0; node < place->nodes; node++) {
        uint32_t members = 0, first = 0; /* first: the lowest rank */
        cpu_set_t all;
        bool is_equal = true, overlaps = false; /* is_equal: all ranks have the same CPUs */
        int few = CPU_SETSIZE;
        CPU_ZERO(&all);
        for (uint32_t i = 0; i < place->ranks; i++) {
            const cpu_set_t *cpus = &seats[i].cpus;
            cpu_set_t both;
            if (ranks->peers[i].node != node)
                continue;
            if (members++ == 0)
                first = i;
            CPU_AND(&both, &all, cpus);
            overlaps |= CPU_COUNT(&both) > 0;
            CPU_OR(&all, &all, cpus);
            is_equal &= CPU_EQUAL(cpus, &seats[first].cpus);
            few = CPU_COUNT(cpus) < few ? CPU_COUNT(cpus) : few;
        }
        char list[LIST_BYTES];
        const int count = CPU_COUNT(&all);
        const bool crowded = (uint32_t)count < members;
        const bool partly = overlaps && !is_equal;

        say(doctor, crowded || partly ? WARN : OK, NULL, "%u %s, CPUs %s%s", members,
            members == 1 ? "rank" : "ranks", list_cpus(&all, list),
            members == 1 ? ""
            : is_equal   ? ", shared by all"
            : partly     ? ", some in several ranks"
                         : ", each its own");
        if (crowded && (uint32_t)count < seats[first].online)
            advise(doctor, "fewer CPUs (%d) than ranks, of %u here: %s", count, seats[first].online,
                   launcher->cpus);
        else if (crowded)
            advise(doctor, "fewer CPUs (%d) than ranks: start fewer per node", count);
        else if (partly)
            advise(doctor,
                   "ranks that share a CPU will be slower: bind each to its own, or none (%s)",
                   launcher->cpus);
        else if (few == 1 && members > 1)
            advise(doctor, "one CPU per rank leaves none for decode threads: %s", launcher->cpus);
        found(doctor, "node %.60s", ranks->peers[first].host);
    }
    if (place->nodes == 1)
        return;
    char offset[WORDS_BYTES], trip[WORDS_BYTES];
    uint64_t slowest_ns = 0;
    for (uint32_t i = 0; i < place->ranks; i++) {
        if (!ranks->peers[i].leads)
            continue;
        if (llabs(day_offset(seats, i)) > llabs(day_offset(seats, worst)))
            worst = i;
        if (seats[i].uncertainty_ns > slowest_ns)
            slowest_ns = seats[i].uncertainty_ns;
    }
    const uint64_t most_ns = (uint64_t)llabs(day_offset(seats, worst));
    say(doctor, most_ns > OFFSET_MOST_NS ? WARN : OK,
        "logs of the nodes will not match: run chrony on all; series are aligned without it",
        "times of day differ by up to %s (%.40s); slowest round trip %s",
        words_duration(most_ns, offset), ranks->peers[worst].host,
        words_duration(2 * slowest_ns, trip));
    found(doctor, "clocks");
}

/* Join the processes that a launcher started and look at the job; only rank 0 reports. Exits with 1
 * if they do not form one job, so that scripts can ask. */
static int look_launch(const struct invocation *invocation, bool speaks, struct doctor *doctor)
{
    struct ranks ranks;
    const struct launcher *launcher = launchers;
    const char *says, *interface = getenv("PMIX_NAMESPACE") ? ", PMIx" /* joining changes them */
                                   : getenv("PMI_RANK")     ? ", PMI"
                                                            : "";

    while (launcher->variable && !getenv(launcher->variable))
        launcher++;
    doctor->section = "Launch";
    if (!doctor->all && speaks)
        puts(doctor->section);
    int code = command_join(&ranks);
    if (code == 0) {
        struct launch_seat *seats = memory_array(ranks.place.ranks, sizeof *seats);
        code = ranks_meet(&ranks, seats ? sit_down(&ranks, seats) : -ENOMEM, NULL);
        if (code == 0 && ranks.place.rank == 0)
            look_job(doctor, &ranks, launcher, interface, seats);
        free(seats);
    } else if (!speaks) {
        command_fails_last();
    } else if (ranks.place.ranks == 1 && ranks_started(&says) > 1) {
        look_job(doctor, &ranks, launcher, interface, NULL);
    }
    ranks_leave(&ranks, code != 0);
    if (code && !doctor->is_bad && speaks)
        return command_failed(invocation);
    return code || doctor->is_bad ? COMMAND_FAILED : COMMAND_OK;
}

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
                                 .timeout_ns = PROBE_WAIT_NS,
                                 .falls_back = falls_back};
    struct reader reader = {0};
    struct catalog *catalog = NULL;

    /* Make a catalog whose only record is the first bytes of the file. */
    catalog = catalog_create(path, "none");
    int code = catalog ? catalog_begin_shard(catalog, path, NULL, 0) : -ENOMEM;
    if (code == 0) {
        const uint64_t bytes = catalog->shards[0].bytes;
        code = catalog_add(catalog, 0, bytes < SMALL_FILES ? bytes : SMALL_FILES);
    }
    if (code == 0)
        code = catalog_seal(catalog);
    if (code == 0)
        code = plugin_choose("reader", reader_registry, plugin->name, &choice);
    if (code == 0) {
        site.catalog = catalog;
        code = reader_open(&reader, &choice, &site);
        if (code == 0) {
            const uint32_t bytes = (uint32_t)catalog->record_bytes_max;
            static struct read_request
                request; /* static, as the buffer is: a read may complete after the wait */
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

/* Check, one after the other, what a measurement needs of this machine. */
static void look_machine(struct doctor *doctor)
{
    static const char *const sudo[] = {"/usr/bin/sudo", "-n", "true", NULL};
    static const char *const cufile[] = {"/usr/lib/*/libcufile.so.0", "/usr/lib64/libcufile.so.0",
                                         "/usr/local/cuda*/lib64/libcufile.so.0",
                                         "/usr/local/cuda*/targets/*/lib/libcufile.so.0"};
    const struct child_task task = {.argv = sudo, .timeout_ns = SUDO_WAIT_NS};
    struct child_result child;
    struct utsname name;
    unsigned major = 0, minor = 0;
    char text[64];

    doctor->section = doctor->heading = "This machine";
    if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
        say(doctor, WARN, NULL, "kernel version unknown");
    else if (access("/proc/self", F_OK))
        say(doctor, WARN,
            "modules of iobench, memory, devices and cached pages cannot be found: mount -t proc "
            "proc /proc",
            "%s %s, without /proc", name.sysname, name.release);
    else
        say(doctor, major > 6 || (major == 6 && minor >= 5) ? OK : WARN,
            "Linux 6.5 and later report cached pages faster and more reliably (cachestat)", "%s %s",
            name.sysname, name.release);
    found(doctor, "kernel");

    const struct plugin *const *row = reader_registry;
    struct reader_traits traits;
    while (*row && !reader_of(*row)->remedy)
        row++;
    if (!*row) {
        say(doctor, NO, "build with liburing-dev; until then use --reader pread", "not built in");
    } else if (doctor_try_reader(*row, "/proc/self/exe", false, &traits)) { /* always there */
        say(doctor, NO, NULL, "%s", fail_reason());
        advise(doctor, "%s; meanwhile use --reader pread", reader_of(*row)->remedy);
    } else {
        say(doctor, OK, NULL, "opened a ring and read a file: %s", traits.engine);
    }
    found(doctor, "io_uring");

    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit))
        say(doctor, WARN, NULL, "limit unknown");
    else if (limit.rlim_cur == RLIM_INFINITY || geteuid() == 0)
        say(doctor, OK, NULL, "no limit%s", geteuid() == 0 ? " for root" : "");
    else
        say(doctor, limit.rlim_cur >= PINNED_LEAST ? OK : WARN,
            "buffers cannot be registered with the kernel, which costs CPU time: raise 'ulimit -l'",
            "limit %s", bytes_text(limit.rlim_cur, text, sizeof text));
    found(doctor, "pinned memory");

    if (getrlimit(RLIMIT_NOFILE, &limit))
        say(doctor, WARN, NULL, "limit unknown");
    else
        say(doctor, limit.rlim_max >= SMALL_FILES ? OK : WARN,
            "data sets of many shards will reopen files constantly: raise 'ulimit -Hn'",
            "limit %llu", (unsigned long long)limit.rlim_max);
    found(doctor, "open files");

    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned usable = thread_cpu_count();
    double load = 0;
    if (getloadavg(&load, 1) != 1)
        load = 0;
    const bool busy = load > 0.25 * usable + 0.25;
    say(doctor, busy || usable < (unsigned)online ? WARN : OK,
        busy ? "other processes are running: figures will be low and noisy"
             : "a CPU quota or affinity mask limits decoding",
        "%u of %ld usable, load %.2f", usable, online, load);
    found(doctor, "CPUs");

    struct headroom headroom;
    headroom_find(&headroom, "/proc", "/sys");
    say(doctor, headroom.available_bytes < MEMORY_LEAST ? WARN : OK, "a shuffle buffer may not fit",
        "%s available, by %s", bytes_text(headroom.available_bytes, text, sizeof text),
        headroom.cause);
    found(doctor, "memory");

    const char *clock = clock_source();
    const bool slow = strcmp(clock, "hpet") == 0 || strcmp(clock, "acpi_pm") == 0 ||
                      strcmp(clock, "jiffies") == 0;
    say(doctor, slow ? WARN : OK, "reading this clock takes a system call: latencies suffer", "%s",
        clock);
    found(doctor, "clock");

    if (drop_is_permitted())
        say(doctor, OK, NULL, "this user can drop all caches");
    else if (access(sudo[0], X_OK) == 0 && child_run(&task, &child) == 0 && child.status == 0)
        say(doctor, OK, NULL, "via passwordless sudo");
    else
        say(doctor, WARN,
            "dentries and inodes stay cached: run as root, or allow passwordless sudo for cachectl",
            "only file by file (posix_fadvise)");
    found(doctor, "drop caches");

    struct residency_probe *probe = residency_probe_create();
    struct residency residency;
    if (probe)
        residency_file(probe, "/proc/self/exe", &residency);
    if (!probe)
        say(doctor, NO, NULL, "%s", fail_reason());
    else if (residency.state == RESIDENCY_UNVERIFIED)
        say(doctor, NO, "no run can be verified cold; run as the owner of the data",
            "page cache residency unknown: %s", residency.reason);
    else
        say(doctor, OK, NULL, "via %s", residency_method_text(residency.method));
    residency_probe_destroy(probe);
    found(doctor, "verify cold");

    const bool counts = file_peek(text, sizeof text, "/proc/self/io") && *text;
    say(doctor, counts ? OK : WARN,
        "storage bytes are then taken from the block devices, including all other traffic",
        "/proc/self/io %s", counts ? "is readable" : "cannot be read");
    found(doctor, "bytes read");

    const int abi = landlock_abi();
    if (abi)
        say(doctor, OK, NULL, "Landlock ABI %d; used for root, for others with --sandbox yes", abi);
    else
        say(doctor, WARN,
            "needs Linux 5.13 with CONFIG_SECURITY_LANDLOCK; read untrusted data as another user",
            "kernel without Landlock: root parses data with full privileges");
    found(doctor, "sandbox");

    const size_t gpus = count_matches("/proc/driver/nvidia/gpus/*");
    if (gpus)
        say(doctor, OK, NULL, "%zu NVIDIA", gpus);
    else
        say(doctor, NO, "not required: --trainer replay:h200 simulates one", "none found");
    found(doctor, "GPUs");

    size_t libraries = 0; /* only a look: nothing here reads by cuFile */
    for (size_t i = 0; i < sizeof cufile / sizeof *cufile; i++)
        libraries += count_matches(cufile[i]);
    if (libraries && count_matches("/proc/driver/nvidia-fs"))
        say(doctor, OK, NULL, "cuFile, and the driver nvidia-fs is loaded");
    else
        say(doctor, NO,
            "not required: no reader uses it; frameworks do, and without nvidia-fs it copies "
            "through host memory (package nvidia-gds)",
            libraries ? "cuFile, without the driver nvidia-fs" : "no cuFile (libcufile.so.0)");
    found(doctor, "GPU storage");

    const bool starts = file_in_path("mpirun");
    say(doctor, starts ? OK : NO,
        "not required on one node; start ranks by hand with --ranks N --rank I", "%s",
        starts ? "mpirun found" : "no mpirun");
    found(doctor, "MPI");
}

static const uint64_t FREE_LEAST = 2ull << 30;

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

static int keep_file(void *context, const char *name, unsigned char type)
{
    char **found = context;

    if (type != DT_REG)
        return 0;
    *found = strdup(name);
    return 1;
}

/* The storage of a data set. Returns false if it cannot be read: the rest is skipped. */
static bool look_path(struct doctor *doctor, const char *path)
{
    /* The read-ahead of the file system's device, else of the disk beneath: a partition has none of
     * its own. */
    static const char pattern[] = "%s/class/bdi/%u:%u/read_ahead_kb";
    const char *sys = telemetry_roots_usual.sys, *special_advice = NULL;
    char text[160];

    doctor->section = doctor->heading = path;
    const bool is_readable = access(path, R_OK) == 0;
    say(doctor, is_readable ? OK : NO, "this user cannot measure anything below it", "%s",
        is_readable ? "readable" : fail_errno_text(errno));
    found(doctor, "access");
    if (!is_readable)
        return false;

    const struct plugin *format = format_detect(path);
    if (format)
        say(doctor, OK, NULL, "%s (%s)", format->name, format->summary);
    else
        say(doctor, WARN, "create a data set in any format with 'iobench pack'", "%s",
            fail_reason());
    found(doctor, "format");

    struct mount mount;
    const bool is_mounted = mount_of_path(&telemetry_roots_usual, path, &mount) == 0;
    for (size_t i = 0; is_mounted && i < sizeof special / sizeof special[0]; i++)
        if (strcmp(special[i].type, mount.type) == 0)
            special_advice = special[i].advice;
    if (is_mounted)
        say(doctor, special_advice ? WARN : OK, special_advice, "%s at %.80s (%.80s)", mount.type,
            mount.point, mount.options);
    else
        say(doctor, WARN, NULL, "%s", fail_reason());
    found(doctor, "file system");

    struct device_list *list = memory_zeroed(sizeof *list);
    const bool is_searched = list && devices_of_path(&telemetry_roots_usual, path, list) == 0;
    if (!is_searched)
        say(doctor, WARN, NULL, "%s", list ? fail_reason() : "out of memory");
    else if (list->memory[0])
        say(doctor, WARN, "memory, not storage: never cold", "%s", list->memory);
    else
        say(doctor, OK, NULL, "%s",
            list->count ? devices_text(list, text, sizeof text) : "none: a network file system");
    if (is_searched && list->elsewhere[0]) {
        doctor->state = WARN;
        advise(doctor,
               "%s: the server may cache too; drop its caches with --server-drop-cmd, verify with "
               "--server-check-cmd",
               list->elsewhere);
    }
    found(doctor, "devices");

    /* A regular file of the data: path itself, the first file in the folder, or a temporary one. */
    struct file_draft made = {0};
    char *file = NULL, *name = NULL;
    bool is_real = true;
    if (!file_is_folder(path)) {
        file = strdup(path);
    } else {
        struct folder folder;
        if (folder_open(&folder, path) == 0)
            folder_list(&folder, keep_file, &name);
        folder_close(&folder);
        is_real = name != NULL;
        file = file_join(path, name ? name : "iobench-doctor");
        free(name);
    }
    if (!is_real && file) {
        const bool is_made = file_draft_open(&made, file, NULL) == 0;
        free(file);
        file = is_made ? strdup(made.draft_path) : NULL;
    }
    is_real &= file != NULL;
    const int fd = file ? file_open_quietly(file, O_RDONLY | O_DIRECT) : -ENOENT;
    if (!file)
        say(doctor, WARN, "pass a file of the data set instead",
            "not tested: cannot create a file here");
    else if (fd < 0)
        say(doctor, NO, "--direct does not work here", "O_DIRECT: %s", fail_errno_text(fd));
    else {
        struct statx status = {0};
#ifdef STATX_DIOALIGN
        if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
            (status.stx_mask & STATX_DIOALIGN) && status.stx_dio_offset_align)
            say(doctor, OK, NULL, "works, in multiples of %u bytes", status.stx_dio_offset_align);
        else
#endif
            say(doctor, OK, NULL, "opens; alignment found by trial");
        (void)status;
    }
    if (fd >= 0)
        close(fd);
    found(doctor, "O_DIRECT");

    /* Tell which reader --reader auto picks, and if that reads another way than usual, as on FUSE,
     * why. */
    const struct plugin *reader = reader_auto(store_of(path)->scheme, false);
    struct reader_traits traits = {0};
    if (!is_real) {
        say(doctor, WARN, NULL, "not tested: no file found");
    } else if (doctor_try_reader(reader, file, true, &traits)) {
        say(doctor, NO, "--reader pread works everywhere", "%s: %s", reader->name, fail_reason());
    } else {
        say(doctor, *traits.notice ? WARN : OK, NULL, "auto is %s: %s", reader->name,
            traits.engine);
        advise(doctor, "%s", traits.notice);
    }
    found(doctor, "reader");

    /* Commands to the disk itself, which only some disks and file systems allow. */
    say(doctor, OK, NULL, "not built in");
    for (const struct plugin *const *row = reader_registry; *row; row++) {
        if (!reader_of(*row)->is_passthrough)
            continue;
        if (!is_real)
            say(doctor, OK, NULL, "not tested: no file found");
        else if (plugin_usable(*row) || doctor_try_reader(*row, file, false, &traits))
            say(doctor, OK, NULL, "not here: %s", fail_reason());
        else
            say(doctor, OK, NULL, "--reader %s: %s", (*row)->name, traits.engine);
    }
    found(doctor, "passthrough");

    struct residency_probe *probe = residency_probe_create();
    struct residency residency = {0};
    if (probe && is_real)
        residency_file(probe, file, &residency);
    if (!probe || !is_real)
        say(doctor, WARN, NULL, "not tested: no file found");
    else if (residency.state == RESIDENCY_UNVERIFIED)
        say(doctor, NO, "no run can be verified cold here; run as the owner of the data", "%s",
            residency.reason);
    else
        say(doctor, OK, NULL, "by %s",
            residency.method ? residency_method_text(residency.method) : "its being empty");
    residency_probe_destroy(probe);
    file_draft_abandon(&made);
    free(file);
    found(doctor, "verify cold");

    bool is_known = is_mounted && file_peek(text, sizeof text, pattern, sys, mount.device_major,
                                            mount.device_minor);
    if (!is_known && is_searched && list->count)
        is_known = file_peek(text, sizeof text, pattern, sys, list->devices[0].device_major,
                             list->devices[0].device_minor);
    free(list);
    if (is_known)
        say(doctor, strcmp(text, "0") == 0 ? WARN : OK,
            "reads in file order wait for each piece: write 128 or more to read_ahead_kb of the "
            "device in /sys/class/bdi",
            "%s KiB", text);
    else
        say(doctor, OK, NULL, "unknown: not in /sys/class/bdi");
    found(doctor, "read-ahead");

    uint64_t bytes;
    if (file_free_bytes(path, &bytes))
        say(doctor, WARN, NULL, "%s", fail_reason());
    else
        say(doctor, bytes < FREE_LEAST ? WARN : OK, "too little for a useful data set", "%s",
            bytes_text(bytes, text, sizeof text));
    found(doctor, "free space");
    return true;
}

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

static void add_offer(void *context, const struct reader_offer *offer)
{
    struct doctor *doctor = context;

    if (offer->code == 0)
        say(doctor, OK, NULL, "%s", offer->found);
    else
        say(doctor, WARN, offer->remedy, "missing: %s", fail_errno_text(offer->code));
    found(doctor, "%s %s", doctor->reader, offer->name);
}

static int doctor_run(const struct invocation *invocation)
{
    const struct doctor_settings *settings = invocation->settings;
    const struct telemetry_roots roots = {.proc = settings->proc_root, .sys = settings->sysfs_root};
    const bool speaks = ranks_speaks(); /* joining changes what the environment says */
    struct doctor doctor = {.roots = &roots, .all = settings->json ? json_array() : NULL};
    int status = COMMAND_OK;

    if (settings->launch && (settings->fabric || invocation->count)) {
        fail(EINVAL, "--launch looks at the job only: no --fabric, no PATH");
        status = command_misused(invocation);
    } else if (settings->launch) {
        status = look_launch(invocation, speaks, &doctor);
    } else if (settings->fabric) {
        look_fabric(&doctor);
    } else {
        const char *path = invocation->count ? invocation->operands[0] : NULL;
        look_machine(&doctor);
        doctor.section = "Readers";
        doctor.heading = "\nReaders";
        for (const struct plugin *const *row = reader_registry; *row; row++) {
            doctor.reader = (*row)->name;
            reader_offers(*row, add_offer, &doctor);
        }
        if (!doctor.all)
            putchar('\n');
        look_fabric(&doctor);
        /* Plug-ins that are built in but unusable here. */
        doctor.section = "plug-ins";
        doctor.heading = "\nPlug-ins not usable here";
        for (const struct family *family = family_table; family->name; family++)
            for (int i = 0; family->registry[i]; i++) {
                if (plugin_usable(family->registry[i]) == 0)
                    continue;
                say(&doctor, NO, NULL, "%s", fail_reason());
                found(&doctor, "%s %s", family->name, family->registry[i]->name);
            }
        for (int i = 0; i < invocation->count; i++) {
            if (!doctor.all)
                putchar('\n');
            if (!look_path(&doctor, invocation->operands[i]))
                status = COMMAND_FAILED;
        }
        if (!doctor.all && !path)
            puts("\nTo check the storage of a data set too: iobench doctor PATH\n"
                 "To check how a job is started: mpirun ... iobench doctor --launch");
    }
    if (doctor.all && status != COMMAND_USAGE && (!settings->launch || speaks))
        return json_file_write(settings->json, doctor.all) ? command_failed(invocation) : status;
    json_decref(doctor.all);
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
        "interface, NFS mount and the path between GPU and adapter; and of each PATH the file "
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
