/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shortage.h"

#include "base/atomic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { WHAT_BYTES = 512 };

static struct {
    struct flag is_taken, is_whole;
    int code;
    char what[WHAT_BYTES];
} first;

void shortage_note(int code, const char *what)
{
    const int before = errno;

    if ((abs(code) != EMFILE && abs(code) != ENFILE) || flag_test_and_set(&first.is_taken))
        return;
    first.code = abs(code);
    snprintf(first.what, sizeof first.what, "%s", what);
    flag_set(&first.is_whole);
    errno = before;
}

int shortage_code(void)
{
    return flag_get(&first.is_whole) ? first.code : 0;
}

const char *shortage_what(void)
{
    return flag_get(&first.is_whole) ? first.what : "";
}
