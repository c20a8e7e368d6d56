/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/verbs/verbs.h"

#include "base/fail.h"
#include "base/gid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool verbs_device_is_ethernet(const struct verbs_device *device)
{
    return device->port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* Name of entry `number` of a list of names, taken in turn: "a+b". text: of IBV_SYSFS_NAME_MAX. */
static void name_in_turn(const char *list, uint32_t number, char *text)
{
    uint32_t count = 1;

    for (const char *at = list; *at; at++)
        count += *at == '+';
    for (number %= count; number > 0; number--)
        list = strchr(list, '+') + 1;
    const size_t length = strcspn(list, "+");
    const size_t kept = length < IBV_SYSFS_NAME_MAX ? length : IBV_SYSFS_NAME_MAX - 1;
    memcpy(text, list, kept);
    text[kept] = '\0';
}

int verbs_device_usable(void)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    const int error = list ? ENODEV : errno;

    if (list)
        ibv_free_device_list(list);
    return count > 0
               ? 0
               : fail(error, "no RDMA device that a program can open: see RDMA in iobench doctor");
}

/* Is this port, or the first that is active, usable? */
static bool find_port(struct verbs_device *device, uint64_t wanted)
{
    const unsigned first = wanted ? (unsigned)wanted : 1;
    const unsigned last = wanted ? first : device->limits.phys_port_cnt;

    for (unsigned i = first; i <= last; i++) {
        device->number = (uint8_t)i;
        if (ibv_query_port(device->context, device->number, &device->port) == 0 &&
            device->port.state == IBV_PORT_ACTIVE)
            return true;
    }
    return false;
}

/* Returns whether it has a usable port; else it is closed again. */
static bool try_device(struct verbs_device *device, struct ibv_device *found, uint64_t port)
{
    device->context = ibv_open_device(found);
    if (!device->context)
        return false;
    if (ibv_query_device(device->context, &device->limits) == 0 && find_port(device, port))
        return true;
    ibv_close_device(device->context);
    device->context = NULL;
    errno = ENETDOWN;
    return false;
}

int verbs_device_open(struct verbs_device *device, const struct verbs_settings *settings,
                      uint32_t local_rank)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    char wanted[IBV_SYSFS_NAME_MAX] = "";
    int error = ENODEV;
    if (settings->device)
        name_in_turn(settings->device, local_rank, wanted);
    for (int i = 0; list && list[i] && !device->context; i++)
        if (!wanted[0] || strcmp(ibv_get_device_name(list[i]), wanted) == 0)
            if (!try_device(device, list[i], settings->port))
                error = errno;
    if (list)
        ibv_free_device_list(list);
    int code =
        device->context
            ? 0
            : fail(error, "transport verbs: %s%s: %s; iobench doctor lists devices and ports",
                   wanted[0] ? "device " : "no device", wanted,
                   error == ENETDOWN ? "no active port" : fail_errno_text(error));

    if (code == 0 && verbs_device_is_ethernet(device)) {
        /* As iobench doctor recommends, or as the user wants. */
        int best = GID_NONE;
        char *end = NULL;
        const unsigned long index = settings->gid ? strtoul(settings->gid, &end, 10) : 0;
        if (settings->gid && (*end || end == settings->gid))
            code = fail(EINVAL, "transport verbs: gid=%s: expected an index", settings->gid);
        else {
            for (int i = 0; i < device->port.gid_tbl_len; i++) {
                struct ibv_gid_entry entry;
                struct in6_addr gid;
                if ((settings->gid && (unsigned long)i != index) ||
                    ibv_query_gid_ex(device->context, device->number, (uint32_t)i, &entry, 0))
                    continue;
                memcpy(&gid, entry.gid.raw, sizeof gid);
                const int rank = gid_rank(&gid, entry.gid_type == IBV_GID_TYPE_ROCE_V2);
                if (rank > best) {
                    best = rank;
                    device->gid = entry;
                }
            }
            code = best > GID_NONE
                       ? 0
                       : fail(ENODEV,
                              "transport verbs: %s port %u has no GID%s%s: give its network "
                              "interface an "
                              "IP address",
                              ibv_get_device_name(device->context->device), device->number,
                              settings->gid ? " " : "", settings->gid ? settings->gid : "");
        }
    }
    if (code)
        return code;
    device->domain = ibv_alloc_pd(device->context);
    return device->domain
               ? 0
               : fail(errno, "transport verbs: no protection domain: %s", fail_errno_text(errno));
}

int verbs_device_register(struct verbs_device *device, void *memory, uint64_t bytes,
                          const char *name, struct ibv_mr **registered)
{
    enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

    *registered = ibv_reg_mr(device->domain, memory, bytes, ACCESS);
    return *registered
               ? 0
               : fail(errno,
                      "transport verbs: cannot register %llu bytes of %s: %s; see ulimit -l, or "
                      "choose a smaller --to",
                      (unsigned long long)bytes, name, fail_errno_text(errno));
}

void verbs_device_close(struct verbs_device *device)
{
    if (device->queue)
        ibv_destroy_cq(device->queue);
    if (device->slots)
        ibv_dereg_mr(device->slots);
    if (device->arena)
        ibv_dereg_mr(device->arena);
    if (device->domain)
        ibv_dealloc_pd(device->domain);
    if (device->context)
        ibv_close_device(device->context);
}
