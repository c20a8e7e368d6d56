/* SPDX-License-Identifier: Apache-2.0
 *
 * jobfile: job files like those of fio: a section (base/profiles/profiles.h) is a job, and [global]
 * applies to all later sections. Main thread only.
 */
#ifndef IOBENCH_CMD_JOBFILE_H
#define IOBENCH_CMD_JOBFILE_H

#include "base/option.h"
#include "base/profiles/profiles.h"

struct jobfile {
    struct ini ini;
    size_t *globals; /* sections */
    size_t global_count;
    bool allow_commands; /* false after jobfile_load() */
};

/* Always call jobfile_release(). Keys are checked when applied. Returns 0, or a negative errno with
 * a reason "FILE:LINE: ...". */
int jobfile_load(const char *path, struct jobfile *jobfile);
int jobfile_parse(const char *path, const char *text, size_t bytes, struct jobfile *jobfile);
void jobfile_release(struct jobfile *jobfile);

bool jobfile_is_global(const struct jobfile *jobfile, size_t section);

/* Apply the options of one section (not a global one) and of the global sections before it. Options
 * that run commands (OPTION_RUNS) need jobfile->allow_commands. Returns 0, or a negative errno with
 * a reason "FILE:LINE: ...". */
int jobfile_apply(const struct jobfile *jobfile, size_t section, const struct option_spec *table,
                  void *settings);

/* The lines of a section in which options are given, by their rows in the table; 0: not yet. */
enum { JOBFILE_OPTIONS_MOST = 256 };
struct jobfile_lines {
    uint32_t of[JOBFILE_OPTIONS_MOST];
};

/* The same with one line of it. */
int jobfile_apply_entry(const struct jobfile *jobfile, const struct ini_entry *entry,
                        const struct option_spec *table, void *settings,
                        struct jobfile_lines *lines);

#endif
