/* SPDX-License-Identifier: Apache-2.0
 * User input: plug-ins with options, such as "jpeg:size=64", the first byte choosing the family;
 * sizes and times. Accepted values can be printed, and are then accepted again with the same value.
 */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "base/option.h"
#include "base/plugin.h"
#include "decode/decoder.h"
#include "formats/format.h"
#include "cmd/pack/source.h"
#include "readers/reader.h"
#include "shuffle/plan.h"
#include "telemetry/probe.h"
#include "trainer/backend.h"
#include "trainer/exchange.h"
#include "trainer/trainer.h"

static void same_again(const struct plugin_choice *choice)
{
    char text[256], again[256];

    for (const struct option_spec *row = choice->plugin->options; row && row->name; row++) {
        option_text(row, choice->settings, text, sizeof text);
        /* Texts may contain separators, and real numbers are rounded. */
        if (row->type == OPTION_TEXT || row->type == OPTION_REAL || !*text)
            continue;
        FUZZ_CHECK(option_set(choice->plugin->options, choice->settings, row->name, text, "x") ==
                   0);
        option_text(row, choice->settings, again, sizeof again);
        FUZZ_CHECK(strcmp(text, again) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const struct plugin *const *const families[] = {
        reader_registry, format_registry,  shuffle_registry, decoder_registry, trainer_registry,
        probe_registry,  backend_registry, source_registry,  exchange_registry};
    struct plugin_choice choice = {0};
    uint64_t number;

    if (count < 1)
        return 0;
    char *text = malloc(count);
    FUZZ_CHECK(text);
    memcpy(text, bytes + 1, count - 1);
    text[count - 1] = '\0';
    const struct plugin *const *family = families[bytes[0] % (sizeof families / sizeof *families)];
    fail_clear();
    if (plugin_choose("plug-in", family, text, &choice) == 0)
        same_again(&choice);
    else
        FUZZ_CHECK(*fail_reason());
    plugin_release(&choice);
    fail_clear();
    FUZZ_CHECK(option_parse_size(text, &number) == 0 || *fail_reason());
    fail_clear();
    FUZZ_CHECK(option_parse_duration(text, &number) == 0 || *fail_reason());
    free(text);
    return 0;
}
