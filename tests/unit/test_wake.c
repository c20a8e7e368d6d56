/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader that waits for storage is woken when there is something new for it: by each reader's
 * wake(), in each thread of several loaders when a request comes, and in the loader when memory
 * comes back. The storage here answers a read only when later ones were submitted, so that without
 * being woken nothing ends; a watchdog says so then. No time is measured but where a wait must
 * count.
 */
#include "tests/unit/reader_set.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/thread.h"
#include "readers/reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 4, WATCHDOG_S = 120, BYTES = 512 };

/* ---- a reader that completes nothing until `needed` reads are submitted ---- */

static struct storage {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t needed, submitted, waiting;
    bool holds_submit; /* submit() blocks */
    bool batches;      /* the reap passes on what was submitted */
} storage;

struct gated {
    struct read_request *held[DEPTH];
    uint32_t count;
    bool woken;
};

static int gated_open(void *state, const void *settings, const struct reader_config *site,
                      struct reader_traits *traits)
{
    assert_false(site->in_order); /* the other threads have the reads between */
    traits->batches = storage.batches;
    return 0;
}

static void gated_close(void *state) {}

/* Call with the lock held. Returns false if nothing has changed for too long. */
static bool wait_for_change(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WATCHDOG_S;
    return pthread_cond_timedwait(&storage.changed, &storage.lock, &until) == 0;
}

static int gated_submit(void *state, struct read_request *request)
{
    struct gated *gated = state;

    pthread_mutex_lock(&storage.lock);
    gated->held[gated->count++] = request;
    storage.submitted++;
    pthread_cond_broadcast(&storage.changed);
    while (storage.holds_submit && wait_for_change())
        continue;
    pthread_mutex_unlock(&storage.lock);
    return 0;
}

static int gated_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct gated *gated = state;
    int count = 0;

    pthread_mutex_lock(&storage.lock);
    storage.waiting += wait_ns > 0;
    pthread_cond_broadcast(&storage.changed);
    while (wait_ns > 0 && storage.submitted < storage.needed && !gated->woken && count == 0)
        count = wait_for_change() ? 0 : fail(EDEADLK, "nobody woke the reader");
    storage.waiting -= wait_ns > 0;
    gated->woken = false;
    while (count >= 0 && storage.submitted >= storage.needed && gated->count > 0 &&
           (uint32_t)count < max) {
        struct read_request *request = gated->held[--gated->count];
        request->data = request->buffer;
        request->result = (int)request->bytes;
        done[count++] = request;
    }
    pthread_mutex_unlock(&storage.lock);
    return count;
}

static void gated_wake(void *state)
{
    pthread_mutex_lock(&storage.lock);
    ((struct gated *)state)->woken = true;
    pthread_cond_broadcast(&storage.changed);
    pthread_mutex_unlock(&storage.lock);
}

static const struct reader_ops gated_ops = {
    .plugin = {.name = "gated", .state_size = sizeof(struct gated)},
    .open = gated_open,
    .close = gated_close,
    .submit = gated_submit,
    .reap = gated_reap,
    .wake = gated_wake,
};

/* ---- its threads ---- */

struct crew {
    struct plugin_choice gated, threads;
    struct parallel_reader_settings settings;
    struct numa numa;
    struct reader reader;
    struct iovec regions[2];
    struct read_request requests[DEPTH];
    char memory[DEPTH][BYTES];
};

static void crew_open(struct crew *crew, uint32_t threads)
{
    memset(crew, 0, sizeof *crew);
    numa_find(&crew->numa, "/nowhere");
    crew->gated.plugin = &gated_ops.plugin;
    crew->settings = (struct parallel_reader_settings){
        .reader = &crew->gated, .count = threads, .numa = &crew->numa};
    crew->threads =
        (struct plugin_choice){.plugin = &reader_parallel.plugin, .settings = &crew->settings};
    for (uint32_t i = 0; i < threads; i++)
        crew->regions[i] = (struct iovec){.iov_base = crew->memory, .iov_len = sizeof crew->memory};
    struct reader_config site = {.catalog = set.catalog,
                                 .regions = crew->regions,
                                 .region_count = threads,
                                 .depth = DEPTH,
                                 .in_order = true};
    assert_int_equal(reader_open(&crew->reader, &crew->threads, &site), 0);
}

static void crew_submit(struct crew *crew, uint32_t index, uint32_t thread)
{
    crew->requests[index] = (struct read_request){
        .bytes = BYTES, .needed = BYTES, .region = thread, .buffer = crew->memory[index]};
    assert_int_equal(reader_submit(&crew->reader, &crew->requests[index]), 0);
}

