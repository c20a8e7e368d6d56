/* SPDX-License-Identifier: Apache-2.0
 *
 * Run by 2 ranks, with what rank 1 does without asking for the others, while rank 0 waits for it
 * with a --rank-timeout of 4 s: "computes", until rank 0 has waited for 5 s, or "blocks" for ever.
 * Or both let each call of MPI fail, by MPI's profiling interface: "fails".
 */
#include "base/fail.h"
#include "ranks/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

static const char told[] = "rank-0-waits";

static void note_waiting(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%s\n", text);
    close(open(told, O_CREAT | O_WRONLY, 0600));
}

/* ---- each call of MPI fails ---- */

static const char *failing = "";
static bool lets_fail, is_aborted, is_begun;

#define MAY_FAIL(call, parameters, arguments)                                       \
    int MPI_##call parameters                                                       \
    {                                                                               \
        return strcmp(failing, #call) == 0 ? MPI_ERR_OTHER : PMPI_##call arguments; \
    }
MAY_FAIL(Comm_dup, (MPI_Comm of, MPI_Comm *made), (of, made))
MAY_FAIL(Comm_split_type, (MPI_Comm of, int type, int key, MPI_Info info, MPI_Comm *made),
         (of, type, key, info, made))
MAY_FAIL(Bcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm of),
         (data, count, type, root, of))
MAY_FAIL(Allgather,
         (const void *mine, int count, MPI_Datatype type, void *all, int each, MPI_Datatype other,
          MPI_Comm of),
         (mine, count, type, all, each, other, of))
MAY_FAIL(Iallgather,
         (const void *mine, int count, MPI_Datatype type, void *all, int each, MPI_Datatype other,
          MPI_Comm of, MPI_Request *request),
         (mine, count, type, all, each, other, of, request))
MAY_FAIL(Isend,
         (const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm of,
          MPI_Request *request),
         (data, count, type, to, tag, of, request))
MAY_FAIL(Irecv,
         (void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm of,
          MPI_Request *request),
         (data, count, type, from, tag, of, request))
MAY_FAIL(Test, (MPI_Request * request, int *done, MPI_Status *status), (request, done, status))
MAY_FAIL(Iprobe, (int from, int tag, MPI_Comm of, int *found, MPI_Status *status),
         (from, tag, of, found, status))

int MPI_Init_thread(int *count, char ***arguments, int wanted, int *level)
{
    if (strcmp(failing, "Init_thread") == 0)
        return MPI_ERR_OTHER;
    const bool begins = !is_begun;
    is_begun = true;
    return begins ? PMPI_Init_thread(count, arguments, wanted, level) : MPI_Query_thread(level);
}

int MPI_Abort(MPI_Comm of, int code)
{
    is_aborted = of == MPI_COMM_WORLD && code == 1;
    return lets_fail ? MPI_SUCCESS : PMPI_Abort(of, code);
}

static void require(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "FAILED: %s: %s\n", what, fail_reason());
    _exit(1);
}

extern const struct ranks_ops iobench_ranks_mpi;

/* Begin a call that moves data between ranks. */
static int begin(void *state, uint32_t rank, const char *call, uint64_t bytes)
{
    static uint64_t data[4], all[8];
    uint32_t from = 9;
    bool flag = true;

    data[0] = rank + 7;
    const struct ranks_ops *ops = &iobench_ranks_mpi;
    return strcmp(call, "gather") == 0              ? ops->gather(state, data, bytes, all)
           : strcmp(call, "send") == 0              ? ops->move(state, 1 - rank, data, bytes, true)
           : strcmp(call, "receive") == 0           ? ops->move(state, 1 - rank, data, bytes, false)
           : strcmp(call, "call another rank") == 0 ? ops->call(state, 1 - rank, 77)
           : strcmp(call, "listen to the other ranks") == 0
               ? ops->hear(state, &from, &data[1], &flag)
               : ops->test(state, &flag);
}

static void finish(void *state)
{
    for (bool done = false; !done;)
        require(iobench_ranks_mpi.test(state, &done) == 0, "test");
}

