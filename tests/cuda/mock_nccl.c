/* SPDX-License-Identifier: Apache-2.0
 *
 * As much of NCCL as trainer/cuda/nccl.c and cmd/net/cuda/nccl.c ask for, between processes of one
 * host and on its memory. Work goes to the emulated stream. Ranks meet in a piece of shared memory
 * that the identity names.
 */
#include "tests/cuda/emulated.h"
#include "tests/cuda/half.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    RANKS_MAX = 8,
    SLOT_FLOATS = 4096,
    SLOT_BYTES = SLOT_FLOATS * sizeof(float),
    MOVES_MAX = 256
};

/* Part of a message from one rank to another. */
struct channel {
    pthread_mutex_t lock;
    uint64_t bytes; /* 0: taken */
    unsigned char data[SLOT_BYTES];
};

struct meeting {
    pthread_barrier_t barrier;
    float slots[RANKS_MAX][SLOT_FLOATS];
    struct channel channels[RANKS_MAX][RANKS_MAX]; /* from, to */
};

struct ncclComm {
    struct meeting *meeting;
    int rank, ranks;
    void *registered;
    uint32_t graphs; /* that have sums of it */
};

static void *given; /* by ncclMemAlloc() */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/iobench-mock-nccl-%ld", (long)getpid());
    int file = shm_open(id->internal, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct meeting) + sizeof(int)))
        return ncclSystemError;
    close(file);
    return ncclSuccess;
}

/* The first rank knows how many they are, and readies the barrier; the others wait for its mark,
 * which lies behind the memory and is written and read as a file's. */
static ncclResult_t meet(struct ncclComm *comm, int file)
{
    pthread_barrierattr_t shared;
    int ready = 1;

    if (comm->rank == 0) {
        pthread_barrierattr_init(&shared);
        pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(&comm->meeting->barrier, &shared, (unsigned)comm->ranks);
        pthread_mutexattr_t of_all;
        pthread_mutexattr_init(&of_all);
        pthread_mutexattr_setpshared(&of_all, PTHREAD_PROCESS_SHARED);
        for (int i = 0; i < RANKS_MAX * RANKS_MAX; i++)
            pthread_mutex_init(&comm->meeting->channels[i / RANKS_MAX][i % RANKS_MAX].lock,
                               &of_all);
        if (pwrite(file, &ready, sizeof ready, sizeof(struct meeting)) != sizeof ready)
            return ncclSystemError;
    }
    for (ready = 0; !ready; usleep(1000))
        if (pread(file, &ready, sizeof ready, sizeof(struct meeting)) != sizeof ready)
            return ncclSystemError;
    pthread_barrier_wait(&comm->meeting->barrier);
    return ncclSuccess;
}

