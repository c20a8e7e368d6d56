/* SPDX-License-Identifier: Apache-2.0
 *
 * The host in place of a device, for kernels/runtime.h. With the kernels built for the host
 * too, this makes a cuda backend that runs everywhere, slowly, and whose every step can be
 * compared. Memory is emulated_memory.c's.
 *
 * Work is as asynchronous as on a device: each stream has a thread, which carries out what was put
 * on it in order; streams know of each other by events alone, and so does the host: giving work to
 * a stream waits for nothing, not even in the eyes of ThreadSanitizer (tests/cuda/test_order.c),
 * which tells each pair of accesses that no event or wait has ordered. A graph keeps the streams
 * that it was captured from apart. So an order that nobody asked for is not kept, and pinned memory
 * that is written too early, or a result that is read too early, shows.
 *
 * What a device forbids while a graph is captured ends the program, and so does what is left of
 * streams, events, graphs or memory when the last one who opened the device closes it.
 *
 * IOBENCH_EMULATED_LATE_US: copies on the upload stream begin so much later than they could.
 */
#include "kernels/runtime.h"

#include "base/fail.h"
#include "tests/cuda/emulated.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LANES_MAX = 8, KERNELS_MAX = 512 };

struct task {
    struct task *next;
    void (*run)(const void *work, uint64_t count);
    uint64_t count;
    size_t bytes;
    uint32_t lane;  /* of a graph */
    bool is_moment; /* of a graph: count is the number of the launch */
    _Alignas(max_align_t) char work[];
};

struct stream {
    pthread_t thread;
    struct task *last; /* given; for who gives */
    uint64_t given;
    struct task *after; /* given behind the next one; NULL: none */
    struct task *at;    /* taken; for the stream's thread */
    sem_t more;
    pthread_mutex_t lock; /* of what is done; who gives work never waits for it */
    pthread_cond_t changed;
    uint64_t done;
    uint64_t late_ns; /* of its copies */
    struct graph *capture;
    uint32_t lane; /* in it */
};

struct event {
    uint64_t asked; /* times that it was recorded; for who records */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t happened, time_ns;
    bool captured; /* when it was last recorded, */
    struct graph *capture;
    struct moment *moment; /* as this; NULL: the graph is closed */
};

/* An event's record in a graph, and the tasks of each lane that are known to be done by then. */
struct moment {
    struct moment *next;
    struct event event, *source;
    uint64_t known[LANES_MAX];
};

/* Lane 0 is what is launched on a stream; all others have streams of their own. */
struct graph {
    struct task *first, **end;
    struct stream *captured[LANES_MAX], *lanes[LANES_MAX];
    uint32_t lane_count;
    uint64_t known[LANES_MAX][LANES_MAX]; /* tasks of each lane, to each lane */
    struct moment *moments;
    uint64_t launches;
    uint32_t *counter; /* of who is part of it */
};

/* What this thread has open. */
static _Thread_local uint32_t capturing;
static uint32_t open_devices, open_streams, open_events, open_graphs;

/* ---- refusing ---- */

void emulated_refuse(const char *what)
{
    fprintf(stderr, "emulated device: %s\n", what);
    abort();
}

void emulated_refuse_captured(const char *what)
{
    if (capturing == 0)
        return;
    fprintf(stderr, "emulated device: while a graph is captured, ");
    emulated_refuse(what);
}

bool emulated_captures(const void *stream)
{
    return stream && ((const struct stream *)stream)->capture;
}

uint64_t emulated_late_ns(const void *stream)
{
    return stream ? ((const struct stream *)stream)->late_ns : 0;
}

void emulated_count_graph(const void *stream, uint32_t *count)
{
    if (!emulated_captures(stream) || ((const struct stream *)stream)->capture->counter)
        return;
    ((const struct stream *)stream)->capture->counter = count;
    ++*count;
}

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

