/* SPDX-License-Identifier: Apache-2.0
 * The none decoder ignores the image, which leaves storage, framing and CRC; with --no-crc, storage
 * alone. */
#include "decode/plugins.h"

static int none_open(void *state, const void *settings, struct decoder_traits *traits)
{
    (void)state;
    (void)settings;
    (void)traits;
    return 0;
}

static int none_decode(void *state, const struct decode_source *source, const struct view *view,
                       void *row, struct decode_figures *figures)
{
    (void)state;
    (void)source;
    (void)view;
    (void)row;
    (void)figures;
    return 0;
}

const struct decoder_ops decoder_none = {
    .plugin = {.name = "none", .summary = "does not decode images", .idle = true},
    .open = none_open,
    .decode = none_decode,
};
