/* SPDX-License-Identifier: Apache-2.0
 *
 * The mpi exchange: one non-blocking all-reduce per bucket, started as soon as the bucket is final,
 * so that communication overlaps the backward pass. MPI makes progress only inside its calls: every
 * ready() is an opportunity. From IN_PLACE_MOST ranks on sums are not made in place: Open MPI then
 * sends everything log2(ranks) times instead of less than twice.
 *
 * A failing rank aborts the others, which notice while they wait here, as they notice that one is
 * unresponsive; one that reads or computes for long is waited for.
 */
#include "trainer/exchange.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "ranks/mpi/mpi.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { IN_PLACE_MOST = 3 };

struct exchange_mpi_state {
    MPI_Comm ranks; /* a private communicator, so no other message is mistaken for gradients */
    struct exchange_config config;
    float *own;            /* this rank's gradients; NULL: summed in place */
    MPI_Request *requests; /* one per bucket */
    MPI_Status *statuses;  /* as many: MPICH's headers make gcc warn about MPI_STATUSES_IGNORE */
};

static int mpi_open(void *state, const void *settings, const struct exchange_config *config)
{
    struct exchange_mpi_state *mpi = state;
    int is_running = 0;

    (void)settings;
    mpi->config = *config;
    mpi->ranks = MPI_COMM_NULL;
    if (MPI_Initialized(&is_running) != MPI_SUCCESS || !is_running)
        return fail(ENODEV, "exchange mpi: this process was not started by mpirun or srun");
    mpi_lock();
    int code = mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &mpi->ranks), "exchange mpi", "join");
    if (code == 0)
        MPI_Comm_set_errhandler(mpi->ranks, MPI_ERRORS_RETURN);
    mpi_unlock();
    if (code)
        return code;
    if (config->on_device)
        return fail(ENOTSUP, "exchange mpi: cannot access gradients on a device");
    for (uint32_t i = 0; i < mpi->config.buckets.count; i++)
        if (buckets_floats(&mpi->config.buckets, i) > INT_MAX)
            return fail(EINVAL,
                        "exchange mpi: a bucket holds at most %d floats: use more --buckets, or "
                        "fewer classes if one layer has more",
                        INT_MAX);
    mpi->requests = memory_array(mpi->config.buckets.count, sizeof *mpi->requests);
    mpi->statuses = memory_array(mpi->config.buckets.count, sizeof *mpi->statuses);
    if (!mpi->requests || !mpi->statuses)
        return -ENOMEM;
    if (config->ranks->place.ranks > IN_PLACE_MOST) {
        mpi->own = memory_array(config->buckets.floats, sizeof *mpi->own);
        if (!mpi->own)
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < mpi->config.buckets.count; i++)
        mpi->requests[i] = MPI_REQUEST_NULL;
    return 0;
}

static void mpi_close(void *state, bool failed)
{
    struct exchange_mpi_state *mpi = state;

    (void)failed;
    free(mpi->requests);
    free(mpi->statuses);
    free(mpi->own);
    if (mpi->ranks == MPI_COMM_NULL || mpi->config.ranks->is_broken)
        return;
    mpi_lock();
    MPI_Comm_free(&mpi->ranks);
    mpi_unlock();
}

/* Progress the pending all-reduces. done: all are complete. */
static int progress(struct exchange_mpi_state *mpi, int *done)
{
    mpi_lock();
    const int status =
        MPI_Testall((int)mpi->config.buckets.started, mpi->requests, done, mpi->statuses);
    mpi_unlock();
    return mpi_check(status, "exchange mpi", "add up gradients");
}

static int mpi_ready(void *state, uint64_t done)
{
    struct exchange_mpi_state *mpi = state;
    uint64_t start, count;
    int code = 0, moved;

    while (code == 0 && buckets_next(&mpi->config.buckets, done, &start, &count)) {
        float *sums = mpi->config.gradients + start;
        const void *from = MPI_IN_PLACE;
        if (mpi->own)
            from = memcpy(mpi->own + start, sums, count * sizeof *sums);
        mpi_lock();
        const int status = MPI_Iallreduce(from, sums, (int)count, MPI_FLOAT, MPI_SUM, mpi->ranks,
                                          &mpi->requests[mpi->config.buckets.started - 1]);
        mpi_unlock();
        code = mpi_check(status, "exchange mpi", "add up gradients");
    }
    if (code == 0 && mpi->config.buckets.started)
        code = progress(mpi, &moved);
    return code;
}

/* A sum takes many rounds, each of which waits for progress(): longer naps only for a straggler. */
static const uint64_t awake_ns = 100000000;

static int mpi_finish(void *state)
{
    struct exchange_mpi_state *mpi = state;
    const uint64_t start_ns = clock_now_ns();
    int done = 0;

    for (;;) {
        int code = progress(mpi, &done);
        if (code)
            return code;
        if (done)
            break;
        code = ranks_watch(mpi->config.ranks, start_ns);
        if (code) { /* a pending all-reduce cannot be cancelled: MPI cannot end in order */
            mpi->config.ranks->is_broken = true;
            return code;
        }
        const uint64_t waited_ns = clock_now_ns() - start_ns;
        if (waited_ns < awake_ns)
            sched_yield(); /* ranks may share CPUs */
        else
            ranks_pause(waited_ns);
    }
    mpi->config.buckets.started = 0;
    return 0;
}

extern const struct exchange_ops iobench_exchange_mpi;

const struct exchange_ops iobench_exchange_mpi = {
    .plugin = {.name = "mpi", .state_size = sizeof(struct exchange_mpi_state)},
    .open = mpi_open,
    .close = mpi_close,
    .ready = mpi_ready,
    .finish = mpi_finish,
};