/* A task goes when the next one is taken: who gives that looks at it. */
static void *work_off(void *context)
{
    struct stream *stream = context;

    for (;;) {
        while (sem_wait(&stream->more)) {
        }
        struct task *task = stream->at->next;
        free(stream->at);
        stream->at = task;
        if (!task->run)
            return NULL;
        task->run(task->work, task->count);
        pthread_mutex_lock(&stream->lock);
        stream->done++;
        pthread_cond_broadcast(&stream->changed);
        pthread_mutex_unlock(&stream->lock);
    }
}

static struct task *task_of(void (*run)(const void *work, uint64_t count), const void *work,
                            size_t bytes, uint64_t count)
{
    struct task *task = malloc(sizeof *task + bytes);

    if (!task) {
        fail(ENOMEM, "out of memory");
        return NULL;
    }
    *task = (struct task){.run = run, .count = count, .bytes = bytes};
    if (bytes > 0)
        memcpy(task->work, work, bytes);
    return task;
}

static int give(struct stream *stream, struct task *task)
{
    if (!task)
        return -ENOMEM;
    stream->last->next = task;
    stream->last = task;
    stream->given++;
    sem_post(&stream->more);
    return 0;
}

static int add_to_graph(struct graph *graph, uint32_t lane, struct task *task)
{
    if (!task)
        return -ENOMEM;
    task->lane = lane;
    graph->known[lane][lane]++;
    *graph->end = task;
    graph->end = &task->next;
    return 0;
}

/* A device loads a kernel when it is first started, which it may not while a graph is captured. */
static void know_kernel(void (*run)(const void *, uint64_t), bool captured)
{
    static _Thread_local void (*known[KERNELS_MAX])(const void *, uint64_t);
    uint32_t i = 0;

    while (i < KERNELS_MAX && known[i] && known[i] != run)
        i++;
    if (i == KERNELS_MAX)
        emulated_refuse("too many kernels");
    if (!known[i] && captured)
        emulated_refuse("a kernel is started for the first time while a graph is captured");
    known[i] = run;
}

int emulated_start(void (*run)(const void *work, uint64_t count), const void *work, size_t bytes,
                   uint64_t count, void *given)
{
    struct stream *stream = given;

    if (!stream) {
        run(work, count);
        return 0;
    }
    struct task *task = task_of(run, work, bytes, count);
    know_kernel(run, stream->capture != NULL);
    if (stream->capture)
        return add_to_graph(stream->capture, stream->lane, task);
    int code = give(stream, task);
    if (code == 0 && stream->after)
        code = give(stream, stream->after);
    stream->after = NULL;
    return code;
}

int emulated_start_late(void (*run)(const void *work, uint64_t count), const void *work,
                        size_t bytes, uint64_t count, void *given)
{
    struct stream *stream = given;

    if (stream->after)
        emulated_refuse("two are late");
    stream->after = task_of(run, work, bytes, count);
    return stream->after ? 0 : -ENOMEM;
}

int runtime_stream_create(void **made)
{
    struct stream *stream = calloc(1, sizeof *stream);

    *made = stream;
    if (!stream)
        return fail(ENOMEM, "out of memory");
    stream->at = stream->last = task_of(NULL, NULL, 0, 0);
    if (!stream->at)
        return -ENOMEM;
    sem_init(&stream->more, 0, 0);
    pthread_mutex_init(&stream->lock, NULL);
    make_condition(&stream->changed);
    int code = pthread_create(&stream->thread, NULL, work_off, stream);
    open_streams++;
    return code ? fail(code, "no thread for a stream") : 0;
}

void runtime_stream_destroy(void *given)
{
    struct stream *stream = given;

    if (!stream)
        return;
    if (stream->capture)
        emulated_refuse("a stream is destroyed while it is captured");
    if (give(stream, task_of(NULL, NULL, 0, 0)))
        abort();
    pthread_join(stream->thread, NULL);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    sem_destroy(&stream->more);
    free(stream->at);
    free(stream);
    open_streams--;
}