static void crew_reap(struct crew *crew, uint32_t count)
{
    struct read_request *done[DEPTH];

    while (count > 0) {
        int reaped = reader_reap(&crew->reader, done, DEPTH, PATIENCE_NS);
        if (reaped < 0)
            fail_msg("%s", fail_reason());
        count -= (uint32_t)reaped;
    }
}

static void await_waiting(uint32_t waiting)
{
    pthread_mutex_lock(&storage.lock);
    while (storage.waiting != waiting)
        if (!wait_for_change())
            fail_msg("the threads do not wait for storage");
    pthread_mutex_unlock(&storage.lock);
}

/* Each thread waits for one read; one more read for one of the threads completes all. */
static void an_io_thread_that_waits_takes_what_comes(void **unused)
{
    struct crew crew;

    for (uint32_t threads = 1; threads <= 2; threads++)
        for (uint32_t thread = 0; thread < threads; thread++) {
            storage.submitted = 0;
            storage.needed = threads + 1;
            crew_open(&crew, threads);
            for (uint32_t i = 0; i < threads; i++)
                crew_submit(&crew, i, i);
            await_waiting(threads);
            crew_submit(&crew, threads, thread);
            crew_reap(&crew, threads + 1);
            reader_close(&crew.reader);
        }
}

/* The thread's reader is busy with its first read for a while: the second waits in the inbox, and
 * its latency includes that wait, also if the reader passes on only what it reaps. */
static void a_wait_in_the_inbox_counts(void **unused)
{
    const uint64_t held_ns = 20000000;
    struct crew crew;

    for (int batches = 0; batches < 2; batches++) {
        storage.submitted = 0;
        storage.needed = 0;
        storage.holds_submit = true;
        storage.batches = batches;
        crew_open(&crew, 1);
        crew_submit(&crew, 0, 0);
        pthread_mutex_lock(&storage.lock);
        while (storage.submitted == 0)
            assert_true(wait_for_change());
        pthread_mutex_unlock(&storage.lock);
        crew_submit(&crew, 1, 0);
        const uint64_t issued_ns = clock_now_ns();
        while (clock_now_ns() < issued_ns + held_ns)
            usleep(1000);
        pthread_mutex_lock(&storage.lock);
        storage.holds_submit = false;
        pthread_cond_broadcast(&storage.changed);
        pthread_mutex_unlock(&storage.lock);
        crew_reap(&crew, 2);
        assert_int_equal(crew.reader.figures.requests, 2);
        assert_true(crew.reader.figures.latency_ns.minimum >= held_ns);
        reader_close(&crew.reader);
    }
    storage.batches = false;
}

/* ---- every reader ---- */

static struct run run;

static int wake_it(void *unused)
{
    reader_wake(&run.reader);
    return 0;
}

static void check_reader(const char *reader)
{
    struct read_request *done[DEPTH];
    struct thread thread = {0};

    assert_int_equal(run_open(&run, reader, DEPTH, 0), 0);
    reader_wake(&run.reader); /* before it waits */
    assert_int_equal(reader_reap(&run.reader, done, DEPTH, UINT64_MAX), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(thread_start(&thread, "waker", wake_it, NULL), 0);
        assert_int_equal(reader_reap(&run.reader, done, DEPTH, UINT64_MAX), 0);
        assert_int_equal(thread_join(&thread), 0);
    }
    struct read_request *request = run_request(&run, 0, 0, 0, 1000);
    assert_true(run_read(&run, request) >= 1000);
    reader_release(&run.reader, request);
    run_close(&run);
}

static void every_reader_is_woken(void **unused)
{
    static const char *const readers[] = {"uring",
                                          "uring:registered=no",
                                          "uring:sqpoll=yes",
                                          "uring:direct=yes,iopoll=yes",
                                          "pread",
                                          "pread:direct=yes",
                                          "mmap"};

    alarm(PATIENCE_S);
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        char name[16];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(readers[i], ":"), readers[i]);
        if (plugin_find(reader_registry, name))
            check_reader(readers[i]);
    }
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_io_thread_that_waits_takes_what_comes),
        cmocka_unit_test(a_wait_in_the_inbox_counts),
        cmocka_unit_test(every_reader_is_woken),
    };

    pthread_mutex_init(&storage.lock, NULL);
    pthread_cond_init(&storage.changed, NULL);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
