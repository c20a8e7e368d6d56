/* SPDX-License-Identifier: Apache-2.0
 * Fuzz targets of texts: a copy of the input that ends in a NUL. */
#ifndef IOBENCH_TESTS_FUZZ_FUZZ_TEXT_H
#define IOBENCH_TESTS_FUZZ_FUZZ_TEXT_H

#include "tests/fuzz/fuzz.h"

/* free() it. */
static inline char *fuzz_text(const uint8_t *bytes, size_t count)
{
    char *text = malloc(count + 1);

    FUZZ_CHECK(text);
    if (count)
        memcpy(text, bytes, count);
    text[count] = '\0';
    return text;
}

#endif
