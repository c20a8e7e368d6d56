/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench monitor: shows storage, fabric and CPU activity while any program runs. One line per
 * interval, as a table or as JSON; with a command also a summary of what it used.
 */
#include "base/atomic.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/draft.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/stop.h"
#include "base/file.h"
#include "cmd/commands.h"
#include "report/report.h"
#include "report/words.h"
#include "telemetry/series.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TABLE_HEADER_LINES = 20, ROWS = 2048, TIME_WIDTH = 8, COLUMN_WIDTH = 8 };

static const uint64_t nap_ns = 5000000;

struct monitor_settings {
    uint64_t interval_ns, sample_ns, count;
    char *json, *probes, *proc_root, *sysfs_root;
};

static const struct option_spec monitor_options[] = {
    {"interval", 'i', OPTION_DURATION, offsetof(struct monitor_settings, interval_ns), "1s",
     .minimum = 0.01, .maximum = 86400, .summary = "interval between lines"},
    {"sample-interval", 0, OPTION_DURATION, offsetof(struct monitor_settings, sample_ns), "100ms",
     .minimum = 0.01, .maximum = 86400, .summary = "interval between readings of the counters"},
    {"count", 'c', OPTION_COUNT, offsetof(struct monitor_settings, count), "0", .zero = "endless",
     .summary = "stop after this many lines"},
    {"json", 0, OPTION_TEXT, offsetof(struct monitor_settings, json), .metavar = "FILE",
     .implied = "-",
     .summary = "write JSON instead, one object per line; to standard output without FILE"},
    {"probes", 0, OPTION_TEXT, offsetof(struct monitor_settings, probes), .metavar = "NAME,...",
     .summary = "only these probes; default: all that have something to count"},
    {"proc-root", 0, OPTION_TEXT, offsetof(struct monitor_settings, proc_root), "/proc",
     .metavar = "DIR", .summary = "mount point of proc"},
    {"sysfs-root", 0, OPTION_TEXT, offsetof(struct monitor_settings, sysfs_root), "/sys",
     .metavar = "DIR", .summary = "mount point of sysfs, such as the host's in a container"},
    {0},
};

/* A figure over the whole time. */
struct monitor_summary {
    double peak;
    double area;   /* sum of figure times weight */
    double weight; /* seconds in which it was known; for per-read figures, reads */
};

struct watch {
    const struct monitor_settings *settings;
    struct sampler *sampler;
    FILE *json;
    uint64_t start_ns, last_ns, lines;
    double values[MONITOR_FIGURES];
    double interval_s;             /* length of the interval */
    bool columns[MONITOR_FIGURES]; /* columns of the table: figures with a probe that fit */
    struct monitor_summary summaries[MONITOR_FIGURES];
    int code; /* error that made the lines incomplete */
};

/* ---- signals ---- */

static volatile sig_atomic_t pending[NSIG]; /* to forward to the command */

/* Signals from the kernel (Ctrl-C in a terminal) already reach the command. */
static void on_signal_for_command(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code <= 0)
        pending[number] = 1;
}

static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/* ---- a line ---- */

/* Intervals end at rows, not at clock readings: a row being written now has an earlier time stamp
 * and belongs to the next line. */
static void take_rows(void *context, const struct series *series)
{
    struct watch *watch = context;
    uint64_t row_ns = series_time_ns(series, series->row_count - 1);

    monitor_take(series, watch->last_ns, row_ns, watch->values);
    watch->interval_s = (double)(row_ns - watch->last_ns) / 1e9;
    watch->last_ns = row_ns;
}

/* ---- how long ---- */

