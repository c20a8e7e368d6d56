/* SPDX-License-Identifier: Apache-2.0 */
#include "base/plugin.h"

#include "base/fail.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option.h"

#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- module ---- */

/* The loader resolves a module's libraries by soname among those already loaded, so they are
 * loaded first, by path. */

enum { PLACE_BYTES = 2 * PATH_MAX };

/* Load the first file that matches FOLDER/PATTERN/NAME. FOLDER must be absolute: the working folder
 * is never searched. */
static bool load_from(const char *folder, const char *pattern, const char *name)
{
    char path[PLACE_BYTES];
    struct folder_names found;
    bool loaded = false;

    if (!folder || *folder != '/' ||
        snprintf(path, sizeof path, "%s/%s/%s", folder, pattern, name) >= PLACE_BYTES)
        return false;
    folder_names_matching(&found, path);
    for (size_t i = 0; i < found.count && !loaded; i++)
        loaded = dlopen(found.list[i], RTLD_NOW | RTLD_GLOBAL) != NULL;
    folder_names_release(&found);
    return loaded;
}

/* PyTorch's wheels install NVIDIA's libraries next to themselves. */
static bool load_from_python(const char *prefix, const char *name)
{
    static const char *const patterns[] = {"lib/python3*/site-packages/nvidia/*/lib",
                                           "lib/python3*/dist-packages/nvidia/*/lib",
                                           "lib/python3/dist-packages/nvidia/*/lib"};
    bool loaded = false;

    for (size_t i = 0; i < sizeof patterns / sizeof *patterns && !loaded; i++)
        loaded = load_from(prefix, patterns[i], name);
    return loaded;
}

/* Best effort: loading the module names what is still missing. */
static void load_library(const char *name, const char *own_folder)
{
    /* In containers the driver is in the second one. */
    static const char *const toolkits[] = {"/usr/local/cuda", "/usr/local/nvidia", "/opt/cuda"};
    static const char *const prefixes[] = {"/usr", "/usr/local"};
    char folder[PATH_MAX];
    const char *home = getenv("HOME"), *path = getenv("PATH");
    bool loaded = dlopen(name, RTLD_NOW | RTLD_GLOBAL) != NULL || load_from(own_folder, ".", name);

    if (!loaded)
        loaded = load_from(getenv("CUDA_HOME"), "lib*", name) ||
                 load_from_python(getenv("VIRTUAL_ENV"), name) ||
                 load_from_python(getenv("CONDA_PREFIX"), name);
    while (path && *path && !loaded) { /* the Python of each folder in PATH */
        size_t length = strcspn(path, ":");
        if (length > 0 && length < sizeof folder - sizeof "/..") {
            snprintf(folder, sizeof folder, "%.*s/..", (int)length, path);
            loaded = load_from_python(folder, name);
        }
        path += length + (path[length] == ':');
    }
    for (size_t i = 0; i < sizeof toolkits / sizeof *toolkits && !loaded; i++)
        loaded = load_from(toolkits[i], "lib*", name);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && !loaded; i++)
        loaded = load_from_python(prefixes[i], name);
    if (!loaded && home && snprintf(folder, sizeof folder, "%s/.local", home) < PATH_MAX)
        load_from_python(folder, name);
}

static const void *module_find(const struct module *module, const char *symbol)
{
    static const char *const places[] = {"%s/%s", "%s/../lib/iobench/%s"};
    const char *named = getenv(module->variable);
    char path[PLACE_BYTES] = "", folder[PLACE_BYTES], program[PATH_MAX];
    const void *found = dlsym(RTLD_DEFAULT, symbol);

    if (found) /* this program links the module's objects */
        return found;
    /* Next to the program, in its ../lib/iobench, or where it was installed. The program is unknown
     * without /proc; the working folder is never searched. */
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    const char *own = length > 0 ? dirname(program) : NULL;
    bool is_there = named && *named;
    if (is_there)
        snprintf(path, sizeof path, "%s", named);
    for (int i = 0; i < 2 && own && !is_there; i++) {
        snprintf(path, sizeof path, i ? places[1] : places[0], own, module->file);
        is_there = access(path, R_OK) == 0;
    }
    if (!is_there) {
        snprintf(path, sizeof path, "%s/%s", IOBENCH_MODULES, module->file);
        is_there = access(path, R_OK) == 0;
    }
    if (!is_there) {
        fail(ENOENT,
             "%s: not found next to the program or in %s: install it, or set %s to its path",
             module->file, IOBENCH_MODULES, module->variable);
        return NULL;
    }
    snprintf(folder, sizeof folder, "%s", path);
    const char *own_folder = dirname(folder); /* changes it */
    for (const char *const *library = module->libraries; *library; library++)
        load_library(*library, own_folder);
    void *handle = dlopen(path, RTLD_NOW | (module->is_global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!handle) {
        fail(ENOENT, "%s cannot be loaded: %s; %s", module->file, dlerror(), module->remedy);
        return NULL;
    }
    const char *(*version)(void);
    *(void **)&version = dlsym(handle, "iobench_module_release");
    if (!version || strcmp(version(), PACKAGE_VERSION) != 0) {
        fail(EINVAL, "%s: version %s, but the program is %s: install both together", path,
             version ? version() : "none", PACKAGE_VERSION);
        return NULL;
    }
    found = dlsym(handle, symbol);
    if (!found)
        fail(EINVAL, "%s lacks %s", path, symbol);
    return found;
}

const struct plugin *module_plugin(const struct plugin *front)
{
    const struct plugin *found = front->module ? module_find(front->module, front->symbol) : front;

    if (found && found->settings_size != front->settings_size) {
        fail(EINVAL, "%s is from another build: install both together", front->module->file);
        return NULL;
    }
    return found;
}

/* ---- what is loaded ---- */

static const struct link_map *last_linked; /* the last library when the program started */

__attribute__((constructor)) static void find_last_linked(void)
{
    for (last_linked = _r_debug.r_map; last_linked && last_linked->l_next;)
        last_linked = last_linked->l_next;
}

json_t *module_list(void)
{
    json_t *list = json_array();
    char path[PATH_MAX];

    for (const struct link_map *map = last_linked; map && (map = map->l_next);) {
        if (!realpath(map->l_name, path)) /* the link has no version */
            snprintf(path, sizeof path, "%s", map->l_name);
        const char *version = strstr(path, ".so.");
        json_t *object = json_object();
        json_put_text(object, "path", path);
        json_put_text(object, "version", version ? version + strlen(".so.") : NULL);
        json_array_append_new(list, object);
    }
    return list;
}
