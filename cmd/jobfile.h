/* SPDX-License-Identifier: Apache-2.0
 *
 * jobfile: jobs written in a file as for fio: sections with key=value or bare keys, [global] for
 * all that follow it, comments behind # or ; at the start of a line.
 * Main thread only.
 */
#ifndef IOBENCH_CMD_JOBFILE_H
#define IOBENCH_CMD_JOBFILE_H

#include "base/option.h"

struct jobfile_entry {
    char *key;
    char *value; /* NULL for a bare key */
    uint32_t line;
};

struct jobfile_section {
    char *name;
    bool global;
    size_t first, count; /* of entries */
};

struct jobfile {
    char *path;
    bool allow_commands; /* false after loading */
    struct jobfile_entry *entries;
    size_t entry_count;
    struct jobfile_section *sections;
    size_t section_count;
};

/* 0, or a negative errno with a reason "FILE:LINE: ..."; call jobfile_release() in either case.
 * Keys are checked when they are applied. */
int jobfile_load(const char *path, struct jobfile *jobfile);
int jobfile_parse(const char *path, const char *text, size_t bytes, struct jobfile *jobfile);
void jobfile_release(struct jobfile *jobfile);

/* Set the options of one section (not a global one) and of the global ones before it over
 * settings. Options that start programs (OPTION_RUNS) are refused unless jobfile->allow_commands.
 * 0 or a negative errno with a reason "FILE:LINE: ...". */
int jobfile_apply(const struct jobfile *jobfile, size_t section, const struct option_spec *table,
                  void *settings);

#endif
