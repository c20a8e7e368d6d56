/* SPDX-License-Identifier: Apache-2.0
 *
 * option: option tables, the single source for parsing, --help, the man page, completion, job files
 * and the settings in a report.
 *
 * A row gives the offset of its value in a settings struct. Text values are copied; free them with
 * option_release(). One thread at a time per settings struct.
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

/* What the program must be able to reach because an option was given; the sandbox (cmd/sandbox.c)
 * allows nothing else. Every option that names a file or starts something sets it. */
enum option_reach {
    OPTION_REACHES_NOTHING,
    OPTION_READS,            /* read this file or folder */
    OPTION_READS_SET,        /* read this data set; for a file also its siblings */
    OPTION_INDEXES_SET,      /* the same, and keep an index beside it */
    OPTION_INDEXES_OPERANDS, /* (a flag) keep an index beside each data set among the operands */
    OPTION_WRITES,           /* write this file, through a draft beside it */
    OPTION_WRITES_IN,        /* write in this folder */
    OPTION_WRITES_COLD,      /* the same, and read it back from cold caches */
    OPTION_MAKES_SET,        /* create this data set, whose files move between folders */
    OPTION_MAKES_GROUPS,     /* control groups */
    OPTION_RUNS,             /* run a command */
    OPTION_CONNECTS,         /* use TCP, unless it has its default */
    OPTION_CACHES,           /* keep files in the user's cache folder, unless it has its default */
};

struct option_spec {
    const char *name; /* long name, without dashes */
    char letter;      /* short form, 0 when none */
    enum option_type type;
    size_t offset;              /* offsetof(settings, field) */
    const char *fallback;       /* default, as a user would write it; NULL: zero */
    const char *metavar;        /* NULL: by type */
    const char *summary;        /* one line for --help */
    const char *section;        /* heading in --help, NULL: as the previous row */
    const char *const *choices; /* for OPTION_CHOICE, NULL-terminated */
    const char *implied;        /* value of a bare "--name" if its value is optional
                                   (--drop-caches[=strict]); NULL: required */
    double minimum, maximum;    /* for numbers; both 0: any */
    const char *zero;           /* for numbers: the word that means 0 ("auto", "none") */
    enum option_reach reach;
    const char *begins; /* of a file to write: only one that begins alike is replaced; NULL: see
                           report_write_file() */
    bool per_second;    /* for sizes: a rate with a unit, 500MiB/s or 500MiB */
    bool percent;       /* for real numbers: 2 or 2% */
    bool repeats;       /* for texts: each occurrence adds a line */
};

/* Set every field to its default. Returns 0, or -EINVAL if a default does not parse (a bug). */
int option_defaults(const struct option_spec *table, void *settings);

/* Parse one value into its field. where: its source, for messages ("--iodepth", "job.ini:3"). */
int option_set(const struct option_spec *table, void *settings, const char *name, const char *value,
               const char *where);

/* Parse "value,key=value,..." (a plug-in's arguments) over the defaults. */
int option_set_list(const struct option_spec *table, void *settings, const char *list,
                    const char *where);

/* Find a row by its name. NULL if unknown. */
const struct option_spec *option_find(const struct option_spec *table, const char *name);

/* Offer the names of a table as what a mistyped option may have meant. */
struct nearest;
void option_offer(const struct option_spec *table, struct nearest *nearest);

/* Write the value of a row into text as a user would. Returns text. */
const char *option_text(const struct option_spec *row, const void *settings, char *text,
                        size_t text_bytes);

void option_release(const struct option_spec *table, void *settings);

/* Parse numbers with units. Return 0, or -EINVAL with a reason. */
int option_parse_count(const char *text, uint64_t *count);
int option_parse_size(const char *text, uint64_t *bytes);
int option_parse_duration(const char *text, uint64_t *nanoseconds);

struct option_list {
    const char *option; /* its name, for reasons */
    int (*parse)(const char *text, uint64_t *value);
    uint64_t most; /* largest value; the smallest is 1 */
    int count_most;
    bool is_ascending;
};
/* Parse "8,64,512". Returns the number of values, at least 1, or a negative errno with a reason. */
int option_parse_list(const struct option_list *list, const char *text, uint64_t *values);

/* ---- nearest ----
 *
 * What a mistyped name was meant to be. Offer every known name, then fail or hint. Names are
 * borrowed; one thread per struct. */

struct nearest {
    const char *wanted;
    const char *dashes; /* printed before the name in a hint: "--", default "" */
    const char *best;   /* NULL if none is near */
    unsigned distance;
    size_t known_bytes;
    char known[384]; /* the names offered: "a, b, c" */
    char hint[96];
};

struct nearest nearest_start(const char *wanted);
void nearest_offer(struct nearest *nearest, const char *name);

/* Return "; did you mean 'NAME'?", or "" if no name is near. Valid as long as nearest. */
const char *nearest_hint(struct nearest *nearest);

/* fail(code): "WHAT 'WANTED' (known: a, b, c); did you mean 'NAME'?" Returns -code. */
int nearest_fail(struct nearest *nearest, int code, const char *what);

/* ---- names ----
 *
 * A set of strings, numbered from 0 in insertion order, with constant-time lookup. One thread. */

struct names {
    char **texts; /* by number */
    uint32_t count;
    /* private */
    uint32_t *table; /* number + 1, 0 if free; open addressing */
    uint32_t slots;  /* a power of two, at least twice count */
    uint64_t probes; /* slots probed so far, for tests */
};

/* Return the number of a string of `length` bytes, inserting it if new, or -ENOMEM with a
 * reason. */
int64_t names_number(struct names *names, const char *text, size_t length);
bool names_has(struct names *names, const char *text);
void names_release(struct names *names);

#endif
