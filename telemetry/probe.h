/* SPDX-License-Identifier: Apache-2.0
 *
 * probe: read counters of the machine: disks, networks, processors. Values are raw, as the kernel
 * reports them; telemetry/series.h derives rates, and handles counters that wrapped, restarted or
 * were missing.
 *
 * open() lists a probe's metrics. sample() stores one number for each, without allocating; a value
 * that is unavailable (an unplugged device) is PROBE_MISSING. One thread opens, samples and closes.
 * Only telemetry/probe.c calls through the ops.
 *
 * The roots of the kernel's files (--proc-root, --sysfs-root) are arguments, so that a probe can
 * read a host's files from inside a container, or a test's.
 */
#ifndef IOBENCH_TELEMETRY_PROBE_H
#define IOBENCH_TELEMETRY_PROBE_H

#include "base/file.h"
#include "base/plugin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- files below /proc and /sys, and their text ---- */

/* Text of such a file: lines, words, numbers. Never reads past the end, allocates nothing. Any
 * thread. */
struct text {
    const char *at, *end;
};

/* Roots of the kernel's files. A container sees less than its host; the host's /sys, bind-mounted
 * elsewhere, shows the rest. */
struct telemetry_roots {
    const char *proc; /* "/proc" */
    const char *sys;  /* "/sys" */
};

extern const struct telemetry_roots telemetry_roots_usual;

struct procfile {
    int fd; /* -1: none */
    char *buffer;
    size_t buffer_bytes;
};

/* Open, and read once to size the buffer, with room for growth. Returns 0, or a negative errno with
 * a reason. Close in either case. */
int procfile_open(struct procfile *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void procfile_close(struct procfile *file); /* a zeroed one is fine */

/* Re-read; text that no longer fits is cut at a line end. Returns 0, or a negative errno without a
 * reason: -ENODEV if the device is gone. */
int procfile_read(struct procfile *file, struct text *text);

struct text text_of(const char *bytes, size_t count);
struct text text_of_string(const char *string);

/* Each consumes its part from the front of *text. Returns false if none is left. */
bool text_line(struct text *text, struct text *line);             /* without its newline */
bool text_word(struct text *text, struct text *word);             /* between blanks and tabs */
bool text_until(struct text *text, char mark, struct text *part); /* consumes the mark, too */

/* Consume a decimal number; if the next word is not a number, or does not fit, consume nothing. */
bool text_u64(struct text *text, uint64_t *value);
/* Consume the numbers that follow, at most these many. Returns how many. */
unsigned text_numbers(struct text *text, uint64_t *values, unsigned most);

bool text_is(struct text text, const char *string);
bool text_starts(struct text text, const char *prefix);
bool text_skip(struct text *text, const char *prefix); /* consume the prefix */

/* Copy with a NUL, truncated if longer. Returns copy. */
char *text_copy(struct text text, char *copy, size_t copy_bytes);

/* ---- probes ---- */

#define PROBE_MISSING UINT64_MAX

enum metric_kind {
    METRIC_COUNTER, /* grows; its rate is of interest */
    METRIC_LEVEL,   /* goes up and down */
};

enum { METRIC_PART_BYTES = 64, METRIC_QUANTITY_BYTES = 40 };

struct metric {
    const char *probe;                    /* "disk" */
    char part[METRIC_PART_BYTES];         /* "vda"; "" if there is only one */
    char quantity[METRIC_QUANTITY_BYTES]; /* "read_bytes": the quantity, with the unit last */
    enum metric_kind kind;
    uint8_t bits;   /* a counter wraps at 2 to the power of bits; 64: never */
    bool saturates; /* a 32-bit counter that stays at its maximum instead */
    uint32_t scale; /* raw number x scale = value in the unit of the name */
};

/* A row of a table of metrics over a struct of uint64_t fields. */
struct metric_row {
    const char *quantity; /* NULL ends the table */
    size_t offset;
    enum metric_kind kind;
    uint32_t scale; /* 0 is 1 */
};

struct metric_list {
    const char *probe; /* set by probe_open */
    struct metric *metrics;
    uint32_t count;
};

struct probe_site {
    const struct telemetry_roots *roots;
    const char *const *paths; /* the data, whose storage is probed */
    size_t path_count;
    const int *pids;  /* processes to watch, summed */
    size_t pid_count; /* 0: this one */
};

struct probe;

struct probe_ops {
    struct plugin plugin;
    /* Returns -ENOENT with a reason if this machine has nothing to probe. */
    int (*open)(struct probe *probe, const struct probe_site *site);
    void (*close)(struct probe *probe); /* after every open, failed ones too; NULL: nothing to do */
    /* values: one per metric, preset to PROBE_MISSING. */
    void (*sample)(const struct probe *probe, uint64_t *values);
};

extern const struct plugin *const probe_registry[];

struct probe {
    const struct probe_ops *ops;
    void *state;          /* the plug-in's, zeroed */
    const void *settings; /* until open() returns */
    struct metric_list metrics;
    struct procfile *files; /* opened by probe_add_file(), closed by probe.c */
    uint32_t file_count;
    /* A sample takes milliseconds or must not be taken often: use a thread of its own and at least
     * this interval. 0: neither. */
    uint64_t slow_interval_ns;
};

/* Returns 0 or a negative errno with a reason; close in either case. Does not call the plug-in's
 * usable(), which knows only the default roots. */
int probe_open(struct probe *probe, const struct plugin_choice *choice,
               const struct probe_site *site);
void probe_close(struct probe *probe);
void probe_sample(struct probe *probe, uint64_t *values);

/* ---- for probes ---- */

/* Open a file to be read again for each sample. Returns 0, or a negative errno with a reason; the
 * file is then not in the list. */
int probe_add_file(struct probe *probe, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add a metric and return it for further settings; NULL with a reason if out of memory. */
struct metric *metric_add(struct metric_list *list, const char *part, const char *quantity,
                          enum metric_kind kind, uint32_t scale);

int metric_add_rows(struct metric_list *list, const char *part, const struct metric_row *rows);

/* Store the numbers of a table's fields, or none; return the place after them. */
uint64_t *metric_put_rows(const struct metric_row *rows, const void *counters, uint64_t *values);
uint64_t *metric_skip_rows(const struct metric_row *rows, uint64_t *values);

#endif
