/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/forms.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "report/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char prefix[] = "form ";

static int read_form(const struct ini *network, const char *section, struct size_form *form)
{
    const char *title = profiles_text(network, section, "title");
    const char *bytes = profiles_text(network, section, "sample-bytes");
    const char *decode = profiles_text(network, section, "decode-core-s");

    if (!title || !bytes || quantity_parse(bytes, &form->sample_bytes) ||
        !(form->sample_bytes.value > 0) || !decode || quantity_parse(decode, &form->decode_s))
        return fail(EINVAL, "%s: [%s] needs title, sample-bytes and decode-core-s", network->path,
                    section);
    snprintf(form->title, sizeof form->title, "%s", escape_shown(title));
    return 0;
}

int size_forms_read(struct size_forms *forms, const struct ini *network)
{
    int code = 0;

    for (size_t i = 0; i < network->section_count && code == 0; i++) {
        const char *section = network->sections[i].name;
        if (strncmp(section, prefix, sizeof prefix - 1) != 0)
            continue;
        if (forms->count == SIZE_FORMS_MOST)
            return fail(EINVAL, "%s: more than %d forms", network->path, SIZE_FORMS_MOST);
        code = read_form(network, section, &forms->list[forms->count++]);
    }
    return code;
}

int size_forms_answer(struct size_forms *forms, const struct sizing_request *request)
{
    int code = 0;

    for (unsigned i = 0; i < forms->count && code == 0; i++) {
        struct size_form *form = &forms->list[i];
        struct sizing_inputs inputs = *request->inputs;
        struct sizing_request one = *request;
        inputs.of[SIZING_SAMPLE_BYTES] = form->sample_bytes;
        inputs.of[SIZING_SAMPLE_SD_BYTES].value *=
            form->sample_bytes.value / request->inputs->of[SIZING_SAMPLE_BYTES].value;
        inputs.of[SIZING_DECODE_S] = form->decode_s;
        one.inputs = &inputs;
        one.draws = 1;
        code = sizing_answer(&one, &form->answer);
        form->answer.plant.curve = NULL; /* was that of `inputs` */
    }
    return code;
}

/* Samples/s at the stated figures, checkpoints included. */
static double reached(const struct sizing_answer *answer)
{
    return answer->outcome.samples_per_s * (1 - answer->outcome.checkpoint_share);
}

static void print_row(const char *title, const struct sizing_answer *answer)
{
    char bytes[WORDS_BYTES], cores[WORDS_BYTES], storage[WORDS_BYTES], rate[WORDS_BYTES];

    printf("    %-30s%10s%10s%12s%12s\n", title,
           words_rate(answer->plant.of[SIZING_SAMPLE_BYTES] / 1000, bytes),
           words_rate(answer->cores, cores), words_byte_rate(answer->storage_bytes_per_s, storage),
           words_rate(reached(answer), rate));
}

void size_forms_print(const struct size_forms *forms, const struct sizing_answer *answer)
{
    if (forms->count == 0)
        return;
    printf("\n  Stored as%35s%10s%12s%12s\n", "kB", "cores", "storage", "reaches/s");
    print_row("published", answer);
    for (unsigned i = 0; i < forms->count; i++)
        print_row(forms->list[i].title, &forms->list[i].answer);
}

json_t *size_forms_json(const struct size_forms *forms)
{
    json_t *rows = json_array();

    for (unsigned i = 0; i < forms->count; i++) {
        const struct sizing_answer *answer = &forms->list[i].answer;
        json_t *row = json_object();
        json_object_set_new(row, "title", json_text(forms->list[i].title));
        json_object_set_new(row, "sample_bytes",
                            json_number(answer->plant.of[SIZING_SAMPLE_BYTES]));
        json_object_set_new(row, "decode_core_s", json_number(answer->plant.of[SIZING_DECODE_S]));
        json_object_set_new(row, "needs_node_cores", json_number(answer->cores));
        json_object_set_new(row, "needs_storage_bytes_per_s",
                            json_number(answer->storage_bytes_per_s));
        json_object_set_new(row, "samples_per_s", json_number(reached(answer)));
        json_array_append_new(rows, row);
    }
    return rows;
}
