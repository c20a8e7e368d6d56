/* SPDX-License-Identifier: Apache-2.0
 *
 * As much of libibverbs as cmd/net/verbs/ asks for, between processes of one host: a queue pair is
 * a datagram socket; a thread, and whoever polls completions, carries out what has arrived. What an
 * adapter refuses ends the program, and so does a large message that finds no request: the
 * transport promises that none does.
 */
#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

/* Short messages, so that longer ones are moved in parts; little is taken inline. */
enum { MESSAGE_BYTES = 16384, INLINE_BYTES = 64, SMALL_BYTES = 1024, PAIRS = 256, REGIONS = 8 };

struct packet {
    enum ibv_wr_opcode opcode; /* of a read: the request, then IBV_WR_SEND with is_answer */
    int is_answer;
    uint32_t imm, key, bytes;
    uint64_t remote, tag; /* tag of a read: the address of its request */
    unsigned char data[MESSAGE_BYTES];
};

struct queued {
    struct queued *next;
    uint64_t work;
    struct ibv_sge place; /* of a read */
    int is_request;
    size_t bytes; /* of the packet */
    struct packet packet;
};

struct awaited {
    uint64_t work;
    struct ibv_sge place;
    int places;
};

struct pair {
    struct ibv_qp qp;
    struct ibv_qp_cap cap;
    int socket;
    uint32_t sends; /* not completed */
    struct queued *first, **last;
    struct awaited *awaited; /* a ring */
    uint32_t awaited_first, awaited_count;
    struct sockaddr_un to;
};

static struct pair *pairs[PAIRS];
static uint32_t pair_count;
static struct ibv_mr regions[REGIONS];
static uint32_t region_count;
static struct ibv_wc *completions; /* a ring of the only queue */
static uint32_t completion_first, completion_count, completion_room;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all above */
static bool is_open;
static pthread_t adapter;

static void refuse(const char *what)
{
    fprintf(stderr, "emulated adapter: %s\n", what);
    abort();
}

/* ---- device ---- */

static struct ibv_device device = {.name = "emulated0"};
static struct ibv_context context = {.device = &device};
static struct ibv_pd domain = {.context = &context};

struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list = calloc(2, sizeof *list);

    list[0] = &device;
    if (count)
        *count = 1;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *named)
{
    return named->name;
}

int ibv_query_device(struct ibv_context *asked, struct ibv_device_attr *limits)
{
    (void)asked;
    *limits = (struct ibv_device_attr){.phys_port_cnt = 2,
                                       .max_qp_wr = 4096,
                                       .max_cqe = 1 << 16,
                                       .max_qp_rd_atom = 4,
                                       .max_qp_init_rd_atom = 4};
    return 0;
}

/* The first port is down. */
int ibv_query_port(struct ibv_context *asked, uint8_t number, struct _compat_ibv_port_attr *attr)
{
    struct ibv_port_attr *port = (struct ibv_port_attr *)attr;

    (void)asked;
    memset(port, 0, sizeof *port);
    port->state = number == 2 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    port->active_mtu = IBV_MTU_1024;
    port->max_msg_sz = MESSAGE_BYTES;
    port->gid_tbl_len = 4;
    port->link_layer = IBV_LINK_LAYER_ETHERNET;
    return 0;
}

/* 0: v1, 1: v2 link-local, 2: v2 with IPv4, 3: not set. */
int _ibv_query_gid_ex(struct ibv_context *asked, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t bytes)
{
    static const unsigned char ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 7};
    static const unsigned char local[16] = {0xfe, 0x80, [15] = 7};

    (void)asked;
    (void)flags;
    memset(entry, 0, bytes);
    entry->gid_index = index;
    entry->port_num = port;
    entry->gid_type = index == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    if (index < 3)
        memcpy(entry->gid.raw, index == 1 ? local : ipv4, sizeof ipv4);
    return index < 4 ? 0 : EINVAL;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *asked)
{
    (void)asked;
    return &domain;
}

int ibv_dealloc_pd(struct ibv_pd *released)
{
    (void)released;
    return 0;
}

/* ---- memory ---- */

