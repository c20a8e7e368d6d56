/* SPDX-License-Identifier: Apache-2.0
 * The members of the decoder family, for decode/registry.c alone. */
#ifndef IOBENCH_DECODE_PLUGINS_H
#define IOBENCH_DECODE_PLUGINS_H

#include "decode/decoder.h"

extern const struct decoder_ops decoder_none;
extern const struct decoder_ops decoder_checksum;
extern const struct decoder_ops decoder_jpeg;
extern const struct decoder_ops decoder_nvjpeg;

#endif
