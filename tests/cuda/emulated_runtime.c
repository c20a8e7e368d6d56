/* SPDX-License-Identifier: Apache-2.0
 *
 * The host in place of a device, for trainer/cuda/runtime.h. With the kernels built for the host
 * too, this makes a cuda backend that runs everywhere, slowly, and whose every step can be
 * compared.
 *
 * Work is as asynchronous as on a device: each stream has a thread, which carries out what was put
 * on it in order; streams know of each other by events alone. A graph is the list of what was put
 * on the streams while it was captured. So an order that nobody asked for is not kept, and pinned
 * memory that is written too early, or a result that is read too early, shows. Fresh memory holds
 * what is no number, so that what is read before it is written shows, too.
 *
 * IOBENCH_EMULATED_LATE_US: copies on the upload stream begin so much later than they could.
 */
#include "trainer/cuda/runtime.h"

#include "base/fail.h"
#include "tests/cuda/emulated.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { ALIGNMENT = 256, JOINED_MAX = 8 };

struct task {
    struct task *next;
    void (*run)(const void *work, uint64_t count);
    uint64_t count;
    size_t bytes;
    _Alignas(max_align_t) char work[];
};

struct graph {
    struct task *first, **end;
    bool open; /* it is being captured, from these streams */
    struct stream *joined[JOINED_MAX];
    uint32_t joined_count;
};

struct stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct task *first, **end; /* the task that runs is still the first */
    bool ends;
    uint64_t late_ns; /* of its copies */
    struct graph *capture;
};

struct event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t asked, happened; /* times that it was recorded */
    uint64_t time_ns;
    struct graph *capture; /* that it was recorded in */
};

/* ---- waiting ---- */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void make_condition(pthread_cond_t *changed)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* until_ns: 0 is for ever. */
static int wait_for_change(pthread_cond_t *changed, pthread_mutex_t *lock, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};

    if (until_ns == 0)
        return pthread_cond_wait(changed, lock);
    return pthread_cond_timedwait(changed, lock, &until);
}

/* ---- streams ---- */

