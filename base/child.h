/* SPDX-License-Identifier: Apache-2.0
 *
 * child: other processes, and what this one has of its parent and leaves to its children.
 *
 * Runs another program and reports how it ended. It starts with no signal blocked and,
 * unless child_start() says otherwise, every signal at its default, whatever this process
 * inherited. SIGCHLD is at its default while a child runs, or the kernel would discard its status.
 * Main thread.
 */
#ifndef IOBENCH_BASE_CHILD_H
#define IOBENCH_BASE_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- a helper: runs alone, within a time limit ---- */

enum { CHILD_OUTPUT_BYTES = 256, CHILD_TEXT_BYTES = 32768 };

struct child_task {
    const char *const *argv; /* argv[0]: a path, or a name to find in PATH */
    int input;           /* a descriptor above 2; 0: /dev/null, so nothing asks for a password */
    int output;          /* a descriptor above 2; 0: captured like stderr */
    char *text;          /* CHILD_TEXT_BYTES for all of stdout; NULL: not wanted */
    const char *prefers; /* keep the last output line with this prefix, if any; NULL: the last
                          * line */
    uint64_t timeout_ns; /* 0: none */
    /* Called about ten times a second; true stops the program. May be NULL. */
    bool (*stop)(void *context);
    void *context;
};

struct child_result {
    int status;                      /* exit status; 128 + signal if a signal ended it */
    char output[CHILD_OUTPUT_BYTES]; /* last line printed; with a text, last line of stderr */
};

/* Run a program in its own process group. Returns 0 if it ran to its end, whatever its status.
 * Otherwise negative with a reason: -ETIMEDOUT, -EINTR (stopped, or base/stop.h), -EFBIG (output
 * larger than the text); in these cases its group gets SIGTERM, then SIGKILL. -ECHILD if another
 * part of this process reaped it, or why it did not start. Never waits for what the program leaves
 * behind, even if that keeps its output open. */
int child_run(const struct child_task *task, struct child_result *result);

/* ---- a command of the user: in the foreground, as if this program were not there ---- */

struct child {
    pid_t pid; /* 0: ended or never ran */
    int status;
    struct sigaction former;
};

/* Keeps descriptors, environment and process group; SIGHUP, SIGINT and SIGQUIT stay ignored if they
 * were (nohup, background jobs). Returns 0 or a negative errno with a reason. */
int child_start(struct child *child, const char *const *argv);

/* Has it ended? Never blocks. */
bool child_ended(struct child *child);

/* Return the exit status of an ended child, 128 + signal, or -ECHILD with a reason. */
int child_status(const struct child *child, const char *name);

/* ---- this program: undoes what its parent may have left behind. First call of main() ----
 *
 * Unblock all signals. Turn a closed pipe (SIGPIPE) and a file size limit (SIGXFSZ) into errors of
 * the write. Occupy closed descriptors 0, 1 and 2 with /dev/null, opened so that using them still
 * fails; otherwise the next file opened would become standard output. Raise a small limit of the
 * stack (ulimit -s) as far as that is allowed, and give threads, also those of libraries, the usual
 * stack in any case. */
void startup_undo_inherited(void);

#endif
