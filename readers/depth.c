/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/depth.h"

/* A window is long enough for the slowest disk to answer some, and short enough that the climb
 * takes a second or two. */
static const uint64_t WINDOW_NS = 40000000;
enum { WINDOW_ROUNDS = 4 }; /* a window holds at least so many times the depth of completions */
enum { REFINEMENTS = 2 };   /* halvings of the last doubling */
#define STILL_GROWS 1.03

void depth_start(struct depth *depth, uint32_t most)
{
    *depth = (struct depth){.now = 1, .most = most};
}

void depth_fix(struct depth *depth)
{
    depth->now = depth->knee = depth->most;
    depth->is_found = true;
}

static void begin_step(struct depth *depth, uint32_t now)
{
    depth->settling = depth->now;
    depth->now = now;
    depth->window_count = 0;
    depth->running = false;
}

static double best_of(const struct depth *depth, uint32_t count)
{
    double best = 0;

    for (uint32_t i = 0; i < count; i++)
        if (depth->steps[i].bytes_per_s > best)
            best = depth->steps[i].bytes_per_s;
    return best;
}

/* The least depth that gives nearly the best, and the largest below it that was tried. */
static void find_knee(struct depth *depth, uint32_t *below)
{
    depth->best_bytes_per_s = best_of(depth, depth->step_count);
    depth->knee = UINT32_MAX;
    *below = 0;
    for (uint32_t i = 0; i < depth->step_count; i++) {
        const struct depth_step *step = &depth->steps[i];
        if (step->bytes_per_s >= DEPTH_KNEE_SHARE * depth->best_bytes_per_s &&
            step->depth < depth->knee) {
            depth->knee = step->depth;
            depth->knee_bytes_per_s = step->bytes_per_s;
        }
    }
    for (uint32_t i = 0; i < depth->step_count; i++)
        if (depth->steps[i].depth < depth->knee && depth->steps[i].depth > *below)
            *below = depth->steps[i].depth;
}

/* Two doublings without growth end the climb: one alone may be noise. */
static bool climb_is_over(const struct depth *depth)
{
    uint32_t count = depth->step_count;

    if (depth->now >= depth->most)
        return true;
    return count >= 3 && best_of(depth, count) < STILL_GROWS * best_of(depth, count - 2);
}

static void end_step(struct depth *depth, double bytes_per_s)
{
    uint32_t below;

    depth->steps[depth->step_count++] =
        (struct depth_step){.depth = depth->now, .bytes_per_s = bytes_per_s};
    if (depth->refined == 0 && !climb_is_over(depth)) {
        begin_step(depth, depth->now > depth->most / 2 ? depth->most : depth->now * 2);
        return;
    }
    find_knee(depth, &below);
    uint32_t middle = below + (depth->knee - below) / 2;
    if (depth->refined++ < REFINEMENTS && middle > below) {
        begin_step(depth, middle);
        return;
    }
    begin_step(depth, depth->knee);
    depth->is_found = true;
}

static double median_of_three(const double *v)
{
    double low = v[0] < v[1] ? v[0] : v[1], high = v[0] < v[1] ? v[1] : v[0];

    return v[2] < low ? low : v[2] > high ? high : v[2];
}

static void end_window(struct depth *depth, uint64_t now_ns)
{
    double seconds = (double)(now_ns - depth->window_start_ns) * 1e-9;

    depth->windows[depth->window_count++] = (double)depth->window_bytes / seconds;
    depth->window_start_ns = now_ns;
    depth->window_bytes = depth->window_requests = 0;
    if (depth->window_count == DEPTH_WINDOWS)
        end_step(depth, median_of_three(depth->windows));
}

void depth_feed(struct depth *depth, uint32_t requests, uint64_t bytes, bool full, uint64_t now_ns)
{
    if (depth->is_found)
        return;
    if (!full) {
        depth->running = false;
        depth->settling = depth->now;
        return;
    }
    if (depth->settling > 0) {
        depth->settling = depth->settling > requests ? depth->settling - requests : 0;
        depth->running = false;
        return;
    }
    if (!depth->running) {
        depth->running = true;
        depth->window_start_ns = now_ns;
        depth->window_bytes = depth->window_requests = 0;
        return;
    }
    depth->window_bytes += bytes;
    depth->window_requests += requests;
    if (now_ns - depth->window_start_ns >= WINDOW_NS &&
        depth->window_requests >= (uint64_t)WINDOW_ROUNDS * depth->now)
        end_window(depth, now_ns);
}
