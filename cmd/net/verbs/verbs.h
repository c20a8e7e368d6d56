/* SPDX-License-Identifier: Apache-2.0
 *
 * verbs: the parts of the verbs transport, the module iobench-verbs.so. Two ranks have several
 * reliable connections, queue pairs. The first carries small messages, which the receiver copies
 * out of slots that are always posted, and notices. The others carry the rest, without a copy:
 *
 *   side      write, send        read
 *   passive   the receiver       the sender      announces the message by a notice: a permit
 *   active    the sender         the receiver    moves it when it has the permit
 *
 * So nothing arrives before it is awaited, and no receiver has to refuse for want of a request. A
 * message longer than the port can carry is moved in parts. Main thread only.
 */
#ifndef IOBENCH_FABRIC_VERBS_VERBS_H
#define IOBENCH_FABRIC_VERBS_VERBS_H

#include "cmd/net/transport.h"
#include "cmd/net/verbs_settings.h"

#include <infiniband/verbs.h>

enum {
    VERBS_SMALL_BYTES = 1024,
    VERBS_SLOTS = 128,       /* of each peer */
    VERBS_SMALL_SENDS = 256, /* small messages and notices under way to each peer */
};

/* ---- device.c: the device, its port and memory ---- */

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

int verbs_device_usable(void);
int verbs_device_open(struct verbs_device *device, const struct verbs_settings *settings,
                      uint32_t local_rank);
/* name: of the memory, for the reason. */
int verbs_device_register(struct verbs_device *device, void *memory, uint64_t bytes,
                          const char *name, struct ibv_mr **registered);
void verbs_device_close(struct verbs_device *device);
bool verbs_device_is_ethernet(const struct verbs_device *device);

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

/* connect.c. Collective: connect all ranks. */
int verbs_connect(struct verbs_state *verbs);
void verbs_disconnect(struct verbs_state *verbs);
/* move.c */
int verbs_post_slot(struct verbs_state *verbs, uint32_t peer, uint32_t number);
int verbs_send(struct verbs_state *verbs, const struct transport_message *message);
int verbs_receive(struct verbs_state *verbs, const struct transport_message *message);
int verbs_test(struct verbs_state *verbs, bool *done);

#endif
