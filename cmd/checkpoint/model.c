/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/checkpoint/model.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_BYTES = 2, OPTIMIZER_BYTES = 12, RANKS_OF_OWN = 8 };

/* The models of MLPerf Storage v3.0: mlcommons/storage, configs/dlio/workload/llama3_*.yaml. With
 * these the parameter counts equal those of DLIO's checkpointing/base_checkpointing.py. */
static const struct model_size sizes[] = {
    {"8b", 4096, 14336, 32, 32, 8, 128256, 1, 1, 8, 3},
    {"70b", 8192, 28672, 80, 128, 8, 128256, 8, 1, 8, 3},
    {"405b", 16384, 53248, 126, 128, 8, 128256, 8, 32, 2, 1},
    {"1t", 25872, 98304, 128, 192, 32, 128256, 8, 64, 2, 1},
    {0},
};

static uint64_t embedding_parameters(const struct model_size *size)
{
    return size->hidden * size->vocabulary;
}

/* Attention (query, key, value, output), the gated feed-forward network, and two norms. */
static uint64_t layer_parameters(const struct model_size *size)
{
    const uint64_t hidden = size->hidden;
    const uint64_t key_value = hidden / size->heads * size->key_value_heads;

    return hidden * (hidden + 2 * key_value) + hidden * hidden + 3 * hidden * size->feed_forward +
           2 * hidden;
}

int model_choose(const char *text, struct model_choice *choice)
{
    *choice = (struct model_choice){0};
    for (const struct model_size *size = sizes; size->name; size++) {
        if (strcmp(size->name, text) != 0)
            continue;
        choice->size = size;
        choice->parameters =
            2 * embedding_parameters(size) + size->layers * layer_parameters(size) + size->hidden;
        snprintf(choice->name, sizeof choice->name, "%s", size->name);
        return 0;
    }
    const char *comma = strchr(text, ',');
    static const char key[] = ",params=";
    if (!comma || strncmp(comma, key, sizeof key - 1) != 0 || comma == text ||
        comma - text >= MODEL_NAME_BYTES)
        return fail(EINVAL, "--model: unknown model '%s': 8b, 70b, 405b, 1t, or NAME,params=N",
                    text);
    for (const char *at = text; at < comma; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-_.", *at))
            return fail(EINVAL, "--model: the name of '%s' may have letters, digits, - _ and .",
                        text);
    snprintf(choice->name, sizeof choice->name, "%.*s", (int)(comma - text), text);
    static const char units[] = "kmbt"; /* "1.3b" */
    const char *number = comma + sizeof key - 1;
    char *end;
    double value = strtod(number, &end);
    const char *unit = *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
    if (unit) {
        value *= pow(1000, (double)(unit - units + 1));
        end++;
    }
    if (end == number || *end || !(value >= 1) || value > 1e15)
        return fail(EINVAL,
                    "--model: params=%s is not a number of parameters (examples: 1.3b, 700m)",
                    number);
    choice->parameters = (uint64_t)value;
    return 0;
}

/* ---- the files ---- */

static int add_file(struct model_files *files, uint32_t rank, uint64_t bytes, const char *kind,
                    uint64_t number)
{
    if (memory_room(&files->list, files->count, sizeof *files->list, "files of a checkpoint"))
        return -ENOMEM;
    struct model_file *file = &files->list[files->count++];
    *file = (struct model_file){.rank = rank, .bytes = bytes};
    snprintf(file->name, sizeof file->name, "%s-%06llu.bin", kind, (unsigned long long)number);
    return 0;
}

static int add_rank(struct model_files *files, const struct model_choice *model, uint32_t rank)
{
    const uint64_t share = (model->parameters + files->ranks - 1) / files->ranks;
    int code = 0;

    assert(rank < files->ranks && (files->zero == 3 || model->size));
    if (files->zero == 3)
        code = add_file(files, rank, WEIGHT_BYTES * share, "weights", rank);
    else if (rank < files->tensor * files->pipeline) {
        /* Layers are divided evenly; the first stages take the remainder. Layer 0 is the embedding;
         * the head and the last norm follow the last layer. */
        const uint32_t tensor = rank % model->size->tensor,
                       stage = rank / model->size->tensor % model->size->pipeline;
        const uint64_t each = model->size->layers / model->size->pipeline,
                       more = model->size->layers % model->size->pipeline;
        const uint64_t first = stage * each + (stage < more ? stage : more);
        const uint64_t count = each + (stage < more);
        const uint64_t split =
            WEIGHT_BYTES * embedding_parameters(model->size) / model->size->tensor;
        const uint64_t layer = WEIGHT_BYTES * layer_parameters(model->size) / model->size->tensor;
        if (stage == 0)
            code = add_file(files, rank, split, "layer", tensor);
        for (uint64_t i = first; i < first + count && code == 0; i++)
            code = add_file(files, rank, layer, "layer", (i + 1) * model->size->tensor + tensor);
        if (stage + 1 == model->size->pipeline && code == 0)
            code = add_file(files, rank, split, "layer",
                            (model->size->layers + 1) * model->size->tensor + tensor);
        if (stage + 1 == model->size->pipeline && code == 0)
            code = add_file(files, rank, WEIGHT_BYTES * model->size->hidden, "layer",
                            (model->size->layers + 2) * model->size->tensor + tensor);
    }
    return code ? code : add_file(files, rank, OPTIMIZER_BYTES * share, "optimizer", rank);
}

int model_list(const struct model_request *request, struct model_files *files)
{
    int code = 0;

    const struct model_size *size = request->model.size;
    *files = (struct model_files){.tensor = 1, .pipeline = 1, .zero = 3};
    files->data = request->ranks ? (uint32_t)request->ranks : RANKS_OF_OWN;
    if (size &&
        (request->ranks == 0 || request->ranks == size->tensor * size->pipeline * size->data)) {
        files->is_published = true;
        files->tensor = size->tensor;
        files->pipeline = size->pipeline;
        files->data = size->data;
        files->zero = size->zero;
    }
    files->ranks = files->tensor * files->pipeline * files->data;
    if (request->subset > files->ranks)
        return fail(EINVAL, "--subset %llu: the model has %u ranks",
                    (unsigned long long)request->subset, files->ranks);
    const uint32_t written = request->subset ? (uint32_t)request->subset : files->ranks;
    for (uint32_t rank = 0; rank < written && code == 0; rank++)
        code = add_rank(files, &request->model, rank);
    if (code)
        return code;
    files->ranks = written;
    for (uint32_t i = 0; i < files->count; i++)
        files->full_bytes += files->list[i].bytes;
    const double scale =
        request->bytes ? (double)request->bytes / (double)files->full_bytes : request->scale;
    files->bytes = 0;
    for (uint32_t i = 0; i < files->count; i++) {
        double bytes = ceil((double)files->list[i].bytes * scale);
        files->list[i].bytes = bytes_align_up(bytes < 1 ? 1 : (uint64_t)bytes, MODEL_BLOCK_BYTES);
        files->bytes += files->list[i].bytes;
    }
    return 0;
}

bool model_is_file_name(const char *name)
{
    static const char *const kinds[] = {"weights-", "optimizer-", "layer-"};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t length = strlen(kinds[i]);
        const size_t digits =
            strncmp(name, kinds[i], length) == 0 ? strspn(name + length, "0123456789") : 0;
        if (digits >= 6 && strcmp(name + length + digits, ".bin") == 0)
            return true;
    }
    return false;
}