/* child: the command whose exit ends the monitor, or NULL. */
static void watch_until_end(struct watch *watch, struct child *child)
{
    uint64_t deadline_ns = watch->start_ns;
    bool ended = false;

    while (!ended &&
           (child || (watch->code == 0 && !flag_get(&stop_asked) &&
                      !ferror(watch->json ? watch->json : stdout) &&
                      !(watch->settings->count && watch->lines == watch->settings->count)))) {
        deadline_ns += watch->settings->interval_ns;
        while (!ended && clock_now_ns() < deadline_ns && (child || !flag_get(&stop_asked))) {
            clock_sleep_ns(nap_ns);
            if (child) {
                for (size_t i = 0; child->pid && i < sizeof forwarded / sizeof forwarded[0]; i++) {
                    if (!pending[forwarded[i]])
                        continue;
                    pending[forwarded[i]] = 0;
                    kill(child->pid, forwarded[i]);
                }
            }
            ended = child && child_ended(child);
        }
        if (ended)
            sampler_stop(watch->sampler); /* takes a final sample */
        /* The series continues to grow; a line covers the time since the previous line. */
        const bool quiet = child != NULL;
        sampler_look(watch->sampler, take_rows, watch);
        for (int i = 0; i < MONITOR_FIGURES; i++) {
            struct monitor_summary *summary = &watch->summaries[i];
            if (isnan(watch->values[i]))
                continue;
            const int counted = monitor_count_of(&monitor_figures[i]);
            const double weight = watch->interval_s * (counted >= 0 ? watch->values[counted] : 1);
            if (summary->weight == 0 || watch->values[i] > summary->peak)
                summary->peak = watch->values[i];
            summary->area += watch->values[i] * weight;
            summary->weight += weight;
        }
        if (watch->json && watch->code == 0) {
            const struct series_anchor now = series_anchor_now();
            const uint64_t ago_ns = now.monotonic_ns - watch->last_ns; /* the interval's end */
            json_t *root = json_object();
            json_put_number(root, "unix_time_s", (double)(now.unix_ns - ago_ns) / 1e9);
            json_put_number(root, "elapsed_s", (double)(watch->last_ns - watch->start_ns) / 1e9);
            json_put_number(root, "interval_s", watch->interval_s);
            for (int i = 0; i < MONITOR_FIGURES; i++)
                json_put_number(root, monitor_figures[i].key, watch->values[i]);
            char *text = json_to_text(root, JSON_COMPACT | JSON_REAL_PRECISION(13));
            watch->code = text ? 0 : -ENOMEM;
            if (text)
                fprintf(watch->json, "%s\n", text);
            fflush(watch->json);
            json_decref(root);
            free(text);
        } else if (!quiet) {
            if (watch->lines % TABLE_HEADER_LINES == 0) {
                printf("%*s", TIME_WIDTH, "time");
                for (int i = 0; i < MONITOR_FIGURES; i++)
                    if (watch->columns[i])
                        printf("%*s", COLUMN_WIDTH, monitor_figures[i].heading);
                printf("\n%*s", TIME_WIDTH, "s");
                for (int i = 0; i < MONITOR_FIGURES; i++)
                    if (watch->columns[i])
                        printf("%*s", COLUMN_WIDTH, monitor_figures[i].unit);
                putchar('\n');
            }
            printf("%*.1f", TIME_WIDTH, (double)(watch->last_ns - watch->start_ns) / 1e9);
            for (int i = 0; i < MONITOR_FIGURES; i++)
                if (watch->columns[i]) {
                    const double value = watch->values[i] * monitor_figures[i].table_factor;
                    if (isnan(value))
                        printf("%*s", COLUMN_WIDTH, "-");
                    else
                        printf("%*.*f", COLUMN_WIDTH, value < 10 ? 2 : value < 1000 ? 1 : 0, value);
                }
            putchar('\n');
            fflush(stdout);
        }
        watch->lines++;
    }
    sampler_stop(watch->sampler);
}

/* ---- around a command ---- */

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* ru_inblock counts blocks of 512 bytes read by all processes that were waited for: the command
 * waits for its children, this process for those that the command left behind. */
