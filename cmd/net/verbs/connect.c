/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects all ranks: each publishes its port and memory, and then the numbers of its queue pairs,
 * through the control plane.
 */
#include "cmd/net/verbs/verbs.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    PACKET_NUMBER_MASK = 0xffffff,
    RETRIES = 7,
    RETRIES_FOREVER = 7,
    NAK_TIMER_10US = 1,
    HOPS = 64,
    READS = 16
};

/* As sent to the other ranks. */
struct verbs_card {
    uint64_t arena;
    uint32_t arena_key, packet_number, part_bytes;
    uint16_t lid;
    uint8_t link_layer, mtu, reads;
    uint8_t gid[16];
};

struct verbs_connecting {
    struct verbs_state *verbs;
    uint32_t pairs; /* with each peer */
    struct verbs_card mine, *cards;
    uint32_t *numbers, *all; /* of queue pairs: of this rank, of all ranks */
};

static uint32_t ranks_of(const struct verbs_state *verbs)
{
    return verbs->config.ranks->place.ranks;
}

/* Reads in flight on a queue pair. */
static uint8_t fewest_reads(int limit, int other)
{
    const int fewer = limit < other ? limit : other;

    return (uint8_t)(fewer < READS ? fewer : READS);
}

static int fill_card(struct verbs_connecting *connecting)
{
    const struct verbs_device *device = &connecting->verbs->device;
    struct verbs_card *card = &connecting->mine;

    if (getrandom(&card->packet_number, sizeof card->packet_number, 0) < 0)
        return fail(errno, "transport verbs: no random number: %s", fail_errno_text(errno));
    card->packet_number &= PACKET_NUMBER_MASK;
    card->arena = (uint64_t)(uintptr_t)connecting->verbs->config.arena;
    card->arena_key = device->arena->rkey;
    card->part_bytes = device->port.max_msg_sz;
    card->lid = device->port.lid;
    card->link_layer = device->port.link_layer;
    card->mtu = (uint8_t)device->port.active_mtu;
    card->reads = fewest_reads(device->limits.max_qp_rd_atom, READS);
    memcpy(card->gid, device->gid.gid.raw, sizeof card->gid);
    return 0;
}

/* What all can do. */
static int agree(struct verbs_connecting *connecting)
{
    struct verbs_state *verbs = connecting->verbs;

    verbs->mtu = verbs->device.port.active_mtu;
    verbs->part_bytes = connecting->mine.part_bytes;
    for (uint32_t i = 0; i < ranks_of(verbs); i++) {
        const struct verbs_card *card = &connecting->cards[i];
        if (card->link_layer != connecting->mine.link_layer)
            return fail(EINVAL,
                        "transport verbs: rank %u has a port of another kind, Ethernet or "
                        "InfiniBand: choose verbs:device=NAME",
                        i);
        if (card->mtu < verbs->mtu)
            verbs->mtu = card->mtu;
        if (card->part_bytes < verbs->part_bytes)
            verbs->part_bytes = card->part_bytes;
    }
    if (verbs->part_bytes < VERBS_SMALL_BYTES)
        return fail(EINVAL, "transport verbs: a port carries messages of %llu bytes only",
                    (unsigned long long)verbs->part_bytes);
    const uint64_t depth = TRANSPORT_DEPTH + verbs->config.bytes / verbs->part_bytes;
    if (depth > (uint64_t)verbs->device.limits.max_qp_wr)
        return fail(EINVAL,
                    "transport verbs: the device has queues of %d requests, %llu are needed",
                    verbs->device.limits.max_qp_wr, (unsigned long long)depth);
    verbs->depth = (uint32_t)depth;
    return 0;
}

/* ---- queue pairs ---- */

static int create_pairs(struct verbs_connecting *connecting)
{
    struct verbs_state *verbs = connecting->verbs;

    for (uint32_t i = 0; i < ranks_of(verbs); i++)
        for (uint32_t k = 0; k < connecting->pairs && i != verbs->config.ranks->place.rank; k++) {
            /* Devices differ in what they take inline, and do not say. */
            const bool is_small = k == 0;
            struct ibv_qp_init_attr wanted = {
                .send_cq = verbs->device.queue,
                .recv_cq = verbs->device.queue,
                .cap = {.max_send_wr = is_small ? VERBS_SMALL_SENDS : verbs->depth,
                        .max_recv_wr = is_small ? VERBS_SLOTS : verbs->depth,
                        .max_send_sge = 1,
                        .max_recv_sge = 1,
                        .max_inline_data = is_small ? verbs->inline_bytes : 0},
                .qp_type = IBV_QPT_RC,
                .sq_sig_all = 1,
            };
            struct ibv_qp *pair;
            for (;;) {
                struct ibv_qp_init_attr tried = wanted;
                pair = ibv_create_qp(verbs->device.domain, &tried);
                if (pair || wanted.cap.max_inline_data == 0)
                    break;
                wanted.cap.max_inline_data /= 2;
            }
            if (is_small)
                verbs->inline_bytes = wanted.cap.max_inline_data;
            if (!pair)
                return fail(errno,
                            "transport verbs: no queue pair for rank %u: %s; see ulimit -l, or "
                            "use fewer: verbs:qps=N",
                            i, fail_errno_text(errno));
            verbs->peers[i].pairs[k] = pair;
            connecting->numbers[i * connecting->pairs + k] = pair->qp_num;
        }
    return 0;
}

static int modify(struct ibv_qp *pair, struct ibv_qp_attr *attr, int mask, uint32_t peer)
{
    const int error = ibv_modify_qp(pair, attr, mask);

    return error ? fail(error, "transport verbs: cannot connect to rank %u: %s", peer,
                        fail_errno_text(error))
                 : 0;
}