/* IOBENCH_MOCK_CTAS: the limit that must be given, or none. */
static bool is_limited_as_wanted(const ncclConfig_t *config)
{
    const char *wanted = getenv("IOBENCH_MOCK_CTAS");

    return !wanted ||
           config->maxCTAs == (strcmp(wanted, "none") ? atoi(wanted) : NCCL_CONFIG_UNDEF_INT);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    struct ncclComm *comm = calloc(1, sizeof *comm);
    int file = shm_open(id.internal, O_RDWR, 0600);

    if (!comm || file < 0 || ranks > RANKS_MAX || config->size != sizeof *config)
        return ncclInvalidArgument;
    comm->meeting = mmap(NULL, sizeof *comm->meeting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (comm->meeting == MAP_FAILED)
        return ncclSystemError;
    comm->rank = rank;
    comm->ranks = ranks;
    *made = comm;
    ncclResult_t status = is_limited_as_wanted(config) ? meet(comm, file) : ncclInvalidArgument;
    close(file);
    if (rank == 0)
        shm_unlink(id.internal);
    return status;
}

struct reduction {
    struct ncclComm *comm;
    const void *from;
    void *to;
};

/* The ranks' parts of a sum lie in their slots: float, and half as NCCL adds it, rounded each time.
 */
static void add_floats(const struct ncclComm *comm, void *to, size_t count)
{
    float *sum = to;

    for (size_t i = 0; i < count; i++) {
        sum[i] = comm->meeting->slots[0][i];
        for (int rank = 1; rank < comm->ranks; rank++)
            sum[i] += comm->meeting->slots[rank][i];
    }
}

static void add_halves(const struct ncclComm *comm, void *to, size_t count)
{
    uint16_t *sum = to;

    for (size_t i = 0; i < count; i++) {
        float value = 0;
        for (int rank = 0; rank < comm->ranks; rank++) {
            uint16_t mine;
            memcpy(&mine, (const char *)comm->meeting->slots[rank] + i * sizeof mine, sizeof mine);
            sum[i] = place_bits(DEVICE_FP16,
                                place_round(DEVICE_FP16, value + place_value(DEVICE_FP16, mine)));
            value = place_value(DEVICE_FP16, sum[i]);
        }
    }
}

static void reduce_parts(const struct reduction *reduction, uint64_t count, size_t size,
                         void (*add)(const struct ncclComm *, void *, size_t))
{
    struct ncclComm *comm = reduction->comm;
    const char *from = reduction->from;
    char *to = reduction->to;

    for (size_t done = 0; done < count; done += SLOT_FLOATS) {
        const size_t part = count - done < SLOT_FLOATS ? count - done : SLOT_FLOATS;
        memcpy(comm->meeting->slots[comm->rank], from + done * size, part * size);
        pthread_barrier_wait(&comm->meeting->barrier);
        add(comm, to + done * size, part);
        pthread_barrier_wait(&comm->meeting->barrier);
    }
}

static void reduce(const void *work, uint64_t count)
{
    reduce_parts(work, count, sizeof(float), add_floats);
}

static void reduce_halves(const void *work, uint64_t count)
{
    reduce_parts(work, count, sizeof(uint16_t), add_halves);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream)
{
    const struct reduction reduction = {comm, from, to};

    emulated_count_graph(stream, &comm->graphs);
    if ((type != ncclFloat && type != ncclHalf) || operation != ncclSum ||
        (char *)to < (char *)comm->registered)
        return ncclInvalidArgument;
    return emulated_start(type == ncclHalf ? reduce_halves : reduce, &reduction, sizeof reduction,
                          count, stream)
               ? ncclSystemError
               : ncclSuccess;
}

/* ---- the other collectives: count is what each rank contributes or gets, in bytes ---- */

enum kind { SCATTER_SUM, GATHER, SPREAD };

struct collective {
    struct ncclComm *comm;
    enum kind kind;
    const unsigned char *from;
    unsigned char *to;
};

/* Bytes [at, at + part) of block `block` are in the slots of all ranks. */
static void take_part(const struct collective *collective, int block, uint64_t count, uint64_t at,
                      size_t part)
{
    struct ncclComm *comm = collective->comm;
    struct meeting *meeting = comm->meeting;

    if (collective->kind == SPREAD)
        memcpy(collective->to + at, meeting->slots[0], part);
    for (int rank = 0; rank < comm->ranks && collective->kind == GATHER; rank++)
        memcpy(collective->to + (uint64_t)rank * count + at, meeting->slots[rank], part);
    if (collective->kind != SCATTER_SUM || block != comm->rank)
        return;
    float *sum = (float *)(void *)(collective->to + at);
    for (size_t i = 0; i < part / sizeof *sum; i++) {
        sum[i] = meeting->slots[0][i];
        for (int rank = 1; rank < comm->ranks; rank++)
            sum[i] += meeting->slots[rank][i];
    }
}

static void collect(const void *work, uint64_t count)
{
    const struct collective *collective = work;
    struct ncclComm *comm = collective->comm;
    const int blocks = collective->kind == SCATTER_SUM ? comm->ranks : 1;

    for (int block = 0; block < blocks; block++)
        for (uint64_t at = 0; at < count; at += SLOT_BYTES) {
            const size_t part = count - at < SLOT_BYTES ? count - at : SLOT_BYTES;
            memcpy(comm->meeting->slots[comm->rank],
                   collective->from + (uint64_t)block * count + at, part);
            pthread_barrier_wait(&comm->meeting->barrier);
            take_part(collective, block, count, at, part);
            pthread_barrier_wait(&comm->meeting->barrier);
        }
}

static ncclResult_t start(enum kind kind, const void *from, void *to, size_t bytes, ncclComm_t comm,
                          cudaStream_t stream)
{
    const struct collective collective = {comm, kind, from, to};

    return emulated_start(collect, &collective, sizeof collective, bytes, stream) ? ncclSystemError
                                                                                  : ncclSuccess;
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream)
{
    if (type != ncclFloat || operation != ncclSum)
        return ncclInvalidArgument;
    return start(SCATTER_SUM, from, to, count * sizeof(float), comm, stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return type == ncclUint8 ? start(GATHER, from, to, count, comm, stream) : ncclInvalidArgument;
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    return type == ncclUint8 && root == 0 ? start(SPREAD, from, to, count, comm, stream)
                                          : ncclInvalidArgument;
}

/* ---- messages: those of a group go on together ---- */

struct move {
    struct channel *channel;
    bool sends;
    unsigned char *data;
    uint64_t bytes, done;
};

struct group {
    struct move moves[MOVES_MAX];
};

/* nccl.h declares them without prototypes. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

static struct group group;
static uint64_t grouped;
static int group_depth;
static void *group_stream;

/* Messages between two ranks keep their order: a move waits for those before it on its channel. */
static bool is_first(const struct group *moves, uint64_t number)
{
    const struct move *move = &moves->moves[number];
    bool first = move->done < move->bytes;

    for (uint64_t i = 0; i < number && first; i++)
        first = moves->moves[i].channel != move->channel || moves->moves[i].sends != move->sends ||
                moves->moves[i].done == moves->moves[i].bytes;
    return first;
}

static void go_on(struct move *move)
{
    struct channel *channel = move->channel;
    const uint64_t left = move->bytes - move->done;

    pthread_mutex_lock(&channel->lock);
    if (move->sends && channel->bytes == 0) {
        channel->bytes = left < SLOT_BYTES ? left : SLOT_BYTES;
        memcpy(channel->data, move->data + move->done, channel->bytes);
        move->done += channel->bytes;
    } else if (!move->sends && channel->bytes > 0) {
        if (channel->bytes > left)
            emulated_refuse("an NCCL message is longer than what is received");
        memcpy(move->data + move->done, channel->data, channel->bytes);
        move->done += channel->bytes;
        channel->bytes = 0;
    }
    pthread_mutex_unlock(&channel->lock);
}

static void run_group(const void *work, uint64_t count)
{
    struct group moves = *(const struct group *)work;
    bool is_done = false;

    while (!is_done) {
        is_done = true;
        for (uint64_t i = 0; i < count; i++) {
            if (is_first(&moves, i))
                go_on(&moves.moves[i]);
            is_done = is_done && moves.moves[i].done == moves.moves[i].bytes;
        }
        if (!is_done)
            sched_yield();
    }
}

ncclResult_t ncclGroupStart(void)
{
    group_depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    const uint64_t count = grouped;

    if (--group_depth > 0 || count == 0)
        return ncclSuccess;
    grouped = 0;
    return emulated_start(run_group, &group, sizeof group, count, group_stream) ? ncclSystemError
                                                                                : ncclSuccess;
}

static ncclResult_t add_move(struct channel *channel, bool sends, void *data, size_t bytes,
                             cudaStream_t stream)
{
    if (grouped == MOVES_MAX || !emulated_on_device(data, bytes))
        return ncclInvalidArgument;
    ncclGroupStart();
    group.moves[grouped++] =
        (struct move){.channel = channel, .sends = sends, .data = data, .bytes = bytes};
    group_stream = stream;
    return ncclGroupEnd();
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return type == ncclUint8 ? add_move(&comm->meeting->channels[comm->rank][peer], true,
                                        (void *)(uintptr_t)from, count, stream)
                             : ncclInvalidArgument;
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return type == ncclUint8
               ? add_move(&comm->meeting->channels[peer][comm->rank], false, to, count, stream)
               : ncclInvalidArgument;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

/* ---- memory, which is not in a NCCL before 2.19, as IOBENCH_OLD_NCCL stands for ---- */

#ifndef IOBENCH_OLD_NCCL
/* Of the module that the backend is in: each has its own emulated device. */
static void *device_function(const char *name)
{
    void *module = dlopen(getenv("IOBENCH_CUDA_MODULE"), RTLD_NOW | RTLD_NOLOAD);

    return module ? dlsym(module, name) : NULL;
}

/* IOBENCH_MOCK_MEMORY: "none": it fails; "wanted": fails later if it is not asked for. */
ncclResult_t ncclMemAlloc(void **memory, size_t bytes)
{
    void *(*allocate)(uint64_t) = (void *(*)(uint64_t))device_function("runtime_allocate");
    const char *mode = getenv("IOBENCH_MOCK_MEMORY");

    if (!allocate || (mode && strcmp(mode, "none") == 0))
        return ncclUnhandledCudaError;
    *memory = given = allocate(bytes);
    return *memory ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void *memory)
{
    void (*release)(void *) = (void (*)(void *))device_function("runtime_release");

    if (!release || memory != given)
        return ncclInvalidArgument;
    release(memory);
    given = NULL;
    return ncclSuccess;
}
#endif

/* IOBENCH_MOCK_REGISTER: "fails", or anything for success without a handle. */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle)
{
    const char *mode = getenv("IOBENCH_MOCK_REGISTER"),
               *memory_mode = getenv("IOBENCH_MOCK_MEMORY");

    (void)bytes;
    if (memory_mode && strcmp(memory_mode, "wanted") == 0 && memory != given)
        emulated_refuse("NCCL registers memory that is not its own");
    *handle = comm->registered = mode ? NULL : memory;
    return mode && strcmp(mode, "fails") == 0 ? ncclInvalidUsage : ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return handle == comm->registered ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *status)
{
    (void)comm;
    *status = ncclSuccess;
    return ncclSuccess;
}

/* The real one waits until no graph has sums of this communicator. */
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm->graphs > 0)
        emulated_refuse("an NCCL communicator is destroyed before the graphs that use it");
    munmap(comm->meeting, sizeof *comm->meeting);
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return ncclCommDestroy(comm);
}

const char *ncclGetErrorString(ncclResult_t status)
{
    return status == ncclSuccess ? "no error" : "an error of the stand-in";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}