static void print_summary(const struct watch *watch, const char *command)
{
    struct rusage usage;
    char text[PATH_MAX + 256];
    pid_t left;

    while ((left = waitpid(-1, NULL, WNOHANG)) > 0)
        ;
    getrusage(RUSAGE_CHILDREN, &usage);
    snprintf(text, sizeof text,
             "%s: %.2f s, user %.2f s, system %.2f s; it read %s%.1f MB from storage and wrote "
             "%.1f MB%s",
             escape_shown(command), (double)(watch->last_ns - watch->start_ns) / 1e9,
             seconds_of(usage.ru_utime), seconds_of(usage.ru_stime), left == 0 ? "at least " : "",
             (double)usage.ru_inblock * 512 / 1e6, (double)usage.ru_oublock * 512 / 1e6,
             left == 0 ? "; not counted: processes that it left behind and that still run" : "");
    fputc('\n', stderr);
    words_print(stderr, "", 0, text);
    fprintf(stderr, "%-12s %5s %9s %14s\n", "this machine", "mean", "peak", "total");
    for (int i = 0; i < MONITOR_FIGURES; i++) {
        const struct monitor_figure *figure = &monitor_figures[i];
        const struct monitor_summary *summary = &watch->summaries[i];
        if (summary->weight == 0)
            continue;
        fprintf(stderr, "%-8s %9.2f %9.2f %-4s ", figure->heading,
                summary->area / summary->weight * figure->table_factor,
                summary->peak * figure->table_factor, figure->unit);
        const char *per_second = strstr(figure->unit, "/s"); /* only rates have a sum */
        if (per_second)
            fprintf(stderr, "%9.2f %-2.*s ", summary->area * figure->table_factor,
                    (int)(per_second - figure->unit), figure->unit);
        else
            fprintf(stderr, "%12s ", "");
        fprintf(stderr, "%s\n", figure->key);
    }
}

