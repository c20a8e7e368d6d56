/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/size.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/json_file.h"
#include "cmd/size/page.h"
#include "cmd/size/recording.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STORAGES_MOST = 16 };

int size_counts(const char *text, double *counts)
{
    char *end = NULL;
    int count = 0;

    do {
        const unsigned long value = strtoul(end ? end + 1 : text, &end, 10);
        if (value < 1 || value > 1000000000 || (*end && *end != ','))
            return fail(EINVAL, "--gpus: expected numbers above 0 such as 8,64,512, not '%s'",
                        text);
        if (count == SIZE_COUNTS_MOST)
            return fail(EINVAL, "--gpus: at most %d numbers", SIZE_COUNTS_MOST);
        counts[count++] = (double)value;
    } while (*end);
    return count;
}

/* Measured profiles say what their figures may not be. */
static void add_doubts(struct size_case *cluster, const char *name, const struct ini *ini)
{
    for (size_t i = 0; i < ini->section_count; i++) {
        const struct ini_entry *entry = ini_find(ini, &ini->sections[i], "doubt");
        if (!entry || !entry->value || cluster->doubt_count == SIZE_DOUBTS_MOST)
            continue;
        char *doubt = cluster->doubts[cluster->doubt_count++];
        const size_t used = (size_t)snprintf(
            doubt, SIZE_DOUBT_BYTES, "%s of %.100s: ", escape_shown(ini->sections[i].name), name);
        snprintf(doubt + used, SIZE_DOUBT_BYTES - used, "%.*s", (int)(SIZE_DOUBT_BYTES - used - 1),
                 escape_shown(entry->value));
    }
}

/* All nodes are simulated alike. */
static void add_uneven_doubt(struct size_case *cluster)
{
    const double share = cluster->answer.plant.of[SIZING_GPUS];

    if (share == floor(share) || cluster->doubt_count == SIZE_DOUBTS_MOST)
        return;
    snprintf(cluster->doubts[cluster->doubt_count++], SIZE_DOUBT_BYTES,
             "%.0f GPUs on %.0f nodes: simulated with %.3g in each; those with %.0f need more",
             cluster->gpus, cluster->answer.plant.nodes, share, ceil(share));
}

/* Build the cluster of the options, with one storage. */
static int add_profile(const struct size_settings *settings, const char *family, const char *name,
                       const char *network, struct size_case *cluster, char *title)
{
    struct ini ini;

    if (!name)
        return 0;
    int code = profiles_load(family, name, settings->profiles, &ini);
    if (code == 0 && !profiles_section(&ini, family))
        code = fail(EINVAL, "%s: has no section [%s], so it describes no %s", ini.path, family,
                    family);
    if (code == 0)
        code = sizing_inputs_apply(&cluster->inputs, &ini, network);
    if (code == 0)
        add_doubts(cluster, name, &ini);
    if (code == 0 && title) {
        const char *text = profiles_text(&ini, family, "title");
        snprintf(title, SIZE_TITLE_BYTES, "%s", escape_shown(text ? text : name));
    }
    ini_release(&ini);
    return code;
}

static int add_network(const struct size_settings *settings, const char *name,
                       struct size_case *cluster)
{
    struct ini ini;
    int code = add_profile(settings, "network", name, NULL, cluster, cluster->network);

    if (code || settings->recording || settings->sample_bytes)
        return code;
    code = profiles_load("network", name, settings->profiles, &ini);
    if (code == 0)
        code = size_forms_read(&cluster->forms, &ini);
    ini_release(&ini);
    return code;
}

static void set_sample_size(const struct size_settings *settings, struct sizing_inputs *inputs)
{
    if (settings->sample_bytes)
        inputs->of[SIZING_SAMPLE_BYTES] =
            (struct quantity){.value = (double)settings->sample_bytes};
}

/* A recorded job replaces what the network's profile says about reading. */
static int add_recording(const struct size_settings *settings, struct size_case *cluster)
{
    struct size_recording recording;
    int code = size_recording_load(settings->recording, &recording);

    if (code)
        return code;
    set_sample_size(settings, &cluster->inputs);
    size_recording_apply(&recording, (double)settings->recorded_gpus, &cluster->inputs);
    cluster->recorded_bytes_per_s = recording.bytes_per_s.value;
    cluster->recorded_peak_bytes_per_s = recording.peak_bytes_per_s;
    cluster->recorded_s = recording.seconds;
    snprintf(cluster->network, sizeof cluster->network, "a recorded job");
    return 0;
}

/* The network's other forms are of its own samples: beside others they compare nothing. */
static bool has_other_data(const struct sizing_inputs *one, const struct sizing_inputs *other)
{
    return one->of[SIZING_SAMPLE_BYTES].value != other->of[SIZING_SAMPLE_BYTES].value ||
           one->of[SIZING_DECODE_S].value != other->of[SIZING_DECODE_S].value;
}

/* Figures that override the other profiles, and names of what they describe. */
static int add_own_figures(const struct size_settings *settings, struct size_case *cluster)
{
    const struct {
        const char *section;
        char *title;
    } named[] = {{"network", cluster->network},
                 {"gpu", cluster->gpu},
                 {"node", cluster->node},
                 {"storage", cluster->storage}};
    const struct sizing_inputs before = cluster->inputs;
    struct ini ini;

    if (!settings->profile)
        return 0;
    int code = profiles_load("profile", settings->profile, settings->profiles, &ini);
    if (code == 0)
        code = sizing_inputs_apply(&cluster->inputs, &ini, NULL);
    if (code == 0)
        add_doubts(cluster, settings->profile, &ini);
    for (size_t i = 0; code == 0 && i < sizeof named / sizeof *named; i++) {
        const char *text = profiles_text(&ini, named[i].section, "title");
        const size_t used = strlen(named[i].title);
        if (text)
            snprintf(named[i].title, SIZE_TITLE_BYTES, "%s", escape_shown(text));
        else if (profiles_text(&ini, named[i].section, "source"))
            snprintf(named[i].title + used, SIZE_TITLE_BYTES - used, " with figures of %s",
                     escape_shown(settings->profile));
        if (text && i == 0)
            cluster->forms.count = 0; /* of another network */
    }
    if (has_other_data(&before, &cluster->inputs))
        cluster->forms.count = 0;
    ini_release(&ini);
    return code;
}

