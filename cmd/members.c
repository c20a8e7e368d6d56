/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/members.h"

#include "base/child.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/stop.h"
#include "report/report.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL_MS = 200 };

/* Messages between parent and members. */
enum letter_kind { LETTER_GO = 'g', LETTER_TURN = 't', LETTER_READY = 'r' };

struct letter {
    char kind;
    uint32_t rank, ranks; /* the part of the set to read, before the first turn; ranks 0: none */
};

/* ---- in a member ---- */

/* Wait for a letter or for the other process to end. */
static int await(int socket, struct letter *letter)
{
    struct pollfd ready = {.fd = socket, .events = POLLIN};

    for (;;) {
        if (flag_get(&stop_asked))
            return stop_check();
        if (poll(&ready, 1, POLL_MS) <= 0)
            continue;
        const ssize_t count = recv(socket, letter, sizeof *letter, 0);
        if (count == sizeof *letter)
            return 0;
        if (count >= 0 || errno != EINTR)
            return fail(EPIPE, "the other job ended");
    }
}

static int say(int socket, const struct letter *letter)
{
    return send(socket, letter, sizeof *letter, MSG_NOSIGNAL) == sizeof *letter
               ? 0
               : fail(EPIPE, "the other job ended");
}

int member_wait(void *gate, enum run_gate what)
{
    const int line = *(const int *)gate;
    struct letter letter = {.kind = what == RUN_GATE_TURN ? LETTER_TURN : LETTER_READY};
    int code = say(line, &letter);

    return code ? code : await(line, &letter);
}

/* ---- starting them ---- */

static int make_file(void)
{
    int file = memfd_create("member", MFD_CLOEXEC);

    return file < 0 ? fail(errno, "cannot create a file in memory: %s", fail_errno_text(errno))
                    : file;
}

int members_start(struct members *members, const struct job *job, const char *what,
                  member_work *work)
{
    struct member *member = &members->list[members->started];
    int ends[2];

    assert(members->started < MEMBERS_MAX);
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
        /* The child, which never returns. */
        const int line = ends[1];
        json_t *documents = json_array();
        struct letter letter;
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        for (uint32_t i = 0; i < members->started; i++)
            close(members->list[i].socket); /* or their owners would not see the peer's end */
        dup2(member->text, STDOUT_FILENO);
        if (members->keeps_messages)
            dup2(member->text, STDERR_FILENO);
        int status = COMMAND_FAILED;
        if (documents && await(line, &letter) == 0) {
            if (letter.ranks) {
                ranks_stay_alone();
                member->job.order.rank = letter.rank;
                member->job.order.ranks = letter.ranks;
            }
            status = work(members->invocation, &member->job, &line, documents);
        }
        char *text = json_to_text(documents, JSON_COMPACT);
        if (text)
            file_write_at(member->result, text, strlen(text), 0, "result");
        free(text);
        fflush(stdout);
        _exit(status);
    }
    close(ends[1]);
    members->started++;
    return member->pid < 0 ? fail(errno, "cannot start a process: %s", fail_errno_text(errno)) : 0;
}

/* ---- scheduling them ---- */

static void close_socket(struct member *member)
{
    if (member->socket >= 0)
        close(member->socket);
    member->socket = -1;
}

/* Wait until the member sends that letter or ends. Returns 0, or -errno with a reason. */
static int hear(struct member *member, char expected, bool may_end)
{
    struct letter letter = {0};

    int code = member->socket < 0 ? -EPIPE : await(member->socket, &letter);
    if (code == -EPIPE) {
        close_socket(member);
        return may_end ? 0 : fail(ECHILD, "'%s' ended early", member->label);
    }
    return code == 0 && letter.kind != expected ? fail(EPROTO, "'%s' is out of step", member->label)
                                                : code;
}

static int send_letter(const struct member *member, const struct letter *letter)
{
    return member->socket < 0 ? fail(ECHILD, "'%s' ended early", member->label)
                              : say(member->socket, letter);
}

int members_prepare(struct members *members, uint32_t rank, uint32_t ranks)
{
    const struct letter letter = {.kind = LETTER_GO, .rank = rank, .ranks = ranks};
    int code = 0;

    for (uint32_t i = 0; i < members->started && code == 0; i++) {
        code = send_letter(&members->list[i], &letter);
        if (code == 0)
            code = hear(&members->list[i], LETTER_TURN, false);
    }
    return code;
}

int members_go(struct members *members, unsigned stage)
{
    const struct letter letter = {.kind = LETTER_GO};
    int code = 0;

    for (uint32_t i = 0; i < members->started && code == 0; i++)
        if (stage & 1U << i)
            code = send_letter(&members->list[i], &letter);
    return code;
}

static int hear_stage(struct members *members, unsigned stage, char expected, bool may_end)
{
    int code = 0;

    for (uint32_t i = 0; i < members->started && code == 0; i++)
        if (stage & 1U << i)
            code = hear(&members->list[i], expected, may_end);
    return code;
}

int members_ready(struct members *members, unsigned stage)
{
    int code = members_go(members, stage);

    return code ? code : hear_stage(members, stage, LETTER_READY, false);
}

bool members_have_ended(struct members *members, unsigned stage)
{
    for (uint32_t i = 0; i < members->started; i++) {
        struct pollfd ready = {.fd = members->list[i].socket, .events = POLLIN};
        if (stage & 1U << i && ready.fd >= 0 && poll(&ready, 1, 0) == 0)
            return false;
    }
    return true;
}

int members_await(struct members *members, unsigned stage, bool is_last)
{
    return hear_stage(members, stage, LETTER_TURN, is_last);
}

void members_end(struct members *members, int code)
{
    for (uint32_t i = 0; i < members->started; i++)
        if (code && members->list[i].pid > 0)
            kill(members->list[i].pid, SIGTERM);
    for (uint32_t i = 0; i < members->started; i++) {
        struct member *member = &members->list[i];
        int status = 0;
        close_socket(member);
        while (member->pid > 0 && waitpid(member->pid, &status, 0) < 0 && errno == EINTR)
            ;
        member->pid = 0;
        member->status = WIFEXITED(status) ? WEXITSTATUS(status) : COMMAND_FAILED;
    }
}

/* ---- results ---- */

void members_print(const struct member *member)
{
    size_t bytes;
    char *text = file_read_all(member->text, &bytes, "result");

    if (text && bytes)
        printf("%s\n", text);
    free(text);
}

char *members_reason(const struct member *member)
{
    static const char mark[] = "iobench run: ";
    size_t bytes;
    char *text = file_read_all(member->text, &bytes, "result"), *reason = NULL;

    for (char *at = text; at && (at = strstr(at, mark)); at += sizeof mark - 1)
        if (at == text || at[-1] == '\n') {
            free(reason);
            reason = strndup(at + sizeof mark - 1, strcspn(at + sizeof mark - 1, "\n"));
        }
    free(text);
    return reason;
}

int members_collect(const struct member *member, json_t *documents)
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

void members_release(struct members *members)
{
    for (uint32_t i = 0; i < members->started; i++) {
        close(members->list[i].text);
        close(members->list[i].result);
    }
}