static void *work_off(void *context)
{
    struct stream *stream = context;

    pthread_mutex_lock(&stream->lock);
    for (;;) {
        struct task *task = stream->first;
        if (!task && stream->ends)
            break;
        if (!task) {
            pthread_cond_wait(&stream->changed, &stream->lock);
            continue;
        }
        pthread_mutex_unlock(&stream->lock);
        task->run(task->work, task->count);
        pthread_mutex_lock(&stream->lock);
        stream->first = task->next;
        if (!stream->first)
            stream->end = &stream->first;
        free(task);
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static void put(struct stream *stream, struct task *task)
{
    struct graph *graph = stream->capture;

    if (graph) {
        *graph->end = task;
        graph->end = &task->next;
        return;
    }
    pthread_mutex_lock(&stream->lock);
    *stream->end = task;
    stream->end = &task->next;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

int emulated_start(void (*run)(const void *work, uint64_t count), const void *work, size_t bytes,
                   uint64_t count, void *stream)
{
    if (!stream) {
        run(work, count);
        return 0;
    }
    struct task *task = malloc(sizeof *task + bytes);
    if (!task)
        return fail(ENOMEM, "out of memory");
    *task = (struct task){.run = run, .count = count, .bytes = bytes};
    memcpy(task->work, work, bytes);
    put(stream, task);
    return 0;
}

int runtime_stream_create(void **made)
{
    struct stream *stream = calloc(1, sizeof *stream);

    *made = stream;
    if (!stream)
        return fail(ENOMEM, "out of memory");
    stream->end = &stream->first;
    pthread_mutex_init(&stream->lock, NULL);
    make_condition(&stream->changed);
    int code = pthread_create(&stream->thread, NULL, work_off, stream);
    return code ? fail(code, "no thread for a stream") : 0;
}

void runtime_stream_destroy(void *given)
{
    struct stream *stream = given;

    if (!stream)
        return;
    pthread_mutex_lock(&stream->lock);
    stream->ends = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

int runtime_wait(void *given)
{
    struct stream *stream = given;

    if (!stream)
        return 0;
    if (stream->capture)
        return fail(EIO, "a stream is waited for while it is captured");
    pthread_mutex_lock(&stream->lock);
    while (stream->first)
        pthread_cond_wait(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    return 0;
}

int runtime_usable(void)
{
    return 0;
}

int runtime_open(struct runtime *runtime, uint32_t device, uint32_t local_rank)
{
    (void)local_rank;
    *runtime = (struct runtime){.device = device,
                                .capability = 90,
                                .multiprocessors = 132,
                                .captures = true,
                                .name = "emulated"};
    const char *late = getenv("IOBENCH_EMULATED_LATE_US");
    int code = runtime_stream_create(&runtime->stream);
    if (code == 0)
        code = runtime_stream_create(&runtime->upload);
    if (code == 0 && late)
        ((struct stream *)runtime->upload)->late_ns = strtoull(late, NULL, 10) * 1000;
    return code;
}

void runtime_close(struct runtime *runtime)
{
    runtime_stream_destroy(runtime->stream);
    runtime_stream_destroy(runtime->upload);
}

int runtime_use(uint32_t device)
{
    (void)device;
    return 0;
}

/* ---- memory ---- */

void *runtime_allocate(uint64_t bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, ALIGNMENT, bytes + 1)) {
        fail(ENOMEM, "out of memory");
        return NULL;
    }
    return memset(memory, 0xff, bytes);
}

void runtime_release(void *memory)
{
    free(memory);
}

void *runtime_pin(uint64_t bytes)
{
    return runtime_allocate(bytes);
}

void runtime_unpin(void *memory)
{
    free(memory);
}

struct copy {
    void *to;
    const void *from;
    uint64_t late_ns;
};

static void run_copy(const void *work, uint64_t bytes)
{
    const struct copy *copy = work;
    const struct timespec late = {.tv_nsec = (long)copy->late_ns};

    if (copy->late_ns)
        nanosleep(&late, NULL);
    memcpy(copy->to, copy->from, bytes);
}

int runtime_copy(void *to, const void *from, uint64_t bytes, void *given)
{
    const struct stream *stream = given;
    const struct copy copy = {to, from, stream ? stream->late_ns : 0};

    return emulated_start(run_copy, &copy, sizeof copy, bytes, given);
}

static void run_zero(const void *work, uint64_t bytes)
{
    memset(*(void *const *)work, 0, bytes);
}

/* Another process' memory, read as a debugger does. */
struct theirs {
    pid_t process;
    char *memory;
};

int runtime_share(void *memory, uint8_t handle[RUNTIME_HANDLE_BYTES])
{
    const struct theirs mine = {getpid(), memory};

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* where not everybody may */
    memset(handle, 0, RUNTIME_HANDLE_BYTES);
    memcpy(handle, &mine, sizeof mine);
    return 0;
}

int runtime_reach(const uint8_t handle[RUNTIME_HANDLE_BYTES], void **theirs)
{
    *theirs = malloc(sizeof(struct theirs));
    if (!*theirs)
        return fail(ENOMEM, "out of memory");
    memcpy(*theirs, handle, sizeof(struct theirs));
    return 0;
}

void runtime_leave(void *theirs)
{
    free(theirs);
}

struct peer_copy {
    void *to;
    struct theirs from;
};

static void run_peer_copy(const void *work, uint64_t bytes)
{
    const struct peer_copy *copy = work;
    const struct iovec here = {copy->to, bytes}, there = {copy->from.memory, bytes};

    if (process_vm_readv(copy->from.process, &here, 1, &there, 1, 0) != (ssize_t)bytes) {
        perror("another process' memory");
        abort();
    }
}

int runtime_copy_peer(void *to, uint32_t device, const void *theirs, uint64_t offset,
                      uint64_t bytes, void *stream)
{
    struct peer_copy copy = {to, *(const struct theirs *)theirs};

    (void)device;
    copy.from.memory += offset;
    return emulated_start(run_peer_copy, &copy, sizeof copy, bytes, stream);
}

int runtime_zero(void *memory, uint64_t bytes, void *stream)
{
    return emulated_start(run_zero, &memory, sizeof memory, bytes, stream);
}

/* ---- events ---- */

int runtime_event_create(void **made)
{
    struct event *event = calloc(1, sizeof *event);

    *made = event;
    if (!event)
        return fail(ENOMEM, "out of memory");
    pthread_mutex_init(&event->lock, NULL);
    make_condition(&event->changed);
    return 0;
}

void runtime_event_destroy(void *given)
{
    struct event *event = given;

    if (!event)
        return;
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

static void run_record(const void *work, uint64_t number)
{
    struct event *event = *(struct event *const *)work;

    pthread_mutex_lock(&event->lock);
    event->happened = number;
    event->time_ns = now_ns();
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
}

int runtime_event_record(void *given, void *on)
{
    struct event *event = given;
    struct stream *stream = on;

    event->capture = stream ? stream->capture : NULL;
    if (event->capture)
        return 0; /* the list keeps the order */
    pthread_mutex_lock(&event->lock);
    const uint64_t number = ++event->asked;
    pthread_mutex_unlock(&event->lock);
    return emulated_start(run_record, &event, sizeof event, number, stream);
}

static int wait_for_event(struct event *event, uint64_t number, uint64_t until_ns)
{
    int code = 0;

    pthread_mutex_lock(&event->lock);
    while (event->happened < number && code == 0)
        code = wait_for_change(&event->changed, &event->lock, until_ns);
    pthread_mutex_unlock(&event->lock);
    return code;
}

static void run_await(const void *work, uint64_t number)
{
    wait_for_event(*(struct event *const *)work, number, 0);
}

int runtime_event_await(void *given, void *on)
{
    struct event *event = given;
    struct stream *stream = on;
    struct graph *graph = event->capture;

    if (!graph && stream && stream->capture)
        return fail(EIO, "a graph that is captured would wait for what is no part of it");
    if (!graph)
        return emulated_start(run_await, &event, sizeof event, event->asked, stream);
    if (!graph->open || graph->joined_count == JOINED_MAX)
        return fail(EIO, "a moment of a graph is waited for outside of it");
    if (stream->capture == graph)
        return 0;
    stream->capture = graph;
    graph->joined[graph->joined_count++] = stream;
    return 0;
}

int runtime_event_synchronise(void *event)
{
    return runtime_event_wait_for(event, 0);
}

int runtime_event_wait_for(void *given, uint64_t timeout_ns)
{
    struct event *event = given;
    const uint64_t until_ns = timeout_ns ? now_ns() + timeout_ns : 0;

    return wait_for_event(event, event->asked, until_ns) ? fail(ETIMEDOUT, "a stream is stuck") : 0;
}

int runtime_event_elapsed(void *first, void *last, double *milliseconds)
{
    struct event *events[] = {first, last};
    uint64_t at[2];

    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&events[i]->lock);
        const bool is_ready = events[i]->asked && events[i]->happened == events[i]->asked;
        at[i] = events[i]->time_ns;
        pthread_mutex_unlock(&events[i]->lock);
        if (!is_ready)
            return fail(EIO, "the time of a moment that has not come is asked for");
    }
    *milliseconds = ((double)at[1] - (double)at[0]) * 1e-6;
    return 0;
}

/* ---- graphs ---- */

int runtime_capture_begin(void *given)
{
    struct stream *stream = given;
    struct graph *graph = calloc(1, sizeof *graph);

    if (!graph || stream->capture)
        return fail(EIO, "a graph cannot begin");
    *graph = (struct graph){.open = true, .joined = {stream}, .joined_count = 1};
    graph->end = &graph->first;
    stream->capture = graph;
    return 0;
}

int runtime_capture_end(void *given, void **made)
{
    struct graph *graph = ((struct stream *)given)->capture;

    for (uint32_t i = 0; i < graph->joined_count; i++)
        graph->joined[i]->capture = NULL;
    graph->open = false;
    *made = graph;
    return 0;
}

int runtime_graph_launch(void *given, void *stream)
{
    const struct graph *graph = given;
    int code = 0;

    for (const struct task *task = graph->first; task && code == 0; task = task->next)
        code = emulated_start(task->run, task->work, task->bytes, task->count, stream);
    return code;
}

void runtime_graph_destroy(void *given)
{
    struct graph *graph = given;

    while (graph && graph->first) {
        struct task *next = graph->first->next;
        free(graph->first);
        graph->first = next;
    }
    free(graph);
}

void runtime_range_push(const char *name)
{
    (void)name;
}

void runtime_range_pop(void) {}
