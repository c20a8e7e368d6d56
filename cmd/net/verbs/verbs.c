/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/verbs/verbs.h"

#include "base/gid.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *iobench_module_release(void);
extern const struct transport_ops iobench_transport_verbs;
const char *iobench_module_release(void)
{
    return PACKAGE_VERSION;
}

static int open_own(struct verbs_state *verbs)
{
    const struct ranks_place *place = &verbs->config.ranks->place;
    const uint64_t slot_bytes = (uint64_t)place->ranks * VERBS_SLOTS * VERBS_SMALL_BYTES;

    verbs->peers = memory_array(place->ranks, sizeof *verbs->peers);
    verbs->due = memory_array(place->ranks, sizeof *verbs->due);
    verbs->slots = memory_pages(slot_bytes);
    int code = verbs->peers && verbs->due && verbs->slots ? 0 : -ENOMEM;
    if (code == 0)
        code = verbs_device_open(&verbs->device, &verbs->settings, place->local_rank);
    if (code == 0)
        code = verbs_device_register(&verbs->device, verbs->config.arena, verbs->config.bytes,
                                     "messages", &verbs->device.arena);
    if (code == 0)
        code = verbs_device_register(&verbs->device, verbs->slots, slot_bytes, "small messages",
                                     &verbs->device.slots);
    return code;
}

static int transport_verbs_open(void *state, const void *settings,
                                const struct transport_config *config)
{
    struct verbs_state *verbs = state;

    verbs->config = *config;
    verbs->settings = *(const struct verbs_settings *)settings;
    verbs->inline_bytes = (uint32_t)verbs->settings.inline_bytes;
    const int code = ranks_meet(config->ranks, open_own(verbs), NULL);
    return code ? code : verbs_connect(verbs);
}

static void transport_verbs_close(void *state, bool failed)
{
    struct verbs_state *verbs = state;

    (void)failed;
    verbs_disconnect(verbs);
    verbs_device_close(&verbs->device);
    free(verbs->slots);
    free(verbs->due);
    free(verbs->peers);
}

static void transport_verbs_describe(void *state, char *text, size_t bytes)
{
    static const char *const ops[] = {
        [VERBS_WRITE] = "write", [VERBS_READ] = "read", [VERBS_SEND] = "send"};
    const struct verbs_state *verbs = state;
    const struct verbs_device *device = &verbs->device;
    char address[INET6_ADDRSTRLEN], where[INET6_ADDRSTRLEN + 40];
    struct in6_addr gid;

    memcpy(&gid, device->gid.gid.raw, sizeof gid);
    gid_text(&gid, address);
    if (verbs_device_is_ethernet(device))
        snprintf(where, sizeof where, "RoCE %s %s, GID %u",
                 device->gid.gid_type == IBV_GID_TYPE_ROCE_V2 ? "v2" : "v1", address,
                 device->gid.gid_index);
    else
        snprintf(where, sizeof where, "InfiniBand, LID %u", device->port.lid);
    snprintf(text, bytes,
             "RDMA %s from %s port %u (%s), MTU %u, %llu queue pair%s per pair, inline up to %u "
             "bytes",
             ops[verbs->settings.op], ibv_get_device_name(device->context->device), device->number,
             where, 128U << verbs->mtu, (unsigned long long)verbs->settings.qps,
             verbs->settings.qps == 1 ? "" : "s", verbs->inline_bytes);
}

static int transport_verbs_send(void *state, const struct transport_message *message)
{
    return verbs_send(state, message);
}

static int transport_verbs_receive(void *state, const struct transport_message *message)
{
    return verbs_receive(state, message);
}

static int transport_verbs_test(void *state, bool *done)
{
    return verbs_test(state, done);
}

const struct transport_ops iobench_transport_verbs = {
    .plugin = {.name = "verbs",
               .settings_size = sizeof(struct verbs_settings),
               .state_size = sizeof(struct verbs_state),
               .usable = verbs_device_usable},
    .open = transport_verbs_open,
    .close = transport_verbs_close,
    .describe = transport_verbs_describe,
    .send = transport_verbs_send,
    .receive = transport_verbs_receive,
    .test = transport_verbs_test,
};
