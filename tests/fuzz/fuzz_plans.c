/* SPDX-License-Identifier: Apache-2.0
 * The file of convolution plans. Entries read are within bounds, and can be written and read again.
 */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "trainer/cuda/dnn.h"

static void put_again(json_t *choices, const struct dnn_choice *choice, uint32_t candidates,
                      double milliseconds)
{
    struct dnn_choice again;
    uint32_t again_candidates;
    double again_milliseconds;

    FUZZ_CHECK(dnn_choices_put(choices, "again", choice, candidates, milliseconds) == 0);
    FUZZ_CHECK(dnn_choices_get(choices, "again", &again, &again_candidates, &again_milliseconds));
    FUZZ_CHECK(again_candidates == candidates && again.engine == choice->engine &&
               again.knob_count == choice->knob_count);
    for (uint32_t i = 0; i < again.knob_count; i++)
        FUZZ_CHECK(again.knobs[i].type == choice->knobs[i].type &&
                   again.knobs[i].value == choice->knobs[i].value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const char *const keys[] = {"k", "l", ""};
    json_t *choices = dnn_choices_read(fuzz_write("plans", bytes, count));
    struct dnn_choice choice;
    uint32_t candidates;
    double milliseconds;

    FUZZ_CHECK(choices);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!dnn_choices_get(choices, keys[i], &choice, &candidates, &milliseconds))
            continue;
        FUZZ_CHECK(candidates >= 1 && candidates <= DNN_CONFIGS_MAX && milliseconds >= 0 &&
                   choice.engine >= 0 && choice.knob_count <= DNN_KNOBS_MAX);
        for (uint32_t j = 0; j < choice.knob_count; j++)
            FUZZ_CHECK(choice.knobs[j].type >= 0);
        put_again(choices, &choice, candidates, milliseconds);
    }
    json_decref(choices);
    return 0;
}
