/* SPDX-License-Identifier: Apache-2.0
 * Images of tests/fixtures/images. */
#ifndef IOBENCH_TESTS_FIXTURE_H
#define IOBENCH_TESTS_FIXTURE_H

#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/file.h"
#include "decode/decoder.h"

#include <stdio.h>
#include <stdlib.h>

static struct decode_source load(const char *name)
{
    const char *srcdir = getenv("srcdir");
    struct decode_source source = {.layout = SAMPLE_ENCODED};
    char path[512], *bytes;

    snprintf(path, sizeof path, "%s/tests/fixtures/images/%s", srcdir ? srcdir : ".", name);
    if (file_load(path, 1 << 20, &bytes, &source.length))
        print_message("%s\n", fail_reason());
    else
        source.bytes = bytes;
    assert_non_null(source.bytes);
    return source;
}

static void drop(struct decode_source *source)
{
    free((void *)(uintptr_t)source->bytes);
}

#endif