static int describe(const struct size_settings *settings, const char *storage,
                    struct size_case *cluster)
{
    const char *network = settings->network ? settings->network : "resnet50";
    const char *gpu = settings->gpu ? settings->gpu : "h200";
    char section[64];

    /* A GPU's section is named after the network, not after its file. */
    snprintf(section, sizeof section, "%s", file_name(network));
    if (strlen(section) > 4 && strcmp(section + strlen(section) - 4, ".ini") == 0)
        section[strlen(section) - 4] = '\0';
    sizing_inputs_start(&cluster->inputs);
    struct sizing_inputs *inputs = &cluster->inputs;
    int code = add_network(settings, network, cluster);
    if (code == 0)
        code = add_profile(settings, "gpu", gpu, section, cluster, cluster->gpu);
    if (code == 0)
        code = add_profile(settings, "node", settings->node ? settings->node : "dgx-h200", NULL,
                           cluster, cluster->node);
    if (code == 0)
        code = add_profile(settings, "fabric", settings->fabric, NULL, cluster, NULL);
    if (code == 0)
        code = add_profile(settings, "storage", storage, NULL, cluster, cluster->storage);
    if (code == 0 && settings->recording)
        code = add_recording(settings, cluster);
    if (code == 0)
        code = add_own_figures(settings, cluster);
    if (settings->rate > 0)
        inputs->of[SIZING_GPU_RATE] = (struct quantity){.value = settings->rate};
    set_sample_size(settings, inputs);
    if (code == 0 && !(inputs->of[SIZING_STORAGE_RATE].value > 0) && !inputs->curve.count)
        return fail(EINVAL,
                    "%s: neither read-bytes-per-s nor a curve in [storage]: no storage "
                    "reads without limit",
                    cluster->storage);
    if (code == 0 && !(inputs->of[SIZING_GPU_RATE].value > 0))
        return fail(EINVAL, "no rate of %s on %s is published; give --rate", cluster->network,
                    cluster->gpu);
    return code;
}

static int answer_case(const struct size_settings *settings, double gpus, struct size_case *cluster)
{
    const struct sizing_request request = {.inputs = &cluster->inputs,
                                           .gpus = gpus,
                                           .busy = settings->busy_percent / 100,
                                           .draws = (unsigned)settings->draws,
                                           .seed = settings->seed};
    int code = sizing_answer(&request, &cluster->answer);

    if (code == 0)
        add_uneven_doubt(cluster);
    if (code || settings->chart || settings->acceptance)
        return code;
    return size_forms_answer(&cluster->forms, &request);
}

/* 1, 2, 4 ... 16,384. */
static int chart_counts(double *counts)
{
    int count = 0;

    for (double gpus = 1; gpus <= 16384; gpus *= 2)
        counts[count++] = gpus;
    return count;
}

static int answer_all(const struct size_settings *settings, struct size_table *table)
{
    double counts[SIZE_COUNTS_MOST];
    int count = settings->chart ? chart_counts(counts) : size_counts(settings->gpus, counts);
    char *list = strdup(settings->storage ? settings->storage : "parallel-k3000");
    char *cursor = list, *storage;
    int code = count < 0 ? count : 0;

    table->cases = memory_array(STORAGES_MOST * SIZE_COUNTS_MOST, sizeof *table->cases);
    if (!list || !table->cases)
        code = fail(ENOMEM, "out of memory");
    while (code == 0 && (storage = strsep(&cursor, ","))) {
        if (table->storages++ == STORAGES_MOST) {
            code = fail(EINVAL, "--storage: at most %d", STORAGES_MOST);
            break;
        }
        for (int i = 0; i < count && code == 0; i++) {
            struct size_case *cluster = &table->cases[table->count++];
            cluster->gpus = counts[i];
            code = describe(settings, storage, cluster);
            if (code == 0)
                code = answer_case(settings, counts[i], cluster);
        }
    }
    free(list);
    return code;
}

static int show_cluster(const struct size_settings *settings, const struct size_table *table)
{
    if (settings->chart)
        return size_page_chart(table, settings->chart);
    if (settings->acceptance)
        return size_page_acceptance(&table->cases[0], settings->acceptance);
    if (settings->json)
        return json_file_write(settings->json, size_page_json(table));
    if (table->count == 1)
        size_page_print(&table->cases[0]);
    else
        size_page_table(table);
    return 0;
}

int size_cluster(const struct invocation *invocation)
{
    const struct size_settings *settings = invocation->settings;
    struct size_table table = {0};

    if ((settings->chart != NULL) + (settings->acceptance != NULL) + (settings->json != NULL) > 1) {
        fail(EINVAL, "only one of --json, --chart and --acceptance");
        return command_misused(invocation);
    }
    int code = answer_all(settings, &table);
    if (code == 0)
        code = show_cluster(settings, &table);
    free(table.cases);
    if (code == 0)
        return COMMAND_OK;
    return code == -EINVAL || code == -ENOENT ? command_misused(invocation)
                                              : command_failed(invocation);
}
