/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/trainer.h"

#include "base/fail.h"
#include "base/memory.h"
#include "trainer/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool names_a_network(const char *text)
{
    size_t length = strcspn(text, ":");

    for (const struct network *const *network = network_registry; *network; network++)
        if (strlen((*network)->name) == length && strncmp(text, (*network)->name, length) == 0)
            return true;
    return false;
}

bool trainer_is_synchronous(const char *text)
{
    return names_a_network(text) || strcmp(text, "network") == 0 ||
           strncmp(text, "network:", 8) == 0;
}

int trainer_choose(const char *text, struct plugin_choice *choice)
{
    char longer[1024];

    if (names_a_network(text)) {
        size_t name = strcspn(text, ":");
        int bytes = snprintf(longer, sizeof longer, "network:%.*s%s%s", (int)name, text,
                             text[name] ? "," : "", text[name] ? text + name + 1 : "");
        if (bytes >= (int)sizeof longer)
            return fail(EINVAL, "--trainer: too long: %s", text);
        text = longer;
    }
    int code = plugin_choose("trainer", trainer_registry, text, choice);
    if (code == 0 && trainer_of(choice->plugin)->check)
        code = trainer_of(choice->plugin)->check(choice->settings);
    return code;
}

int trainer_open(struct trainer *trainer, const struct plugin_choice *choice,
                 const struct trainer_config *config)
{
    *trainer = (struct trainer){.ops = trainer_of(choice->plugin)};
    int code = plugin_usable(choice->plugin);
    if (code)
        return code;
    if (!trainer->ops->open)
        return 0;
    trainer->state = memory_zeroed(choice->plugin->state_size);
    if (!trainer->state)
        return -ENOMEM;
    return trainer->ops->open(trainer->state, choice->settings, config);
}

void trainer_close(struct trainer *trainer)
{
    if (trainer->state)
        trainer->ops->close(trainer->state);
    free(trainer->state);
    trainer->state = NULL;
}

void *trainer_allocate(struct trainer *trainer, size_t bytes)
{
    if (trainer->ops->allocate)
        return trainer->ops->allocate(trainer->state, bytes);
    return memory_pages(bytes);
}

void trainer_release(struct trainer *trainer, void *memory)
{
    if (trainer->ops->release)
        trainer->ops->release(trainer->state, memory);
    else
        free(memory);
}

int trainer_prepare(struct trainer *trainer, uint32_t count)
{
    return trainer->ops->prepare ? trainer->ops->prepare(trainer->state, count) : 0;
}

int trainer_step(struct trainer *trainer, const struct trainer_batch *batch,
                 struct trainer_times *times)
{
    *times = (struct trainer_times){.wait_ns = batch->waited_ns};
    return trainer->ops->step ? trainer->ops->step(trainer->state, batch, times) : 0;
}

int trainer_finish(struct trainer *trainer, struct trainer_times *times)
{
    *times = (struct trainer_times){0};
    return trainer->ops->finish ? trainer->ops->finish(trainer->state, times) : 0;
}

void trainer_memory(struct trainer *trainer, struct trainer_memory *memory)
{
    *memory = (struct trainer_memory){0};
    if (trainer->ops->memory)
        trainer->ops->memory(trainer->state, memory);
}

const char *trainer_notice(const struct trainer *trainer)
{
    return trainer->ops->notice ? trainer->ops->notice(trainer->state) : "";
}
