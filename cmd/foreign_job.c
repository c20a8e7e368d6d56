/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/foreign_job.h"

#include "base/fail.h"
#include "ranks/ranks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WORD_BYTES = 256, JOB_BYTES = 2048 };

/* A line of their file, and the one of ours that does the same; %s: their value. */
struct translation {
    const char *key, *value; /* value NULL: any */
    const char *line;        /* NULL: none */
    bool is_mark;            /* no job file of ours has this key */
};

struct program {
    const char *title;
    char separator;     /* between key and value */
    const char *always; /* lines */
    struct translation lines[20];
};

static const struct program programs[] = {
    {"a job file of fio",
     '=',
     "decode=none\ndrop-caches=yes\n",
     {{"ioengine", NULL, NULL, true},
      {"rw", "read", "shuffle=none", true},
      {"readwrite", "read", "shuffle=none", true},
      {"rw", "write", "# writes: iobench checkpoint FOLDER", true},
      {"rw", "randwrite", "# writes: iobench checkpoint FOLDER", true},
      {"rw", NULL, NULL, true},
      {"readwrite", NULL, NULL, true},
      {"bs", NULL, "# a read is as large as its records, not %s", false},
      {"blocksize", NULL, "# a read is as large as its records, not %s", true},
      {"numjobs", NULL, "io-threads=%s", true},
      {"filename", NULL, "data=%s", false},
      {"directory", NULL, "data=%s", false},
      {"iodepth", NULL, "iodepth=%s", false},
      {"direct", "1", "direct=yes", false},
      {"loops", NULL, "epochs=%s", false}}},
    {"a configuration of DLIO",
     ':',
     "drop-caches=yes\n",
     {{"data_folder", NULL, "data=%s", true},
      {"num_files_train", NULL, NULL, true},
      {"record_length", NULL, NULL, true},
      {"computation_time", NULL, NULL, true},
      {"name", "unet3d", "workload=unet3d-h100", false},
      {"name", "resnet50", "workload=resnet50-h100", false},
      {"name", "cosmoflow", "workload=cosmoflow-h100", false},
      {"format", "tfrecord", "format=shards", false},
      {"format", NULL, "# %s is not read: 'iobench pack' makes a set of the same sizes", false},
      {"batch_size", NULL, "batch-size=%s", false},
      {"read_threads", NULL, "decode-threads=%s", false},
      {"epochs", NULL, "epochs=%s", false}}},
};

/* Split a line into key and value, without blanks and quotes. Returns false if it has no key. */
static bool split(const char *line, char separator, char *key, char *value)
{
    char format[32];

    snprintf(format, sizeof format, " %%%d[a-z0-9_] %c %%%d[^\n]", WORD_BYTES - 1, separator,
             WORD_BYTES - 1);
    value[0] = '\0';
    if (sscanf(line, format, key, value) < 1 || !strchr(line, separator))
        return false;
    size_t quoted = value[0] == '"' || value[0] == '\'';
    memmove(value, value + quoted, strlen(value + quoted) + 1);
    value[strcspn(value, " \t\r\"'#;")] = '\0';
    return true;
}

/* Add our line for one of theirs. Returns whether its key is a mark of the program. */
static bool translate(const struct program *program, const char *key, const char *value, char *job)
{
    const struct translation *row = program->lines;
    size_t used = strlen(job);

    while (row->key &&
           (strcmp(row->key, key) != 0 || (row->value && strcmp(row->value, value) != 0)))
        row++;
    if (!row->key)
        return false;
    if (row->line && value[0] && strlen(row->line) + strlen(value) + 2 < JOB_BYTES - used) {
        used += (size_t)snprintf(job + used, JOB_BYTES - used, row->line, value);
        snprintf(job + used, JOB_BYTES - used, "\n");
    }
    return row->is_mark;
}

static int check(const struct program *program, const char *path, const char *text)
{
    char key[WORD_BYTES], value[WORD_BYTES], job[JOB_BYTES] = "";
    bool is_theirs = false;

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (split(line, program->separator, key, value))
            is_theirs |= translate(program, key, value, job);
    }
    if (!is_theirs)
        return 0;
    if (ranks_speaks())
        printf("[job]\n%s%s%s", strstr(job, "data=") ? "" : "data=PATH\n", job, program->always);
    return fail(EINVAL, "%s: %s; the nearest job of iobench is on standard output", path,
                program->title);
}

int foreign_job_check(const char *path, const char *text)
{
    int code = 0;

    if (text[strspn(text, " \t\r\n")] == '{' && strstr(text, "\"schema\""))
        return fail(EINVAL,
                    "%s: a result, not a job file: read it with 'iobench report', 'iobench "
                    "compare' or 'iobench plot'",
                    path);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0] && code == 0; i++)
        code = check(&programs[i], path, text);
    return code;
}
