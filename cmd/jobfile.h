/* SPDX-License-Identifier: Apache-2.0
 *
 * jobfile: parses job files like those of fio: sections of key=value or bare keys, [global] for all
 * later sections, comments on lines that start with # or ;. Main thread only.
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
    size_t first, count; /* range of entries */
};

struct jobfile {
    char *path;
    bool allow_commands; /* false after jobfile_load() */
    struct jobfile_entry *entries;
    size_t entry_count;
    struct jobfile_section *sections;
    size_t section_count;
};

/* Always call jobfile_release(). Keys are checked when applied. Returns 0, or a negative errno with
 * a reason "FILE:LINE: ...". */
int jobfile_load(const char *path, struct jobfile *jobfile);
int jobfile_parse(const char *path, const char *text, size_t bytes, struct jobfile *jobfile);
void jobfile_release(struct jobfile *jobfile);

/* Apply the options of one section (not a global one) and of the global sections before it. Options
 * that run commands (OPTION_RUNS) need jobfile->allow_commands. Returns 0, or a negative errno with
 * a reason "FILE:LINE: ...". */
int jobfile_apply(const struct jobfile *jobfile, size_t section, const struct option_spec *table,
                  void *settings);

#endif
