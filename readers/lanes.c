/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/lanes.h"

#include "base/atomic.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 64 };
#define FOR_EVER UINT64_MAX /* each read ends, and new requests wake */

struct lane {
    struct lanes *lanes;
    uint32_t number;
    struct thread thread;
    struct reader reader;
    struct reader_site site;
    struct queue *inbox; /* requests; holds a whole depth, so pushing never waits */
    struct flag waits;   /* set before it looks for work the last time and then waits for reads */
    bool has_new;        /* the caller's: there is work that the lane may not have seen */
};

struct lanes {
    const struct lanes_settings *settings;
    uint32_t regions; /* of each lane */
    bool in_order;
    struct queue *opened; /* one entry a lane */
    struct queue *done;   /* requests of all lanes */
    struct lane *lanes;
};

/* Give the lane's reader what has come, until it is full. *at and *count: what of the group is
 * still to be given. */
static int submit_group(struct lane *lane, void **group, uint32_t *at, uint32_t *count)
{
    if (*at == *count) {
        int popped = queue_pop_many(lane->inbox, group, GROUP, lane->reader.in_flight == 0);
        if (popped <= 0)
            return popped;
        *at = 0;
        *count = (uint32_t)popped;
    }
    while (*at < *count) {
        int code = reader_pass_submit(&lane->reader, group[*at]);
        if (code == -EAGAIN)
            break;
        if (code)
            return code;
        ++*at;
    }
    return 0;
}

/* Only released loans make room for it, and those are with the caller. */
static int refuse(struct lane *lane, struct read_request *request)
{
    if (request->buffer && !lane->lanes->in_order)
        request->region += lane->number * lane->lanes->regions; /* as the caller counts them */
    request->result = -EAGAIN;
    return queue_push(lane->lanes->done, request);
}

/* Until the inbox is closed and nothing is in flight. It waits for reads only when, since it said
 * so, it has looked at the inbox once more: what comes later wakes it. */
static int serve(struct lane *lane)
{
    void *group[GROUP];
    struct read_request *done[GROUP];
    uint32_t at = 0, count = 0;

    for (;;) {
        int code = submit_group(lane, group, &at, &count);
        if (code || (lane->reader.in_flight == 0 && at == count))
            return code;
        if (lane->reader.in_flight == 0) {
            code = refuse(lane, group[at++]);
            if (code)
                return code;
            continue;
        }
        const bool waits = flag_get(&lane->waits);
        int reaped = reader_reap(&lane->reader, done, GROUP, waits ? FOR_EVER : 0);
        if (reaped < 0)
            return reaped;
        if (waits)
            flag_clear(&lane->waits);
        else if (reaped == 0)
            flag_set(&lane->waits);
        for (int i = 0; i < reaped; i++) {
            code = queue_push(lane->lanes->done, done[i]);
            if (code)
                return code;
        }
    }
}

/* Until then the caller may release loans and wake. */
static void wait_for_end(struct lane *lane)
{
    void *group[GROUP];

    while (queue_pop_many(lane->inbox, group, GROUP, true) > 0)
        continue;
}

static int lane_body(void *argument)
{
    struct lane *lane = argument;
    const struct lanes_settings *settings = lane->lanes->settings;

    numa_run_on(settings->numa, lane->number % settings->numa->count);
    int code = reader_open(&lane->reader, settings->reader, &lane->site);
    queue_push(lane->lanes->opened, code ? NULL : lane);
    if (code == 0) {
        code = serve(lane);
        if (code)
            queue_cancel(lane->lanes->done);
        wait_for_end(lane);
    }
    reader_close(&lane->reader);
    return code;
}

/* All lanes end. The first failure that is not the echo of another, or 0. */
static int end_lanes(struct lanes *lanes)
{
    char reason[FAIL_REASON_BYTES] = "";
    int first = 0;

    for (uint32_t i = 0; i < lanes->settings->count && lanes->lanes; i++)
        if (lanes->lanes[i].inbox)
            queue_close(lanes->lanes[i].inbox);
    for (uint32_t i = 0; i < lanes->settings->count && lanes->lanes; i++) {
        int code = thread_join(&lanes->lanes[i].thread);
        if (code && (first == 0 || first == -ECANCELED)) {
            first = code;
            snprintf(reason, sizeof reason, "%s", fail_reason());
        }
    }
    return first ? fail(first, "%s", reason) : 0;
}

