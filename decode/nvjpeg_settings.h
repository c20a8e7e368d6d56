/* SPDX-License-Identifier: Apache-2.0
 * The options of the nvjpeg decoder, shared by its front end and its module. */
#ifndef IOBENCH_DECODE_NVJPEG_SETTINGS_H
#define IOBENCH_DECODE_NVJPEG_SETTINGS_H

#include "decode/look.h"

enum { NVJPEG_AUTO, NVJPEG_HARDWARE, NVJPEG_GPU };
enum { NVJPEG_IMAGES_MAX = 64 };

struct nvjpeg_settings {
    struct look_settings look;
    uint64_t device, images, memory;
    int engine;
};

#endif
