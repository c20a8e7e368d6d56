/* SPDX-License-Identifier: Apache-2.0
 * A reader: the kernel's reads, each late by a fixed time, as a storage that is further away:
 *
 *     iobench run --reader slow:late=2ms
 *
 * A reader is one file: an option table, open, close, and how one request is read; the threads,
 * open files and time-outs of readers/io_pool.h do the rest. In the tree it would be in readers/,
 * with a declaration in readers/plugins.h, a row in readers/registry.c and a line in
 * readers/local.mk (CONTRIBUTING.md, Adding a plug-in). Here it has a registry of its own, below,
 * which replaces the library's when linking: docs/examples/local.mk.
 */
#include "base/clock.h"
#include "base/option.h"
#include "readers/io_pool.h"
#include "readers/plugins.h"
#include "readers/io_pool.h"

#include <stdio.h>

struct slow_settings {
    uint64_t late_ns;
};

/* Parsing, help, man page and completion come from this table. */
static const struct option_spec slow_options[] = {
    {.name = "late",
     .type = OPTION_DURATION,
     .offset = offsetof(struct slow_settings, late_ns),
     .fallback = "1ms",
     .summary = "time that each read takes more"},
    {0},
};

struct slow_state {
    struct io_pool *pool; /* first, for the operations of io_pool.h */
};

static uint64_t late_ns; /* a task does not know its reader */

/* Runs on a thread of the pool. */
static void slow_task(struct io_task *task)
{
    clock_sleep_ns(late_ns);
    pread_task(task);
}

static int slow_open(void *state, const void *chosen, const struct reader_config *config,
                     struct reader_traits *traits)
{
    const struct slow_settings *settings = chosen;
    const struct io_pool_settings pool = {
        .config = config, .flags = HANDLES_RANDOM, .work = slow_task};

    late_ns = settings->late_ns;
    snprintf(traits->engine, sizeof traits->engine, "reads that are %.1f ms late",
             (double)late_ns / 1e6);
    return io_pool_create(&((struct slow_state *)state)->pool, &pool, &traits->alignment);
}

static void slow_close(void *state)
{
    io_pool_destroy(((struct slow_state *)state)->pool);
}

static const struct reader_ops reader_slow = {
    .plugin = {.name = "slow",
               .summary = "reads that are late",
               .options = slow_options,
               .settings_size = sizeof(struct slow_settings),
               .state_size = sizeof(struct slow_state)},
    .open = slow_open,
    .close = slow_close,
    .submit = io_pool_submit,
    .reap = io_pool_reap,
    .wake = io_pool_wake,
};

const struct plugin *const reader_registry[] = {&reader_slow.plugin, &reader_null.plugin, NULL};
