/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench doctor: checks what works on this machine, and how to fix what does not.
 */
#include "cmd/doctor/doctor.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "cmd/commands.h"
#include "cmd/json_file.h"
#include "cmd/families.h"
#include "readers/reader.h"
#include "report/words.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { COLUMN = 26 };

struct doctor_settings {
    char *json; /* file or "-" for standard output; NULL: a table */
    bool launch, fabric;
    char *proc_root, *sysfs_root;
};

static const struct option_spec doctor_options[] = {
    {"json", 0, OPTION_TEXT, offsetof(struct doctor_settings, json), .metavar = "FILE",
     .reach = OPTION_WRITES, .begins = "[{\"section\": \"\", \"name\"", .implied = "-",
     .summary = "write JSON instead; to standard output without FILE"},
    {"fabric", 0, OPTION_FLAG, offsetof(struct doctor_settings, fabric), "no",
     .summary = "only the fabric: ports, interfaces, NFS mounts, GPU to adapter"},
    {"launch", 0, OPTION_FLAG, offsetof(struct doctor_settings, launch), "no",
     .summary = "only the job, under mpirun or srun: MPI, transport, nodes, CPUs, clocks"},
    {"proc-root", 0, OPTION_TEXT, offsetof(struct doctor_settings, proc_root), "/proc",
     .metavar = "DIR", .summary = "mount point of proc, for the fabric"},
    {"sysfs-root", 0, OPTION_TEXT, offsetof(struct doctor_settings, sysfs_root), "/sys",
     .metavar = "DIR", .summary = "mount point of sysfs, such as the host's in a container"},
    {0},
};

static const char *const state_names[] = {
    [DOCTOR_OK] = "ok", [DOCTOR_WARN] = "warn", [DOCTOR_NO] = "no"};

static void tell(const char *section, const char *name, const struct doctor_finding *finding,
                 json_t *all)
{
    char left[96];

    if (all) {
        json_t *entry = json_object();
        json_put_text(entry, "section", section);
        json_put_text(entry, "name", name);
        json_put_text(entry, "state", state_names[finding->state]);
        json_put_text(entry, "what", finding->what);
        json_object_set_new(entry, "advice",
                            finding->advice[0] ? json_text(finding->advice) : json_null());
        json_array_append_new(all, entry);
        return;
    }
    snprintf(left, sizeof left, "  %-4s  %s", state_names[finding->state], name);
    words_print(stdout, left, COLUMN, finding->what[0] ? escape_shown(finding->what) : "unknown");
    if (finding->advice[0])
        words_print(stdout, "", COLUMN, escape_shown(finding->advice));
}

/* Returns false if the first check failed and the rest were skipped. */
static bool look_all(const char *section, const struct doctor_check *checks, const char *path,
                     json_t *all)
{
    if (!all)
        printf("%s\n", section);
    for (int i = 0; checks[i].name; i++) {
        struct doctor_finding finding = {0};
        fail_clear();
        checks[i].look(path, &finding);
        tell(section, checks[i].name, &finding, all);
        if (i == 0 && finding.state == DOCTOR_NO)
            return false;
    }
    return true;
}

/* A section without a fixed list of checks. */
struct section {
    const char *name;
    json_t *all;
    bool is_bad; /* something does not work */
};

static void add_finding(void *context, const char *name, const struct doctor_finding *finding)
{
    struct section *section = context;

    section->is_bad |= finding->state == DOCTOR_NO;
    tell(section->name, name, finding, section->all);
}

static void look_fabric(const struct doctor_settings *settings, json_t *all)
{
    struct section section = {.name = "Fabric", .all = all};
    const struct telemetry_roots roots = {.proc = settings->proc_root, .sys = settings->sysfs_root};

    if (!all)
        printf("%s\n", section.name);
    doctor_look_fabric(&roots, &(struct doctor_report){add_finding, &section});
}

/* What this machine offers to one reader. */
struct offers {
    const char *reader;
    json_t *all;
    uint32_t count;
};

static void tell_offer(void *context, const struct reader_offer *offer)
{
    struct offers *offers = context;
    struct doctor_finding finding = {0};
    char name[96];

    if (!offers->all && offers->count++ == 0)
        puts("\nReaders");
    snprintf(name, sizeof name, "%s %s", offers->reader, offer->name);
    if (offer->code == 0) {
        finding_say(&finding, DOCTOR_OK, "%s", offer->found);
    } else {
        finding_say(&finding, DOCTOR_WARN, "missing: %s", fail_errno_text(offer->code));
        finding_advise(&finding, "%s", offer->remedy);
    }
    tell("Readers", name, &finding, offers->all);
}

