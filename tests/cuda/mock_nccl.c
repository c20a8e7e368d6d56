/* SPDX-License-Identifier: Apache-2.0
 *
 * As much of NCCL as trainer/cuda/nccl.c asks for, between processes of one host and on its memory.
 * Work goes to the emulated stream. Ranks meet in a piece of shared memory that the identity names.
 */
#include "tests/cuda/emulated.h"

#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS_MAX = 8, SLOT_FLOATS = 4096 };

struct meeting {
    pthread_barrier_t barrier;
    float slots[RANKS_MAX][SLOT_FLOATS];
};

struct ncclComm {
    struct meeting *meeting;
    int rank, ranks;
    void *registered;
    uint32_t graphs; /* that have sums of it */
};

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
        if (pwrite(file, &ready, sizeof ready, sizeof(struct meeting)) != sizeof ready)
            return ncclSystemError;
    }
    for (ready = 0; !ready; usleep(1000))
        if (pread(file, &ready, sizeof ready, sizeof(struct meeting)) != sizeof ready)
            return ncclSystemError;
    pthread_barrier_wait(&comm->meeting->barrier);
    return ncclSuccess;
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
    ncclResult_t status = meet(comm, file);
    close(file);
    if (rank == 0)
        shm_unlink(id.internal);
    return status;
}

struct reduction {
    struct ncclComm *comm;
    const float *from;
    float *to;
};

static void reduce(const void *work, uint64_t count)
{
    const struct reduction *reduction = work;
    struct ncclComm *comm = reduction->comm;
    struct meeting *meeting = comm->meeting;

    for (size_t done = 0; done < count; done += SLOT_FLOATS) {
        const size_t part = count - done < SLOT_FLOATS ? count - done : SLOT_FLOATS;
        float *sum = reduction->to + done;
        memcpy(meeting->slots[comm->rank], reduction->from + done, part * sizeof *sum);
        pthread_barrier_wait(&meeting->barrier);
        for (size_t i = 0; i < part; i++) {
            sum[i] = meeting->slots[0][i];
            for (int rank = 1; rank < comm->ranks; rank++)
                sum[i] += meeting->slots[rank][i];
        }
        pthread_barrier_wait(&meeting->barrier);
    }
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream)
{
    const struct reduction reduction = {comm, from, to};

    emulated_count_graph(stream, &comm->graphs);
    if (type != ncclFloat || operation != ncclSum || (char *)to < (char *)comm->registered)
        return ncclInvalidArgument;
    return emulated_start(reduce, &reduction, sizeof reduction, count, stream) ? ncclSystemError
                                                                               : ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle)
{
    (void)bytes;
    *handle = comm->registered = memory;
    return ncclSuccess;
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
