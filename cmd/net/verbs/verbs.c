/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs transport, the module iobench-verbs.so. Two ranks have several
 * reliable connections, queue pairs. The first carries small messages, which the receiver copies
 * out of slots that are always posted, and notices. The others carry the rest, without a copy:
 *
 *   side      write, send        read
 *   passive   the receiver       the sender      announces the message by a notice: a permit
 *   active    the sender         the receiver    moves it when it has the permit
 *
 * So nothing arrives before it is expected, and no receiver has to refuse for lack of a request. A
 * message longer than the port can carry is moved in parts. Main thread only.
 */
#include "base/fail.h"
#include "base/gid.h"
#include "base/memory.h"
#include "cmd/net/transport.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    VERBS_SMALL_BYTES = 1024,
    VERBS_SLOTS = 128,       /* of each peer */
    VERBS_SMALL_SENDS = 256, /* small messages and notices under way to each peer */
};

/* ---- the device, its port and memory ---- */

struct verbs_device {
    struct ibv_context *context;
    struct ibv_pd *domain;
    struct ibv_mr *arena, *slots;
    struct ibv_cq *queue; /* of all completions */
    struct ibv_device_attr limits;
    struct ibv_port_attr port;
    uint8_t number;           /* of the port */
    struct ibv_gid_entry gid; /* of an Ethernet port */
};

/* ---- messages ---- */

/* A message of the active side, by parts. */
struct verbs_transfer {
    uint64_t own, theirs; /* offsets of what is left */
    uint64_t bytes;
};

struct verbs_small {
    uint64_t to, bytes;
};

struct verbs_slot {
    uint32_t number, bytes;
};

struct verbs_peer {
    struct ibv_qp *pairs[1 + VERBS_QPS_MAX];
    uint64_t arena; /* the peer's */
    uint32_t arena_key;
    uint32_t small_sends;                        /* under way */
    struct verbs_small awaited[TRANSPORT_DEPTH]; /* a ring */
    uint32_t awaited_first, awaited_count;
    struct verbs_slot held[VERBS_SLOTS]; /* a ring: arrived before they were awaited */
    uint32_t held_first, held_count;
    struct verbs_transfer transfers[TRANSPORT_DEPTH]; /* a ring */
    uint32_t transfer_first, transfer_count;
    uint64_t active, passive;        /* parts so far; they take the queue pairs in turn */
    uint32_t permits;                /* parts that the peer has announced */
    uint32_t permits_due, dones_due; /* parts to notify the peer of */
    bool is_listed;
};

struct verbs_state {
    struct transport_config config;
    struct verbs_settings settings;
    struct verbs_device device;
    unsigned char *slots; /* VERBS_SLOTS of each peer */
    struct verbs_peer *peers;
    uint32_t *due, due_count; /* peers that have a notice due */
    uint64_t part_bytes;      /* the longest part */
    uint32_t depth;           /* parts under way, at most */
    uint32_t inline_bytes;    /* what the device accepted */
    uint32_t pending;         /* what transport_wait() waits for */
    enum ibv_mtu mtu;
};

static uint32_t ranks_of(const struct verbs_state *verbs)
{
    return verbs->config.ranks->place.ranks;
}

