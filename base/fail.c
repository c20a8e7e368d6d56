/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fail.h"

#include "base/atomic.h"
#include "base/escape.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char reason[FAIL_REASON_BYTES];
static _Thread_local unsigned held;

int fail(int code, const char *format, ...)
{
    /* A reason may quote the previous one, so build it separately. */
    char text[FAIL_REASON_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char shown[FAIL_REASON_BYTES], *to = held ? shown : reason;
    escape_text(ESCAPE_ALL, text, strlen(text), to, FAIL_REASON_BYTES);
    shortage_note(code, to);
    return -abs(code);
}

const char *fail_reason(void)
{
    return reason;
}

void fail_clear(void)
{
    if (!held)
        reason[0] = '\0';
}

void fail_hold(void)
{
    held++;
}

void fail_release(void)
{
    assert(held);
    held--;
}

static bool is_confined; /* set before a second thread starts */

void fail_note_sandbox(void)
{
    is_confined = true;
}

const char *fail_errno_text(int code)
{
    const char *text = strerrordesc_np(abs(code));

    if (abs(code) == EACCES && is_confined)
        return "Permission denied (by the file system, or by the sandbox: see --sandbox)";
    if (abs(code) == EFBIG)
        return "File too large (for the file system, or for the limit of 'ulimit -f')";
    if (abs(code) == EMFILE)
        return "Too many open files (for the limit of 'ulimit -n')";
    return text ? text : "unknown error";
}

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
