/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor --launch: the job that a launcher started: whether its processes find each other, by which
 * MPI and transport, on which nodes and CPUs, with which clocks.
 */
#include "cmd/doctor/doctor.h"

#include "telemetry/series.h"
#include "base/fail.h"
#include "base/memory.h"
#include "cmd/command.h"
#include "report/words.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_BYTES = 96 };
static const uint64_t OFFSET_MOST_NS = 10000000;

/* By the variables it sets. The first one found counts: processes of an inner launcher inherit
 * those of the outer one. */
static const struct launcher {
    const char *variable;
    const char *name;
    const char *mpi;  /* its MPI's name in ranks_library(); NULL: any */
    const char *cure; /* if the processes do not find each other */
    const char *cpus; /* option that gives a rank more CPUs */
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun", "Open MPI",
     "start it with the mpirun of its own MPI (mpirun.mpich, mpiexec.hydra)", "--bind-to none"},
    {"FLUX_JOB_ID", "flux run", NULL, "choose what this MPI knows: flux run -o pmi=pmix, or simple",
     "--cores-per-task N"},
    {"HYDI_CONTROL_FD", "Hydra's mpiexec (MPICH, Intel MPI)", "MPICH",
     "start it with the mpirun of its own MPI (mpirun.openmpi)", "-bind-to none"},
    {"SLURM_STEP_NUM_TASKS", "srun", NULL,
     "choose what this MPI knows: srun --mpi=list; Open MPI and recent MPICH: --mpi=pmix, MPICH: "
     "--mpi=pmi2",
     "--cpus-per-task N"},
    {"PMI_SIZE", "a launcher with PMI (MPICH, Intel MPI, srun --mpi=pmi2)", "MPICH",
     "start it with the mpirun of its own MPI (mpirun.openmpi), or with srun --mpi=pmix",
     "-bind-to none"},
    {"PMIX_RANK", "a launcher with PMIx", "Open MPI", "start it with the mpirun of its own MPI",
     "--bind-to none"},
    {"TORCHELASTIC_RUN_ID", "torchrun", NULL, "torchrun starts no MPI: use mpirun or srun instead",
     "--bind-to none"},
    {NULL, "no launcher", NULL, "", "--bind-to none"},
};

/* The name of this program's MPI, without what it uses. text: RANKS_LIBRARY_BYTES. Returns text. */
static const char *name_library(char *text)
{
    char *parts = strstr(ranks_library(text), "; ");

    if (parts)
        *parts = '\0';
    return text;
}

static const struct launcher *find_launcher(void)
{
    const struct launcher *launcher = launchers;

    while (launcher->variable && !getenv(launcher->variable))
        launcher++;
    return launcher;
}

/* What a rank knows of itself. */
struct launch_seat {
    char library[RANKS_LIBRARY_BYTES];
    cpu_set_t cpus;
    int64_t day_ns;   /* time of day minus monotonic clock */
    uint32_t online;  /* CPUs of its node */
    int64_t ahead_ns; /* of its node's monotonic clock, against rank 0's */
    uint64_t uncertainty_ns;
    bool has_port; /* an active RDMA port */
};

struct job_view {
    const struct ranks *ranks;
    const struct launcher *launcher;
    const char *interface; /* of the launcher to MPI: ", PMIx"; found before joining */
    const struct launch_seat *seats;
    const struct doctor_report *report;
};

static void add(const struct job_view *view, const char *name, const struct doctor_finding *finding)
{
    view->report->add(view->report->context, name, finding);
}

/* ---- launcher and MPI ---- */

static void look_launcher(const struct job_view *view)
{
    struct doctor_finding finding = {0};

    finding_say(&finding, view->launcher->variable ? DOCTOR_OK : DOCTOR_WARN, "%s%s%s",
                view->launcher->name, view->interface,
                getenv("KUBERNETES_SERVICE_HOST") ? ", in Kubernetes" : "");
    if (!view->launcher->variable)
        finding_advise(&finding, "mpirun -n 4 iobench doctor --launch, or srun -n 4 --mpi=pmix "
                                 "iobench doctor --launch");
    add(view, "launcher", &finding);
}

static void look_library(const struct job_view *view)
{
    struct doctor_finding finding = {0};
    char library[RANKS_LIBRARY_BYTES];

    if (name_library(library)[0]) {
        finding_say(&finding, DOCTOR_OK, "%s", library);
    } else {
        finding_say(&finding, DOCTOR_NO, "built without MPI");
        finding_advise(&finding, "build it where mpicc is (libopenmpi-dev or libmpich-dev)");
    }
    add(view, "MPI", &finding);
}

/* The processes were started together, and each is alone. */
static void tell_alone(const struct job_view *view)
{
    struct doctor_finding finding = {0};
    char library[RANKS_LIBRARY_BYTES];
    const struct launcher *launcher = view->launcher;
    const char *says = NULL;
    const int started = ranks_started(&says);
    name_library(library);
    const bool is_mixed =
        launcher->mpi && library[0] && strncmp(library, launcher->mpi, strlen(launcher->mpi)) != 0;

    finding_say(&finding, DOCTOR_NO, "%d processes, each of them alone: %s=%d", started, says,
                started);
    if (library[0] == '\0')
        finding_advise(&finding, "without MPI they cannot find each other");
    else
        finding_advise(&finding, "%s%.60s%s%s",
                       is_mixed ? "two MPIs are mixed; this program's is " : "",
                       is_mixed ? library : "", is_mixed ? ": " : "", launcher->cure);
    add(view, "job", &finding);
}

