/* SPDX-License-Identifier: Apache-2.0
 *
 * command: what a command of the program is. Adding one is one file with a const struct command,
 * its declaration in cmd/commands.h and a row in cmd/registry.c; parsing, --help, the manual page
 * and completion follow from its option table.
 *
 * Commands run on the main thread. Data goes to stdout, progress and errors to stderr.
 */
#ifndef IOBENCH_CMD_COMMAND_H
#define IOBENCH_CMD_COMMAND_H

#include "base/option.h"
#include "ranks/ranks.h"

enum command_exit {
    COMMAND_OK = 0,
    COMMAND_FAILED = 1, /* it failed, or its result is not valid */
    COMMAND_USAGE = 2,  /* it was asked wrongly; nothing was done */
};

struct command;

/* One call of a command. */
struct invocation {
    const struct command *command;
    void *settings;      /* settings_size bytes: defaults, then what the command line says */
    int count;           /* operands: what is no option */
    char **operands;     /* NULL-terminated */
    int behind;          /* index of the first operand behind "--"; count when there was no "--" */
    int sandbox;         /* enum sandbox_wanted */
    bool allow_commands; /* of job files */
    int argc;            /* the arguments as given, without program and command name */
    char **argv;
};

struct command {
    const char *name;
    const char *summary;                    /* one line, no full stop */
    const char *operands;                   /* as shown in usage: "SOURCE TARGET"; NULL: none */
    int operands_minimum, operands_maximum; /* maximum -1: any number */
    enum option_reach operands_reach[2];    /* of the first one, and of those after it */
    bool is_confined;        /* main() confines it before it runs; else it does so itself, or parses
                                nothing that others made */
    const char *description; /* paragraphs for help and manual page; may be NULL */
    const char *examples;    /* lines "COMMAND\tWHAT IT DOES\n"; may be NULL */
    const struct option_spec *options; /* ends with a row whose name is NULL; may be NULL */
    size_t settings_size;
    int (*run)(const struct invocation *invocation); /* an enum command_exit */
};

extern const struct command *const command_registry[];

/* NULL when there is none. */
const struct command *command_find(const char *name);

/* Print the reason of the last failure (base/fail.h) to stderr. Returns COMMAND_FAILED. */
int command_failed(const struct invocation *invocation);

/* The same for a wrong request, with a hint at the command's help. Returns COMMAND_USAGE. */
int command_misused(const struct invocation *invocation);

/* The whole command line, as it would be typed. */
void command_text(const struct invocation *invocation, char *text, size_t bytes);

/* SIGINT, SIGTERM and, unless it is ignored, SIGHUP end what child_run() runs and call handler (may
 * be NULL), once: a second one ends the program. On a stack of its own:
 * oneDNN's matrix kernels point the stack register into memory that holds a page beneath it, and a
 * signal's frame with vector registers is larger. */
void command_on_interrupt(void (*handler)(int number));

/* ranks_join(), and rank 0 says on stderr which ranks it has been waiting for. */
int command_join(struct ranks *ranks);

#endif