struct ibv_mr *ibv_reg_mr(struct ibv_pd *asked, void *memory, size_t bytes, int access)
{
    (void)access;
    if (region_count == REGIONS)
        refuse("too many regions");
    struct ibv_mr *region = &regions[region_count++];
    *region = (struct ibv_mr){.context = &context,
                              .pd = asked,
                              .addr = memory,
                              .length = bytes,
                              .lkey = region_count,
                              .rkey = region_count};
    return region;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *asked, void *memory, size_t bytes, uint64_t iova,
                                unsigned access)
{
    (void)iova;
    return ibv_reg_mr(asked, memory, bytes, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *region)
{
    region->length = 0;
    return 0;
}

static void *reach(uint64_t address, uint64_t bytes, uint32_t key)
{
    if (key == 0 || key > region_count)
        refuse("a key is of no region");
    const uint64_t start = (uint64_t)(uintptr_t)regions[key - 1].addr;
    if (address < start || address + bytes > start + regions[key - 1].length)
        refuse("memory outside of its region");
    return (void *)(uintptr_t)address;
}

/* ---- queues ---- */

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad);
static int post_receive(struct ibv_qp *qp, struct ibv_recv_wr *request, struct ibv_recv_wr **bad);
static int poll_queue(struct ibv_cq *queue, int most, struct ibv_wc *done);
static void *work(void *unused);

struct ibv_context *ibv_open_device(struct ibv_device *opened)
{
    (void)opened;
    context.ops.post_send = post_send;
    context.ops.post_recv = post_receive;
    context.ops.poll_cq = poll_queue;
    is_open = true; /* no thread yet */
    if (pthread_create(&adapter, NULL, work, NULL))
        refuse("no thread");
    return &context;
}

int ibv_close_device(struct ibv_context *closed)
{
    (void)closed;
    pthread_mutex_lock(&lock);
    is_open = false;
    pthread_mutex_unlock(&lock);
    pthread_join(adapter, NULL);
    if (completions)
        refuse("closed before its queue");
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *asked, int entries, void *own,
                             struct ibv_comp_channel *channel, int vector)
{
    static struct ibv_cq queue;

    (void)own;
    (void)channel;
    (void)vector;
    completions = calloc((size_t)entries, sizeof *completions);
    completion_room = (uint32_t)entries;
    queue.context = asked;
    return &queue;
}

int ibv_destroy_cq(struct ibv_cq *queue)
{
    (void)queue;
    for (uint32_t i = 0; i < pair_count; i++)
        if (pairs[i])
            refuse("a completion queue is destroyed before its queue pairs");
    free(completions);
    completions = NULL;
    return 0;
}

static void push(uint64_t work, uint32_t bytes, uint32_t imm, int has_imm, uint32_t number)
{
    if (completion_count == completion_room)
        refuse("the completion queue overflows");
    completions[(completion_first + completion_count++) % completion_room] =
        (struct ibv_wc){.wr_id = work,
                        .status = IBV_WC_SUCCESS,
                        .byte_len = bytes,
                        .imm_data = imm,
                        .wc_flags = has_imm ? IBV_WC_WITH_IMM : 0,
                        .qp_num = number};
}