/* Exits with 1 if the processes do not form one job, so that scripts can ask. speaks: is this the
 * process that prints? */
static int look_launch(const struct invocation *invocation, bool speaks, json_t *all)
{
    struct section section = {.name = "Launch", .all = all};

    if (!all && speaks)
        printf("%s\n", section.name);
    const int code = doctor_look_launch(&(struct doctor_report){add_finding, &section});
    if (code && !section.is_bad && speaks)
        return command_failed(invocation);
    return code || section.is_bad ? COMMAND_FAILED : COMMAND_OK;
}

/* This machine, its fabric and the paths. */
static int look_here(const struct invocation *invocation, json_t *all)
{
    const struct doctor_settings *settings = invocation->settings;
    const char *path = invocation->count ? invocation->operands[0] : NULL;
    int status = COMMAND_OK;

    look_all("This machine", doctor_machine, path, all);
    struct offers offers = {.all = all};
    for (const struct plugin *const *row = reader_registry; *row; row++) {
        offers.reader = (*row)->name;
        reader_offers(*row, tell_offer, &offers);
    }
    if (!all)
        putchar('\n');
    look_fabric(settings, all);
    /* List plug-ins that are built in but unusable here. */
    bool any = false;
    for (const struct family *family = family_table; family->name; family++) {
        for (int i = 0; family->registry[i]; i++) {
            struct doctor_finding finding = {0};
            char name[96];
            if (plugin_usable(family->registry[i]) == 0)
                continue;
            if (!any && !all)
                puts("\nPlug-ins not usable here");
            any = true;
            finding_say(&finding, DOCTOR_NO, "%s", fail_reason());
            snprintf(name, sizeof name, "%s %s", family->name, family->registry[i]->name);
            tell("plug-ins", name, &finding, all);
        }
    }
    for (int i = 0; i < invocation->count; i++) {
        if (!all)
            putchar('\n');
        if (!look_all(invocation->operands[i], doctor_path, invocation->operands[i], all))
            status = COMMAND_FAILED;
    }
    if (!all && !path)
        puts("\nTo check the storage of a data set too: iobench doctor PATH\n"
             "To check how a job is started: mpirun ... iobench doctor --launch");
    return status;
}

static int doctor_run(const struct invocation *invocation)
{
    const struct doctor_settings *settings = invocation->settings;
    const bool speaks = ranks_speaks(); /* joining changes what the environment says */
    json_t *all = settings->json ? json_array() : NULL;
    int status = COMMAND_OK;

    if (settings->launch && (settings->fabric || invocation->count)) {
        fail(EINVAL, "--launch looks at the job only: no --fabric, no PATH");
        status = command_misused(invocation);
    } else if (settings->launch) {
        status = look_launch(invocation, speaks, all);
    } else if (settings->fabric) {
        look_fabric(settings, all);
    } else {
        status = look_here(invocation, all);
    }
    if (all && status != COMMAND_USAGE && (!settings->launch || speaks))
        return json_file_write(settings->json, all) ? command_failed(invocation) : status;
    json_decref(all);
    return status;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "check what works on this machine, and how to fix what does not",
    .operands = "[PATH...]",
    .operands_maximum = -1,
    .description =
        "Checks what a measurement needs: io_uring, limits, permission to drop caches and means to "
        "verify them cold, GPUs; what each reader can use; of the fabric each port, network "
        "interface, NFS mount and the way "
        "between GPU and adapter; and of each PATH the file system, devices, O_DIRECT, the reader "
        "that "
        "--reader auto is there, passthrough and free space. Each line is ok, warn or no, with a "
        "remedy.\n"
        "--launch, under mpirun or srun, checks the job instead: which MPI and transport, ranks "
        "and "
        "nodes, the CPUs of each rank, clocks, and why processes do not find each other. It exits "
        "with 1 if something does not work.",
    .examples = "iobench doctor /mnt/imagenet\tbefore the first run on a machine\n"
                "iobench doctor --fabric\tits ports, interfaces and NFS mounts\n"
                "mpirun -n 16 --hostfile hosts iobench doctor --launch\tbefore the first job\n",
    .options = doctor_options,
    .settings_size = sizeof(struct doctor_settings),
    .run = doctor_run,
};
