/* SPDX-License-Identifier: Apache-2.0
 * Memory that ends anywhere in an image: -ENOMEM with a reason, until the same pixels come. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/file.h"
#include "decode/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 24, STEP = 256 };

static int decode_within(const struct decode_source *source, size_t bytes, uint8_t *row)
{
    static const struct image_limits limits = {.pixels = 1 << 20, .scans = 64};
    const struct view view = {.kind = VIEW_EVALUATE};
    struct view_shown shown = {0};
    struct decode_figures figures = {0};
    struct bump bump;
    const struct image_request request = {.source = source,
                                          .view = &view,
                                          .rules = &view_rules_imagenet,
                                          .limits = &limits,
                                          .width = SIDE,
                                          .height = SIDE,
                                          .bump = &bump,
                                          .row = row,
                                          .figures = &figures,
                                          .shown = &shown};

    fail_clear();
    assert_int_equal(bump_open(&bump, 64, bytes), 0);
    const int code = image_decode_other(&request);
    bump_close(&bump);
    return code;
}

static void each_allocation_may_fail(void **unused)
{
    static const char *const names[] = {"alpha.png", "grey16.png", "interlaced.png", "palette.png"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint8_t whole[SIDE * SIDE * 3], row[sizeof whole];
        char path[512], *text = NULL;
        size_t length = 0, refused = 0;
        snprintf(path, sizeof path, "%s/tests/fixtures/images/%s", getenv("srcdir"), names[i]);
        assert_int_equal(file_load(path, 1 << 20, &text, &length), 0);
        const struct decode_source source = {
            .bytes = text, .length = length, .layout = SAMPLE_ENCODED};
        assert_int_equal(decode_within(&source, 64 << 20, whole), 0);
        int code = -ENOMEM;
        for (size_t bytes = 64; code; bytes += STEP, refused++) {
            code = decode_within(&source, bytes, row);
            if (code && (code != -ENOMEM || !strstr(fail_reason(), "memory")))
                fail_msg("%s, %zu bytes: %d, %s", names[i], bytes, code, fail_reason());
        }
        assert_memory_equal(row, whole, sizeof whole);
        assert_true(refused > 20);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
