/* SPDX-License-Identifier: Apache-2.0
 * Lying plug-ins, in the program tests/liars/liar: iobench with its own registries. Each is an
 * honest plug-in with one or two members replaced.
 */
#include "formats/plugins.h"
#include "readers/plugins.h"
#include "shuffle/plugins.h"
#include "trainer/plugins.h"

#include <string.h>

enum { VICTIM = 8, LEFT_OUT = 10, REQUESTS = 4096 };

/* ---- readers ---- */

/* Reports all reads as complete at once, and reads nothing. */
static struct read_request *early[REQUESTS];
static uint32_t early_count;

static int early_submit(void *state, struct read_request *request)
{
    (void)state;
    if (early_count == REQUESTS)
        return -1;
    memset(request->buffer, 0, request->bytes);
    request->data = request->buffer;
    request->result = (int)request->bytes;
    early[early_count++] = request;
    return 0;
}

static int early_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    uint32_t count = 0;

    (void)state, (void)wait_ns;
    while (count < max && early_count)
        done[count++] = early[--early_count];
    return (int)count;
}

/* Returns one byte less than the record needs, as success. */
static int brief_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    const int count = reader_pread.reap(state, done, max, wait_ns);

    for (int i = 0; i < count; i++)
        done[i]->result = (int)done[i]->needed - 1;
    return count;
}

/* Never completes its reads. */
static int mute_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct read_request *kept[1];

    (void)done, (void)max;
    reader_pread.reap(state, kept, 1, wait_ns);
    return 0;
}

static struct reader_ops reader_early, reader_brief, reader_mute;
const struct plugin *const reader_registry[] = {
    &reader_pread.plugin, &reader_null.plugin, &reader_early.plugin,
    &reader_brief.plugin, &reader_mute.plugin, NULL,
};

/* ---- shuffles ---- */

/* Delivers one record twice, and another one never. */
static int twice_next(void *state, struct plan_op *ops, uint32_t max)
{
    const int count = shuffle_none.next(state, ops, max);

    for (int i = 0; i < count; i++)
        if (ops[i].kind == PLAN_FETCH && ops[i].record == VICTIM)
            ops[i].record = VICTIM - 1;
    return count;
}

/* Omits the end of the epoch, and reports a shorter epoch. */
static uint64_t drawn;

static int brief_begin(void *state, uint64_t epoch)
{
    drawn = 0;
    return shuffle_none.begin(state, epoch);
}

static uint64_t brief_draws(void *state)
{
    return shuffle_none.draws(state) - LEFT_OUT;
}

static int brief_next(void *state, struct plan_op *ops, uint32_t max)
{
    const int count = shuffle_none.next(state, ops, max);
    int kept = 0;

    while (kept < count && drawn < brief_draws(state))
        drawn += ops[kept++].kind == PLAN_DRAW;
    return kept;
}

static struct shuffle_ops shuffle_twice, shuffle_brief;
const struct plugin *const shuffle_registry[] = {
    &shuffle_none.plugin, &shuffle_epoch.plugin, &shuffle_twice.plugin, &shuffle_brief.plugin, NULL,
};

/* ---- trainers ---- */

/* Claims to compute for twice as long as the step took. */
static int boast_step(void *state, const struct trainer_batch *batch, struct trainer_times *times)
{
    const int code = trainer_replay.step(state, batch, times);

    times->compute_ns *= 2;
    times->nominal_ns *= 2;
    return code;
}

static struct trainer_ops trainer_boast;
const struct plugin *const trainer_registry[] = {
    &trainer_none.plugin,
    &trainer_replay.plugin,
    &trainer_boast.plugin,
    NULL,
};

/* ---- formats ---- */

/* Gives a sample the label of another class. */
static int mislabel_parse(const void *settings, const struct shard *shard, const void *record,
                          size_t bytes, unsigned flags, struct format_scratch *scratch,
                          struct sample *sample)
{
    const int code = format_shards.parse(settings, shard, record, bytes, flags, scratch, sample);

    sample->label ^= 1;
    return code;
}

/* Drops the last byte of each image. */
static int clip_parse(const void *settings, const struct shard *shard, const void *record,
                      size_t bytes, unsigned flags, struct format_scratch *scratch,
                      struct sample *sample)
{
    const int code = format_shards.parse(settings, shard, record, bytes, flags, scratch, sample);

    sample->image_bytes -= sample->image_bytes > 0;
    return code;
}

static struct format_ops format_mislabel, format_clip;
const struct plugin *const format_registry[] = {
    &format_shards.plugin,
    &format_mislabel.plugin,
    &format_clip.plugin,
    NULL,
};

/* ---- their names ---- */

static int unsure(const char *path)
{
    (void)path;
    return 0;
}

__attribute__((constructor)) static void begin_to_lie(void)
{
    reader_early = reader_brief = reader_mute = reader_pread;
    reader_early.plugin.name = "early";
    reader_early.submit = early_submit;
    reader_early.reap = early_reap;
    reader_brief.plugin.name = "brief";
    reader_brief.reap = brief_reap;
    reader_mute.plugin.name = "mute";
    reader_mute.reap = mute_reap;
    shuffle_twice = shuffle_brief = shuffle_none;
    shuffle_twice.plugin.name = "twice";
    shuffle_twice.next = twice_next;
    shuffle_brief.plugin.name = "brief";
    shuffle_brief.begin = brief_begin;
    shuffle_brief.draws = brief_draws;
    shuffle_brief.next = brief_next;
    shuffle_brief.seek = NULL;
    trainer_boast = trainer_replay;
    trainer_boast.plugin.name = "boast";
    trainer_boast.step = boast_step;
    format_mislabel = format_clip = format_shards;
    format_mislabel.plugin.name = "mislabel";
    format_mislabel.detect = unsure;
    format_mislabel.parse = mislabel_parse;
    format_clip.plugin.name = "clip";
    format_clip.detect = unsure;
    format_clip.parse = clip_parse;
}
