/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/exchange.h"

#include "base/fail.h"
#include "base/gradients.h"
#include "base/memory.h"
#include "base/random.h"
#include "trainer/graph.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- buckets ---- */

/* Return the one of `count` borders that is nearest to an offset. */
static uint32_t find_nearest(const uint64_t *borders, uint32_t count, uint64_t offset)
{
    uint32_t i = 0;

    while (i + 1 < count && borders[i + 1] <= offset)
        i++;
    return i + 1 < count && borders[i] < offset && borders[i + 1] - offset < offset - borders[i]
               ? i + 1
               : i;
}

int buckets_by_layer(struct buckets *buckets, const struct graph *graph, uint32_t wanted)
{
    uint64_t before = 0;
    uint32_t count = 0, chosen = 0;

    *buckets = (struct buckets){.floats = graph->parameter_floats, .count = 1};
    uint64_t *borders = buckets->ends = memory_array(graph->node_count, sizeof *borders);
    if (!borders)
        return -ENOMEM;
    /* Where buckets may end: behind each layer, in the order in which gradients become final. The
     * last one is the end of the arena. */
    for (uint32_t i = graph->node_count; i-- > 0;) {
        uint64_t border = graph_final_floats(graph, i);
        if (border < graph->parameter_floats)
            border -= border % BUCKET_ALIGNMENT_FLOATS;
        if (border > before)
            borders[count++] = before = border;
    }
    if (count == 0)
        return 0;
    /* Leave only those at which they end. */
    if (wanted > 1 && count > 1) {
        const uint64_t floats = borders[count - 1];
        const uint64_t most = floats / (wanted > BUCKET_LAST_SHARE ? wanted : BUCKET_LAST_SHARE);
        uint32_t last = 0, next = 0; /* last: where the last bucket begins */
        while (last + 2 < count && borders[last] < floats - most)
            last++;
        const uint32_t parts = wanted - 1;
        const uint64_t start = borders[last], part = start / parts;
        for (uint32_t i = 1; i < parts && last > 0; i++) {
            const uint32_t at = find_nearest(borders, last, part * i); /* never below `chosen` */
            if (at < next)
                continue; /* a layer is larger than a part */
            borders[chosen++] = borders[at];
            next = at + 1;
        }
        borders[chosen++] = start;
    }
    borders[chosen++] = borders[count - 1];
    assert(chosen <= count);
    buckets->count = chosen;
    return 0;
}

void buckets_free(struct buckets *buckets)
{
    free(buckets->ends);
    *buckets = (struct buckets){0};
}

/* ---- exchanges ---- */

int exchange_choose(struct exchange *exchange, const char *text, const struct ranks *ranks)
{
    *exchange = (struct exchange){0};
    if (strcmp(text, "auto") == 0)
        text = ranks->place.ranks > 1 ? "mpi" : "none";
    int code = plugin_choose("exchange", exchange_registry, text, &exchange->choice);
    if (code)
        return code;
    code = plugin_usable(exchange->choice.plugin);
    if (code)
        return code;
    exchange->ops =
        (const struct exchange_ops *)(const void *)module_plugin(exchange->choice.plugin);
    if (!exchange->ops)
        return -ENODEV;
    if (ranks->place.ranks > 1 && strcmp(exchange->ops->plugin.name, "none") == 0)
        return fail(EINVAL, "exchange none: %u ranks would each train alone", ranks->place.ranks);
    return 0;
}

enum exchange_wire exchange_wire(const struct exchange *exchange)
{
    return exchange->ops && exchange->ops->wire ? exchange->ops->wire(exchange->choice.settings)
                                                : EXCHANGE_FP32;
}

const char *exchange_wire_name(const struct exchange *exchange)
{
    return exchange_wire(exchange) == EXCHANGE_FP16 ? "fp16" : "fp32";
}

uint32_t exchange_number_bytes(const struct exchange *exchange)
{
    return exchange_wire(exchange) == EXCHANGE_FP16 ? 2 : 4;
}

uint64_t exchange_sent_bytes(const struct exchange *exchange, const struct ranks *ranks,
                             double parameters)
{
    const struct ranks_place *place = &ranks->place;
    const double bytes = gradients_bytes(parameters, exchange_number_bytes(exchange));
    const struct ranks_peer *next = &ranks->peers[(place->rank + 1) % place->ranks];

    if (place->nodes < 2)
        return 0;
    if (exchange->ops->is_ring)
        return next->node == place->node ? 0 : (uint64_t)gradients_sent_bytes(bytes, place->ranks);
    return (uint64_t)(gradients_sent_bytes(bytes, place->nodes) / place->local_ranks);
}

int exchange_open(struct exchange *exchange, const struct exchange_config *config)
{
    /* Arenas can be summed only if all ranks use the same layout and send the same type. */
    const uint64_t mine =
        random_hash(config->layout, config->buckets.floats, exchange_number_bytes(exchange));
    uint32_t other;
    int code = ranks_compare(config->ranks, mine, &other);

    if (code == 0 && other)
        code = fail(EINVAL,
                    "exchange %s: the ranks store gradients in different layouts, or send "
                    "different types: use the same backend, options and build, on CPUs or GPUs of "
                    "one kind",
                    exchange->ops->plugin.name);
    if (code)
        return code;
    if (!exchange->ops->open)
        return 0;
    exchange->state = memory_zeroed(exchange->ops->plugin.state_size);
    return exchange->state ? exchange->ops->open(exchange->state, exchange->choice.settings, config)
                           : -ENOMEM;
}

void exchange_close(struct exchange *exchange, bool failed)
{
    if (exchange->state)
        exchange->ops->close(exchange->state, failed);
    free(exchange->state);
    exchange->state = NULL;
    plugin_release(&exchange->choice);
    exchange->choice = (struct plugin_choice){0};
}

int exchange_ready(void *context, uint64_t done)
{
    struct exchange *exchange = context;

    return exchange->ops->ready ? exchange->ops->ready(exchange->state, done) : 0;
}

int exchange_finish(struct exchange *exchange)
{
    return exchange->ops->finish ? exchange->ops->finish(exchange->state) : 0;
}

const char *exchange_notice(const struct exchange *exchange)
{
    return exchange->state && exchange->ops->notice ? exchange->ops->notice(exchange->state) : "";
}
