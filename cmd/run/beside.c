/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/run/beside.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/random.h"
#include "cmd/arguments.h"
#include "cmd/outputs.h"
#include "cmd/sandbox.h"
#include "cmd/start_at.h"
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

struct beside {
    struct members members;
    uint64_t order_seed;
};

static int carry_out_stage(struct beside *beside, unsigned stage, bool is_last)
{
    int code = members_ready(&beside->members, stage);

    if (code == 0)
        code = members_go(&beside->members, stage);
    return code ? code : members_await(&beside->members, stage, is_last);
}

static int carry_out_rounds(struct beside *beside, uint64_t rounds)
{
    static const unsigned stages[] = {1 << 0, 1 << 1, 1 << 2 | 1 << 3};
    enum { STAGES = sizeof stages / sizeof *stages };
    uint32_t order[STAGES];
    int code = members_prepare(&beside->members, 0, 0);

    for (uint64_t round = 0; round < rounds && code == 0; round++) {
        random_order(beside->order_seed, round, order, STAGES);
        for (uint32_t i = 0; i < STAGES && code == 0; i++)
            code = carry_out_stage(beside, stages[order[i]], round + 1 == rounds);
    }
    return code;
}

/* ---- results ---- */

/* Two paths may lead to one set; a set that is not local is known by its path alone, a synthetic
 * one by its format. */
static bool reads_same(const struct job *jobs)
{
    const char *a = jobs[0].read.data, *b = jobs[1].read.data;
    struct stat first, second;

    if (!a || !b)
        return !a && !b && strcmp(jobs[0].read.format, jobs[1].read.format) == 0;
    if (stat(a, &first) || stat(b, &second))
        return strcmp(a, b) == 0;
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

static int show_beside(const struct beside *beside, const struct job *jobs)
{
    const char *path = jobs[0].output.json;
    const bool has_text = !path || strcmp(path, "-") != 0;
    json_t *documents = json_array(), *list[BESIDE_MEMBERS], *figures = NULL;
    int code = 0;

    for (uint32_t i = 0; i < BESIDE_MEMBERS && has_text; i++)
        members_print(&beside->members.list[i]);
    for (uint32_t i = 0; i < BESIDE_MEMBERS && code == 0; i++) {
        code = members_collect(&beside->members.list[i], documents);
        list[i] = json_array_get(documents, i);
    }
    if (code == 0 && !(figures = beside_json(list, reads_same(jobs))))
        code = -ENOMEM;
    if (code == 0 && has_text)
        beside_text(stdout, figures);
    if (code == 0 && path) {
        json_t *members = json_pack("{s:O}", "beside", figures);
        json_t *document = members ? report_json_document(documents, members) : NULL;
        char *text = document ? report_json_text(document, REPORT_DIGITS) : NULL;
        code = text ? 0 : -ENOMEM;
        if (text && strcmp(path, "-") == 0)
            puts(text);
        else if (text)
            code = report_write_file(path, text, strlen(text));
        free(text);
        json_decref(document);
        json_decref(members);
    }
    json_decref(figures);
    json_decref(documents);
    return code;
}

/* ---- the command ---- */

static int check(const struct job *jobs)
{
    if (ranks_are_launched())
        return fail(EINVAL, "--beside is for one process, without mpirun or srun");
    if (jobs[0].turns > 1)
        return fail(EINVAL, "--turns is not for --beside");
    if (jobs[0].runs == 0 || jobs[1].runs != jobs[0].runs)
        return fail(EINVAL, "--beside needs one fixed number of --runs for both jobs");
    for (int i = 0; i < BESIDE_JOBS; i++)
        if (jobs[i].output.csv || jobs[i].output.series || jobs[i].output.profile ||
            jobs[i].output.trace)
            return fail(EINVAL, "--beside writes --json only, no --csv, --series, --profile or "
                                "--trace");
    if (jobs[1].output.json &&
        (!jobs[0].output.json || strcmp(jobs[0].output.json, jobs[1].output.json) != 0))
        return fail(EINVAL, "--beside '--json %s': both jobs share one --json",
                    jobs[1].output.json);
    for (int i = 0; i < BESIDE_JOBS; i++) {
        struct job_plugins plugins;
        int code = job_choose(&jobs[i], &plugins);
        job_release(&plugins);
        if (code == 0)
            code = start_at_check(&jobs[i]);
        if (code == 0 && jobs[i].read.data)
            code = arguments_check_data("data", jobs[i].read.data);
        if (code)
            return code;
    }
    return outputs_check(&jobs[0], "{\"schema\"", "label,valid");
}

static int begin(struct beside *beside, struct job *jobs, member_work *work)
{
    uint32_t seed = (uint32_t)jobs[0].order_seed;
    int code = 0;

    if (!seed && getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return fail(EIO, "no random numbers: %s", fail_errno_text(errno));
    beside->order_seed = seed;
    for (int i = 0; i < BESIDE_MEMBERS && code == 0; i++)
        code = members_start(&beside->members, &jobs[i % BESIDE_JOBS],
                             i < BESIDE_JOBS ? "alone" : "beside the other", work);
    if (code == 0)
        code = sandbox_enter(beside->members.invocation, jobs, BESIDE_JOBS);
    command_on_interrupt();
    return code;
}

int beside_carry_out(const struct invocation *invocation, struct job *jobs, member_work *work)
{
    struct beside beside = {.members.invocation = invocation};
    int status = COMMAND_OK;

    if (check(jobs))
        return command_misused(invocation);
    int code = begin(&beside, jobs, work);
    if (code == 0)
        code = carry_out_rounds(&beside, jobs[0].dry_run ? 0 : jobs[0].runs);
    if (code)
        status = command_failed(invocation);
    members_end(&beside.members, code);
    for (uint32_t i = 0; i < beside.members.started; i++)
        status = beside.members.list[i].status ? beside.members.list[i].status : status;
    if (code == 0 && show_beside(&beside, jobs))
        status = command_failed(invocation);
    members_release(&beside.members);
    return status;
}
