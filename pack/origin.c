/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/origin.h"

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/manifest.h"
#include "dataset/store.h"
#include "formats/format.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct origin_ops *origin_of(const struct plugin *plugin)
{
    return (const struct origin_ops *)(const void *)plugin; /* plugin is the first member */
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

/* The surest source for path. A format's own reason is better than "none", so the data set source
 * is taken when nothing claims the path. */
static const char *detect(const char *path)
{
    const struct origin_ops *best = origin_of(origin_registry[0]);
    int surest = 0;

    for (const struct plugin *const *row = origin_registry; *row; row++) {
        const struct origin_ops *ops = origin_of(*row);
        int sure = ops->detect ? ops->detect(path) : 0;
        if (sure > surest) {
            surest = sure;
            best = ops;
        }
    }
    return best->plugin.name;
}

/* What was asked for, as the text of a source. */
static int choose(struct origin *origin, const char *from, const char *path)
{
    struct store_status status;

    if (strcmp(from, "auto") == 0) {
        if (names(origin_registry, path) && !store_exists(path))
            return plugin_choose("source", origin_registry, path, &origin->choice);
        int code = store_stat(path, &status);
        if (code)
            return code;
        return plugin_choose("source", origin_registry, detect(path), &origin->choice);
    }
    if (names(format_registry, from)) { /* read by the data set source, whose option it is */
        int code =
            plugin_choose("source", origin_registry, origin_registry[0]->name, &origin->choice);
        if (code)
            return code;
        char **format = origin->choice.settings;
        free(*format);
        *format = strdup(from);
        return *format ? 0 : fail(ENOMEM, "out of memory");
    }
    return plugin_choose("source", origin_registry, from, &origin->choice);
}

int origin_open(struct origin *origin, const char *from, const char *path,
                const struct origin_site *site)
{
    *origin = (struct origin){0};
    int code = manifest_check_complete(path);
    if (code == 0)
        code = choose(origin, from, path);
    if (code)
        return code;
    code = plugin_usable(origin->choice.plugin);
    if (code)
        return code;
    origin->ops = origin_of(origin->choice.plugin);
    origin->state = memory_zeroed(origin->choice.plugin->state_size);
    if (!origin->state)
        return -ENOMEM;
    code = origin->ops->open(origin->state, origin->choice.settings, path, site, &origin->traits);
    if (code == 0 && origin->traits.count == 0)
        code = fail(ENODATA, "%s: no sample was found", path);
    return code;
}

void origin_close(struct origin *origin)
{
    if (origin->state)
        origin->ops->close(origin->state);
    free(origin->state);
    plugin_release(&origin->choice);
    *origin = (struct origin){0};
}

int origin_cursor_open(struct origin *origin, void **cursor)
{
    *cursor = NULL;
    return origin->ops->cursor_open ? origin->ops->cursor_open(origin->state, cursor) : 0;
}

void origin_cursor_close(struct origin *origin, void *cursor)
{
    if (origin->ops->cursor_close)
        origin->ops->cursor_close(origin->state, cursor);
}

int origin_read(struct origin *origin, void *cursor, uint64_t number, struct origin_slot *slot,
                struct sample *sample)
{
    assert(number < origin->traits.count);
    *sample = (struct sample){.label = -1};
    return origin->ops->read(origin->state, cursor, number, slot, sample);
}

int origin_reserve(void **buffer, size_t *capacity, size_t bytes)
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

int origin_keep(struct origin_slot *slot, struct sample *sample)
{
    int code = origin_reserve(&slot->record, &slot->record_capacity, sample->image_bytes);

    if (code == 0 && sample->name_bytes)
        code = origin_reserve(&slot->scratch, &slot->scratch_capacity, sample->name_bytes);
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

void origin_slot_release(struct origin_slot *slot)
{
    free(slot->record);
    free(slot->scratch);
    *slot = (struct origin_slot){0};
}
