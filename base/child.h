/* SPDX-License-Identifier: Apache-2.0
 *
 * child: start another program and learn how it ended. It starts with no signal blocked and, but
 * for what child_start() says, with every signal at its default, whatever this process inherited.
 * SIGCHLD is at its default while a child runs, else the kernel would forget how it ended.
 * Main thread.
 */
#ifndef IOBENCH_BASE_CHILD_H
#define IOBENCH_BASE_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* ---- a helper: runs alone, within a time limit ---- */

enum { CHILD_OUTPUT_BYTES = 256, CHILD_TEXT_BYTES = 32768 };

struct child_task {
    const char *const *argv; /* argv[0]: a path, or a name to find in PATH */
    int input;               /* a descriptor above 2; 0: /dev/null, so nobody asks for a password */
    int output;              /* a descriptor above 2; 0: kept as the errors are */
    char *text;              /* CHILD_TEXT_BYTES for all of its standard output; NULL: none */
    uint64_t timeout_ns;     /* 0: none */
    /* Called about ten times a second; true ends the program. May be NULL. */
    bool (*stop)(void *context);
    void *context;
};

struct child_result {
    int status;                      /* exit status; 128 + signal when one ended it */
    char output[CHILD_OUTPUT_BYTES]; /* the last line that it printed; with a text, of its errors */
};

/* Run a program in a process group of its own. 0 when it ran to its end, whatever its status.
 * Negative with a reason: -ETIMEDOUT, -EINTR (stopped), -EFBIG (more than fits into the text; its
 * group gets SIGTERM, then SIGKILL, after each of them), -ECHILD (it ended, but another part of
 * this process took its status), or it could not be started. Never waits for what the program
 * leaves behind, even when that keeps its output. */
int child_run(const struct child_task *task, struct child_result *result);

/* End what child_run() runs, and start nothing more. From signal handlers. */
void child_interrupt(void);
bool child_is_interrupted(void);

/* ---- a command of the user: in the foreground, as if this program were not there ---- */

struct child {
    pid_t pid; /* 0: it has ended or never ran */
    int status;
    struct rusage usage; /* of it and of the children that it waited for */
    struct sigaction former;
};

/* Descriptors, environment and process group stay; SIGHUP, SIGINT and SIGQUIT stay ignored where
 * they were (nohup, a shell's background). 0 or a negative errno with a reason. */
int child_start(struct child *child, const char *const *argv);

/* True when it has ended; never waits. */
bool child_ended(struct child *child);

/* The exit status of one that ended, 128 + signal, or -ECHILD with a reason. */
int child_status(const struct child *child, const char *name);

#endif
