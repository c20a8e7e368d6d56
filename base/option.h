/* SPDX-License-Identifier: Apache-2.0
 *
 * option: tables of options, the only source for parsing, --help, the man page, completion, job
 * files and the settings part of a report.
 *
 * A table row says where in a settings struct its value lies. Text values are copied; free them
 * with option_release(). Not for use from two threads on one settings struct.
 */
#ifndef IOBENCH_BASE_OPTION_H
#define IOBENCH_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_FLAG,     /* bool; "--name", "--no-name", or yes|no|true|false|1|0 */
    OPTION_COUNT,    /* uint64_t, whole; 10, 10k (binary suffixes as fio) */
    OPTION_SIZE,     /* uint64_t bytes; 4096, 4k, 4KiB, 4KB */
    OPTION_REAL,     /* double */
    OPTION_DURATION, /* uint64_t nanoseconds; 10 (seconds), 10s, 5ms, 2m, 1h */
    OPTION_TEXT,     /* char *, NULL when unset and without a default */
    OPTION_CHOICE,   /* int, the index in choices */
};

/* What the program must be able to reach because an option was given: the sandbox lets it
 * (cmd/sandbox.h). An option that names a file or starts something says so here. */
enum option_reach {
    OPTION_REACHES_NOTHING,
    OPTION_READS,        /* this file or folder */
    OPTION_READS_SET,    /* this data set; of a file also those beside it */
    OPTION_INDEXES_SET,  /* the same, and an index is kept beside it */
    OPTION_WRITES,       /* this file, under another name until it is whole */
    OPTION_WRITES_IN,    /* this folder */
    OPTION_MAKES_SET,    /* this data set, of files that are moved from folder to folder */
    OPTION_MAKES_GROUPS, /* control groups */
    OPTION_RUNS,         /* a command */
    OPTION_CONNECTS,     /* TCP, when it is not at its default */
};

struct option_spec {
    const char *name; /* long name without dashes */
    char letter;      /* short form, 0 when none */
    enum option_type type;
    size_t offset;              /* offsetof(settings, field) */
    const char *fallback;       /* default, written as a user would; NULL: zero */
    const char *metavar;        /* NULL: taken from the type */
    const char *summary;        /* one line for --help */
    const char *section;        /* heading in --help, NULL: as the row before */
    const char *const *choices; /* for OPTION_CHOICE, NULL-terminated */
    const char *implied;        /* value of a bare "--name" where a value is optional
                                   (--drop-caches[=strict]), NULL: a value is required */
    double minimum, maximum;    /* for numbers; both 0: any */
    const char *zero;           /* for numbers: the word that means 0 ("auto", "none") */
    enum option_reach reach;
    bool per_second;   /* for sizes: a rate with its unit, 500MiB/s or 500MiB */
    bool percent;      /* for real numbers: 2 or 2% */
    bool repeats;      /* for texts: each time it is given it adds a line */
    const char *alias; /* former name: still accepted, and still the JSON key; NULL: none */
};

/* Set every field to its default. Returns 0, or -EINVAL when a default does not parse (a bug). */
int option_defaults(const struct option_spec *table, void *settings);

/* Parse one value into its field. where names the source in messages ("--iodepth", "job.ini:3"). */
int option_set(const struct option_spec *table, void *settings, const char *name, const char *value,
               const char *where);

/* Parse "value,key=value,..." (a plug-in's arguments) over the defaults. */
int option_set_list(const struct option_spec *table, void *settings, const char *list,
                    const char *where);

/* Find a row by its long name or alias. NULL if unknown. */
const struct option_spec *option_find(const struct option_spec *table, const char *name);

/* The value of a row as a user would write it, into text. Returns text. */
const char *option_text(const struct option_spec *row, const void *settings, char *text,
                        size_t text_bytes);

/* Free the text values of a settings struct. */
void option_release(const struct option_spec *table, void *settings);

/* Numbers with units. 0, or -EINVAL with a reason. */
int option_parse_count(const char *text, uint64_t *count);
int option_parse_size(const char *text, uint64_t *bytes);
int option_parse_duration(const char *text, uint64_t *nanoseconds);

#endif