static bool is_ethernet(const struct verbs_device *device)
{
    return device->port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

static int verbs_device_usable(void)
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

/* Moves messages: posts requests and handles their completions. A message with immediate data on
 * the first queue pair is a notice: parts that may be moved now, or have been read.
 */

enum { POLLED = 32 };
static const uint32_t notice_done = 1U << 31; /* otherwise a permit; the rest is the count */

/* Contents of a completion's wr_id: kind, peer and slot number. */
enum verbs_work {
    WORK_SLOT,         /* a small message or a notice arrived */
    WORK_SMALL,        /* a small message was sent that is no longer needed */
    WORK_SMALL_WAITED, /* the same, and its memory is free now */
    WORK_ACTIVE,       /* a part was moved by this side, */
    WORK_PASSIVE,      /* or by the other */
};

static uint64_t work_of(enum verbs_work work, uint32_t peer, uint32_t number)
{
    return (uint64_t)work << 56 | (uint64_t)peer << 24 | number;
}

static struct ibv_sge sge_of(const struct verbs_state *verbs, uint64_t at, uint64_t bytes)
{
    return (struct ibv_sge){.addr = (uint64_t)(uintptr_t)(verbs->config.arena + at),
                            .length = (uint32_t)bytes,
                            .lkey = verbs->device.arena->lkey};
}

static int refused(const struct verbs_state *verbs, uint32_t peer, int error)
{
    return fail(error, "transport verbs: a request for rank %u on %s is refused: %s", peer,
                verbs->config.ranks->peers[peer].host, fail_errno_text(error));
}

static int post_send(struct verbs_state *verbs, uint32_t peer, uint32_t pair,
                     struct ibv_send_wr *request)
{
    struct ibv_send_wr *bad;
    const int error = ibv_post_send(verbs->peers[peer].pairs[pair], request, &bad);

    return error ? refused(verbs, peer, error) : 0;
}

static int post_receive(struct verbs_state *verbs, uint32_t peer, uint32_t pair, uint64_t work,
                        struct ibv_sge *place)
{
    struct ibv_recv_wr request = {.wr_id = work, .sg_list = place, .num_sge = place ? 1 : 0};
    struct ibv_recv_wr *bad;
    const int error = ibv_post_recv(verbs->peers[peer].pairs[pair], &request, &bad);

    return error ? refused(verbs, peer, error) : 0;
}

/* ---- small messages ---- */

static unsigned char *slot_of(const struct verbs_state *verbs, uint32_t peer, uint32_t number)
{
    assert(number < VERBS_SLOTS);
    return verbs->slots + ((size_t)peer * VERBS_SLOTS + number) * VERBS_SMALL_BYTES;
}

static int verbs_post_slot(struct verbs_state *verbs, uint32_t peer, uint32_t number)
{
    struct ibv_sge place = {.addr = (uint64_t)(uintptr_t)slot_of(verbs, peer, number),
                            .length = VERBS_SMALL_BYTES,
                            .lkey = verbs->device.slots->lkey};

    return post_receive(verbs, peer, 0, work_of(WORK_SLOT, peer, number), &place);
}

/* Copy a message out of its slot, which is posted again. */
static int take_small(struct verbs_state *verbs, uint32_t number, const struct verbs_small *small,
                      const struct verbs_slot *slot)
{
    if (slot->bytes != small->bytes)
        return fail(EPROTO, "transport verbs: %u bytes arrived from rank %u, expected %llu",
                    slot->bytes, number, (unsigned long long)small->bytes);
    memcpy(verbs->config.arena + small->to, slot_of(verbs, number, slot->number), small->bytes);
    return verbs_post_slot(verbs, number, slot->number);
}

/* ---- notices ---- */

static void list(struct verbs_state *verbs, uint32_t number)
{
    struct verbs_peer *peer = &verbs->peers[number];

    if (!peer->is_listed)
        verbs->due[verbs->due_count++] = number;
    peer->is_listed = true;
}

static int notify(struct verbs_state *verbs, uint32_t number, uint32_t *due, uint32_t kind)
{
    struct verbs_peer *peer = &verbs->peers[number];
    struct ibv_send_wr request = {
        .wr_id = work_of(WORK_SMALL, number, 0),
        .opcode = IBV_WR_SEND_WITH_IMM,
        .imm_data = htonl(kind | *due),
    };

    if (*due == 0 || peer->small_sends == VERBS_SMALL_SENDS) /* later */
        return 0;
    *due = 0;
    peer->small_sends++;
    return post_send(verbs, number, 0, &request);
}

/* Send the notices that are due; called only now and then, so that one stands for many parts. */
static int notify_all(struct verbs_state *verbs)
{
    int code = 0;

    for (uint32_t i = 0; i < verbs->due_count && code == 0;) {
        const uint32_t number = verbs->due[i];
        struct verbs_peer *peer = &verbs->peers[number];
        code = notify(verbs, number, &peer->permits_due, 0);
        if (code == 0)
            code = notify(verbs, number, &peer->dones_due, notice_done);
        if (peer->permits_due || peer->dones_due) {
            i++;
            continue;
        }
        peer->is_listed = false;
        verbs->due[i] = verbs->due[--verbs->due_count];
    }
    return code;
}

/* ---- all others ---- */

static uint32_t pair_of(const struct verbs_state *verbs, uint64_t part)
{
    return 1 + (uint32_t)(part % verbs->settings.qps);
}

static uint64_t part_of(const struct verbs_state *verbs, uint64_t bytes)
{
    return bytes < verbs->part_bytes ? bytes : verbs->part_bytes;
}

/* Move what the peer has announced. */
static int move_on(struct verbs_state *verbs, uint32_t number)
{
    struct verbs_peer *peer = &verbs->peers[number];
    int code = 0;

    while (peer->permits > 0 && peer->transfer_count > 0 && code == 0) {
        struct verbs_transfer *transfer = &peer->transfers[peer->transfer_first];
        static const enum ibv_wr_opcode opcodes[] = {[VERBS_WRITE] = IBV_WR_RDMA_WRITE_WITH_IMM,
                                                     [VERBS_READ] = IBV_WR_RDMA_READ,
                                                     [VERBS_SEND] = IBV_WR_SEND};
        const uint64_t bytes = part_of(verbs, transfer->bytes);
        struct ibv_sge place = sge_of(verbs, transfer->own, bytes);
        struct ibv_send_wr request = {
            .wr_id = work_of(WORK_ACTIVE, number, 0),
            .sg_list = &place,
            .num_sge = 1,
            .opcode = opcodes[verbs->settings.op],
            .wr.rdma = {.remote_addr = peer->arena + transfer->theirs, .rkey = peer->arena_key},
        };
        transfer->own += bytes;
        transfer->theirs += bytes;
        transfer->bytes -= bytes;
        peer->permits--;
        code = post_send(verbs, number, pair_of(verbs, peer->active++), &request);
        if (transfer->bytes > 0)
            continue;
        peer->transfer_first = (peer->transfer_first + 1) % TRANSPORT_DEPTH;
        peer->transfer_count--;
    }
    return code;
}

static int transport_verbs_start(void *state, const struct transport_message *message, bool sends)
{
    struct verbs_state *verbs = state;
    struct verbs_peer *peer = &verbs->peers[message->peer];
    const bool reads = verbs->settings.op == VERBS_READ;
    const struct verbs_small small = {message->to, message->bytes};

    if ((message->bytes > VERBS_SMALL_BYTES || reads) && sends != reads) { /* the active side */
        assert(verbs->part_bytes > 0 && peer->transfer_count < TRANSPORT_DEPTH);
        peer->transfers[(peer->transfer_first + peer->transfer_count++) % TRANSPORT_DEPTH] =
            (struct verbs_transfer){.own = sends ? message->from : message->to,
                                    .theirs = sends ? message->to : message->from,
                                    .bytes = message->bytes};
        verbs->pending += (uint32_t)((message->bytes + verbs->part_bytes - 1) / verbs->part_bytes);
        return move_on(verbs, message->peer);
    }
    if (message->bytes > VERBS_SMALL_BYTES || reads) {
        /* Parts that the peer writes consume receive requests, which have no memory. */
        int code = 0;
        for (uint64_t done = 0, bytes; done < message->bytes && code == 0; done += bytes) {
            bytes = part_of(verbs, message->bytes - done);
            struct ibv_sge place = sge_of(verbs, message->to + done, bytes);
            if (!reads)
                code = post_receive(verbs, message->peer, pair_of(verbs, peer->passive),
                                    work_of(WORK_PASSIVE, message->peer, 0),
                                    verbs->settings.op == VERBS_SEND ? &place : NULL);
            peer->passive++;
            peer->permits_due++;
            verbs->pending++;
        }
        list(verbs, message->peer);
        return code;
    }
    if (sends) {
        struct ibv_sge place = sge_of(verbs, message->from, message->bytes);
        const bool is_inline = message->bytes <= verbs->inline_bytes;
        /* The rest of the queue is left to notices and to messages whose completion is waited
         * for. */
        const bool is_waited = !is_inline || peer->small_sends >= VERBS_SMALL_SENDS / 2;
        struct ibv_send_wr request = {
            .wr_id = work_of(is_waited ? WORK_SMALL_WAITED : WORK_SMALL, message->peer, 0),
            .sg_list = &place,
            .num_sge = 1,
            .opcode = IBV_WR_SEND,
            .send_flags = is_inline ? IBV_SEND_INLINE : 0,
        };
        verbs->pending += is_waited;
        peer->small_sends++;
        return post_send(verbs, message->peer, 0, &request);
    }
    if (peer->held_count > 0) {
        const struct verbs_slot slot = peer->held[peer->held_first];
        peer->held_first = (peer->held_first + 1) % VERBS_SLOTS;
        peer->held_count--;
        return take_small(verbs, message->peer, &small, &slot);
    }
    assert(peer->awaited_count < TRANSPORT_DEPTH);
    peer->awaited[(peer->awaited_first + peer->awaited_count++) % TRANSPORT_DEPTH] = small;
    verbs->pending++;
    return 0;
}

/* ---- completions ---- */

static int complete(struct verbs_state *verbs, const struct ibv_wc *done)
{
    const enum verbs_work work = (enum verbs_work)(done->wr_id >> 56);
    const uint32_t number = (uint32_t)(done->wr_id >> 24);
    struct verbs_peer *peer = &verbs->peers[number];
    const struct verbs_slot slot = {(uint32_t)done->wr_id & 0xffffff, done->byte_len};
    const uint32_t notice = ntohl(done->imm_data);

    assert(number < ranks_of(verbs));
    if (done->status != IBV_WC_SUCCESS)
        return fail(EIO, "transport verbs: rank %u on %s: %s", number,
                    verbs->config.ranks->peers[number].host, ibv_wc_status_str(done->status));
    switch (work) {
    case WORK_SLOT:
        if (done->wc_flags & IBV_WC_WITH_IMM) {
            if (notice & notice_done)
                verbs->pending -= notice & ~notice_done;
            else
                peer->permits += notice;
            const int code = verbs_post_slot(verbs, number, slot.number);
            return code ? code : move_on(verbs, number);
        }
        if (peer->awaited_count > 0) {
            const struct verbs_small small = peer->awaited[peer->awaited_first];
            peer->awaited_first = (peer->awaited_first + 1) % TRANSPORT_DEPTH;
            peer->awaited_count--;
            verbs->pending--;
            return take_small(verbs, number, &small, &slot);
        }
        assert(peer->held_count < VERBS_SLOTS);
        peer->held[(peer->held_first + peer->held_count++) % VERBS_SLOTS] = slot;
        break;
    case WORK_SMALL_WAITED:
        verbs->pending--;
        /* fall through */
    case WORK_SMALL:
        peer->small_sends--;
        break;
    case WORK_ACTIVE:
        if (verbs->settings.op == VERBS_READ) {
            peer->dones_due++;
            list(verbs, number);
        }
        /* fall through */
    case WORK_PASSIVE:
        verbs->pending--;
        break;
    }
    return 0;
}

static int transport_verbs_test(void *state, bool *done)
{
    struct verbs_state *verbs = state;
    struct ibv_wc completions[POLLED];
    int code = notify_all(verbs);
    const int count = code ? 0 : ibv_poll_cq(verbs->device.queue, POLLED, completions);

    if (count < 0)
        return fail(EIO, "transport verbs: the completion queue cannot be read");
    for (int i = 0; i < count && code == 0; i++)
        code = complete(verbs, &completions[i]);
    if (code == 0 && verbs->pending == 0)
        code = notify_all(verbs);
    *done = verbs->pending == 0 && verbs->due_count == 0;
    return code;
}

/* Connects all ranks: each publishes its port and memory, and then the numbers of its queue pairs,
 * through the control plane.
 */

enum {
    PACKET_NUMBER_MASK = 0xffffff,
    RETRIES = 7,
    RETRIES_FOREVER = 7,
    NAK_TIMER_10US = 1,
    HOPS = 64,
    READS = 16
};

enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

/* As sent to the other ranks. */
struct verbs_card {
    uint64_t arena;
    uint32_t arena_key, packet_number, part_bytes;
    uint16_t lid;
    uint8_t link_layer, mtu, reads;
    uint8_t gid[16];
};

/* Number of queue pairs with each rank. */
static uint32_t pairs_of(const struct verbs_state *verbs)
{
    return 1 + (uint32_t)verbs->settings.qps;
}

/* Reads in flight on a queue pair. */
static uint8_t fewest_reads(int limit, int other)
{
    const int fewer = limit < other ? limit : other;

    return (uint8_t)(fewer < READS ? fewer : READS);
}

/* Agree on what all ranks can do. */
static int agree(struct verbs_state *verbs, const struct verbs_card *mine,
                 const struct verbs_card *cards)
{
    verbs->mtu = verbs->device.port.active_mtu;
    verbs->part_bytes = mine->part_bytes;
    for (uint32_t i = 0; i < ranks_of(verbs); i++) {
        if (cards[i].link_layer != mine->link_layer)
            return fail(EINVAL,
                        "transport verbs: rank %u has a port of another kind, Ethernet or "
                        "InfiniBand: choose verbs:device=NAME",
                        i);
        if (cards[i].mtu < verbs->mtu)
            verbs->mtu = cards[i].mtu;
        if (cards[i].part_bytes < verbs->part_bytes)
            verbs->part_bytes = cards[i].part_bytes;
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
    const uint64_t entries =
        2 * depth + (uint64_t)ranks_of(verbs) * (VERBS_SLOTS + VERBS_SMALL_SENDS);
    if (entries > (uint64_t)verbs->device.limits.max_cqe)
        return fail(EINVAL, "transport verbs: too many ranks: the device queues %d completions",
                    verbs->device.limits.max_cqe);
    verbs->device.queue = ibv_create_cq(verbs->device.context, (int)entries, NULL, NULL, 0);
    return verbs->device.queue
               ? 0
               : fail(errno, "transport verbs: no completion queue: %s", fail_errno_text(errno));
}

/* Connect queue pair k with the peer's, whose number is `number`. */
static int connect_pair(struct verbs_state *verbs, uint32_t peer, uint32_t k,
                        const struct verbs_card *mine, const struct verbs_card *theirs,
                        uint32_t number)
{
    const struct verbs_device *device = &verbs->device;
    struct ibv_qp *pair = verbs->peers[peer].pairs[k];
    struct ibv_qp_attr initial = {
        .qp_state = IBV_QPS_INIT,
        .port_num = device->number,
        .qp_access_flags = ACCESS,
    };
    struct ibv_qp_attr receiving = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = verbs->mtu,
        .dest_qp_num = number,
        .rq_psn = theirs->packet_number,
        .max_dest_rd_atomic = fewest_reads(device->limits.max_qp_rd_atom, READS),
        .min_rnr_timer = NAK_TIMER_10US,
        .ah_attr = {.dlid = theirs->lid,
                    .sl = (uint8_t)verbs->settings.service_level,
                    .port_num = device->number,
                    .is_global = is_ethernet(device)},
    };
    struct ibv_qp_attr sending = {
        .qp_state = IBV_QPS_RTS,
        .timeout = (uint8_t)verbs->settings.timeout,
        .retry_cnt = RETRIES,
        .rnr_retry = RETRIES_FOREVER,
        .sq_psn = mine->packet_number,
        .max_rd_atomic = fewest_reads(device->limits.max_qp_init_rd_atom, theirs->reads),
    };

    if (receiving.ah_attr.is_global) {
        receiving.ah_attr.grh.sgid_index = (uint8_t)device->gid.gid_index;
        receiving.ah_attr.grh.hop_limit = HOPS;
        receiving.ah_attr.grh.traffic_class = (uint8_t)verbs->settings.traffic_class;
        memcpy(receiving.ah_attr.grh.dgid.raw, theirs->gid, sizeof theirs->gid);
    }
    int error = ibv_modify_qp(pair, &initial,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    for (uint32_t n = 0; k == 0 && n < VERBS_SLOTS && error == 0; n++) {
        const int code = verbs_post_slot(verbs, peer, n);
        if (code)
            return code;
    }
    if (error == 0)
        error = ibv_modify_qp(pair, &receiving,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error == 0)
        error = ibv_modify_qp(pair, &sending,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return error ? fail(error, "transport verbs: cannot connect to rank %u: %s", peer,
                        fail_errno_text(error))
                 : 0;
}

/* Collective: connect all ranks. */
static int connect_all(struct verbs_state *verbs)
{
    const struct verbs_device *device = &verbs->device;
    struct ranks *ranks = verbs->config.ranks;
    const uint32_t count = ranks->place.ranks, pairs = pairs_of(verbs);
    const uint64_t all_pairs = (uint64_t)count * pairs;           /* of a rank */
    uint32_t *numbers = memory_array(all_pairs, sizeof *numbers); /* of this rank's queue pairs */
    struct verbs_card mine = {.arena = (uint64_t)(uintptr_t)verbs->config.arena,
                              .arena_key = device->arena->rkey,
                              .part_bytes = device->port.max_msg_sz,
                              .lid = device->port.lid,
                              .link_layer = device->port.link_layer,
                              .mtu = (uint8_t)device->port.active_mtu,
                              .reads = fewest_reads(device->limits.max_qp_rd_atom, READS)};
    int code = numbers ? 0 : -ENOMEM;

    memcpy(mine.gid, device->gid.gid.raw, sizeof mine.gid);
    if (code == 0 && getrandom(&mine.packet_number, sizeof mine.packet_number, 0) < 0)
        code = fail(errno, "transport verbs: no random number: %s", fail_errno_text(errno));
    mine.packet_number &= PACKET_NUMBER_MASK;
    struct verbs_card *cards = ranks_collect(ranks, &code, &mine, sizeof mine);
    if (code == 0)
        code = agree(verbs, &mine, cards);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < pairs && i != ranks->place.rank && code == 0; k++) {
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
                code = fail(errno,
                            "transport verbs: no queue pair for rank %u: %s; see ulimit -l, or "
                            "use fewer: verbs:qps=N",
                            i, fail_errno_text(errno));
            verbs->peers[i].pairs[k] = pair;
            numbers[i * pairs + k] = pair ? pair->qp_num : 0;
        }
    uint32_t *all = ranks_collect(ranks, &code, numbers, all_pairs * sizeof *numbers);
    for (uint32_t i = 0; i < count && code == 0; i++) {
        verbs->peers[i].arena = cards[i].arena;
        verbs->peers[i].arena_key = cards[i].arena_key;
        for (uint32_t k = 0; k < pairs && code == 0 && i != ranks->place.rank; k++)
            code = connect_pair(verbs, i, k, &mine, &cards[i],
                                all[((size_t)i * count + ranks->place.rank) * pairs + k]);
    }
    free(cards);
    free(numbers);
    free(all);
    return code;
}

extern const struct transport_ops iobench_transport_verbs;

/* Find a device whose port, or the first that is active, is usable. */
static int find_device(struct verbs_device *device, const struct verbs_settings *settings,
                       uint32_t local_rank)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    char wanted[IBV_SYSFS_NAME_MAX] = "";
    uint32_t count = 1;
    int error = ENODEV;

    if (settings->device) { /* "a+b": the ranks of a node take them in turn */
        const char *name = settings->device;
        for (const char *at = name; *at; at++)
            count += *at == '+';
        for (uint32_t i = local_rank % count; i > 0; i--)
            name = strchr(name, '+') + 1;
        snprintf(wanted, sizeof wanted, "%.*s", (int)strcspn(name, "+"), name);
    }
    for (int i = 0; list && list[i] && !device->context; i++) {
        if (wanted[0] && strcmp(ibv_get_device_name(list[i]), wanted) != 0)
            continue;
        device->context = ibv_open_device(list[i]);
        if (!device->context) {
            error = errno;
            continue;
        }
        const unsigned first = settings->port ? (unsigned)settings->port : 1;
        bool is_usable = false;
        if (ibv_query_device(device->context, &device->limits) == 0)
            for (unsigned port = first;
                 !is_usable && port <= (settings->port ? first : device->limits.phys_port_cnt);
                 port++) {
                device->number = (uint8_t)port;
                is_usable = ibv_query_port(device->context, device->number, &device->port) == 0 &&
                            device->port.state == IBV_PORT_ACTIVE;
            }
        if (is_usable)
            break;
        ibv_close_device(device->context);
        device->context = NULL;
        error = ENETDOWN;
    }
    if (list)
        ibv_free_device_list(list);
    return device->context
               ? 0
               : fail(error, "transport verbs: %s%s: %s; iobench doctor lists devices and ports",
                      wanted[0] ? "device " : "no device", wanted,
                      error == ENETDOWN ? "no active port" : fail_errno_text(error));
}

/* Find the GID that iobench doctor recommends, or the one that the user wants. */
static int find_gid(struct verbs_device *device, const char *wanted)
{
    int best = GID_NONE;
    char *end = NULL;
    const unsigned long index = wanted ? strtoul(wanted, &end, 10) : 0;

    if (wanted && (*end || end == wanted))
        return fail(EINVAL, "transport verbs: gid=%s: expected an index", wanted);
    for (int i = 0; i < device->port.gid_tbl_len; i++) {
        struct ibv_gid_entry entry;
        struct in6_addr gid;
        if ((wanted && (unsigned long)i != index) ||
            ibv_query_gid_ex(device->context, device->number, (uint32_t)i, &entry, 0))
            continue;
        memcpy(&gid, entry.gid.raw, sizeof gid);
        const int rank = gid_rank(&gid, entry.gid_type == IBV_GID_TYPE_ROCE_V2);
        if (rank > best) {
            best = rank;
            device->gid = entry;
        }
    }
    return best > GID_NONE
               ? 0
               : fail(ENODEV,
                      "transport verbs: %s port %u has no GID%s%s: give its network interface an "
                      "IP address",
                      ibv_get_device_name(device->context->device), device->number,
                      wanted ? " " : "", wanted ? wanted : "");
}

static int transport_verbs_open(void *state, const void *settings,
                                const struct transport_config *config)
{
    struct verbs_state *verbs = state;
    struct verbs_device *device = &verbs->device;
    const struct ranks_place *place = &config->ranks->place;
    const uint64_t slot_bytes = (uint64_t)place->ranks * VERBS_SLOTS * VERBS_SMALL_BYTES;

    verbs->config = *config;
    verbs->settings = *(const struct verbs_settings *)settings;
    verbs->inline_bytes = (uint32_t)verbs->settings.inline_bytes;
    verbs->peers = memory_array(place->ranks, sizeof *verbs->peers);
    verbs->due = memory_array(place->ranks, sizeof *verbs->due);
    verbs->slots = memory_pages(slot_bytes);
    int code = verbs->peers && verbs->due && verbs->slots ? 0 : -ENOMEM;
    if (code == 0)
        code = find_device(device, &verbs->settings, place->local_rank);
    if (code == 0 && is_ethernet(device))
        code = find_gid(device, verbs->settings.gid);
    if (code == 0 && !(device->domain = ibv_alloc_pd(device->context)))
        code = fail(errno, "transport verbs: no protection domain: %s", fail_errno_text(errno));
    const struct {
        const char *name;
        void *memory;
        uint64_t bytes;
        struct ibv_mr **registered;
    } memories[] = {{"messages", config->arena, config->bytes, &device->arena},
                    {"small messages", verbs->slots, slot_bytes, &device->slots}};
    for (size_t i = 0; i < sizeof memories / sizeof *memories && code == 0; i++) {
        *memories[i].registered =
            ibv_reg_mr(device->domain, memories[i].memory, memories[i].bytes, ACCESS);
        if (!*memories[i].registered)
            code = fail(errno,
                        "transport verbs: cannot register %llu bytes of %s: %s; see ulimit -l, or "
                        "choose a smaller --to",
                        (unsigned long long)memories[i].bytes, memories[i].name,
                        fail_errno_text(errno));
    }
    code = ranks_meet(config->ranks, code, NULL);
    return code ? code : connect_all(verbs);
}

static void transport_verbs_close(void *state, bool failed)
{
    struct verbs_state *verbs = state;

    (void)failed;
    for (uint32_t i = 0; verbs->peers && i < ranks_of(verbs); i++)
        for (uint32_t k = 0; k < 1 + VERBS_QPS_MAX && verbs->peers[i].pairs[k]; k++)
            ibv_destroy_qp(verbs->peers[i].pairs[k]);
    if (verbs->device.queue)
        ibv_destroy_cq(verbs->device.queue);
    if (verbs->device.slots)
        ibv_dereg_mr(verbs->device.slots);
    if (verbs->device.arena)
        ibv_dereg_mr(verbs->device.arena);
    if (verbs->device.domain)
        ibv_dealloc_pd(verbs->device.domain);
    if (verbs->device.context)
        ibv_close_device(verbs->device.context);
    free(verbs->slots);
    free(verbs->due);
    free(verbs->peers);
}

static void transport_verbs_describe(void *state, char *text, size_t bytes)
{
    const struct verbs_state *verbs = state;
    const struct verbs_device *device = &verbs->device;
    char address[INET6_ADDRSTRLEN], where[INET6_ADDRSTRLEN + 40];
    struct in6_addr gid;

    memcpy(&gid, device->gid.gid.raw, sizeof gid);
    gid_text(&gid, address);
    if (is_ethernet(device))
        snprintf(where, sizeof where, "RoCE %s %s, GID %u",
                 device->gid.gid_type == IBV_GID_TYPE_ROCE_V2 ? "v2" : "v1", address,
                 device->gid.gid_index);
    else
        snprintf(where, sizeof where, "InfiniBand, LID %u", device->port.lid);
    snprintf(text, bytes,
             "RDMA %s from %s port %u (%s), MTU %u, %llu queue pair%s per pair, inline up to %u "
             "bytes",
             verbs_op_names[verbs->settings.op], ibv_get_device_name(device->context->device),
             device->number, where, 128U << verbs->mtu, (unsigned long long)verbs->settings.qps,
             verbs->settings.qps == 1 ? "" : "s", verbs->inline_bytes);
}

const struct transport_ops iobench_transport_verbs = {
    .plugin = {.name = "verbs",
               .settings_size = sizeof(struct verbs_settings),
               .state_size = sizeof(struct verbs_state),
               .usable = verbs_device_usable},
    .open = transport_verbs_open,
    .close = transport_verbs_close,
    .describe = transport_verbs_describe,
    .start = transport_verbs_start,
    .test = transport_verbs_test,
};
