/* SPDX-License-Identifier: Apache-2.0
 *
 * probe: reads counters of the machine: disks, networks, processors. It hands out raw numbers as
 * the kernel gives them; rates are made afterwards (telemetry/series.h), where a counter that
 * wrapped, restarted or was missing is told apart.
 *
 * A probe says at open() which metrics it has. sample() then fills one number for each, without
 * allocating; what is gone for the moment (a device that was unplugged) is PROBE_MISSING.
 * One thread opens, samples and closes. Only telemetry/probe.c calls through the ops.
 *
 * Options that say where the kernel's files are (--proc-root, --sysfs-root) are in the site, so
 * that a probe may look at a host's files from inside a container, or at a test's.
 */
#ifndef IOBENCH_TELEMETRY_PROBE_H
#define IOBENCH_TELEMETRY_PROBE_H

#include "base/plugin.h"
#include "telemetry/procfile.h"

#define PROBE_MISSING UINT64_MAX

enum metric_kind {
    METRIC_COUNTER, /* grows; its rate is of interest */
    METRIC_LEVEL,   /* goes up and down */
};

enum { METRIC_PART_BYTES = 64, METRIC_QUANTITY_BYTES = 40 };

struct metric {
    const char *probe;                    /* "disk" */
    char part[METRIC_PART_BYTES];         /* "vda"; "" when there is but one */
    char quantity[METRIC_QUANTITY_BYTES]; /* "read_bytes": what, and the unit last */
    enum metric_kind kind;
    uint8_t bits;   /* a counter wraps at 2 to the power of bits; 64: never */
    bool saturates; /* a 32-bit counter that stays at its maximum instead */
    uint32_t scale; /* a raw number times scale is in the unit of the name */
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
    const char *const *paths; /* the data; probes of storage look beneath it */
    size_t path_count;
    const int *pids;  /* the processes that are watched, together */
    size_t pid_count; /* 0: this one */
};

struct probe_traits {
    struct metric_list metrics;
    /* A sample takes milliseconds or must not be taken often: it then gets a thread of its own,
     * and is asked no faster than this. 0: neither. */
    uint64_t slow_interval_ns;
};

struct probe_ops {
    struct plugin plugin;
    /* -ENOENT with a reason when this machine has nothing of the kind. */
    int (*open)(void *state, const void *settings, const struct probe_site *site,
                struct probe_traits *traits);
    void (*close)(void *state); /* after every open, failed ones too */
    /* values: one for each metric, all PROBE_MISSING when called. */
    void (*sample)(void *state, uint64_t *values);
};

extern const struct plugin *const probe_registry[];

struct probe {
    const struct probe_ops *ops;
    void *state;
    struct probe_traits traits;
};

/* 0 or a negative errno with a reason; close in either case. The plug-in's usable(), which knows
 * the usual roots alone, is not asked. */
int probe_open(struct probe *probe, const struct plugin_choice *choice,
               const struct probe_site *site);
void probe_close(struct probe *probe);
void probe_sample(struct probe *probe, uint64_t *values);

/* ---- for probes ---- */

/* One metric; returns it for further settings, NULL with a reason when memory is short. */
struct metric *metric_add(struct metric_list *list, const char *part, const char *quantity,
                          enum metric_kind kind, uint32_t scale);

/* All rows of a table for one part. 0 or -ENOMEM. */
int metric_add_rows(struct metric_list *list, const char *part, const struct metric_row *rows);

/* The numbers of a table's fields; returns the place behind them. */
uint64_t *metric_put_rows(const struct metric_row *rows, const void *counters, uint64_t *values);
uint64_t *metric_skip_rows(const struct metric_row *rows, uint64_t *values);

#endif
