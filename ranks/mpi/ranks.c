/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks by MPI. All transfers are non-blocking, so that a waiting rank can check whether another
 * one has failed. MPI is called from the main thread, and from a heart's, one at a time.
 */
#include "ranks/mpi/mpi.h"
#include "ranks/ranks.h"

#include "base/clock.h"
#include "base/fail.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

enum { TAG_MESSAGE = 1, TAG_CALL = 2, WORDS = 256 };

/* An abort may overtake what this rank has just printed: MPICH's launcher then drops it. */
static const uint64_t last_words_ns = 250000000;

struct mpi_state {
    bool is_joined, is_shared;
    MPI_Comm ranks;
    MPI_Request request;
    int rank, count;
    uint64_t words[WORDS]; /* may still be in flight */
    uint32_t called;
};

static pthread_mutex_t one_thread = PTHREAD_MUTEX_INITIALIZER;

void mpi_lock(void)
{
    pthread_mutex_lock(&one_thread);
}

void mpi_unlock(void)
{
    pthread_mutex_unlock(&one_thread);
}

int mpi_check(int status, const char *who, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (status == MPI_SUCCESS)
        return 0;
    if (MPI_Error_string(status, text, &length) != MPI_SUCCESS)
        text[0] = '\0';
    return fail(EIO, "%s: %s: %s", who, what, text);
}

static int check_mpi(int status, const char *what)
{
    return mpi_check(status, "MPI", what);
}

/* Ranks that share memory share a node; its lowest rank names it. */
static int find_node(struct mpi_state *mpi, struct ranks_place *place)
{
    MPI_Comm node = MPI_COMM_NULL;
    int lowest = mpi->rank, local_rank = 0, local_ranks = 1;

    int code =
        check_mpi(MPI_Comm_split_type(mpi->ranks, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
                  "find who shares this node");
    if (code)
        return code;
    MPI_Comm_rank(node, &local_rank);
    MPI_Comm_size(node, &local_ranks);
    code = check_mpi(MPI_Bcast(&lowest, 1, MPI_INT, 0, node), "find the node's lowest rank");
    MPI_Comm_free(&node);
    int *all = malloc((size_t)mpi->count * sizeof *all);
    if (!all)
        return fail(ENOMEM, "out of memory");
    if (code == 0)
        code = check_mpi(MPI_Allgather(&lowest, 1, MPI_INT, all, 1, MPI_INT, mpi->ranks),
                         "number the nodes");
    for (int i = 0; code == 0 && i < mpi->count; i++) {
        place->nodes += all[i] == i;
        place->node += all[i] == i && i < lowest;
    }
    free(all);
    place->local_rank = (uint32_t)local_rank;
    place->local_ranks = (uint32_t)local_ranks;
    return code;
}

/* Open MPI loads most of its components at startup. If they are missing, it exits with a message
 * that does not help. */
static int find_components(void)
{
#ifdef OPEN_MPI
    if (MPI_COMPONENTS[0] && access(MPI_COMPONENTS, R_OK) && !getenv("OPAL_PREFIX") &&
        !getenv("OMPI_MCA_mca_base_component_path"))
        return fail(
            ENODEV,
            "started as part of a job, but Open MPI %d.%d.%d has no components in " MPI_COMPONENTS
            ": install that version and use its mpirun, or set OPAL_PREFIX to its prefix; a single "
            "process needs no MPI",
            OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#endif
    return 0;
}

static int mpi_join(void *state, struct ranks_place *place)
{
    struct mpi_state *mpi = state;
    int level;

    int code = find_components();
    if (code == 0)
        code = check_mpi(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level), "start");
    if (code)
        return code;
    mpi->is_joined = true;
    mpi->is_shared = level >= MPI_THREAD_SERIALIZED;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &mpi->ranks), "join");
    if (code)
        return code;
    MPI_Comm_set_errhandler(mpi->ranks, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi->ranks, &mpi->rank);
    MPI_Comm_size(mpi->ranks, &mpi->count);
    *place = (struct ranks_place){.rank = (uint32_t)mpi->rank, .ranks = (uint32_t)mpi->count};
    gethostname(place->host, sizeof place->host - 1);
    return find_node(mpi, place);
}

static void mpi_leave(void *state, bool orderly)
{
    struct mpi_state *mpi = state;

    if (!mpi->is_joined)
        return;
    if (!orderly) {
        clock_sleep_ns(last_words_ns);
        MPI_Abort(MPI_COMM_WORLD, 1); /* does not return */
    }
    MPI_Comm_free(&mpi->ranks);
    MPI_Finalize();
}

int mpi_check_size(uint64_t bytes, const char *who)
{
    return bytes <= INT_MAX ? 0
                            : fail(E2BIG, "%s: a message of %llu bytes is too long", who,
                                   (unsigned long long)bytes);
}