static int make_ready_to_receive(const struct verbs_state *verbs, struct ibv_qp *pair,
                                 const struct verbs_card *card, uint32_t number, uint32_t peer)
{
    const struct ibv_device_attr *limits = &verbs->device.limits;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = verbs->mtu,
        .dest_qp_num = number,
        .rq_psn = card->packet_number,
        .max_dest_rd_atomic = fewest_reads(limits->max_qp_rd_atom, READS),
        .min_rnr_timer = NAK_TIMER_10US,
        .ah_attr = {.dlid = card->lid,
                    .sl = (uint8_t)verbs->settings.service_level,
                    .port_num = verbs->device.number,
                    .is_global = verbs_device_is_ethernet(&verbs->device)},
    };

    if (attr.ah_attr.is_global) {
        attr.ah_attr.grh.sgid_index = (uint8_t)verbs->device.gid.gid_index;
        attr.ah_attr.grh.hop_limit = HOPS;
        attr.ah_attr.grh.traffic_class = (uint8_t)verbs->settings.traffic_class;
        memcpy(attr.ah_attr.grh.dgid.raw, card->gid, sizeof card->gid);
    }
    return modify(pair, &attr,
                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                  peer);
}

static int make_ready_to_send(const struct verbs_state *verbs, struct ibv_qp *pair,
                              const struct verbs_card *mine, uint8_t reads, uint32_t peer)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = (uint8_t)verbs->settings.timeout,
        .retry_cnt = RETRIES,
        .rnr_retry = RETRIES_FOREVER,
        .sq_psn = mine->packet_number,
        .max_rd_atomic = fewest_reads(verbs->device.limits.max_qp_init_rd_atom, reads),
    };

    return modify(pair, &attr,
                  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                  peer);
}

static int connect_peer(struct verbs_connecting *connecting, uint32_t i)
{
    struct verbs_state *verbs = connecting->verbs;
    const uint32_t rank = verbs->config.ranks->place.rank;
    const struct verbs_card *card = &connecting->cards[i];
    struct verbs_peer *peer = &verbs->peers[i];
    int code = 0;

    peer->arena = card->arena;
    peer->arena_key = card->arena_key;
    for (uint32_t k = 0; k < connecting->pairs && code == 0; k++) {
        const uint32_t number =
            connecting->all[((size_t)i * ranks_of(verbs) + rank) * connecting->pairs + k];
        struct ibv_qp_attr attr = {
            .qp_state = IBV_QPS_INIT,
            .port_num = verbs->device.number,
            .qp_access_flags =
                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
        };
        code = modify(peer->pairs[k], &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, i);
        for (uint32_t n = 0; k == 0 && n < VERBS_SLOTS && code == 0; n++)
            code = verbs_post_slot(verbs, i, n);
        if (code == 0)
            code = make_ready_to_receive(verbs, peer->pairs[k], card, number, i);
        if (code == 0)
            code = make_ready_to_send(verbs, peer->pairs[k], &connecting->mine, card->reads, i);
    }
    return code;
}

/* ---- all ---- */

static int connect_all(struct verbs_connecting *connecting)
{
    struct verbs_state *verbs = connecting->verbs;
    struct ranks *ranks = verbs->config.ranks;
    const uint64_t pairs = (uint64_t)ranks->place.ranks * connecting->pairs;

    connecting->cards = memory_array(ranks->place.ranks, sizeof *connecting->cards);
    connecting->numbers = memory_array(pairs, sizeof *connecting->numbers);
    connecting->all = memory_array(pairs * ranks->place.ranks, sizeof *connecting->all);
    int code = connecting->cards && connecting->numbers && connecting->all ? fill_card(connecting)
                                                                           : -ENOMEM;
    code = ranks_meet(ranks, code, NULL);
    if (code == 0)
        code = ranks_gather(ranks, &connecting->mine, sizeof connecting->mine, connecting->cards);
    if (code == 0)
        code = agree(connecting);
    if (code == 0) {
        const uint64_t entries = 2 * (uint64_t)verbs->depth +
                                 (uint64_t)ranks_of(verbs) * (VERBS_SLOTS + VERBS_SMALL_SENDS);
        if (entries > (uint64_t)verbs->device.limits.max_cqe)
            code = fail(EINVAL, "transport verbs: too many ranks: the device queues %d completions",
                        verbs->device.limits.max_cqe);
        else {
            verbs->device.queue = ibv_create_cq(verbs->device.context, (int)entries, NULL, NULL, 0);
            code = verbs->device.queue ? 0
                                       : fail(errno, "transport verbs: no completion queue: %s",
                                              fail_errno_text(errno));
        }
    }
    if (code == 0)
        code = create_pairs(connecting);
    code = ranks_meet(ranks, code, NULL);
    if (code == 0)
        code = ranks_gather(ranks, connecting->numbers, pairs * sizeof *connecting->numbers,
                            connecting->all);
    for (uint32_t i = 0; i < ranks->place.ranks && code == 0; i++)
        if (i != ranks->place.rank)
            code = connect_peer(connecting, i);
    return code;
}

int verbs_connect(struct verbs_state *verbs)
{
    struct verbs_connecting connecting = {.verbs = verbs,
                                          .pairs = 1 + (uint32_t)verbs->settings.qps};
    const int code = connect_all(&connecting);

    free(connecting.cards);
    free(connecting.numbers);
    free(connecting.all);
    return code;
}

void verbs_disconnect(struct verbs_state *verbs)
{
    for (uint32_t i = 0; verbs->peers && i < ranks_of(verbs); i++)
        for (uint32_t k = 0; k < 1 + VERBS_QPS_MAX && verbs->peers[i].pairs[k]; k++)
            ibv_destroy_qp(verbs->peers[i].pairs[k]);
}
