/* SPDX-License-Identifier: Apache-2.0
 * The members of the decoder family, for decode/registry.c alone; and the options of nvjpeg, shared
 * by its front end and its module. */
#ifndef IOBENCH_DECODE_PLUGINS_H
#define IOBENCH_DECODE_PLUGINS_H

#include "decode/decoder.h"

extern const struct decoder_ops decoder_none;
extern const struct decoder_ops decoder_checksum;
extern const struct decoder_ops decoder_jpeg;
extern const struct decoder_ops decoder_nvjpeg;

enum { NVJPEG_AUTO, NVJPEG_HARDWARE, NVJPEG_GPU };
enum { NVJPEG_IMAGES_MAX = 64 };

struct nvjpeg_settings {
    struct look_settings look;
    uint64_t device, images, memory;
    int engine;
};

#endif
