/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks by MPI, the front end: was this process started by a launcher? All that calls MPI is in the
 * module iobench-mpi.so, which only such a process loads.
 */
#include "ranks/plugins.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

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

/* Every launcher sets one of the marks to identify its processes; and some a count, also for a
 * single process, which needs neither MPI nor MPI's requirements. */
static int mpi_usable(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "MPI_LOCALRANKID"};
    const char *count = getenv("OMPI_COMM_WORLD_SIZE");

    if (!count)
        count = getenv("PMI_SIZE");
    if (count && strcmp(count, "1") == 0)
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
