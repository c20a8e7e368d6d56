/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves messages: posts requests and handles their completions. A message with immediate data on
 * the first queue pair is a notice: parts that may be moved now, or have been read.
 */
#include "cmd/net/verbs/verbs.h"

#include "base/fail.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

enum { POLLED = 32 };
static const uint32_t notice_done = 1U << 31; /* otherwise a permit; the rest is the count */

/* What a completion is of, in its wr_id: kind, peer, number of the slot. */
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

static struct ibv_sge place_of(const struct verbs_state *verbs, uint64_t at, uint64_t bytes)
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
    return verbs->slots + ((size_t)peer * VERBS_SLOTS + number) * VERBS_SMALL_BYTES;
}

int verbs_post_slot(struct verbs_state *verbs, uint32_t peer, uint32_t number)
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
        return fail(EPROTO, "transport verbs: %u bytes arrived from rank %u, %llu were awaited",
                    slot->bytes, number, (unsigned long long)small->bytes);
    memcpy(verbs->config.arena + small->to, slot_of(verbs, number, slot->number), small->bytes);
    return verbs_post_slot(verbs, number, slot->number);
}

static int accept_small(struct verbs_state *verbs, uint32_t number, const struct verbs_slot *slot)
{
    struct verbs_peer *peer = &verbs->peers[number];

    if (peer->awaited_count == 0) {
        peer->held[(peer->held_first + peer->held_count++) % VERBS_SLOTS] = *slot;
        return 0;
    }
    const struct verbs_small small = peer->awaited[peer->awaited_first];
    peer->awaited_first = (peer->awaited_first + 1) % TRANSPORT_DEPTH;
    peer->awaited_count--;
    verbs->pending--;
    return take_small(verbs, number, &small, slot);
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

/* Once in a while, so that a notice stands for many parts. */
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

static int move_part(struct verbs_state *verbs, uint32_t number, struct verbs_transfer *transfer)
{
    static const enum ibv_wr_opcode opcodes[] = {[VERBS_WRITE] = IBV_WR_RDMA_WRITE_WITH_IMM,
                                                 [VERBS_READ] = IBV_WR_RDMA_READ,
                                                 [VERBS_SEND] = IBV_WR_SEND};
    struct verbs_peer *peer = &verbs->peers[number];
    const uint64_t bytes = part_of(verbs, transfer->bytes);
    struct ibv_sge place = place_of(verbs, transfer->own, bytes);
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
    return post_send(verbs, number, pair_of(verbs, peer->active++), &request);
}

/* Move what the peer has announced. */
static int move_on(struct verbs_state *verbs, uint32_t number)
{
    struct verbs_peer *peer = &verbs->peers[number];
    int code = 0;

    while (peer->permits > 0 && peer->transfer_count > 0 && code == 0) {
        struct verbs_transfer *transfer = &peer->transfers[peer->transfer_first];
        code = move_part(verbs, number, transfer);
        if (transfer->bytes > 0)
            continue;
        peer->transfer_first = (peer->transfer_first + 1) % TRANSPORT_DEPTH;
        peer->transfer_count--;
    }
    return code;
}

static int begin_active(struct verbs_state *verbs, const struct transport_message *message,
                        uint64_t own, uint64_t theirs)
{
    struct verbs_peer *peer = &verbs->peers[message->peer];

    if (peer->transfer_count == TRANSPORT_DEPTH)
        return fail(EBUSY, "transport verbs: too many messages in flight");
    peer->transfers[(peer->transfer_first + peer->transfer_count++) % TRANSPORT_DEPTH] =
        (struct verbs_transfer){.own = own, .theirs = theirs, .bytes = message->bytes};
    const uint64_t bytes = message->bytes;

    verbs->pending += (uint32_t)((bytes + verbs->part_bytes - 1) / verbs->part_bytes);
    return move_on(verbs, message->peer);
}

/* The parts of a message that is written use up requests without memory. */
static int begin_passive(struct verbs_state *verbs, const struct transport_message *message)
{
    struct verbs_peer *peer = &verbs->peers[message->peer];
    uint64_t at = message->to, left = message->bytes;
    int code = 0;

    while (left > 0 && code == 0) {
        const uint64_t bytes = part_of(verbs, left);
        struct ibv_sge place = place_of(verbs, at, bytes);
        if (verbs->settings.op != VERBS_READ)
            code = post_receive(verbs, message->peer, pair_of(verbs, peer->passive),
                                work_of(WORK_PASSIVE, message->peer, 0),
                                verbs->settings.op == VERBS_SEND ? &place : NULL);
        peer->passive++;
        peer->permits_due++;
        verbs->pending++;
        at += bytes;
        left -= bytes;
    }
    list(verbs, message->peer);
    return code;
}

static bool is_small(const struct verbs_state *verbs, uint64_t bytes)
{
    return bytes <= VERBS_SMALL_BYTES && verbs->settings.op != VERBS_READ;
}

int verbs_send(struct verbs_state *verbs, const struct transport_message *message)
{
    if (is_small(verbs, message->bytes)) {
        struct verbs_peer *peer = &verbs->peers[message->peer];
        struct ibv_sge place = place_of(verbs, message->from, message->bytes);
        const bool is_inline = message->bytes <= verbs->inline_bytes;
        /* The rest of the queue is for notices, and for those that are waited for. */
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
    if (verbs->settings.op == VERBS_READ)
        return begin_passive(verbs, message);
    return begin_active(verbs, message, message->from, message->to);
}

int verbs_receive(struct verbs_state *verbs, const struct transport_message *message)
{
    if (is_small(verbs, message->bytes)) {
        struct verbs_peer *peer = &verbs->peers[message->peer];
        const struct verbs_small small = {message->to, message->bytes};
        if (peer->held_count > 0) {
            const struct verbs_slot slot = peer->held[peer->held_first];
            peer->held_first = (peer->held_first + 1) % VERBS_SLOTS;
            peer->held_count--;
            return take_small(verbs, message->peer, &small, &slot);
        }
        if (peer->awaited_count == TRANSPORT_DEPTH)
            return fail(EBUSY, "transport verbs: too many messages in flight");
        peer->awaited[(peer->awaited_first + peer->awaited_count++) % TRANSPORT_DEPTH] = small;
        verbs->pending++;
        return 0;
    }
    if (verbs->settings.op == VERBS_READ)
        return begin_active(verbs, message, message->to, message->from);
    return begin_passive(verbs, message);
}

/* ---- completions ---- */

static int accept_slot(struct verbs_state *verbs, uint32_t number, const struct ibv_wc *done)
{
    struct verbs_peer *peer = &verbs->peers[number];
    const struct verbs_slot slot = {(uint32_t)done->wr_id & 0xffffff, done->byte_len};
    const uint32_t notice = ntohl(done->imm_data);

    if (!(done->wc_flags & IBV_WC_WITH_IMM))
        return accept_small(verbs, number, &slot);
    if (notice & notice_done)
        verbs->pending -= notice & ~notice_done;
    else
        peer->permits += notice;
    const int code = verbs_post_slot(verbs, number, slot.number);
    return code ? code : move_on(verbs, number);
}

static int complete(struct verbs_state *verbs, const struct ibv_wc *done)
{
    const enum verbs_work work = (enum verbs_work)(done->wr_id >> 56);
    const uint32_t number = (uint32_t)(done->wr_id >> 24);
    struct verbs_peer *peer = &verbs->peers[number];

    if (done->status != IBV_WC_SUCCESS)
        return fail(EIO, "transport verbs: rank %u on %s: %s", number,
                    verbs->config.ranks->peers[number].host, ibv_wc_status_str(done->status));
    switch (work) {
    case WORK_SLOT:
        return accept_slot(verbs, number, done);
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

int verbs_test(struct verbs_state *verbs, bool *done)
{
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