static bool mpi_is_shared(const void *state)
{
    return ((const struct mpi_state *)state)->is_shared;
}

static int mpi_gather(void *state, const void *mine, uint64_t bytes, void *all)
{
    struct mpi_state *mpi = state;
    int code = mpi_check_size(bytes, "MPI");

    if (code)
        return code;
    mpi_lock();
    const int status = MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
                                      mpi->ranks, &mpi->request);
    mpi_unlock();
    return check_mpi(status, "gather");
}

static int mpi_move(void *state, uint32_t other, void *message, uint64_t bytes, bool sends)
{
    struct mpi_state *mpi = state;
    int code = mpi_check_size(bytes, "MPI");

    if (code)
        return code;
    mpi_lock();
    const int status = sends ? MPI_Isend(message, (int)bytes, MPI_BYTE, (int)other, TAG_MESSAGE,
                                         mpi->ranks, &mpi->request)
                             : MPI_Irecv(message, (int)bytes, MPI_BYTE, (int)other, TAG_MESSAGE,
                                         mpi->ranks, &mpi->request);
    mpi_unlock();
    return check_mpi(status, sends ? "send" : "receive");
}

static int mpi_test(void *state, bool *done)
{
    struct mpi_state *mpi = state;
    int is_done = 0;

    mpi_lock();
    const int status = MPI_Test(&mpi->request, &is_done, MPI_STATUS_IGNORE);
    mpi_unlock();
    *done = is_done;
    return check_mpi(status, "wait for other ranks");
}

/* A message this small is sent eagerly, so the call does not block. */
static int mpi_call(void *state, uint32_t to, uint64_t word)
{
    struct mpi_state *mpi = state;
    MPI_Request request;

    mpi_lock();
    uint64_t *kept = &mpi->words[mpi->called++ % WORDS];
    *kept = word;
    const int status = MPI_Isend(kept, 1, MPI_UINT64_T, (int)to, TAG_CALL, mpi->ranks, &request);
    if (status == MPI_SUCCESS)
        MPI_Request_free(&request);
    mpi_unlock();
    return check_mpi(status, "call another rank");
}

static int mpi_hear(void *state, uint32_t *from, uint64_t *word, bool *heard)
{
    struct mpi_state *mpi = state;
    MPI_Status found;
    int is_there = 0;

    mpi_lock();
    int status = MPI_Iprobe(MPI_ANY_SOURCE, TAG_CALL, mpi->ranks, &is_there, &found);
    *heard = status == MPI_SUCCESS && is_there;
    if (*heard) {
        *from = (uint32_t)found.MPI_SOURCE;
        status = MPI_Recv(word, 1, MPI_UINT64_T, found.MPI_SOURCE, TAG_CALL, mpi->ranks,
                          MPI_STATUS_IGNORE);
    }
    mpi_unlock();
    return check_mpi(status, "listen to the other ranks");
}

struct part_list {
    char *text;
    size_t bytes, used;
};

/* "pml_ucx". Open MPI unloads the components it did not choose. */
static int add_component(struct dl_phdr_info *info, size_t bytes, void *context)
{
    static const char *const kinds[] = {"mca_pml_", "mca_mtl_", "mca_btl_"};
    struct part_list *list = context;

    (void)bytes;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *part = info->dlpi_name ? strstr(info->dlpi_name, kinds[i]) : NULL;
        const char *end = part ? strstr(part, ".so") : NULL;
        if (end && list->used + 40 < list->bytes)
            list->used += (size_t)snprintf(list->text + list->used, list->bytes - list->used,
                                           "%s%.*s", strstr(list->text, "; ") ? ", " : "; ",
                                           (int)(end - part - 4), part + 4);
    }
    return 0;
}

static void mpi_library(char *text, size_t bytes)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;

    MPI_Get_library_version(version, &length);
    /* One line: Open MPI goes on with its packagers, MPICH with how it was configured. */
    version[strcspn(version, ",\n")] = '\0';
    for (char *tab = version; (tab = strchr(tab, '\t'));)
        *tab = ' ';
    struct part_list list = {.text = text, .bytes = bytes};
    list.used = (size_t)snprintf(text, bytes, "%.100s", version);
    dl_iterate_phdr(add_component, &list);
}

extern const struct ranks_ops iobench_ranks_mpi;

const struct ranks_ops iobench_ranks_mpi = {
    .plugin = {.name = "mpi", .state_size = sizeof(struct mpi_state)},
    .join = mpi_join,
    .leave = mpi_leave,
    .gather = mpi_gather,
    .move = mpi_move,
    .test = mpi_test,
    .call = mpi_call,
    .hear = mpi_hear,
    .is_shared = mpi_is_shared,
    .library = mpi_library,
};
