/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/source.h"

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/manifest.h"
#include "dataset/store.h"
#include "formats/format.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct source_ops *source_of(const struct plugin *plugin)
{
    return (const struct source_ops *)(const void *)plugin; /* plugin is the first member */
}

const struct plugin *source_generator(void)
{
    const struct plugin *const *row = source_registry;

    while (!source_of(*row)->generates)
        row++;
    return *row;
}

static bool names(const struct plugin *const *registry, const char *text)
{
    char name[64];
    size_t length = strcspn(text, ":");

    if (length >= sizeof name)
        return false;
    memcpy(name, text, length);
    name[length] = '\0';
    return plugin_find(registry, name) != NULL;
}

int source_detect_inside(const struct source_ops *front, const char *path)
{
    const struct source_ops *ops = source_of(module_plugin(&front->plugin));
    const int sure = ops ? ops->detect(path) : 0;

    fail_clear();
    return sure;
}

/* The request, as the text of a source. */
static int choose_source(struct source *source, const char *from, const char *path)
{
    struct store_status status;

    if (strcmp(from, "auto") == 0) {
        if (names(source_registry, path) && !store_exists(path))
            return plugin_choose("source", source_registry, path, &source->choice);
        int code = store_stat(path, &status);
        if (code)
            return code;
        /* Find the source with the highest detect() for path. If none claims it, the data set
         * source is tried, since a format's reason is better than "none". */
        const struct source_ops *best = source_of(source_registry[0]);
        int surest = 0;
        for (const struct plugin *const *row = source_registry; *row; row++) {
            const struct source_ops *ops = source_of(*row);
            int sure = ops->detect ? ops->detect(path) : 0;
            if (sure > surest) {
                surest = sure;
                best = ops;
            }
        }
        return plugin_choose("source", source_registry, best->plugin.name, &source->choice);
    }
    if (names(format_registry, from)) { /* parsed by the data set source, whose option it is */
        int code =
            plugin_choose("source", source_registry, source_registry[0]->name, &source->choice);
        if (code)
            return code;
        char **format = source->choice.settings;
        free(*format);
        *format = strdup(from);
        return *format ? 0 : fail(ENOMEM, "out of memory");
    }
    return plugin_choose("source", source_registry, from, &source->choice);
}

int source_open(struct source *source, const char *from, const char *path,
                const struct source_config *config)
{
    *source = (struct source){0};
    int code = manifest_check_complete(path);
    if (code == 0)
        code = choose_source(source, from, path);
    if (code)
        return code;
    code = plugin_usable(source->choice.plugin);
    if (code)
        return code;
    source->ops = source_of(module_plugin(source->choice.plugin));
    if (!source->ops)
        return -ENODEV;
    source->state = memory_zeroed(source->ops->plugin.state_size);
    if (!source->state)
        return -ENOMEM;
    code = source->ops->open(source->state, source->choice.settings, path, config, &source->traits);
    if (code == 0 && source->traits.count == 0)
        code = fail(ENODATA, "%s: no samples found", path);
    return code;
}

void source_close(struct source *source)
{
    if (source->state)
        source->ops->close(source->state);
    free(source->state);
    plugin_release(&source->choice);
    *source = (struct source){0};
}

int source_cursor_open(struct source *source, void **cursor)
{
    *cursor = NULL;
    return source->ops->cursor_open ? source->ops->cursor_open(source->state, cursor) : 0;
}

void source_cursor_close(struct source *source, void *cursor)
{
    if (source->ops->cursor_close)
        source->ops->cursor_close(source->state, cursor);
}

int source_read(struct source *source, void *cursor, uint64_t number, struct source_buffer *slot,
                struct sample *sample)
{
    assert(number < source->traits.count);
    *sample = (struct sample){.label = -1};
    return source->ops->read(source->state, cursor, number, slot, sample);
}

int source_reserve(void **buffer, size_t *capacity, size_t bytes)
{
    if (bytes <= *capacity)
        return 0;
    free(*buffer);
    *capacity = 0;
    *buffer = malloc(bytes + bytes / 4);
    if (!*buffer)
        return fail(ENOMEM, "out of memory for a sample of %zu bytes", bytes);
    *capacity = bytes + bytes / 4;
    return 0;
}

int source_keep(struct source_buffer *slot, struct sample *sample)
{
    int code = source_reserve(&slot->record, &slot->record_capacity, sample->image_bytes);

    if (code == 0)
        code = source_reserve(&slot->scratch, &slot->scratch_capacity, sample->name_bytes);
    if (code)
        return code;
    memcpy(slot->record, sample->image, sample->image_bytes);
    sample->image = slot->record;
    if (sample->name_bytes) {
        memcpy(slot->scratch, sample->name, sample->name_bytes);
        sample->name = slot->scratch;
    }
    return 0;
}

void source_buffer_release(struct source_buffer *slot)
{
    free(slot->record);
    free(slot->scratch);
    *slot = (struct source_buffer){0};
}
