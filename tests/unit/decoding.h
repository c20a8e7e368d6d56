/* SPDX-License-Identifier: Apache-2.0
 * A decoder with memory for one row. */
#ifndef IOBENCH_TESTS_DECODING_H
#define IOBENCH_TESTS_DECODING_H

#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/plugin.h"
#include "decode/decoder.h"
#include "decode/view.h"

#include <stdlib.h>

struct bench {
    struct plugin_choice choice;
    struct decoder decoder;
    uint8_t *row;
};

static void start(struct bench *bench, const char *text)
{
    assert_int_equal(plugin_choose("decoder", decoder_registry, text, &bench->choice), 0);
    if (decoder_open(&bench->decoder, &bench->choice))
        fail_msg("%s: %s", text, fail_reason());
    bench->row = malloc(bench->decoder.traits.row_bytes);
}

static void stop(struct bench *bench)
{
    decoder_close(&bench->decoder);
    plugin_release(&bench->choice);
    free(bench->row);
}

static int decode(struct bench *bench, const struct decode_source *source, uint64_t seed)
{
    struct view view = {.kind = VIEW_TRAIN, .seed = seed};

    return decoder_decode(&bench->decoder, source, &view, bench->row);
}

#endif