static int fail_each(void)
{
    static const char *const rows[][2] = {{"Comm_dup", "join"},
                                          {"Init_thread", "start"},
                                          {"Comm_split_type", "find who shares this node"},
                                          {"Bcast", "find the node's lowest rank"},
                                          {"Allgather", "number the nodes"},
                                          {"Iallgather", "gather"},
                                          {"Isend", "send"},
                                          {"Irecv", "receive"},
                                          {"Isend", "call another rank"},
                                          {"Iprobe", "listen to the other ranks"},
                                          {"Test", "wait for other ranks"}};
    const struct ranks_ops *ops = &iobench_ranks_mpi;
    void *state = calloc(1, ops->plugin.state_size);
    struct ranks_place place;
    char reason[80], library[RANKS_LIBRARY_BYTES];
    uint64_t mine[2], all[4] = {0}, word = 0;
    uint32_t from = 9;

    lets_fail = true;
    ops->leave(state, true); /* of what has not joined: nothing */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (i == 5)
            require(ops->join(state, &place) == 0, "join");
        failing = rows[i][0];
        const int code =
            i < 5 ? ops->join(state, &place) : begin(state, place.rank, rows[i][1], sizeof mine);
        failing = "";
        snprintf(reason, sizeof reason, "MPI: %s: ", rows[i][1]);
        require(code == -EIO && strncmp(fail_reason(), reason, strlen(reason)) == 0, reason);
        if (i > 4 && i < 8)
            require(begin(state, place.rank, rows[i][1], UINT64_C(1) << 31) == -E2BIG &&
                        strstr(fail_reason(), "of 2147483648 bytes is too long"),
                    "a large message");
    }
    const uint32_t rank = place.rank;
    require(place.ranks == 2 && rank < 2 && place.local_rank == rank && place.local_ranks == 2 &&
                place.node == 0 && place.nodes == 1 && place.host[0],
            "place");
    require(ops->is_shared(state), "threads");
    mine[0] = rank + 7, mine[1] = rank * 5;
    require(ops->gather(state, mine, sizeof mine, all) == 0, "gather");
    finish(state);
    require(all[0] == 7 && all[1] == 0 && all[2] == 8 && all[3] == 5, "gathered");
    require(ops->move(state, 1 - rank, rank ? all : mine, 8, rank == 0) == 0, "send");
    finish(state);
    require(all[0] == 7, "sent");
    for (uint64_t i = 0; i < 300; i++) { /* more than are kept */
        bool heard = false;
        require(ops->call(state, 1 - rank, i) == 0, "call");
        while (!heard)
            require(ops->hear(state, &from, &word, &heard) == 0, "hear");
        require(from == 1 - rank && word == i, "heard");
    }
    ops->library(library, sizeof library);
    require(library[0] && !strpbrk(library, "\t\n"), "library");
    ops->leave(state, false);
    require(is_aborted, "abort");
    free(state);
    return 0;
}

int main(int argc, char **argv)
{
    struct ranks ranks;

    if (argc == 2 && strcmp(argv[1], "fails") == 0)
        return fail_each();
    int code = argc == 2 ? ranks_join(&ranks) : fail(EINVAL, "what shall rank 1 do?");
    if (code == 0)
        code = ranks_heart_start(&ranks);
    if (code) {
        fprintf(stderr, "%s\n", fail_reason());
        return 1;
    }
    const uint32_t rank = ranks.place.rank;
    ranks.waiting = note_waiting;
    code = ranks_meet(&ranks, 0, NULL);
    ranks.rank_timeout_ns = 4000000000;
    if (code == 0 && rank == 1) {
        while (strcmp(argv[1], "blocks") == 0)
            pause();
        while (access(told, F_OK) != 0)
            ;
    }
    code = ranks_meet(&ranks, code, NULL);
    fprintf(stderr, "rank %u: %s\n", rank, code ? fail_reason() : "all came");
    ranks_heart_stop(&ranks);
    ranks_leave(&ranks, code != 0);
    return code != 0;
}
