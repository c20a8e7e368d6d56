/* SPDX-License-Identifier: Apache-2.0
 *
 * What the OSU micro-benchmarks do for latency and bandwidth of two MPI ranks, with blocking calls:
 * a reference for `iobench net`. Unlike theirs, the messages of a window are not all the same
 * memory.
 *
 *     mpirun -n 2 bench/net_mpi BYTES SECONDS
 *
 * Prints "latency_s bytes_per_s", medians of 7 turns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <mpi.h>

enum { WINDOW = 64, TURNS = 7 };

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void bounce(int rank, char *data, int bytes)
{
    if (rank == 0)
        MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(data, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

static void stream(int rank, char *data, int bytes, int window)
{
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    char ack = 0;

    for (int i = 0; i < window; i++)
        if (rank == 0)
            MPI_Isend(data + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD,
                      &requests[i]);
        else
            MPI_Irecv(data + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
                      &requests[i]);
    MPI_Waitall(window, requests, statuses);
    if (rank == 0)
        MPI_Recv(&ack, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&ack, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
}

/* Median seconds of one operation; rank 0 chooses how many fill a turn. */
static double measure(int rank, int kind, char *data, int bytes, int window, double seconds)
{
    double took[TURNS];
    long count = 1;

    for (int turn = -2; turn < TURNS; turn++) {
        MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (long i = 0; i < count; i++)
            if (kind == 0)
                bounce(rank, data, bytes);
            else
                stream(rank, data, bytes, window);
        const double each = (MPI_Wtime() - start) / (double)count;
        if (turn >= 0)
            took[turn] = each;
        else
            count = (long)(seconds / each) + 1;
    }
    qsort(took, TURNS, sizeof *took, compare);
    return took[TURNS / 2];
}

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3) {
        fprintf(stderr, "usage: net_mpi BYTES SECONDS\n");
        return 2;
    }
    const int bytes = atoi(argv[1]);
    const double seconds = atof(argv[2]);
    /* As in iobench: at most 4 MiB of them are in flight. */
    const int fitting = bytes > (4 << 20) / WINDOW ? (4 << 20) / bytes : WINDOW;
    const int window = fitting < 1 ? 1 : fitting;
    const size_t data_bytes = (size_t)window * (size_t)bytes;
    void *data = NULL;
    if (posix_memalign(&data, 2 << 20, data_bytes))
        return 1;
    madvise(data, data_bytes, MADV_HUGEPAGE); /* as the memory of iobench */
    memset(data, 1 + rank, data_bytes);       /* else the kernel's one page of zeros is sent */
    const double latency_s = measure(rank, 0, data, bytes, window, seconds) / 2;
    const double stream_s = measure(rank, 1, data, bytes, window, seconds);
    if (rank == 0)
        printf("%.9e %.6e\n", latency_s, (double)bytes * window / stream_s);
    free(data);
    MPI_Finalize();
    return 0;
}
