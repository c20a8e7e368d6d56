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

enum { STORAGES_MOST = 16, CHART_COUNTS = 15 /* 1, 2, 4 ... 16,384 GPUs */ };

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

/* Find the forms of a network's profile. */
static int add_forms(struct size_case *cluster, const struct ini *network)
{
    for (size_t i = 0; i < network->section_count; i++) {
        const char *section = network->sections[i].name;
        if (strncmp(section, "form ", 5) != 0)
            continue;
        if (cluster->form_count == SIZE_FORMS_MOST)
            return fail(EINVAL, "%s: more than %d forms", network->path, SIZE_FORMS_MOST);
        struct size_form *form = &cluster->forms[cluster->form_count++];
        const char *title = profiles_text(network, section, "title");
        const char *bytes = profiles_text(network, section, "sample-bytes");
        const char *decode = profiles_text(network, section, "decode-core-s");
        if (!title || !bytes || quantity_parse(bytes, &form->sample_bytes) ||
            !(form->sample_bytes.value > 0) || !decode || quantity_parse(decode, &form->decode_s))
            return fail(EINVAL, "%s: [%s] needs title, sample-bytes and decode-core-s",
                        network->path, section);
        snprintf(form->title, sizeof form->title, "%s", escape_shown(title));
    }
    return 0;
}

/* name: NULL: nothing. network: see sizing_inputs_apply(). title: may be NULL. */
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
    if (code == 0 && title == cluster->network && !settings->recording && !settings->sample_bytes)
        code = add_forms(cluster, &ini);
    if (code == 0 && title) {
        const char *text = profiles_text(&ini, family, "title");
        snprintf(title, SIZE_TITLE_BYTES, "%s", escape_shown(text ? text : name));
    }
    ini_release(&ini);
    return code;
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
            cluster->form_count = 0; /* of another network */
    }
    /* The forms are of the network's own samples: beside others they compare nothing. */
    static const int of_data[] = {SIZING_SAMPLE_BYTES, SIZING_DECODE_S};
    for (size_t i = 0; i < 2; i++)
        if (before.of[of_data[i]].value != cluster->inputs.of[of_data[i]].value)
            cluster->form_count = 0;
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
    struct quantity *sample_bytes = &inputs->of[SIZING_SAMPLE_BYTES];
    const struct quantity own_bytes = {.value = (double)settings->sample_bytes};
    int code = add_profile(settings, "network", network, NULL, cluster, cluster->network);
    if (code == 0)
        code = add_profile(settings, "gpu", gpu, section, cluster, cluster->gpu);
    if (code == 0)
        code = add_profile(settings, "node", settings->node ? settings->node : "dgx-h200", NULL,
                           cluster, cluster->node);
    if (code == 0)
        code = add_profile(settings, "fabric", settings->fabric, NULL, cluster, NULL);
    if (code == 0)
        code = add_profile(settings, "storage", storage, NULL, cluster, cluster->storage);
    if (code == 0 && settings->recording) { /* it replaces what the profile says about reading */
        struct size_recording recording;
        code = size_recording_load(settings->recording, &recording);
        *sample_bytes = settings->sample_bytes ? own_bytes : *sample_bytes;
        if (code == 0)
            size_recording_apply(&recording, (double)settings->recorded_gpus, inputs);
        cluster->recorded_bytes_per_s = recording.bytes_per_s.value;
        cluster->recorded_peak_bytes_per_s = recording.peak_bytes_per_s;
        cluster->recorded_s = recording.seconds;
        snprintf(cluster->network, sizeof cluster->network, "a recorded job");
    }
    if (code == 0)
        code = add_own_figures(settings, cluster);
    if (settings->rate > 0)
        inputs->of[SIZING_GPU_RATE] = (struct quantity){.value = settings->rate};
    *sample_bytes = settings->sample_bytes ? own_bytes : *sample_bytes;
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

/* Answer for one number of GPUs, and for the other forms of the data. */
static int answer_case(const struct size_settings *settings, struct size_case *cluster)
{
    struct sizing_request request = {.inputs = &cluster->inputs,
                                     .gpus = cluster->gpus,
                                     .busy = settings->busy_percent / 100,
                                     .draws = (unsigned)settings->draws,
                                     .seed = settings->seed};
    int code = sizing_answer(&request, &cluster->answer);
    const double share = cluster->answer.plant.of[SIZING_GPUS];

    /* All nodes are simulated alike. */
    if (code == 0 && share != floor(share) && cluster->doubt_count < SIZE_DOUBTS_MOST)
        snprintf(cluster->doubts[cluster->doubt_count++], SIZE_DOUBT_BYTES,
                 "%.0f GPUs on %.0f nodes: simulated with %.3g in each; those with %.0f need more",
                 cluster->gpus, cluster->answer.plant.nodes, share, ceil(share));
    if (settings->chart || settings->acceptance)
        return code;
    for (unsigned i = 0; i < cluster->form_count && code == 0; i++) {
        struct size_form *form = &cluster->forms[i];
        struct sizing_inputs inputs = cluster->inputs;
        inputs.of[SIZING_SAMPLE_BYTES] = form->sample_bytes;
        inputs.of[SIZING_SAMPLE_SD_BYTES].value *=
            form->sample_bytes.value / cluster->inputs.of[SIZING_SAMPLE_BYTES].value;
        inputs.of[SIZING_DECODE_S] = form->decode_s;
        request.inputs = &inputs;
        request.draws = 1;
        code = sizing_answer(&request, &form->answer);
        form->answer.plant.curve = NULL; /* was that of `inputs` */
    }
    return code;
}

int size_counts(const char *text, uint64_t counts[SIZE_COUNTS_MOST])
{
    const struct option_list list = {.option = "gpus",
                                     .parse = option_parse_count,
                                     .most = 1000000000,
                                     .count_most = SIZE_COUNTS_MOST};

    return option_parse_list(&list, text, counts);
}

static int answer_all(const struct size_settings *settings, struct size_table *table)
{
    uint64_t counts[SIZE_COUNTS_MOST];
    int count = 0;
    char *list = strdup(settings->storage ? settings->storage : "parallel-k3000");
    char *cursor = list, *storage;

    if (settings->chart)
        while (count < CHART_COUNTS) {
            counts[count] = UINT64_C(1) << count;
            count++;
        }
    else
        count = size_counts(settings->gpus, counts);
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
            cluster->gpus = (double)counts[i];
            code = describe(settings, storage, cluster);
            if (code == 0)
                code = answer_case(settings, cluster);
        }
    }
    free(list);
    return code;
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
    if (code == 0 && settings->chart)
        code = size_page_chart(&table, settings->chart);
    else if (code == 0 && settings->acceptance)
        code = size_page_acceptance(&table.cases[0], settings->acceptance);
    else if (code == 0 && settings->json)
        code = json_file_write(settings->json, size_page_json(&table));
    else if (code == 0 && table.count == 1)
        size_page_print(&table.cases[0]);
    else if (code == 0)
        size_page_table(&table);
    free(table.cases);
    if (code == 0)
        return COMMAND_OK;
    return code == -EINVAL || code == -ENOENT ? command_misused(invocation)
                                              : command_failed(invocation);
}
