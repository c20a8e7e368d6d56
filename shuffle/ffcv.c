/* SPDX-License-Identifier: Apache-2.0
 * FFCV's quasi-random order: keep 2 x batch pages open; each draw picks an open page uniformly and
 * takes the next record of that shuffled page; a page that runs out is replaced by the next of the
 * permuted pages. A page is read whole when its first record is drawn. */
#include "base/fail.h"
#include "base/option.h"
#include "shuffle/plugins.h"
#include "shuffle/sequence.h"

#include <assert.h>
#include <errno.h>

struct ffcv_settings {
    uint64_t pages, page_bytes;
};

struct open_page {
    uint64_t begin; /* position of the page's first record in the walk */
    uint32_t records, fetched, drawn;
    uint32_t frame; /* its slots start at frame x the records of the largest page */
    struct permutation permutation;
};

struct ffcv_state {
    struct sequence sequence;
    struct open_page *pages;
    uint32_t page_capacity, page_count;
    uint32_t picked; /* the page of the next operation; UINT32_MAX: none yet */
    uint64_t opened; /* position of the next page to open */
    struct random random;
};

#define FIELD(field) offsetof(struct ffcv_settings, field)
static const struct option_spec ffcv_options[] = {
    {"pages", 0, OPTION_COUNT, FIELD(pages), "0", .maximum = 1e9,
     .summary = "pages kept open; 0: twice the batch size"},
    {"page", 0, OPTION_SIZE, FIELD(page_bytes), "8MiB", .minimum = 4096,
     .summary = "bytes of a page"},
    {0},
};

static int ffcv_open(const struct shuffle_ops *ops, void *state, const void *settings,
                     const struct plan_scope *scope, struct plan_traits *traits)
{
    struct ffcv_state *ffcv = state;
    const struct ffcv_settings *chosen = settings;
    struct sequence_rules rules = *ops->rules;
    uint64_t pages = chosen->pages ? chosen->pages : 2 * (uint64_t)scope->batch_size;

    rules.chunk_bytes = chosen->page_bytes;
    int code = sequence_open(&ffcv->sequence, scope, &rules, traits);
    if (code)
        return code;
    const uint64_t most = ffcv->sequence.unit_most; /* records of the largest page */
    if (pages > ffcv->sequence.run_capacity)
        pages = ffcv->sequence.run_capacity;
    if (pages == 0 || pages * most > UINT32_MAX)
        return fail(EINVAL, "%llu open pages of up to %llu records: expected 1 to 2^32 - 1 records",
                    (unsigned long long)pages, (unsigned long long)most);
    ffcv->page_capacity = (uint32_t)pages;
    traits->slots = pages * most;
    ffcv->pages =
        sequence_table(&ffcv->sequence, traits, pages, sizeof *ffcv->pages, "its open pages");
    return ffcv->pages ? 0 : -ENOMEM;
}

static int ffcv_begin(void *state, uint64_t epoch)
{
    struct ffcv_state *ffcv = state;
    const struct plan_scope *scope = &ffcv->sequence.scope;

    sequence_begin(state, epoch);
    for (uint32_t i = 0; i < ffcv->page_capacity; i++)
        ffcv->pages[i].frame = i;
    ffcv->page_count = 0;
    ffcv->picked = UINT32_MAX;
    ffcv->opened = 0;
    ffcv->random = random_start(sequence_seed(scope, SEQUENCE_BUFFER, epoch, false));
    return 0;
}

static int ffcv_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct ffcv_state *ffcv = state;
    uint32_t count = 0;

    while (count < max) {
        if (ffcv->picked == UINT32_MAX) {
            while (ffcv->page_count < ffcv->page_capacity && ffcv->opened < ffcv->sequence.length) {
                struct open_page *page = &ffcv->pages[ffcv->page_count++];
                uint64_t low, end;
                sequence_bounds(&ffcv->sequence, ffcv->opened, &low, &end);
                page->begin = ffcv->opened;
                page->records = (uint32_t)(end - ffcv->opened);
                page->fetched = page->drawn = 0;
                page->permutation = permutation_start(
                    random_hash(ffcv->sequence.seed, page->begin, 0), page->records);
                ffcv->opened = end;
            }
            if (ffcv->page_count == 0)
                break;
            ffcv->picked = (uint32_t)random_below(&ffcv->random, ffcv->page_count);
        }
        struct open_page *page = &ffcv->pages[ffcv->picked];
        assert(ffcv->picked < ffcv->page_count && page->drawn < page->records);
        const uint32_t slot = page->frame * (uint32_t)ffcv->sequence.unit_most;
        if (page->fetched < page->records) {
            ops[count++] = (struct plan_op){
                .kind = PLAN_FETCH,
                .record = sequence_at(&ffcv->sequence, page->begin + page->fetched),
                .slot = slot + page->fetched};
            page->fetched++;
            continue;
        }
        const uint64_t index = permutation_at(&page->permutation, page->drawn++);
        ops[count++] = (struct plan_op){.kind = PLAN_DRAW, .slot = slot + (uint32_t)index};
        /* Swapped with the last open one: frames stay distinct. */
        if (page->drawn == page->records) {
            const struct open_page drawn = *page;
            *page = ffcv->pages[--ffcv->page_count];
            ffcv->pages[ffcv->page_count] = drawn;
        }
        ffcv->picked = UINT32_MAX;
    }
    return (int)count;
}

const struct shuffle_ops shuffle_ffcv = {
    .plugin = {.name = "ffcv",
               .summary = "FFCV quasi-random: draws from many open pages in permuted order",
               .options = ffcv_options,
               .settings_size = sizeof(struct ffcv_settings),
               .state_size = sizeof(struct ffcv_state)},
    .rules = &(
        const struct sequence_rules){.unit = SEQUENCE_CHUNKS, .permute = true, .is_buffered = true},
    .open = ffcv_open,
    .close = sequence_close,
    .begin = ffcv_begin,
    .next = ffcv_next,
    .draws = sequence_draws,
};
