/* SPDX-License-Identifier: Apache-2.0 */
#include "base/image_limits.h"

#include <stdio.h>

bool image_limits_size(const struct image_limits *limits, uint64_t width, uint64_t height)
{
    return width <= UINT16_MAX && height <= UINT16_MAX && width * height <= limits->pixels;
}

bool image_limits_scan(const struct image_limits *limits, uint64_t scan, uint64_t width,
                       uint64_t height, char *why, size_t why_bytes)
{
    const uint64_t pixels = width && height ? width * height : 1;
    const uint64_t passes = IMAGE_LIMITS_PASSES * limits->pixels / pixels;
    const uint64_t most = limits->scans < passes ? limits->scans : passes;

    if (scan <= most)
        return true;
    snprintf(why, why_bytes,
             "more than %llu scans of %llu x %llu pixels (max-scans=%llu, max-pixels=%llu)",
             (unsigned long long)most, (unsigned long long)width, (unsigned long long)height,
             (unsigned long long)limits->scans, (unsigned long long)limits->pixels);
    return false;
}
