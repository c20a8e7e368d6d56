/* SPDX-License-Identifier: Apache-2.0
 *
 * The mpi transport: MPI's own messages and collectives, non-blocking, so that an unresponsive peer
 * ends in a message with its name.
 */
#include "cmd/net/transport.h"

#include "base/fail.h"
#include "ranks/mpi/mpi.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <mpi.h>

enum { REQUESTS = 2 * TRANSPORT_DEPTH };

struct transport_mpi_state {
    MPI_Comm ranks; /* a private communicator, so no other message is mistaken for data */
    struct transport_config config;
    MPI_Request requests[REQUESTS];
    int first, count; /* those before first are done */
};

static int check_mpi(int status, const char *what)
{
    return mpi_check(status, "transport mpi", what);
}

static int transport_mpi_open(void *state, const void *settings,
                              const struct transport_config *config)
{
    struct transport_mpi_state *mpi = state;
    int is_running = 0;

    (void)settings;
    mpi->config = *config;
    mpi->ranks = MPI_COMM_NULL;
    if (MPI_Initialized(&is_running) != MPI_SUCCESS || !is_running)
        return fail(ENODEV, "transport mpi: this process was not started by mpirun or srun");
    int code = check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &mpi->ranks), "join");
    if (code == 0)
        code = check_mpi(MPI_Comm_set_errhandler(mpi->ranks, MPI_ERRORS_RETURN), "join");
    return code;
}

/* A pending transfer cannot be cancelled. */
static void transport_mpi_close(void *state, bool failed)
{
    struct transport_mpi_state *mpi = state;

    if (!failed && mpi->ranks != MPI_COMM_NULL)
        MPI_Comm_free(&mpi->ranks);
}

static void transport_mpi_describe(void *state, char *text, size_t bytes)
{
    char library[RANKS_LIBRARY_BYTES];

    (void)state;
    snprintf(text, bytes, "%s", ranks_library(library));
}

static int transport_mpi_start(void *state, const struct transport_message *message, bool sends)
{
    struct transport_mpi_state *mpi = state;
    unsigned char *data = mpi->config.arena + (sends ? message->from : message->to);
    const int count = (int)message->bytes, peer = (int)message->peer;
    int code = mpi_check_size(message->bytes, "transport mpi");

    assert(mpi->count < REQUESTS);
    if (code)
        return code;
    MPI_Request *request = &mpi->requests[mpi->count++];
    return sends ? check_mpi(MPI_Isend(data, count, MPI_BYTE, peer, 0, mpi->ranks, request), "send")
                 : check_mpi(MPI_Irecv(data, count, MPI_BYTE, peer, 0, mpi->ranks, request),
                             "receive");
}

static int transport_mpi_collective(void *state, enum collective kind, uint64_t out_at,
                                    uint64_t in_at, uint64_t bytes)
{
    struct transport_mpi_state *mpi = state;
    const uint64_t each = bytes / mpi->config.ranks->place.ranks;
    unsigned char *out = mpi->config.arena + out_at, *in = mpi->config.arena + in_at;
    const uint32_t rank = mpi->config.ranks->place.rank;
    const int part = (int)each, floats = (int)(bytes / sizeof(float));
    int code = mpi_check_size(bytes, "transport mpi"), status = MPI_SUCCESS;

    assert(mpi->count < REQUESTS);
    if (code)
        return code;
    MPI_Request *request = &mpi->requests[mpi->count++];
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        status = MPI_Iallreduce(out, in, floats, MPI_FLOAT, MPI_SUM, mpi->ranks, request);
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        status = MPI_Ireduce_scatter_block(out, in + rank * each, (int)(each / sizeof(float)),
                                           MPI_FLOAT, MPI_SUM, mpi->ranks, request);
        break;
    case COLLECTIVE_ALL_GATHER:
        status = MPI_Iallgather(out + rank * each, part, MPI_BYTE, in, part, MPI_BYTE, mpi->ranks,
                                request);
        break;
    case COLLECTIVE_BROADCAST:
        status = MPI_Ibcast(rank ? in : out, (int)bytes, MPI_BYTE, 0, mpi->ranks, request);
        break;
    case COLLECTIVE_ALL_TO_ALL:
        status = MPI_Ialltoall(out, part, MPI_BYTE, in, part, MPI_BYTE, mpi->ranks, request);
        break;
    case COLLECTIVES:
        break;
    }
    return check_mpi(status, "start a collective");
}

/* Test one at a time: to test all of them costs as much as a small message, and each test moves
 * all. */
static int transport_mpi_test(void *state, bool *done)
{
    struct transport_mpi_state *mpi = state;
    int is_done = 1, code = 0;

    assert(mpi->first <= mpi->count && mpi->count <= REQUESTS);
    while (mpi->first < mpi->count && code == 0 && is_done) {
        code = check_mpi(MPI_Test(&mpi->requests[mpi->first], &is_done, MPI_STATUS_IGNORE),
                         "transfer");
        mpi->first += is_done;
    }
    *done = mpi->first == mpi->count;
    if (*done)
        mpi->first = mpi->count = 0;
    return code;
}

extern const struct transport_ops iobench_transport_mpi;

const struct transport_ops iobench_transport_mpi = {
    .plugin = {.name = "mpi", .state_size = sizeof(struct transport_mpi_state)},
    .open = transport_mpi_open,
    .close = transport_mpi_close,
    .describe = transport_mpi_describe,
    .start = transport_mpi_start,
    .collective = transport_mpi_collective,
    .test = transport_mpi_test,
};
