/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench list: lists the networks, the profiles and every plug-in, and whether each works on this
 * machine.
 */
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/nearest.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/help/help.h"
#include "cmd/study/study.h"
#include "base/profiles/profiles.h"
#include "report/words.h"
#include "trainer/graph.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct list_settings {
    char *json; /* file or "-" for standard output; NULL: a table */
};

static const struct option_spec list_options[] = {
    {"json", 0, OPTION_TEXT, offsetof(struct list_settings, json), .metavar = "FILE",
     .reach = OPTION_WRITES, .implied = "-",
     .summary = "write JSON instead; to standard output without FILE"},
    {0},
};

enum { COLUMN = 14 };

static const char networks_name[] = "networks", profiles_name[] = "profiles",
                  study_name[] = "study";

/* Returns false if out of memory. */
static bool network_cost(const struct network *network, struct graph_cost *cost)
{
    struct graph *graph = network_build(network, network->side, network->classes);

    if (graph)
        *cost = graph_cost(graph);
    graph_destroy(graph);
    return graph != NULL;
}

static double gflop(uint64_t macs)
{
    return (double)macs * 2e-9;
}

/* ---- profiles ---- */

static bool wanted(const char *only, const char *name)
{
    return !only || strcmp(only, name) == 0;
}

static json_t *json_of(const char *only)
{
    json_t *document = json_object();

    for (const struct family *family = family_table; family->name; family++)
        if (wanted(only, family->name)) {
            json_t *members = json_array();
            for (int i = 0; family->registry[i]; i++) {
                const struct plugin *plugin = family->registry[i];
                json_t *options = json_array();
                for (const struct option_spec *row = plugin->options; row && row->name; row++)
                    json_array_append_new(
                        options, json_pack("{s:o, s:o, s:o}", "name", json_text(row->name),
                                           "summary", json_text(row->summary), "default",
                                           row->fallback ? json_text(row->fallback) : json_null()));
                fail_clear();
                const bool usable = plugin_usable(plugin) == 0;
                json_array_append_new(
                    members,
                    json_pack("{s:o, s:o, s:b, s:o, s:o}", "name", json_text(plugin->name),
                              "summary", json_text(plugin->summary), "usable", (int)usable,
                              "usable_reason", usable ? json_null() : json_text(fail_reason()),
                              "options", options));
            }
            json_object_set_new(document, family->name, members);
        }
    if (wanted(only, networks_name)) {
        json_t *networks = json_array();
        for (int i = 0; network_registry[i]; i++) {
            const struct network *network = network_registry[i];
            struct graph_cost cost;
            json_t *member = json_append_new(
                networks, json_pack("{s:s, s:s, s:s, s:i, s:i}", "name", network->name, "summary",
                                    network->summary, "source", network->source, "side",
                                    (int)network->side, "classes", (int)network->classes));
            if (!network_cost(network, &cost))
                continue;
            json_put_count(member, "parameters", cost.parameters);
            json_put_number(member, "forward_gflop", gflop(cost.forward_macs));
            json_put_number(member, "training_gflop", gflop(cost.training_macs));
            json_put_count(member, "activation_bytes", cost.activation_bytes);
        }
        json_object_set_new(document, networks_name, networks);
    }
    if (wanted(only, profiles_name)) {
        json_t *profiles = json_array();
        for (const struct profile_shipped *row = profile_shipped; row->family; row++) {
            struct ini ini;
            json_t *member = json_pack("{s:s, s:s}", "family", row->family, "name", row->name);
            if (profiles_parse(row->name, row->text, &ini) == 0) {
                json_t *sections = json_object();
                for (size_t i = 0; i < ini.section_count; i++) {
                    const struct ini_section *section = &ini.sections[i];
                    json_t *figures = json_object();
                    for (size_t k = 0; k < section->count; k++) {
                        const struct ini_entry *entry = &ini.entries[section->first + k];
                        json_object_set_new(figures, entry->key, json_text(entry->value));
                    }
                    json_object_set_new(sections, section->name, figures);
                }
                json_object_set_new(member, "sections", sections);
            }
            ini_release(&ini);
            json_array_append_new(profiles, member);
        }
        json_object_set_new(document, profiles_name, profiles);
    }
    return document;
}

