/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/beside.h"

#include "base/child.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "cmd/arguments.h"
#include "cmd/outputs.h"
#include "cmd/sandbox.h"
#include "report/load.h"
#include "report/report.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL_MS = 200 };

/* Messages between parent and members. */
enum letter { LETTER_GO = 'g', LETTER_TURN = 't', LETTER_READY = 'r' };

struct member {
    struct job job;
    char label[256];
    pid_t pid;
    int socket;       /* to the member; -1: it has ended */
    int text, result; /* unnamed files: its output, and its JSON */
    int status;
};

struct beside {
    const struct invocation *invocation;
    struct member members[BESIDE_MEMBERS];
    uint32_t started;
    struct random order;
};

/* ---- in a member ---- */

/* Wait for a letter or for the other process to end. */
static int await(int socket, char *letter)
{
    struct pollfd ready = {.fd = socket, .events = POLLIN};

    for (;;) {
        if (child_is_interrupted())
            return fail(EINTR, "interrupted");
        if (poll(&ready, 1, POLL_MS) <= 0)
            continue;
        const ssize_t count = recv(socket, letter, 1, 0);
        if (count > 0)
            return 0;
        if (count == 0 || errno != EINTR)
            return fail(EPIPE, "the job beside ended");
    }
}

static int say(int socket, char letter)
{
    return send(socket, &letter, 1, MSG_NOSIGNAL) == 1 ? 0 : fail(EPIPE, "the job beside ended");
}

int beside_wait(void *gate, enum run_gate what)
{
    const struct beside_gate *line = gate;
    char letter;
    int code = say(line->socket, what == RUN_GATE_TURN ? LETTER_TURN : LETTER_READY);

    return code ? code : await(line->socket, &letter);
}

static void write_document(const struct member *member, const json_t *documents)
{
    char *text = json_to_text(documents, JSON_COMPACT);

    if (text)
        file_write_at(member->result, text, strlen(text), 0, "result");
    free(text);
}

/* Never returns. */
static void be_member(const struct beside *beside, struct member *member, int line,
                      beside_work *work)
{
    const struct beside_gate gate = {line};
    json_t *documents = json_array();
    char letter;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (uint32_t i = 0; i < beside->started; i++)
        close(beside->members[i].socket); /* or their owners would not see the peer's end */
    dup2(member->text, STDOUT_FILENO);
    int status = COMMAND_FAILED;
    if (documents && await(line, &letter) == 0)
        status = work(beside->invocation, &member->job, &gate, documents);
    write_document(member, documents);
    fflush(stdout);
    _exit(status);
}

/* ---- starting them ---- */

static int make_file(void)
{
    int file = memfd_create("beside", MFD_CLOEXEC);

    return file < 0 ? fail(errno, "cannot create a file in memory: %s", fail_errno_text(errno))
                    : file;
}

static int start_member(struct beside *beside, const struct job *job, const char *what,
                        beside_work *work)
{
    struct member *member = &beside->members[beside->started];
    int ends[2];

    *member =
        (struct member){.job = *job, .socket = -1, .text = make_file(), .result = make_file()};
    if (member->text < 0 || member->result < 0)
        return -errno;
    snprintf(member->label, sizeof member->label, "%s, %s", job->output.label, what);
    member->job.output.label = member->label;
    member->job.output.json = member->job.beside = NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return fail(errno, "cannot create a socket: %s", fail_errno_text(errno));
    member->socket = ends[0];
    fflush(stdout);
    member->pid = fork();
    if (member->pid == 0) {
        close(ends[0]);
        be_member(beside, member, ends[1], work);
    }
    close(ends[1]);
    beside->started++;
    return member->pid < 0 ? fail(errno, "cannot start a process: %s", fail_errno_text(errno)) : 0;
}

/* ---- scheduling them ---- */

static void note_end(struct member *member)
{
    close(member->socket);
    member->socket = -1;
}

/* Wait until the member sends that letter or ends. Returns 0, or -errno with a reason. */
static int hear(struct member *member, char expected, bool may_end)
{
    char letter = 0;

    if (member->socket < 0)
        return fail(ECHILD, "'%s' ended early", member->label);
    int code = await(member->socket, &letter);
    if (code == -EPIPE) {
        note_end(member);
        return may_end ? 0 : fail(ECHILD, "'%s' ended early", member->label);
    }
    return code == 0 && letter != expected ? fail(EPROTO, "'%s' is out of step", member->label)
                                           : code;
}

static int tell(const struct member *member)
{
    return member->socket < 0 ? fail(ECHILD, "'%s' ended early", member->label)
                              : say(member->socket, LETTER_GO);
}

/* Run the members of a stage (bits) once; they start together. */
static int carry_out_stage(struct beside *beside, unsigned stage, bool is_last)
{
    int code = 0;

    for (int step = 0; step < 4; step++)
        for (uint32_t i = 0; i < BESIDE_MEMBERS && code == 0; i++) {
            struct member *member = &beside->members[i];
            if (!(stage & 1U << i))
                continue;
            code = step % 2 == 0
                       ? tell(member)
                       : hear(member, step == 1 ? LETTER_READY : LETTER_TURN, step == 3 && is_last);
        }
    return code;
}