static int start_lane(struct lanes *lanes, uint32_t number, const struct reader_site *site)
{
    struct lane *lane = &lanes->lanes[number];
    char name[16];
    void *opened;

    *lane = (struct lane){.lanes = lanes, .number = number, .site = *site};
    lane->site.regions += number * lanes->regions;
    lane->site.region_count = lanes->regions;
    lane->inbox = queue_create(site->depth);
    if (!lane->inbox)
        return -ENOMEM;
    snprintf(name, sizeof name, "loader%u", number % 1000u);
    int code = thread_start(&lane->thread, name, lane_body, lane);
    if (code)
        return code;
    queue_pop_many(lanes->opened, &opened, 1, true);
    return opened ? 0 : thread_join(&lane->thread);
}

/* "; 2 loaders on NUMA nodes 0, 1" */
static void describe(const struct lanes_settings *settings, struct reader_traits *traits)
{
    const struct numa *numa = settings->numa;
    size_t used = strlen(traits->engine), room = sizeof traits->engine;

    used += (size_t)snprintf(traits->engine + used, room - used, "; %u loaders", settings->count);
    for (uint32_t i = 0; numa->count > 1 && i < settings->count && i < numa->count && used < room;
         i++)
        used += (size_t)snprintf(traits->engine + used, room - used, "%s%d",
                                 i ? ", " : " on NUMA nodes ", numa->nodes[i]);
}

static int lanes_open(void *state, const void *chosen, const struct reader_site *site,
                      struct reader_traits *traits)
{
    struct lanes *lanes = state;
    int code = 0;

    lanes->settings = chosen;
    lanes->regions = site->region_count / lanes->settings->count;
    lanes->opened = queue_create(1);
    lanes->done = queue_create(site->depth);
    lanes->lanes = memory_array(lanes->settings->count, sizeof *lanes->lanes);
    if (!lanes->opened || !lanes->done || !lanes->lanes)
        return -ENOMEM;
    for (uint32_t i = 0; code == 0 && i < lanes->settings->count; i++)
        code = start_lane(lanes, i, site);
    *traits = lanes->lanes[0].reader.traits;
    lanes->in_order = traits->in_order;
    describe(lanes->settings, traits);
    return code;
}

static void lanes_close(void *state)
{
    struct lanes *lanes = state;

    end_lanes(lanes);
    for (uint32_t i = 0; lanes->lanes && i < lanes->settings->count; i++)
        queue_destroy(lanes->lanes[i].inbox);
    free(lanes->lanes);
    queue_destroy(lanes->opened);
    queue_destroy(lanes->done);
}

static int give(struct lane *lane, struct read_request *request)
{
    lane->has_new = true;
    return queue_push(lane->inbox, request);
}

static int lanes_submit(void *state, struct read_request *request)
{
    struct lanes *lanes = state;

    if (request->buffer && !lanes->in_order) {
        struct lane *owner = &lanes->lanes[request->region / lanes->regions];
        request->region %= lanes->regions; /* as the lane counts them */
        return give(owner, request);
    }
    return give(&lanes->lanes[request->shard % lanes->settings->count], request);
}

/* Once for all that was submitted and released. */
static void wake_lanes(struct lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->settings->count; i++) {
        struct lane *lane = &lanes->lanes[i];
        if (lane->has_new && flag_get(&lane->waits))
            reader_wake(&lane->reader);
        lane->has_new = false;
    }
}

static int lanes_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct lanes *lanes = state;
    void *group[GROUP];

    wake_lanes(lanes);
    int count = queue_pop_within(lanes->done, group, max < GROUP ? max : GROUP, wait_ns);

    for (int i = 0; i < count; i++)
        done[i] = group[i];
    if (count >= 0)
        return count;
    int code = end_lanes(lanes);
    return code ? code : -EIO; /* asked again, when the reason has been told */
}

static void lanes_release(void *state, struct read_request *request)
{
    struct lanes *lanes = state;

    struct lane *lane = &lanes->lanes[request->shard % lanes->settings->count];

    reader_pass_release(&lane->reader, request);
    lane->has_new = true;
}

static void lanes_wake(void *state)
{
    queue_wake(((struct lanes *)state)->done);
}

const struct reader_ops reader_lanes = {
    .plugin = {.name = "lanes",
               .summary = "a reader on several threads",
               .settings_size = sizeof(struct lanes_settings),
               .state_size = sizeof(struct lanes)},
    .open = lanes_open,
    .close = lanes_close,
    .submit = lanes_submit,
    .reap = lanes_reap,
    .release = lanes_release,
    .wake = lanes_wake,
};
