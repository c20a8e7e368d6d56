/* SPDX-License-Identifier: Apache-2.0
 *
 * window: runs the plan ahead and sorts its fetches by place on storage.
 *
 * The plan's future is known, so its next fetches are gathered in a look-ahead window, sorted, and
 * adjacent ones become one read (shuffle/coalesce.h). The window owns the fetches and the plan's
 * slots. Knows neither readers nor memory. The loader's thread only.
 *
 * A window is filled only if there are free fetches for all of it. Where it ends thus depends on
 * the plan alone and never on timing: every run of a job makes the same reads.
 */
#ifndef IOBENCH_PIPELINE_LOADER_WINDOW_H
#define IOBENCH_PIPELINE_LOADER_WINDOW_H

#include "pipeline/loader/loader.h"
#include "shuffle/coalesce.h"
#include "shuffle/plan.h"

enum { WINDOW_OPS = 256 };

/* Drawn fetches in draw order, linked by next_drawn. */
struct draw_list {
    struct fetch *first, *last;
};

static inline void draw_list_append(struct draw_list *list, struct fetch *fetch)
{
    fetch->next_drawn = NULL;
    *(list->first ? &list->last->next_drawn : &list->first) = fetch;
    list->last = fetch;
}

struct window {
    const struct catalog *catalog;
    struct coalesce rules;
    bool plan_ended;
    uint64_t
        cut; /* windows that ended at their limit of bytes, before they had all their records */

    struct fetch **slots; /* plan slot -> the fetch it holds */
    uint64_t slot_count;
    uint32_t fetch_count;

    /* private */
    struct plan *plan; /* of the current epoch */
    struct plan_op ops[WINDOW_OPS];
    struct extent places[WINDOW_OPS]; /* of what they fetch */
    uint32_t op_at, op_count;
    uint64_t epoch, drawn, draws, first_address;
    struct fetch *fetches;
    struct fetch **free;
    uint32_t free_count;
    struct placed_fetch *entries,
        *scratch; /* entries[at .. count) are sorted and still to be read */
    uint32_t at, count;
};

/* slots: of the plan; fetches: at most this many at once. Returns 0 or a negative errno with a
 * reason; call window_destroy() either way. */
int window_create(struct window *window, const struct catalog *catalog,
                  const struct coalesce *rules, uint64_t slots, uint64_t fetches);
void window_destroy(struct window *window);
void window_reset(struct window *window);

/* Start an epoch: the plan's next `draws` draws get the addresses from first_address on. */
void window_begin(struct window *window, struct plan *plan, uint64_t epoch, uint64_t draws,
                  uint64_t first_address);

/* Run the plan until the window is full or the plan ends; append what it draws. Leaves the window
 * empty if too few fetches are free. Returns 0 or a negative errno. */
int window_fill(struct window *window, struct draw_list *drawn);

static inline bool window_is_empty(const struct window *window)
{
    return window->at == window->count;
}

/* True if the epoch has nothing left to read. */
static inline bool window_is_done(const struct window *window)
{
    return window->plan_ended && window_is_empty(window);
}

/* Return the next read of a window that is not empty, or that of its first record alone. */
struct coalesce_run window_next(const struct window *window, bool single);
/* Return its fetches; window_advance() removes them. */
static inline const struct placed_fetch *window_fetches(const struct window *window)
{
    return &window->entries[window->at];
}
static inline void window_advance(struct window *window, uint32_t count)
{
    window->at += count;
}

/* Put fetches of a failed block back, before the rest of the window and in draw order; each will be
 * read alone. */
void window_put_back(struct window *window, const struct placed_fetch *fetches, uint32_t count);
/* True if fetches that were put back are still to be read. */
static inline bool window_repeats(const struct window *window)
{
    return !window_is_empty(window) && window->entries[window->at].fetch->alone;
}
/* Return how many fetches can be put back. */
uint32_t window_room(const struct window *window);

/* Return a fetch that is no longer in use. */
void window_recycle(struct window *window, struct fetch *fetch);

#endif