static int carry_out_rounds(struct beside *beside, uint64_t rounds)
{
    static const unsigned stages[] = {1 << 0, 1 << 1, 1 << 2 | 1 << 3};
    enum { STAGES = sizeof stages / sizeof *stages };
    uint32_t order[STAGES] = {0, 1, 2};
    int code = 0;

    /* One after the other, since they index and calibrate now. */
    for (uint32_t i = 0; i < BESIDE_MEMBERS && code == 0; i++) {
        code = tell(&beside->members[i]);
        if (code == 0)
            code = hear(&beside->members[i], LETTER_TURN, false);
    }
    for (uint64_t round = 0; round < rounds && code == 0; round++) {
        random_shuffle_u32(&beside->order, order, STAGES);
        for (uint32_t i = 0; i < STAGES && code == 0; i++)
            code = carry_out_stage(beside, stages[order[i]], round + 1 == rounds);
    }
    return code;
}

/* Reap all members; after a failure stop them first. */
static void end_members(struct beside *beside, int code)
{
    for (uint32_t i = 0; i < beside->started; i++)
        if (code && beside->members[i].pid > 0)
            kill(beside->members[i].pid, SIGTERM);
    for (uint32_t i = 0; i < beside->started; i++) {
        struct member *member = &beside->members[i];
        int status = 0;
        if (member->socket >= 0)
            note_end(member);
        while (member->pid > 0 && waitpid(member->pid, &status, 0) < 0 && errno == EINTR)
            ;
        member->status = WIFEXITED(status) ? WEXITSTATUS(status) : COMMAND_FAILED;
    }
}

/* ---- results ---- */

static void print_text(const struct member *member)
{
    size_t bytes;
    char *text = file_read_all(member->text, &bytes, "result");

    if (text && bytes)
        printf("%s\n", text);
    free(text);
}

/* Append the member's result to documents. */
static int collect(const struct member *member, json_t *documents)
{
    size_t bytes;
    char *text = file_read_all(member->result, &bytes, "result");
    json_t *list = text ? load_any(member->label, text, bytes) : NULL;
    const int code =
        json_array_size(list) == 1 ? 0 : fail(ENODATA, "'%s' has no result", member->label);

    if (code == 0)
        json_array_append(documents, json_array_get(list, 0));
    json_decref(list);
    free(text);
    return code;
}

static int write_json(const char *path, json_t *documents, json_t *figures)
{
    json_t *members = json_pack("{s:O}", "beside", figures);
    json_t *document = members ? report_json_document(documents, members) : NULL;
    char *text = document ? report_json_text(document, REPORT_DIGITS) : NULL;
    int code = text ? 0 : -ENOMEM;

    if (text && strcmp(path, "-") == 0)
        puts(text);
    else if (text)
        code = report_write_file(path, text, strlen(text));
    free(text);
    json_decref(document);
    json_decref(members);
    return code;
}

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

static int show(const struct beside *beside, const struct job *jobs)
{
    const char *path = jobs[0].output.json;
    const bool has_text = !path || strcmp(path, "-") != 0;
    json_t *documents = json_array(), *list[BESIDE_MEMBERS], *figures = NULL;
    int code = 0;

    for (uint32_t i = 0; i < BESIDE_MEMBERS && has_text; i++)
        print_text(&beside->members[i]);
    for (uint32_t i = 0; i < BESIDE_MEMBERS && code == 0; i++) {
        code = collect(&beside->members[i], documents);
        list[i] = json_array_get(documents, i);
    }
    if (code == 0 && !(figures = beside_json(list, reads_same(jobs))))
        code = -ENOMEM;
    if (code == 0 && has_text)
        beside_text(stdout, figures);
    if (code == 0 && path)
        code = write_json(path, documents, figures);
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
        if (jobs[i].output.csv || jobs[i].output.series)
            return fail(EINVAL, "--beside writes --json only, no --csv and no --series");
    if (jobs[1].output.json &&
        (!jobs[0].output.json || strcmp(jobs[0].output.json, jobs[1].output.json) != 0))
        return fail(EINVAL, "--beside '--json %s': both jobs share one --json",
                    jobs[1].output.json);
    for (int i = 0; i < BESIDE_JOBS; i++) {
        struct job_plugins plugins;
        int code = job_choose(&jobs[i], &plugins);
        job_release(&plugins);
        if (code == 0 && jobs[i].read.data)
            code = arguments_check_data("data", jobs[i].read.data);
        if (code)
            return code;
    }
    return outputs_check(&jobs[0], "{\"schema\"", "label,valid");
}

static int begin(struct beside *beside, struct job *jobs, beside_work *work)
{
    uint32_t seed = (uint32_t)jobs[0].order_seed;
    int code = 0;

    if (!seed && getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return fail(EIO, "no random numbers: %s", fail_errno_text(errno));
    beside->order = random_start(seed);
    for (int i = 0; i < BESIDE_MEMBERS && code == 0; i++)
        code = start_member(beside, &jobs[i % BESIDE_JOBS],
                            i < BESIDE_JOBS ? "alone" : "beside the other", work);
    if (code == 0)
        code = sandbox_enter(beside->invocation, jobs, BESIDE_JOBS);
    command_on_interrupt(NULL);
    return code;
}

int beside_carry_out(const struct invocation *invocation, struct job *jobs, beside_work *work)
{
    struct beside beside = {.invocation = invocation};
    int status = COMMAND_OK;

    if (check(jobs))
        return command_misused(invocation);
    int code = begin(&beside, jobs, work);
    if (code == 0)
        code = carry_out_rounds(&beside, jobs[0].dry_run ? 0 : jobs[0].runs);
    if (code)
        status = command_failed(invocation);
    end_members(&beside, code);
    for (uint32_t i = 0; i < beside.started; i++)
        status = beside.members[i].status ? beside.members[i].status : status;
    if (code == 0 && show(&beside, jobs))
        status = command_failed(invocation);
    for (uint32_t i = 0; i < beside.started; i++) {
        close(beside.members[i].text);
        close(beside.members[i].result);
    }
    return status;
}