static int list_run(const struct invocation *invocation)
{
    const struct list_settings *settings = invocation->settings;
    const char *only = invocation->count ? invocation->operands[0] : NULL;
    struct nearest nearest = nearest_start(only ? only : "");
    bool found =
        wanted(only, networks_name) || wanted(only, profiles_name) || wanted(only, study_name);

    nearest_offer(&nearest, networks_name);
    nearest_offer(&nearest, profiles_name);
    nearest_offer(&nearest, study_name);
    for (const struct family *family = family_table; family->name; family++) {
        found = found || wanted(only, family->name);
        nearest_offer(&nearest, family->name);
    }
    if (!found) {
        nearest_fail(&nearest, EINVAL, "unknown family");
        return command_misused(invocation);
    }
    if (settings->json)
        return json_file_write(settings->json, json_of(only)) ? command_failed(invocation)
                                                              : COMMAND_OK;
    for (const struct family *family = family_table; family->name; family++) {
        if (!wanted(only, family->name))
            continue;
        char before[48], reason[FAIL_REASON_BYTES + 32];
        printf("%s: %s (--%s NAME)\n", family->name, family->summary, family->option);
        for (int i = 0; family->registry[i]; i++) {
            const struct plugin *plugin = family->registry[i];
            fail_clear();
            bool usable = plugin_usable(plugin) == 0;
            snprintf(before, sizeof before, "  %s", plugin->name);
            words_print(stdout, before, COLUMN, plugin->summary);
            if (usable)
                continue;
            snprintf(reason, sizeof reason, "-> unavailable here: %s", fail_reason());
            words_print(stdout, "", COLUMN, escape_shown(reason));
        }
        if (!only)
            putchar('\n');
    }
    if (wanted(only, networks_name)) {
        char parameters[WORDS_BYTES];
        printf("%s: what a trainer computes; cost per image\n", networks_name);
        printf("  %-18s%5s%13s%9s%10s%13s\n  %-18s%5s%13s%9s%10s%13s\n", "", "", "", "forward",
               "training", "activations", "", "side", "parameters", "GFLOP", "GFLOP", "MiB");
        for (int i = 0; network_registry[i]; i++) {
            const struct network *network = network_registry[i];
            struct graph_cost cost;
            if (!network_cost(network, &cost)) {
                printf("  %-18s-> %s\n", network->name, fail_reason());
                continue;
            }
            printf("  %-18s%5u%13s%9.3f%10.3f%13.2f\n", network->name, network->side,
                   words_count(cost.parameters, parameters), gflop(cost.forward_macs),
                   gflop(cost.training_macs), (double)cost.activation_bytes / (1 << 20));
            words_print(stdout, "", 4, network->summary);
        }
    }
    if (!only)
        putchar('\n');
    if (wanted(only, profiles_name)) {
        const char *family = "";
        char before[64];
        words_printf(stdout, "", 0,
                     "%s: figures behind 'iobench size', each with its source (--json shows all)",
                     profiles_name);
        for (const struct profile_shipped *row = profile_shipped; row->family; row++) {
            struct ini ini;
            const char *title = NULL, *source = NULL;
            if (profiles_parse(row->name, row->text, &ini) == 0) {
                title = profiles_text(&ini, row->family, "title");
                source = profiles_text(&ini, row->family, "source");
            }
            if (strcmp(family, row->family) != 0)
                printf("  --%s\n", row->family);
            family = row->family;
            snprintf(before, sizeof before, "    %s", row->name);
            words_printf(stdout, before, 20, "%s: %s", title ? title : "", source ? source : "");
            ini_release(&ini);
        }
    }
    if (only && wanted(only, study_name) && study_list(stdout))
        return command_failed(invocation);
    return COMMAND_OK;
}

const struct command command_list = {
    .name = "list",
    .summary = "list plug-ins, networks and profiles, and what works here",
    .operands = "[FAMILY]",
    .operands_maximum = 1,
    .description =
        "Lists every plug-in with its purpose, and why it is unavailable if it does not "
        "work on this machine. 'iobench --help=all' has their options. 'iobench list "
        "networks' has parameters, GFLOP per image (two per multiply-accumulate) and "
        "the memory of activations in training; 'iobench list profiles' the GPUs, networks, nodes, "
        "storages and fabrics that 'iobench size' knows.",
    .options = list_options,
    .settings_size = sizeof(struct list_settings),
    .run = list_run,
};
