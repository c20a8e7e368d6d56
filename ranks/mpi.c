/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks by MPI, the front end: was this process started by a launcher? All that calls MPI is in the
 * module iobench-mpi.so, which only such a process loads.
 */
#include "ranks/plugins.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "ranks/mpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Components of Open MPI take its symbols from the process. */
const struct module module_mpi = {
    .file = "iobench-mpi.so",
    .variable = "IOBENCH_MPI_MODULE",
    .libraries = {NULL},
    .is_global = true,
    .remedy = "install the MPI that it was built with",
};

/* Functions that the module calls: referenced here so that every program that can load the module
 * links them. */
typedef void (*any_function)(void);
__attribute__((used)) static const any_function for_the_module[] = {
    (any_function)clock_sleep_ns,   (any_function)fail,        (any_function)memory_array,
    (any_function)ranks_called_off, (any_function)ranks_watch,
};

/* Launchers set this for a single process, too, which needs neither MPI nor MPI's requirements. */
static bool is_alone(void)
{
    static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (getenv(counts[i]))
            return strcmp(getenv(counts[i]), "1") == 0;
    return false;
}

/* Every launcher sets one of these to identify its processes. */
static int mpi_usable(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "MPI_LOCALRANKID"};

    if (is_alone())
        return fail(ENODEV, "this process was started without peers");

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (getenv(marks[i]))
            return 0;
    return fail(ENODEV, "this process was not started by mpirun or srun");
}

const struct ranks_ops ranks_mpi = {
    .plugin = {.name = "mpi",
               .summary = "processes started by mpirun or srun",
               .usable = mpi_usable,
               .module = &module_mpi,
               .symbol = "iobench_ranks_mpi"},
};
