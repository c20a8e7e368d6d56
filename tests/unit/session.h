/* SPDX-License-Identifier: Apache-2.0
 * A saved session, tests/golden/sessions/NAME: the test runs each line "$ COMMAND WORD..."; lines
 * "> TEXT" below it are its input, all others what it says. A new case is a new line "$ ..." and
 * UPDATE=1, which rewrites what is said; check the difference by hand. */
#ifndef IOBENCH_TESTS_UNIT_SESSION_H
#define IOBENCH_TESTS_UNIT_SESSION_H

#include "tests/unit/folder.h"

enum { SESSION_BYTES = 1 << 18, SESSION_WORDS = 12 };

/* Words of a session, and what they stand for here. */
static const char *session_marks[4][2] = {{"HERE", test_folder}};
static char session_said[SESSION_BYTES];

/* Put what a mark stands for in its place, or with from = 1 the other way round. */
static void session_replace(char *text, int from)
{
    for (int i = 0; i < 4 && session_marks[i][0]; i++) {
        const char *old = session_marks[i][from], *new = session_marks[i][!from];
        for (char *at = text; (at = strstr(at, old)); at += strlen(new)) {
            memmove(at + strlen(new), at + strlen(old), strlen(at + strlen(old)) + 1);
            memcpy(at, new, strlen(new));
        }
    }
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char *end = session_said + strlen(session_said);
    va_list list;

    va_start(list, format);
    const int bytes = vsnprintf(end, (size_t)(session_said + SESSION_BYTES - end), format, list);
    va_end(list);
    assert_in_range(bytes, 0, session_said + SESSION_BYTES - end - 4096);
    session_replace(end, 1);
}

static void say_result(int code)
{
    if (code)
        say("  %s%s%s\n", fail_errno_text(code), *fail_reason() ? ": " : "", fail_reason());
    fail_clear();
}

static void session_run(const char *name, void (*run)(int count, char **words, const char *input))
{
    const char *source = getenv("srcdir");
    char path[512], *saved, input[8192], line[1024];
    size_t bytes;

    snprintf(path, sizeof path, "%s/tests/golden/sessions/%s", source ? source : ".", name);
    assert_int_equal(file_load(path, SESSION_BYTES, &saved, &bytes), 0);
    session_said[0] = '\0';
    for (char *at = saved, *next; *at; at = next) {
        char *words[SESSION_WORDS] = {0}, *rest = line;
        int count = 0;
        next = at + strcspn(at, "\n") + 1;
        if (*at != '$' && *at != '#' && *at != '\n')
            continue;
        snprintf(line, sizeof line, "%.*s", (int)(next - at - 1), at);
        say("%s\n", line);
        if (*at != '$')
            continue;
        for (*input = '\0'; *next == '>'; next += strcspn(next, "\n") + 1) {
            const int length = (int)strcspn(next, "\n");
            say("%.*s\n", length, next);
            sprintf(input + strlen(input), "%.*s\n", length > 2 ? length - 2 : 0, next + 2);
        }
        session_replace(line, 0);
        session_replace(input, 0);
        strtok_r(line, " ", &rest);
        while (count < SESSION_WORDS && (words[count] = strtok_r(NULL, " ", &rest)))
            count++;
        run(count, words, input);
    }
    const char *is = session_said, *was = saved;
    if (getenv("UPDATE")) {
        FILE *file = fopen(path, "w");
        assert_true(file && fputs(is, file) >= 0 && fclose(file) == 0);
        was = is;
    }
    for (int number = 1; strcmp(is, was) != 0; number++) {
        const size_t is_bytes = strcspn(is, "\n"), was_bytes = strcspn(was, "\n");
        if (is_bytes != was_bytes || memcmp(is, was, is_bytes) != 0)
            fail_msg("%s:%d\n- %.*s\n+ %.*s", path, number, (int)was_bytes, was, (int)is_bytes, is);
        is += is_bytes + (is[is_bytes] != '\0');
        was += was_bytes + (was[was_bytes] != '\0');
    }
    free(saved);
}

#endif
