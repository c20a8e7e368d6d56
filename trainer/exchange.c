/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/exchange.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The first of the registry that can be used: mpi only says so when a launcher started us. */
static const char *first_usable(void)
{
    int i = 0;

    while (exchange_registry[i + 1] && plugin_usable(exchange_registry[i]))
        i++;
    return exchange_registry[i]->name;
}

int exchange_join(struct exchange *exchange, const char *text)
{
    struct plugin_choice choice;

    *exchange = (struct exchange){.place = {.ranks = 1, .local_ranks = 1}};
    int code = plugin_choose("exchange", exchange_registry,
                             strcmp(text, "auto") == 0 ? first_usable() : text, &choice);
    if (code)
        return code;
    code = plugin_usable(choice.plugin);
    exchange->ops = (const struct exchange_ops *)(const void *)choice.plugin;
    plugin_release(&choice); /* members have no options */
    if (code)
        return code;
    exchange->state = memory_zeroed(exchange->ops->plugin.state_size);
    if (!exchange->state)
        return -ENOMEM;
    return exchange->ops->join(exchange->state, &exchange->place);
}

int exchange_open(struct exchange *exchange, const struct exchange_site *site)
{
    return exchange->ops->open(exchange->state, site);
}

void exchange_leave(struct exchange *exchange, bool failed)
{
    if (exchange->state && exchange->ops->leave)
        exchange->ops->leave(exchange->state, failed);
}

void exchange_close(struct exchange *exchange, bool failed)
{
    if (exchange->state)
        exchange->ops->close(exchange->state, failed);
    free(exchange->state);
    exchange->state = NULL;
}

int exchange_ready(struct exchange *exchange, uint64_t done)
{
    return exchange->ops->ready(exchange->state, done);
}

int exchange_finish(struct exchange *exchange)
{
    return exchange->ops->finish(exchange->state);
}

int exchange_sum(struct exchange *exchange, double *values, uint32_t count)
{
    return exchange->ops->sum(exchange->state, values, count);
}

int exchange_gather(struct exchange *exchange, double value, double *values)
{
    return exchange->ops->gather(exchange->state, value, values);
}
