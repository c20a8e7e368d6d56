/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/depth.h"

/* A window is long enough for the slowest disk to answer some, and short enough that all of it
 * takes less than ten seconds. */
static const uint64_t WINDOW_NS = 40000000;
/* A turn is won half way between no growth and as much as may not be missed, so that either error
 * is as rare: with all of it, a depth that lacked more than that was taken for the knee every
 * seventh time on a storage whose windows scatter by 10%. */
static const double TURN_SHARE = 1 - (1 - DEPTH_KNEE_SHARE) / 2;
enum {
    WINDOW_ROUNDS = 4, /* a window holds at least so many times the depth of completions */
    TURN = 4,          /* windows: below, above, above, below, which cancels a steady drift */
    TURNS_MOST = 15,
    LEAD = 3,         /* turns that one must have won more than the other */
    IN_VAIN_MOST = 2, /* one doubling without growth may be a plateau */
};

void depth_start(struct depth *depth, uint32_t most)
{
    *depth = (struct depth){.now = 1, .most = most, .knee = 1, .above = most > 1 ? 2 : 1};
    depth->is_found = most == 1;
}

void depth_fix(struct depth *depth)
{
    depth->now = depth->knee = depth->most;
    depth->is_found = true;
}

static void change_depth(struct depth *depth, uint32_t now)
{
    depth->settling = depth->now;
    depth->now = now;
}

static bool is_above(uint32_t window)
{
    return window % TURN == 1 || window % TURN == 2;
}

static void end_turns(struct depth *depth, bool grows)
{
    const double *sum = depth->sum;
    uint32_t windows = depth->window / 2; /* of each depth */

    depth->knee_bytes_per_s = sum[grows] / windows;
    depth->best_bytes_per_s = (sum[0] > sum[1] ? sum[0] : sum[1]) / windows;
    if (grows)
        depth->knee = depth->above;
    depth->in_vain = grows ? 0 : depth->in_vain + 1;
    depth->is_found = depth->above == depth->most || depth->in_vain == IN_VAIN_MOST;
    depth->above = depth->above > depth->most / 2 ? depth->most : depth->above * 2;
    depth->window = depth->wins = 0;
    depth->sum[0] = depth->sum[1] = 0;
}

static void end_window(struct depth *depth, double bytes_per_s)
{
    bool above = is_above(depth->window);

    depth->turn[above] += bytes_per_s;
    depth->sum[above] += bytes_per_s;
    if (++depth->window % TURN == 0) {
        depth->wins += depth->turn[0] < TURN_SHARE * depth->turn[1];
        depth->turn[0] = depth->turn[1] = 0;
        uint32_t turns = depth->window / TURN, losses = turns - depth->wins;
        if (depth->wins >= losses + LEAD || losses >= depth->wins + LEAD || turns == TURNS_MOST)
            end_turns(depth, depth->wins > losses);
    }
    uint32_t next = is_above(depth->window) && !depth->is_found ? depth->above : depth->knee;
    if (next != depth->now)
        change_depth(depth, next);
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
    uint64_t window_ns = now_ns - depth->window_start_ns;
    if (window_ns >= WINDOW_NS && depth->window_requests >= (uint64_t)WINDOW_ROUNDS * depth->now) {
        depth->running = false;
        end_window(depth, (double)depth->window_bytes / ((double)window_ns * 1e-9));
    }
}