int runtime_wait(void *given)
{
    struct stream *stream = given;

    emulated_refuse_captured("a stream is waited for");
    if (!stream)
        return 0;
    pthread_mutex_lock(&stream->lock);
    while (stream->done < stream->given)
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
                                .memory_rate = 1e6,
                                .captures = true,
                                .name = "emulated"};
    const char *late = getenv("IOBENCH_EMULATED_LATE_US");
    int code = runtime_stream_create(&runtime->stream);
    if (code == 0)
        code = runtime_stream_create(&runtime->upload);
    if (code == 0 && late)
        ((struct stream *)runtime->upload)->late_ns = strtoull(late, NULL, 10) * 1000;
    open_devices++;
    return code;
}

void runtime_close(struct runtime *runtime)
{
    runtime_stream_destroy(runtime->stream);
    runtime_stream_destroy(runtime->upload);
    if (!runtime->stream || --open_devices > 0)
        return;
    if (open_streams + open_events + open_graphs + emulated_pieces() == 0)
        return;
    fprintf(stderr, "%u streams, %u events, %u graphs and %llu pieces of memory: ", open_streams,
            open_events, open_graphs, (unsigned long long)emulated_pieces());
    emulated_refuse("something is not freed when the device is closed");
}

int runtime_use(uint32_t device)
{
    (void)device;
    return 0;
}

/* ---- events ---- */

static void event_open(struct event *event)
{
    pthread_mutex_init(&event->lock, NULL);
    make_condition(&event->changed);
}

static void event_close(struct event *event)
{
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->lock);
}

int runtime_event_create(void **made)
{
    struct event *event = calloc(1, sizeof *event);

    *made = event;
    if (!event)
        return fail(ENOMEM, "out of memory");
    event_open(event);
    open_events++;
    return 0;
}