static int run_monitor(const struct invocation *invocation)
{
    const struct monitor_settings *settings = invocation->settings;
    const struct telemetry_roots roots = {.proc = settings->proc_root, .sys = settings->sysfs_root};
    const char *here = ".";
    char **command = invocation->operands + invocation->behind;
    const bool wraps = invocation->behind < invocation->count;
    const struct sampler_site site = {
        .probes = {.roots = &roots,
                   .paths = invocation->behind ? (const char *const *)invocation->operands : &here,
                   .path_count = invocation->behind ? (size_t)invocation->behind : 1},
        .names = settings->probes,
        /* Each line needs its own sample. */
        .interval_ns = settings->sample_ns < settings->interval_ns / 2 ? settings->sample_ns
                                                                       : settings->interval_ns / 2,
        .rows_max = ROWS,
        .when_full = SERIES_RECENT};
    struct watch watch = {.settings = settings};
    struct child child = {0};
    struct guard_moment start;
    struct guard_counts guard = {0};

    if (wraps) {
        /* Ignored signals stay ignored, here and in the command (nohup, background jobs). */
        const struct sigaction action = {.sa_sigaction = on_signal_for_command,
                                         .sa_flags = SA_SIGINFO | SA_RESTART};
        struct sigaction former;
        for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
            if (sigaction(forwarded[i], NULL, &former) == 0 && former.sa_handler != SIG_IGN)
                sigaction(forwarded[i], &action, NULL);
    } else {
        signal(SIGINT, stop_ask);
        signal(SIGTERM, stop_ask);
    }
    for (size_t i = 0; i < site.probes.path_count; i++)
        if (access(site.probes.paths[i], F_OK)) {
            fail(errno, "%s: %s", site.probes.paths[i], fail_errno_text(errno));
            return command_misused(invocation);
        }
    static const char begin[] = "{\"unix_time_s\"";
    const char *path = settings->json;
    int code = 0;
    if (path && strcmp(path, "-") == 0)
        watch.json = stdout;
    else if (path) {
        int fd = file_is_stream(path) ? file_open_stream(path)
                                      : replaced_check(path, begin, strlen(begin));
        if (fd == 0)
            fd = file_draft_open_empty(path);
        watch.json = fd < 0 ? NULL : fdopen(fd, "w");
        code = fd < 0 ? fd : watch.json ? 0 : fail(ENOMEM, "%s: out of memory", path);
    }
    if (code == 0 && !(watch.sampler = sampler_open(&site)))
        code = -EINVAL;
    if (code == 0) {
        /* List names only; `iobench monitor --probes=NAME` gives the reason. */
        const char *reason;
        for (uint32_t i = 0; (reason = sampler_absent(watch.sampler, i)); i++)
            fprintf(stderr, "%s%.*s", i ? ", " : "iobench monitor: nothing to count for ",
                    (int)strcspn(reason, ":"), reason);
        if (sampler_absent(watch.sampler, 0))
            fputc('\n', stderr);
    }
    if (code == 0)
        code = sampler_start(watch.sampler); /* before the command: its first read counts */
    if (code == 0 && wraps)
        prctl(PR_SET_CHILD_SUBREAPER, 1); /* waiting for a process reveals what it read */
    if (code == 0 && wraps)
        code = child_start(&child, (const char *const *)command);
    if (code == 0) {
        const struct series *series = sampler_series(watch.sampler);
        watch.start_ns = watch.last_ns = series_time_ns(series, 0);
        uint32_t count = 0;
        for (int i = 0; i < MONITOR_FIGURES; i++)
            count += watch.columns[i] = monitor_counts(series, &monitor_figures[i]);
        if (!wraps && watch.json != stdout) {
            /* Leave out what does not fit the width, and say so. */
            const uint32_t room = (terminal_width(STDOUT_FILENO) - TIME_WIDTH) / COLUMN_WIDTH;
            const char *comma = "iobench monitor: left out, too wide: ";
            for (int next = 1; next <= MONITOR_FIGURES && count > room; next++)
                for (int i = 0; i < MONITOR_FIGURES; i++) {
                    if (monitor_figures[i].leaves != next || !watch.columns[i])
                        continue;
                    watch.columns[i] = false;
                    count--;
                    fprintf(stderr, "%s%s", comma, monitor_figures[i].heading);
                    comma = ", ";
                }
            if (*comma == ',')
                fputc('\n', stderr);
        }
        guard_begin(&start);
        watch_until_end(&watch, wraps ? &child : NULL);
        guard_end(&start, &guard);
        code = watch.code;
        if (wraps)
            print_summary(&watch, command[0]);
    }
    sampler_close(watch.sampler);
    int closed;
    if (!watch.json || watch.json == stdout)
        closed = 0;
    else {
        int failed = ferror(watch.json);
        closed = fclose(watch.json) || failed
                     ? fail(EIO, "%s: cannot write it", watch.settings->json)
                     : 0;
    }
    if (code || closed)
        return command_failed(invocation);
    const bool is_invalid = command_guard(&guard) == GUARD_INVALID;
    if (!wraps)
        return is_invalid ? COMMAND_FAILED : COMMAND_OK;
    int status = child_status(&child, command[0]);
    return status < 0 ? command_failed(invocation) : status;
}

const struct command command_monitor = {
    .name = "monitor",
    .summary = "watch storage, fabric and processors while any program runs",
    .operands = "[PATH...] [-- COMMAND...]",
    .operands_maximum = -1,
    .description =
        "Reads the counters of the block devices and NFS mounts beneath PATH (the current folder "
        "when none is given), of network interfaces, InfiniBand ports, processors, memory and "
        "GPUs, and prints a line per interval. With COMMAND it runs that, prints mean, peak and "
        "sum of each figure on the standard error when it has ended, and ends with its status, or "
        "with 128 + the signal that ended it. SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and "
        "SIGUSR2 are passed on to COMMAND.",
    .examples = "iobench monitor /mnt/imagenet\ta line a second, until interrupted\n"
                "iobench monitor --json=profile.jsonl /mnt/imagenet -- python train.py\tprofile a "
                "training\n",
    .options = monitor_options,
    .settings_size = sizeof(struct monitor_settings),
    .run = run_monitor,
};
