/* SPDX-License-Identifier: Apache-2.0
 *
 * plugin: the common start of every plug-in's ops, and how a plug-in is chosen.
 *
 * A user names a plug-in as NAME or NAME:ARGUMENTS, where ARGUMENTS is a comma-separated list of
 * key=value; the first may omit its key ("buffer:10000"). A registry is a static, NULL-terminated
 * array of pointers in the order shown to users.
 */
#ifndef IOBENCH_BASE_PLUGIN_H
#define IOBENCH_BASE_PLUGIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct module;
struct option_spec;

struct plugin {
    const char *name;
    const char *alias;                 /* another name that is accepted; NULL: none */
    const char *summary;               /* one line, no full stop */
    const struct option_spec *options; /* ends with a row without name; may be NULL */
    size_t settings_size;              /* size of the settings struct */
    size_t state_size;                 /* size of the zeroed state passed to open() */
    const char *devices;               /* that it opens: a shell pattern; NULL: none */
    bool idle;                         /* does nothing: for measuring the harness itself */
    /* Returns 0 if it works on this machine, else negative with a reason. NULL: always, or as the
     * module says. */
    int (*usable)(void);
    /* Of the front end of a module (struct module): the rest is there, under this symbol. NULL: it
     * is none. */
    const struct module *module;
    const char *symbol;
};

/* A chosen plug-in with its parsed settings. Owned by the caller; release with plugin_release(). */
struct plugin_choice {
    const struct plugin *plugin;
    void *settings; /* settings_size bytes, never NULL */
    char *text;     /* as the user wrote it */
};

/* NULL without a reason if unknown. */
const struct plugin *plugin_find(const struct plugin *const *registry, const char *name);

/* Return the registry's only idle member. */
const struct plugin *plugin_idle(const struct plugin *const *registry);

/* Parse "NAME[:ARGUMENTS]". family: for messages ("reader"). Returns 0, or -EINVAL with a reason
 * that lists the known names. */
int plugin_choose(const char *family, const struct plugin *const *registry, const char *text,
                  struct plugin_choice *choice);
void plugin_release(struct plugin_choice *choice);

int plugin_usable(const struct plugin *plugin);

/* ---- module ----
 *
 * Parts of the program that need rare libraries, as shared objects next to it, loaded on demand.
 * The program starts without them. Main thread. */

struct module {
    const char *file;
    const char *variable; /* environment variable that names another file to load */
    /* Required libraries by soname: searched for in the loader's paths, CUDA toolkits and Python's
     * site-packages, where PyTorch installs its own. */
    const char *libraries[4];
    bool is_global;     /* plug-ins of its libraries take symbols from the process */
    const char *remedy; /* when one of them is missing */
};

/* Return the plug-in to call instead of `front`, with the same settings; `front` itself if it is no
 * front end. NULL with a reason. The module stays loaded. */
const struct plugin *module_plugin(const struct plugin *front);
/* List the libraries loaded since the start: "path", and the "version" in that name or null. */
json_t *module_list(void);

#endif