static void look_same_library(const struct job_view *view)
{
    const struct ranks *ranks = view->ranks;
    struct doctor_finding finding = {0};

    for (uint32_t i = 1; i < ranks->place.ranks; i++) {
        if (strncmp(view->seats[i].library, view->seats[0].library,
                    strcspn(view->seats[0].library, ",;")) == 0)
            continue;
        finding_say(&finding, DOCTOR_NO, "rank %u on %.40s has %.60s", i, ranks->peers[i].host,
                    view->seats[i].library);
        finding_advise(&finding, "install the same version on all nodes");
        return add(view, "versions", &finding);
    }
}

static void look_transport(const struct job_view *view)
{
    static const char *const fast[] = {"ucx", "ofi", "openib", "psm"};
    struct doctor_finding finding = {0};
    const char *library = view->seats[0].library;
    const char *parts = strstr(library, "; ");
    bool is_fast = parts == NULL, has_ports = true;

    for (size_t i = 0; parts && i < sizeof fast / sizeof *fast; i++)
        is_fast |= strstr(parts, fast[i]) != NULL;
    for (uint32_t i = 0; i < view->ranks->place.ranks; i++)
        has_ports &= view->seats[i].has_port;
    const bool slow = has_ports && !is_fast && view->ranks->place.nodes > 1;
    finding_say(&finding, slow ? DOCTOR_WARN : DOCTOR_OK, "%s",
                parts ? parts + 2 : "not told by this MPI");
    if (slow)
        finding_advise(&finding,
                       "all nodes have RDMA ports, and MPI uses TCP: mpirun --mca pml ucx, "
                       "with an Open MPI that has UCX (ompi_info | grep ucx)");
    add(view, "transport", &finding);
}

/* ---- CPUs ---- */

struct node_cpus {
    uint32_t ranks, first; /* first: its lowest rank */
    cpu_set_t all, none_shared;
    bool is_equal; /* all ranks have the same CPUs */
    bool overlaps;
    int fewest;
};

static void look_cpus(const struct job_view *view, uint32_t node)
{
    struct node_cpus sum = {.is_equal = true, .fewest = CPU_SETSIZE};
    for (uint32_t i = 0; i < view->ranks->place.ranks; i++) {
        const cpu_set_t *cpus = &view->seats[i].cpus;
        cpu_set_t both;
        if (view->ranks->peers[i].node != node)
            continue;
        if (sum.ranks++ == 0)
            sum.first = i;
        CPU_AND(&both, &sum.all, cpus);
        sum.overlaps |= CPU_COUNT(&both) > 0;
        CPU_OR(&sum.all, &sum.all, cpus);
        sum.is_equal &= CPU_EQUAL(cpus, &view->seats[sum.first].cpus);
        sum.fewest = CPU_COUNT(cpus) < sum.fewest ? CPU_COUNT(cpus) : sum.fewest;
    }
    struct doctor_finding finding = {0};
    char list[LIST_BYTES], name[80];
    const int count = CPU_COUNT(&sum.all);
    const bool crowded = (uint32_t)count < sum.ranks;
    const bool partly = sum.overlaps && !sum.is_equal;

    size_t used = 0;
    list[0] = '\0';
    for (size_t first = 0; first < CPU_SETSIZE; first++) {
        size_t last = first;
        if (!CPU_ISSET(first, &sum.all))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &sum.all))
            last++;
        if (used + 16 > LIST_BYTES) {
            snprintf(list + used, LIST_BYTES - used, ",...");
            break;
        }
        used += (size_t)snprintf(list + used, LIST_BYTES - used, "%s%zu", used ? "," : "", first);
        if (last > first)
            used += (size_t)snprintf(list + used, LIST_BYTES - used, "-%zu", last);
        first = last;
    }
    finding_say(&finding, crowded || partly ? DOCTOR_WARN : DOCTOR_OK, "%u %s, CPUs %s%s",
                sum.ranks, sum.ranks == 1 ? "rank" : "ranks", list,
                sum.ranks == 1 ? ""
                : sum.is_equal ? ", shared by all"
                : partly       ? ", some in several ranks"
                               : ", each its own");
    if (crowded && (uint32_t)count < view->seats[sum.first].online)
        finding_advise(&finding, "fewer CPUs (%d) than ranks, of %u here: %s", count,
                       view->seats[sum.first].online, view->launcher->cpus);
    else if (crowded)
        finding_advise(&finding, "fewer CPUs (%d) than ranks: start fewer per node", count);
    else if (partly)
        finding_advise(&finding,
                       "ranks that share a CPU will be slower: bind each to its own, or "
                       "none (%s)",
                       view->launcher->cpus);
    else if (sum.fewest == 1 && sum.ranks > 1)
        finding_advise(&finding, "one CPU per rank leaves none for decode threads: %s",
                       view->launcher->cpus);
    snprintf(name, sizeof name, "node %.60s", view->ranks->peers[sum.first].host);
    add(view, name, &finding);
}

