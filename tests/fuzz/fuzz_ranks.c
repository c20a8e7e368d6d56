/* SPDX-License-Identifier: Apache-2.0
 * Messages of other ranks: each is a copy of this rank's with patches from the input (their number;
 * then position, length and bytes of each). The rest is a timeline. */
#include "tests/fuzz/fuzz.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "pipeline/result/result.h"
#include "ranks/ranks.h"

#include <errno.h>

enum { RANKS = 3, NODES = 2, EPOCHS = 2 };

struct input {
    const uint8_t *at, *end;
};

static struct input input;

static uint64_t take(size_t bytes)
{
    uint64_t number = 0;

    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | (input.at < input.end ? *input.at++ : 0);
    return number;
}

static void patch(uint8_t *message, uint64_t bytes)
{
    for (uint64_t patches = take(1); patches > 0 && input.at < input.end; patches--) {
        const uint64_t place = take(2) % bytes;
        for (uint64_t i = place, end = place + take(1); i < end && i < bytes; i++)
            message[i] = (uint8_t)take(1);
    }
}

static int fake_gather(void *state, const void *mine, uint64_t bytes, void *all)
{
    (void)state;
    for (uint32_t i = 0; i < RANKS; i++) {
        memcpy((uint8_t *)all + i * bytes, mine, bytes);
        if (i > 0)
            patch((uint8_t *)all + i * bytes, bytes);
    }
    return 0;
}

static int fake_test(void *state, bool *done)
{
    (void)state;
    *done = true;
    return 0;
}

static int fake_call(void *state, uint32_t to, uint64_t word)
{
    (void)state, (void)to, (void)word;
    return 0;
}

static int fake_hear(void *state, uint32_t *from, uint64_t *word, bool *heard)
{
    (void)state;
    *heard = input.at < input.end && take(1) % 4 == 0;
    *from = 1;
    *word = take(8);
    return 0;
}

static const struct ranks_ops fake = {
    .gather = fake_gather, .test = fake_test, .call = fake_call, .hear = fake_hear};

static void gather_all(struct ranks *ranks)
{
    struct result_epoch epochs[EPOCHS] = {{.epoch = 0, .wall_ns = 1}, {.epoch = 1, .wall_ns = 2}};
    struct result_run run = {.epoch_count = EPOCHS, .epochs = epochs};
    const struct result_cold cold = {.state = RESULT_CACHE_COLD};

    fail_clear();
    if (gather_cold(ranks, &cold, &run) == 0)
        for (uint32_t i = 0; i < run.node_count; i++)
            FUZZ_CHECK(strlen(run.nodes[i].host) < sizeof run.nodes[i].host);
    else
        FUZZ_CHECK(*fail_reason());
    fail_clear();
    if (gather_run(ranks, EPOCHS, &run) == 0) {
        FUZZ_CHECK(run.rank_count == RANKS && run.epoch_count <= EPOCHS);
        for (uint32_t i = 0; i < RANKS; i++)
            FUZZ_CHECK(run.ranks[i].node < NODES && run.ranks[i].rank < RANKS &&
                       strlen(run.ranks[i].host) < sizeof run.ranks[i].host);
    } else {
        FUZZ_CHECK(*fail_reason());
    }
    free(run.nodes);
    free(run.ranks);
    fail_clear();
    struct result_rank *all = gather_epoch(ranks, &epochs[0]);
    FUZZ_CHECK(all || *fail_reason());
    free(all);
}

static void meet(struct ranks *ranks)
{
    const int code = take(1) % 2 ? fail(EIO, "here") : 0;
    double sums[2] = {1, 2};

    FUZZ_CHECK(ranks_meet(ranks, code, NULL) <= 0);
    FUZZ_CHECK(code == 0 || *fail_reason());
    FUZZ_CHECK(ranks_sum(ranks, sums, 2) == 0);
    ranks_called_off(ranks);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct ranks_peer peers[RANKS] = {{.host = "a"}, {.host = "a"}, {.host = "b"}};
    struct ranks ranks = {
        .ops = &fake,
        .place = {.ranks = RANKS, .local_ranks = 2, .nodes = NODES, .cpus = 1, .host = "a"},
        .peers = peers};

    if (count < 1)
        return 0;
    input = (struct input){bytes + 1, bytes + count};
    if (bytes[0] % 2) {
        uint8_t *packed = fuzz_exact(bytes + 1, count - 1);
        struct timeline *timeline = timeline_unpack(packed, count - 1);
        if (timeline) {
            uint64_t again_bytes;
            void *again = timeline_pack(timeline, timeline->column_count, &again_bytes);
            FUZZ_CHECK(again && again_bytes == count - 1);
            free(again);
        }
        timeline_destroy(timeline);
        free(packed);
    } else {
        gather_all(&ranks);
        meet(&ranks);
    }
    return 0;
}
