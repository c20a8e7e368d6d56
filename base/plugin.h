/* SPDX-License-Identifier: Apache-2.0
 *
 * plugin: what every member of every plug-in family starts with, and how one is chosen.
 *
 * A user names a plug-in as NAME or NAME:ARGUMENTS, where ARGUMENTS is a comma-separated list of
 * key=value; the first one may be given without its key ("buffer:10000").
 * A registry is a static, NULL-terminated array of pointers in the order users see.
 */
#ifndef IOBENCH_BASE_PLUGIN_H
#define IOBENCH_BASE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

struct option_spec;

struct plugin {
    const char *name;
    const char *summary;               /* one line, no full stop */
    const struct option_spec *options; /* ends with a row whose name is NULL; may be NULL */
    size_t settings_size;              /* bytes of the settings struct that options fill */
    size_t state_size;                 /* bytes of zeroed state the core allocates for open() */
    bool idle;                         /* does nothing: its figures are those of the harness */
    /* 0 when it works on this machine, else negative with a fail() reason. NULL: always. */
    int (*usable)(void);
};

/* A chosen plug-in with its parsed settings. Owned by the caller; free with plugin_release(). */
struct plugin_choice {
    const struct plugin *plugin;
    void *settings; /* settings_size bytes, never NULL */
    char *text;     /* as the user wrote it */
};

/* Find by name, NULL when there is none (no reason is recorded). */
const struct plugin *plugin_find(const struct plugin *const *registry, const char *name);

/* The registry's idle member; there is one. */
const struct plugin *plugin_idle(const struct plugin *const *registry);

/* Parse "NAME[:ARGUMENTS]". family names the kind in messages ("reader"). 0, or -EINVAL with a
 * reason that lists the names there are. */
int plugin_choose(const char *family, const struct plugin *const *registry, const char *text,
                  struct plugin_choice *choice);
void plugin_release(struct plugin_choice *choice);

/* plugin->usable() or 0. */
int plugin_usable(const struct plugin *plugin);

#endif