/* ---- clocks ---- */

/* Time of day of a node minus rank 0's. */
static int64_t day_offset(const struct job_view *view, uint32_t rank)
{
    return view->seats[rank].day_ns - view->seats[0].day_ns + view->seats[rank].ahead_ns;
}

static void look_clocks(const struct job_view *view)
{
    struct doctor_finding finding = {0};
    char offset[WORDS_BYTES], trip[WORDS_BYTES];
    uint32_t worst = 0;
    uint64_t slowest_ns = 0;

    if (view->ranks->place.nodes == 1)
        return;
    for (uint32_t i = 0; i < view->ranks->place.ranks; i++) {
        if (!view->ranks->peers[i].leads)
            continue;
        if (llabs(day_offset(view, i)) > llabs(day_offset(view, worst)))
            worst = i;
        if (view->seats[i].uncertainty_ns > slowest_ns)
            slowest_ns = view->seats[i].uncertainty_ns;
    }
    const uint64_t most_ns = (uint64_t)llabs(day_offset(view, worst));
    finding_say(&finding, most_ns > OFFSET_MOST_NS ? DOCTOR_WARN : DOCTOR_OK,
                "times of day differ by up to %s (%.40s); slowest round trip %s",
                words_duration(most_ns, offset), view->ranks->peers[worst].host,
                words_duration(2 * slowest_ns, trip));
    if (most_ns > OFFSET_MOST_NS)
        finding_advise(&finding, "logs of the nodes will not match: run chrony on all; series are "
                                 "aligned without it");
    add(view, "clocks", &finding);
}

/* ---- the job ---- */

static int sit_down(struct ranks *ranks, struct launch_seat *seats)
{
    struct infiniband_port ports[4];
    struct launch_seat mine = {0};
    struct ranks_clock clock;
    const struct series_anchor now = series_anchor_now();
    int code = ranks_compare_clocks(ranks, &clock);

    if (code)
        return code;
    const uint32_t count = infiniband_list(&telemetry_roots_usual, ports, 4);
    for (uint32_t i = 0; i < count; i++)
        mine.has_port |= ports[i].active;
    ranks_library(mine.library);
    if (sched_getaffinity(0, sizeof mine.cpus, &mine.cpus))
        CPU_ZERO(&mine.cpus);
    mine.day_ns = (int64_t)(now.unix_ns - now.monotonic_ns);
    mine.online = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    mine.ahead_ns = clock.ahead_ns;
    mine.uncertainty_ns = clock.uncertainty_ns;
    return ranks_gather(ranks, &mine, sizeof mine, seats);
}

int doctor_look_launch(const struct doctor_report *report)
{
    struct ranks ranks;
    struct job_view view = {.ranks = &ranks,
                            .launcher = find_launcher(),
                            .interface = getenv("PMIX_NAMESPACE") ? ", PMIx"
                                         : getenv("PMI_RANK")     ? ", PMI"
                                                                  : "",
                            .report = report};
    const char *says;
    const bool speaks = ranks_speaks(); /* before joining, which sets variables, too */
    int code = command_join(&ranks);

    if (code == 0) {
        struct launch_seat *seats = memory_array(ranks.place.ranks, sizeof *seats);
        code = ranks_meet(&ranks, seats ? sit_down(&ranks, seats) : -ENOMEM, NULL);
        view.seats = seats;
        if (code == 0 && ranks.place.rank == 0) {
            look_launcher(&view);
            look_library(&view);
            const struct ranks_place *place = &view.ranks->place;
            struct doctor_finding finding = {0};
            uint32_t fewest = place->ranks, most = 0;
            for (uint32_t node = 0; node < place->nodes; node++) {
                uint32_t count = 0;
                for (uint32_t i = 0; i < place->ranks; i++)
                    count += view.ranks->peers[i].node == node;
                fewest = count < fewest ? count : fewest;
                most = count > most ? count : most;
            }
            finding_say(&finding, fewest == most ? DOCTOR_OK : DOCTOR_WARN, "%u %s on %u %s",
                        place->ranks, place->ranks == 1 ? "rank" : "ranks", place->nodes,
                        place->nodes == 1 ? "node" : "nodes");
            if (fewest != most)
                finding_advise(&finding, "%u to %u ranks per node: nodes with more will be slower",
                               fewest, most);
            add(&view, "job", &finding);
            look_same_library(&view);
            if (ranks.place.ranks > 1)
                look_transport(&view);
            for (uint32_t node = 0; node < ranks.place.nodes; node++)
                look_cpus(&view, node);
            look_clocks(&view);
        }
        free(seats);
    } else if (!speaks) {
        command_fails_last();
    } else if (ranks.place.ranks == 1 && ranks_started(&says) > 1) {
        look_launcher(&view);
        look_library(&view);
        tell_alone(&view);
    }
    ranks_leave(&ranks, code != 0);
    return code;
}
