/* SPDX-License-Identifier: Apache-2.0
 * The decoders, in the order users see them. */
#include "decode/plugins.h"

const struct plugin *const decoder_registry[] = {
    &decoder_none.plugin,
    &decoder_checksum.plugin,
    &decoder_jpeg.plugin,
#ifdef HAVE_CUDA
    &decoder_nvjpeg.plugin,
#endif
    NULL,
};