static socklen_t name_of(uint32_t number, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "iobench-emulated-qp-%u", number);
    return sizeof *address;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *asked, struct ibv_qp_init_attr *wanted)
{
    struct sockaddr_un address;
    const int room = 1 << 20;

    if (wanted->cap.max_inline_data > INLINE_BYTES || pair_count == PAIRS) {
        errno = EINVAL;
        return NULL;
    }
    struct pair *pair = calloc(1, sizeof *pair);
    pair->cap = wanted->cap;
    pair->awaited = calloc(wanted->cap.max_recv_wr, sizeof *pair->awaited);
    pair->last = &pair->first;
    pair->qp.context = asked->context;
    pthread_mutex_lock(&lock);
    pair->qp.qp_num = ((uint32_t)getpid() << 8) + pair_count;
    pair->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(pair->socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (bind(pair->socket, (struct sockaddr *)&address, name_of(pair->qp.qp_num, &address)))
        refuse("a queue pair cannot be bound");
    pairs[pair_count++] = pair;
    pthread_mutex_unlock(&lock);
    return &pair->qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct pair *pair = (struct pair *)(void *)qp;

    if (mask & IBV_QP_DEST_QPN)
        name_of(attr->dest_qp_num, &pair->to);
    if (mask & IBV_QP_AV && (attr->ah_attr.grh.sgid_index != 2 || attr->ah_attr.port_num != 2 ||
                             attr->ah_attr.grh.dgid.raw[15] != 7))
        refuse("another address than the recommended one");
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > 4)
        refuse("too many reads at once");
    qp->state = attr->qp_state;
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    struct pair *pair = (struct pair *)(void *)qp;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < pair_count; i++)
        if (pairs[i] == pair)
            pairs[i] = NULL;
    pthread_mutex_unlock(&lock);
    while (pair->first) {
        struct queued *next = pair->first->next;
        free(pair->first);
        pair->first = next;
    }
    close(pair->socket);
    free(pair->awaited);
    free(pair);
    return 0;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_SUCCESS ? "success" : "failure";
}

/* ---- requests ---- */

static void enqueue(struct pair *pair, struct queued *queued)
{
    queued->bytes = offsetof(struct packet, data) +
                    (queued->packet.opcode == IBV_WR_RDMA_READ ? 0 : queued->packet.bytes);
    *pair->last = queued;
    pair->last = &queued->next;
}

/* A read is complete when its answer comes. */
static void send_queued(struct pair *pair)
{
    while (pair->first) {
        struct queued *queued = pair->first;
        if (sendto(pair->socket, &queued->packet, queued->bytes, 0, (struct sockaddr *)&pair->to,
                   sizeof pair->to) < 0) {
            if (errno == EAGAIN || errno == ENOBUFS)
                return;
            completions[(completion_first + completion_count++) % completion_room] =
                (struct ibv_wc){.wr_id = queued->work, .status = IBV_WC_RETRY_EXC_ERR};
        } else if (queued->is_request && queued->packet.opcode != IBV_WR_RDMA_READ) {
            push(queued->work, 0, 0, 0, pair->qp.qp_num);
            pair->sends--;
        }
        pair->first = queued->next;
        if (!pair->first)
            pair->last = &pair->first;
        if (!queued->is_request || queued->packet.opcode != IBV_WR_RDMA_READ)
            free(queued);
    }
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    struct pair *pair = (struct pair *)(void *)qp;
    struct queued *queued = calloc(1, sizeof *queued);
    struct packet *packet = &queued->packet;

    *bad = request;
    if (qp->state != IBV_QPS_RTS || request->next || request->num_sge > 1)
        refuse("a request that it cannot carry out");
    if (request->num_sge > 0)
        queued->place = request->sg_list[0];
    if (queued->place.length > MESSAGE_BYTES)
        refuse("a message that is too long");
    if (request->send_flags & IBV_SEND_INLINE && queued->place.length > pair->cap.max_inline_data)
        refuse("more inline than it can take");
    queued->work = request->wr_id;
    queued->is_request = 1;
    packet->opcode = request->opcode;
    packet->imm = request->imm_data;
    packet->bytes = queued->place.length;
    packet->remote = request->wr.rdma.remote_addr;
    packet->key = request->wr.rdma.rkey;
    packet->tag = (uint64_t)(uintptr_t)queued;
    if (packet->opcode != IBV_WR_RDMA_READ && packet->bytes > 0)
        memcpy(packet->data,
               request->send_flags & IBV_SEND_INLINE
                   ? (void *)(uintptr_t)queued->place.addr
                   : reach(queued->place.addr, packet->bytes, queued->place.lkey),
               packet->bytes);
    pthread_mutex_lock(&lock);
    const bool has_room = pair->sends < pair->cap.max_send_wr;
    if (has_room) {
        pair->sends++;
        enqueue(pair, queued);
        send_queued(pair);
    }
    pthread_mutex_unlock(&lock);
    if (!has_room)
        free(queued);
    return has_room ? 0 : ENOMEM;
}

