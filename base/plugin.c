/* SPDX-License-Identifier: Apache-2.0 */
#include "base/plugin.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/module.h"
#include "base/nearest.h"
#include "base/option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct plugin *plugin_find(const struct plugin *const *registry, const char *name)
{
    for (; *registry; registry++)
        if (strcmp((*registry)->name, name) == 0 ||
            ((*registry)->alias && strcmp((*registry)->alias, name) == 0))
            return *registry;
    return NULL;
}

const struct plugin *plugin_idle(const struct plugin *const *registry)
{
    while (!(*registry)->idle)
        registry++;
    return *registry;
}

int plugin_choose(const char *family, const struct plugin *const *registry, const char *text,
                  struct plugin_choice *choice)
{
    static const struct option_spec no_options[] = {{0}};
    const char *arguments = strchr(text, ':');
    char name[64], where[96];

    *choice = (struct plugin_choice){0};
    size_t length = arguments ? (size_t)(arguments - text) : strlen(text);
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), text);
    choice->plugin = plugin_find(registry, name);
    if (!choice->plugin) {
        struct nearest nearest = nearest_start(name);
        for (; *registry; registry++)
            nearest_offer(&nearest, (*registry)->name);
        snprintf(where, sizeof where, "unknown %.63s", family);
        return nearest_fail(&nearest, EINVAL, where);
    }
    const struct option_spec *options =
        choice->plugin->options ? choice->plugin->options : no_options;
    snprintf(where, sizeof where, "%s %s", family, name);
    choice->settings = memory_zeroed(choice->plugin->settings_size + 1);
    choice->text = strdup(text);
    if (!choice->settings || !choice->text) {
        plugin_release(choice);
        return fail(ENOMEM, "%s: out of memory", where);
    }
    int code = option_defaults(options, choice->settings);
    if (code == 0 && arguments)
        code = option_set_list(options, choice->settings, arguments + 1, where);
    if (code)
        plugin_release(choice);
    return code;
}

void plugin_release(struct plugin_choice *choice)
{
    if (choice->plugin && choice->plugin->options && choice->settings)
        option_release(choice->plugin->options, choice->settings);
    free(choice->settings);
    free(choice->text);
    *choice = (struct plugin_choice){0};
}

int plugin_usable(const struct plugin *plugin)
{
    const struct plugin *asked = plugin->usable ? plugin : module_plugin(plugin);

    return !asked ? -ENODEV : asked->usable ? asked->usable() : 0;
}
