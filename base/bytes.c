/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <stdio.h>

const char *bytes_text(uint64_t bytes, char *text, size_t text_bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    unsigned unit = 0;

    while (value >= 1024 && unit < sizeof units / sizeof *units - 1) {
        value /= 1024;
        unit++;
    }
    snprintf(text, text_bytes, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
    return text;
}
