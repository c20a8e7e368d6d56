/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench doctor: checks what works on this machine, and how to fix what does not.
 */
#include "cmd/doctor.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "cmd/commands.h"
#include "cmd/json_file.h"
#include "cmd/families.h"
#include "report/words.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { COLUMN = 26 };

struct doctor_settings {
    char *json; /* file or "-" for standard output; NULL: a table */
};

static const struct option_spec doctor_options[] = {
    {"json", 0, OPTION_TEXT, offsetof(struct doctor_settings, json), .metavar = "FILE",
     .implied = "-", .summary = "write JSON instead; to standard output without FILE"},
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
        json_object_set_new(entry, "section", json_text(section));
        json_object_set_new(entry, "name", json_text(name));
        json_object_set_new(entry, "state", json_text(state_names[finding->state]));
        json_object_set_new(entry, "what", json_text(finding->what));
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

/* List plug-ins that are built in but unusable here. */
static void look_plugins(json_t *all)
{
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
}

static int doctor_run(const struct invocation *invocation)
{
    const struct doctor_settings *settings = invocation->settings;
    const char *path = invocation->count ? invocation->operands[0] : NULL;
    json_t *all = settings->json ? json_array() : NULL;
    int status = COMMAND_OK;

    look_all("This machine", doctor_machine, path, all);
    look_plugins(all);
    for (int i = 0; i < invocation->count; i++) {
        if (!all)
            putchar('\n');
        if (!look_all(invocation->operands[i], doctor_path, invocation->operands[i], all))
            status = COMMAND_FAILED;
    }
    if (all && json_file_write(settings->json, all))
        return command_failed(invocation);
    if (!all && !path)
        puts("\nTo check the storage of a data set too: iobench doctor PATH");
    return status;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "check what works on this machine, and how to fix what does not",
    .operands = "[PATH...]",
    .operands_maximum = -1,
    .description =
        "Checks what a measurement needs: io_uring, limits, permission to drop caches and means to "
        "verify them cold, GPUs and fabric; and of each PATH the file system, devices, O_DIRECT "
        "and free space. Each line is ok, warn or no, with a remedy.",
    .examples = "iobench doctor /mnt/imagenet\tbefore the first run on a machine\n",
    .options = doctor_options,
    .settings_size = sizeof(struct doctor_settings),
    .run = doctor_run,
};
