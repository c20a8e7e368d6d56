/* SPDX-License-Identifier: Apache-2.0
 *
 * command: a command of the program. To add one: a file with a const struct command, its
 * declaration in cmd/commands.h and a row in cmd/registry.c; parsing, --help, the manual page and
 * completion follow from its option table.
 *
 * Commands run on the main thread. Data goes to stdout, progress and errors to stderr.
 */
#ifndef IOBENCH_CMD_COMMAND_H
#define IOBENCH_CMD_COMMAND_H

#include "base/option.h"
#include "base/plugin.h"
#include "ranks/ranks.h"
#include "telemetry/guard.h"

enum command_exit {
    COMMAND_OK = 0,
    COMMAND_FAILED = 1, /* failed, or the result is not valid */
    COMMAND_USAGE = 2,  /* usage error; nothing was done */
};

struct arguments_scope;
struct command;

/* One call of a command. */
struct invocation {
    const struct command *command;
    void *settings;      /* settings_size bytes: defaults, overridden by the command line */
    int count;           /* operands: arguments that are not options */
    char **operands;     /* NULL-terminated */
    int behind;          /* index of the first operand after "--"; count without "--" */
    int sandbox;         /* enum sandbox_wanted */
    bool allow_commands; /* in job files */
    int argc;            /* the arguments as given, without program and command name */
    char **argv;
    /* Jobs of other commands that run in the same process, for the sandbox; or NULL. */
    const struct invocation *more;
    size_t more_count;
};

struct command {
    const char *name;
    const char *summary;                    /* one line, no full stop */
    const char *operands;                   /* shown in usage: "SOURCE TARGET"; NULL: none */
    int operands_minimum, operands_maximum; /* maximum -1: any number */
    enum option_reach operands_reach[2];    /* of the first, and of the others */
    bool operands_exist;                    /* main() checks the operands that are read */
    bool is_confined; /* main() confines it before it runs; else it confines itself, or parses no
                      untrusted input */
    /* A section of a job file may be one (cmd/run/run.c): check it before any job of the file runs.
     * Returns 0 or -EINVAL with a reason. NULL: it may not. */
    int (*check)(const struct invocation *invocation);
    const char *description;           /* paragraphs for help and manual page; may be NULL */
    const char *examples;              /* lines "COMMAND\tWHAT IT DOES\n"; may be NULL */
    const struct option_spec *options; /* ends with a NULL name; may be NULL */
    size_t settings_size;
    /* Fill a scope with the options of another command that this one also takes. Returns 0 or
     * -EINVAL with a reason. NULL: there are none. */
    int (*adopt)(const struct invocation *invocation, struct arguments_scope *scope);
    int (*run)(const struct invocation *invocation); /* returns enum command_exit */
};

extern const struct command *const command_registry[];

/* NULL if unknown. */
const struct command *command_find(const char *name);

/* Plug-ins of a kind. */
struct family {
    const char *name;   /* "reader" */
    const char *option; /* option of `iobench run` that selects a member */
    const char *summary;
    const struct plugin *const *registry;
};

extern const struct family family_table[]; /* ends with a NULL name */

/* Print the last failure (base/fail.h) to stderr. Returns COMMAND_FAILED. */
int command_failed(const struct invocation *invocation);
/* For one process of several that leaves reporting to others: fail after them, since a launcher
 * ends all processes when the first one fails. Waits seconds; returns COMMAND_FAILED. */
int command_fails_last(void);

/* The same, before ranks join, for what this process's host lacks: one process of each host prints.
 */
int command_unusable(const struct invocation *invocation);

/* The same for a usage error, with a hint at the command's help. Returns COMMAND_USAGE. */
int command_misused(const struct invocation *invocation);

/* The full command line, as typed. */
void command_text(const struct invocation *invocation, char *text, size_t bytes);

/* On SIGINT, SIGTERM and, unless ignored, SIGHUP: stop_ask(); a second signal ends the program.
 * Uses its own signal stack: oneDNN's matrix kernels point the stack register into a buffer with
 * one page below it, and a signal frame with vector registers is larger. */
void command_on_interrupt(void);

/* Report on standard error what makes rates worthless. Returns how bad it is; mere notices are not
 * printed. */
enum guard_grade command_guard(const struct guard_counts *counts);

/* ranks_join(); rank 0 reports on stderr which ranks it is waiting for. */
int command_join(struct ranks *ranks);
/* ranks_leave(), or keep the ranks for the next command_join(). */
void command_leave(struct ranks *ranks, bool failed);

/* Jobs of several commands in one process: MPI can be joined only once. From the call to keep until
 * the call to part, command_leave() keeps the ranks joined. */
void command_keep_ranks(void);
void command_part_ranks(bool failed);
/* Collective: return whether no rank was interrupted and all can still be heard. */
bool command_may_go_on(void);

/* Fail unless `measured` reaches a goal; 0 is no goal. Returns 0 or -ERANGE with a reason. */
int command_reach(const char *option, double measured, double required, const char *unit);

/* Return the path to start this program by, from the environment if the dynamic loader was started
 * by name. The caller frees it. NULL with a reason. */
char *program_path(void);

/* Return a number that is the same for equal builds only: of the build ID written by the linker. */
uint64_t program_build(void);

/* --sandbox */
enum sandbox_wanted { SANDBOX_AUTO, SANDBOX_YES, SANDBOX_NO };
extern const char *const sandbox_choices[];

/* Before parsing untrusted files, the program gives up every right that the command does not need
 * (docs/security.md). The needs follow from the option tables (enum option_reach), according to
 * `count` settings of its table, each settings_size bytes, from the operands and from its `more`
 * jobs. Before any other thread starts. SANDBOX_AUTO confines only root, if the kernel can, and not
 * the ranks of an MPI job, which read each other's memory. Returns 0, or a negative errno with a
 * reason. */
int sandbox_enter(const struct invocation *invocation, const void *settings, size_t count);

/* Options of every command; main() handles --help and --version. */
enum help_wanted { HELP_NO, HELP_YES, HELP_ALL };
struct common_settings {
    int help; /* enum help_wanted */
    bool version;
    int sandbox; /* enum sandbox_wanted */
    bool allow_commands;
};
extern const struct option_spec common_options[];

/* In cmd/help/help.c: usage texts generated from the option tables. */
void help_program(void); /* commands and most used options */
void help_command(const struct command *command);
void help_everything(void); /* every command and plug-in, with all options */

#endif
