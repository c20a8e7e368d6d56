/* SPDX-License-Identifier: Apache-2.0
 *
 * The mpi exchange: a non-blocking all-reduce a bucket, started as soon as the bucket is final, so
 * that the network works while the backward pass goes on. MPI moves data only when it is called:
 * each gradient that becomes final is an occasion.
 *
 * A rank that fails aborts the job, and the launcher names it; so does the launcher when a rank is
 * killed. A rank that is silent is noticed here, by the clock.
 */
#include "trainer/plugins.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "trainer/buckets.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>

#include <mpi.h>

struct mpi_state {
    bool is_joined;
    MPI_Comm ranks;
    struct exchange_place place;
    struct exchange_site site;
    struct buckets buckets;
    MPI_Request *requests; /* one a bucket */
};

/* MPI's codes as ours. */
static int check(int status, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (status == MPI_SUCCESS)
        return 0;
    if (MPI_Error_string(status, text, &length) != MPI_SUCCESS)
        text[0] = '\0';
    return fail(EIO, "exchange mpi: %s: %s", what, text);
}

/* Each launcher tells its processes who they are by one of these. */
static int mpi_usable(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "MPI_LOCALRANKID"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (getenv(marks[i]))
            return 0;
    return fail(ENODEV, "this process was not started by mpirun or srun");
}

static int mpi_join(void *state, struct exchange_place *place)
{
    struct mpi_state *mpi = state;
    MPI_Comm host = MPI_COMM_NULL;
    int level, rank = 0, ranks = 1, local_rank = 0, local_ranks = 1;

    int code = check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level), "start");
    if (code)
        return code;
    mpi->is_joined = true;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = check(MPI_Comm_dup(MPI_COMM_WORLD, &mpi->ranks), "join");
    if (code)
        return code;
    MPI_Comm_set_errhandler(mpi->ranks, MPI_ERRORS_RETURN);
    code = check(MPI_Comm_split_type(mpi->ranks, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
                 "find who shares this host");
    if (code)
        return code;
    MPI_Comm_rank(mpi->ranks, &rank);
    MPI_Comm_size(mpi->ranks, &ranks);
    MPI_Comm_rank(host, &local_rank);
    MPI_Comm_size(host, &local_ranks);
    MPI_Comm_free(&host);
    mpi->place = *place = (struct exchange_place){.rank = (uint32_t)rank,
                                                  .ranks = (uint32_t)ranks,
                                                  .local_rank = (uint32_t)local_rank,
                                                  .local_ranks = (uint32_t)local_ranks};
    return 0;
}

/* Sums of arenas mean something only when all have the same layout. */
static int check_layouts(struct mpi_state *mpi)
{
    const uint64_t layout = mpi->site.layout ^ mpi->site.floats;
    uint64_t most[] = {layout, ~layout};
    int code = check(MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_UINT64_T, MPI_MAX, mpi->ranks),
                     "compare layouts");

    if (code == 0 && most[0] != ~most[1])
        code = fail(EINVAL, "exchange mpi: the ranks keep their gradients in different layouts: "
                            "use the same backend and build on CPUs of one kind");
    return code;
}

static int mpi_open(void *state, const struct exchange_site *site)
{
    struct mpi_state *mpi = state;

    mpi->site = *site;
    assert(!site->on_device || mpi->place.ranks == 1);
    mpi->buckets = buckets_of(site->floats, site->buckets);
    if (site->floats / mpi->buckets.count >= INT_MAX - BUCKET_ALIGNMENT_FLOATS)
        return fail(EINVAL, "exchange mpi: use more --buckets: one holds at most %d floats",
                    INT_MAX);
    mpi->requests = memory_array(mpi->buckets.count, sizeof *mpi->requests);
    if (!mpi->requests)
        return -ENOMEM;
    for (uint32_t i = 0; i < mpi->buckets.count; i++)
        mpi->requests[i] = MPI_REQUEST_NULL;
    return check_layouts(mpi);
}

static void mpi_close(void *state, bool failed)
{
    struct mpi_state *mpi = state;

    free(mpi->requests);
    if (!mpi->is_joined)
        return;
    if (failed)
        MPI_Abort(MPI_COMM_WORLD, 1); /* does not return; the launcher names this rank */
    MPI_Comm_free(&mpi->ranks);
    MPI_Finalize();
}

static int mpi_ready(void *state, uint64_t done)
{
    struct mpi_state *mpi = state;
    uint64_t start, count;
    int code = 0, moved;

    while (code == 0 && buckets_next(&mpi->buckets, done, &start, &count))
        code =
            check(MPI_Iallreduce(MPI_IN_PLACE, mpi->site.gradients + start, (int)count, MPI_FLOAT,
                                 MPI_SUM, mpi->ranks, &mpi->requests[mpi->buckets.started - 1]),
                  "add up gradients");
    if (code == 0 && mpi->buckets.started)
        code = check(
            MPI_Testall((int)mpi->buckets.started, mpi->requests, &moved, MPI_STATUSES_IGNORE),
            "add up gradients");
    return code;
}

/* All requests are done, or somebody is silent. Every call that waits for other ranks ends here. */
static int wait_for(struct mpi_state *mpi, uint32_t count, MPI_Request *requests, const char *what)
{
    const uint64_t start_ns = clock_now_ns();
    int done = 0;

    while (!done) {
        int code = check(MPI_Testall((int)count, requests, &done, MPI_STATUSES_IGNORE), what);
        if (code)
            return code;
        if (!done && mpi->site.timeout_ns && clock_now_ns() - start_ns > mpi->site.timeout_ns)
            return fail(
                ETIMEDOUT, "exchange mpi: rank %u waited %llu s to %s: another rank is silent",
                mpi->place.rank, (unsigned long long)(mpi->site.timeout_ns / 1000000000), what);
        if (!done)
            sched_yield(); /* ranks may share CPUs */
    }
    return 0;
}

static int mpi_finish(void *state)
{
    struct mpi_state *mpi = state;
    int code = wait_for(mpi, mpi->buckets.started, mpi->requests, "add up gradients");

    mpi->buckets.started = 0;
    return code;
}

static int mpi_sum(void *state, double *values, uint32_t count)
{
    struct mpi_state *mpi = state;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = check(
        MPI_Iallreduce(MPI_IN_PLACE, values, (int)count, MPI_DOUBLE, MPI_SUM, mpi->ranks, &request),
        "add up counts");

    return code ? code : wait_for(mpi, 1, &request, "add up counts");
}

static int mpi_gather(void *state, double value, double *values)
{
    struct mpi_state *mpi = state;
    MPI_Request request = MPI_REQUEST_NULL;
    int code =
        check(MPI_Iallgather(&value, 1, MPI_DOUBLE, values, 1, MPI_DOUBLE, mpi->ranks, &request),
              "gather times");

    return code ? code : wait_for(mpi, 1, &request, "gather times");
}

const struct exchange_ops exchange_mpi = {
    .plugin = {.name = "mpi",
               .summary = "MPI's non-blocking all-reduce, a bucket at a time",
               .state_size = sizeof(struct mpi_state),
               .usable = mpi_usable},
    .join = mpi_join,
    .open = mpi_open,
    .close = mpi_close,
    .ready = mpi_ready,
    .finish = mpi_finish,
    .sum = mpi_sum,
    .gather = mpi_gather,
};