static int post_receive(struct ibv_qp *qp, struct ibv_recv_wr *request, struct ibv_recv_wr **bad)
{
    struct pair *pair = (struct pair *)(void *)qp;

    *bad = request;
    pthread_mutex_lock(&lock);
    const bool has_room = pair->awaited_count < pair->cap.max_recv_wr;
    if (has_room)
        pair->awaited[(pair->awaited_first + pair->awaited_count++) % pair->cap.max_recv_wr] =
            (struct awaited){.work = request->wr_id,
                             .places = request->num_sge,
                             .place = request->num_sge ? request->sg_list[0] : (struct ibv_sge){0}};
    pthread_mutex_unlock(&lock);
    return has_room ? 0 : ENOMEM;
}

/* ---- what an adapter does meanwhile ---- */

static void answer(struct pair *pair, const struct packet *packet)
{
    struct queued *queued = calloc(1, sizeof *queued);

    queued->packet = (struct packet){.is_answer = 1, .bytes = packet->bytes, .tag = packet->tag};
    memcpy(queued->packet.data, reach(packet->remote, packet->bytes, packet->key), packet->bytes);
    enqueue(pair, queued);
}

static void finish_read(struct pair *pair, const struct packet *packet)
{
    struct queued *queued = (struct queued *)(uintptr_t)packet->tag;

    memcpy(reach(queued->place.addr, packet->bytes, queued->place.lkey), packet->data,
           packet->bytes);
    push(queued->work, packet->bytes, 0, 0, pair->qp.qp_num);
    pair->sends--;
    free(queued);
}

static void place(struct pair *pair, const struct packet *packet)
{
    const struct awaited *awaited = &pair->awaited[pair->awaited_first];
    const int is_write = packet->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

    if (is_write)
        memcpy(reach(packet->remote, packet->bytes, packet->key), packet->data, packet->bytes);
    else if (packet->bytes > 0 && (!awaited->places || awaited->place.length < packet->bytes))
        refuse("a message that is longer than its place");
    else if (packet->bytes > 0)
        memcpy(reach(awaited->place.addr, packet->bytes, awaited->place.lkey), packet->data,
               packet->bytes);
    push(awaited->work, packet->bytes, packet->imm,
         is_write || packet->opcode == IBV_WR_SEND_WITH_IMM, pair->qp.qp_num);
    pair->awaited_first = (pair->awaited_first + 1) % pair->cap.max_recv_wr;
    pair->awaited_count--;
}

/* A small message waits until there is a request. */
static void take_arrived(struct pair *pair)
{
    struct packet packet;
    ssize_t bytes;

    while ((bytes = recv(pair->socket, &packet, sizeof packet, MSG_PEEK)) > 0) {
        const int needs_request = !packet.is_answer && packet.opcode != IBV_WR_RDMA_READ;
        if (needs_request && pair->awaited_count == 0 && packet.bytes > SMALL_BYTES)
            refuse("a message arrives before it is awaited");
        if (needs_request && pair->awaited_count == 0)
            return;
        recv(pair->socket, &packet, 1, 0);
        if (packet.is_answer)
            finish_read(pair, &packet);
        else if (packet.opcode == IBV_WR_RDMA_READ)
            answer(pair, &packet);
        else
            place(pair, &packet);
    }
}

static void carry_out(void)
{
    for (uint32_t i = 0; i < pair_count; i++)
        if (pairs[i]) {
            send_queued(pairs[i]);
            take_arrived(pairs[i]);
        }
}

static void *work(void *unused)
{
    for (bool goes_on = true; goes_on; usleep(1000)) {
        pthread_mutex_lock(&lock);
        carry_out();
        goes_on = is_open;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static int poll_queue(struct ibv_cq *queue, int most, struct ibv_wc *done)
{
    int count = 0;

    (void)queue;
    pthread_mutex_lock(&lock);
    carry_out();
    for (; count < most && completion_count > 0; count++) {
        done[count] = completions[completion_first];
        completion_first = (completion_first + 1) % completion_room;
        completion_count--;
    }
    pthread_mutex_unlock(&lock);
    return count;
}
