/* SPDX-License-Identifier: Apache-2.0
 * Whole output against files of tests/golden/pages; a program with a folder as its argument writes
 * them there anew. */
#ifndef IOBENCH_TESTS_UNIT_GOLDEN_H
#define IOBENCH_TESTS_UNIT_GOLDEN_H

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAGE_BYTES = 1 << 20 };
static const char *renew; /* folder to write to instead */

static inline char *content(FILE *stream)
{
    char *text = calloc(1, PAGE_BYTES);

    assert_non_null(text);
    rewind(stream);
    const size_t bytes = fread(text, 1, PAGE_BYTES - 1, stream);
    assert_in_range(bytes, 1, PAGE_BYTES - 2);
    return text;
}

/* Frees text, which has room for "VERSION" in place of this version. */
static inline void assert_golden(const char *name, char *text)
{
    const size_t version_bytes = strlen(PACKAGE_VERSION);
    const char *source = getenv("srcdir");
    char path[512];

    for (char *at; (at = strstr(text, "iobench " PACKAGE_VERSION));) {
        memmove(at + 15, at + 8 + version_bytes, strlen(at + 8 + version_bytes) + 1);
        memcpy(at, "iobench_VERSION", 15);
    }
    snprintf(path, sizeof path, "%s/%s%s",
             renew    ? renew
             : source ? source
                      : ".",
             renew ? "" : "tests/golden/pages/", name);
    FILE *file = fopen(path, renew ? "w" : "r");
    if (!file)
        fail_msg("%s is missing", path);
    if (renew) {
        fputs(text, file);
    } else {
        char *wanted = content(file);
        const char *is = text, *was = wanted;
        for (int line = 1; strcmp(is, was) != 0; line++) {
            const size_t is_bytes = strcspn(is, "\n"), was_bytes = strcspn(was, "\n");
            if (is_bytes != was_bytes || memcmp(is, was, is_bytes) != 0)
                fail_msg("%s:%d\n- %.*s\n+ %.*s", path, line, (int)was_bytes, was, (int)is_bytes,
                         is);
            is += is_bytes + (is[is_bytes] != '\0');
            was += was_bytes + (was[was_bytes] != '\0');
        }
        free(wanted);
    }
    fclose(file);
    free(text);
}

/* A page that is printed piece by piece. */
static FILE *golden;
static char *golden_text;
static size_t golden_bytes;

static inline void golden_begin(void)
{
    golden = open_memstream(&golden_text, &golden_bytes);
    assert_non_null(golden);
}

static inline void golden_end(const char *name)
{
    fclose(golden);
    assert_golden(name, golden_text);
}

#endif