void runtime_event_destroy(void *given)
{
    struct event *event = given;

    if (!event)
        return;
    emulated_refuse_captured("an event goes");
    event_close(event);
    free(event);
    open_events--;
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

/* A record of the graph's own event, or a wait for it, numbered anew at each launch. */
static int add_moment(struct graph *graph, uint32_t lane, struct event *event,
                      void (*run)(const void *, uint64_t))
{
    struct task *task = task_of(run, &event, sizeof event, 0);

    if (task)
        task->is_moment = true;
    return add_to_graph(graph, lane, task);
}

static int record_in_graph(struct event *event, const struct stream *stream)
{
    struct graph *graph = stream->capture;
    struct moment *moment = calloc(1, sizeof *moment);

    if (!moment)
        return fail(ENOMEM, "out of memory");
    event_open(&moment->event);
    moment->source = event;
    moment->next = graph->moments;
    graph->moments = moment;
    int code = add_moment(graph, stream->lane, &moment->event, run_record);
    memcpy(moment->known, graph->known[stream->lane], sizeof moment->known);
    event->capture = graph;
    event->moment = moment;
    return code;
}

int runtime_event_record(void *given, void *on)
{
    struct event *event = given;
    const struct stream *stream = on;

    event->captured = emulated_captures(stream);
    if (event->captured)
        return record_in_graph(event, stream);
    return emulated_start(run_record, &event, sizeof event, ++event->asked, on);
}

int runtime_event_stamp(void *given, void *on)
{
    struct event *event = given;

    event->captured = false; /* it belongs to no graph, though one may record it */
    return emulated_start(run_record, &event, sizeof event, ++event->asked, on);
}

static void join_graph(struct graph *graph, struct stream *stream)
{
    if (graph->lane_count == LANES_MAX)
        emulated_refuse("a graph of too many streams");
    stream->capture = graph;
    stream->lane = graph->lane_count;
    graph->captured[graph->lane_count++] = stream;
}

int runtime_event_await(void *given, void *on)
{
    struct event *event = given;
    struct stream *stream = on;

    if (!event->captured && emulated_captures(stream))
        emulated_refuse("a captured graph would wait for work outside of it");
    if (!event->captured)
        return emulated_start(run_await, &event, sizeof event, event->asked, stream);
    if (!event->moment || (stream->capture && stream->capture != event->capture))
        emulated_refuse("an event of a graph is waited for outside of it");
    if (!stream->capture)
        join_graph(event->capture, stream);
    uint64_t *known = event->capture->known[stream->lane];
    for (int i = 0; i < LANES_MAX; i++)
        if (event->moment->known[i] > known[i])
            known[i] = event->moment->known[i];
    return add_moment(event->capture, stream->lane, &event->moment->event, run_await);
}

int runtime_event_test(void *given, bool *happened)
{
    struct event *event = given;

    emulated_refuse_captured("an event is asked for");
    pthread_mutex_lock(&event->lock);
    *happened = event->happened >= event->asked;
    pthread_mutex_unlock(&event->lock);
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

    emulated_refuse_captured("an event is waited for");
    if (event->captured)
        emulated_refuse("the host waits for an event of a graph");
    return wait_for_event(event, event->asked, until_ns) ? fail(ETIMEDOUT, "a stream is stuck") : 0;
}

int runtime_event_elapsed(void *first, void *last, double *milliseconds)
{
    struct event *events[] = {first, last};
    uint64_t at[2];

    for (int i = 0; i < 2; i++) {
        if (events[i]->captured)
            emulated_refuse("the time of an event of a graph is read");
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

    if (stream->capture)
        emulated_refuse("a stream is captured twice");
    if (!graph)
        return fail(ENOMEM, "out of memory");
    graph->end = &graph->first;
    join_graph(graph, stream);
    capturing++;
    open_graphs++;
    return 0;
}

int runtime_capture_end(void *given, void **made)
{
    struct graph *graph = ((struct stream *)given)->capture;
    int code = 0;

    if (!graph || graph->captured[0] != given)
        emulated_refuse("a capture ends on another stream than it began on");
    capturing--;
    for (uint32_t i = 0; i < graph->lane_count; i++) {
        if (graph->known[0][i] != graph->known[i][i])
            emulated_refuse("a stream has not rejoined the one that the capture began on");
        graph->captured[i]->capture = NULL;
        if (i > 0 && code == 0)
            code = runtime_stream_create((void **)&graph->lanes[i]);
    }
    for (struct moment *moment = graph->moments; moment; moment = moment->next)
        if (moment->source->moment == moment)
            moment->source->moment = NULL;
    *made = graph;
    return code;
}

int runtime_graph_launch(void *given, void *on)
{
    struct graph *graph = given;
    int code = 0;

    graph->launches++;
    graph->lanes[0] = on;
    for (const struct task *task = graph->first; task && code == 0; task = task->next)
        code = emulated_start(task->run, task->work, task->bytes,
                              task->is_moment ? graph->launches : task->count,
                              graph->lanes[task->lane]);
    return code;
}

void runtime_graph_destroy(void *given)
{
    struct graph *graph = given;

    if (!graph)
        return;
    if (graph->launches) /* it may run */
        runtime_wait(graph->lanes[0]);
    for (uint32_t i = 1; i < graph->lane_count; i++)
        runtime_stream_destroy(graph->lanes[i]);
    if (graph->counter)
        --*graph->counter;
    while (graph->first) {
        struct task *next = graph->first->next;
        free(graph->first);
        graph->first = next;
    }
    while (graph->moments) {
        struct moment *next = graph->moments->next;
        event_close(&graph->moments->event);
        free(graph->moments);
        graph->moments = next;
    }
    free(graph);
    open_graphs--;
}

void runtime_range_push(const char *name)
{
    (void)name;
}

void runtime_range_pop(void) {}
