/* SPDX-License-Identifier: Apache-2.0
 * Foreign text: none of it acts on a terminal, and none is lost in JSON. */
#include "tests/unit/unit.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "tests/unit/allocations.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct {
    const char *text, *escaped; /* NULL: unchanged */
} cases[] = {
    {"", NULL},
    {"plain text", NULL},
    {"M\xc3\xbcnchen \xe6\x9d\xb1\xe4\xba\xac \xf0\x9f\x90\xa7", NULL},
    {"\x1b[2J\x1b]0;owned\a", "\\x1b[2J\\x1b]0;owned\\x07"},
    {"\r\b\x7f", "\\x0d\\x08\\x7f"},
    {"\xc2\x9b"
     "31m",
     "\\xc2\\x9b31m"}, /* CSI as one C1 control */
    {"\x9b"
     "31m",
     "\\x9b31m"},                        /* the same as one byte */
    {"\xe2\x80\xae", "\\xe2\\x80\\xae"}, /* right-to-left override */
    {"\xe2\x81\xa6\xe2\x81\xa9", "\\xe2\\x81\\xa6\\xe2\\x81\\xa9"},
    {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"}, /* line separator */
    {"\xc0\xaf", "\\xc0\\xaf"},          /* overlong */
    {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},
    {"\xed\xa0\x80", "\\xed\\xa0\\x80"},          /* a surrogate */
    {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* past the last code point */
    {"\xe6\x9d", "\\xe6\\x9d"},                   /* truncated */
    {"\xe6\x9d"
     "a\xff",
     "\\xe6\\x9da\\xff"},
    {"two\nlines\t", "two\\x0alines\\x09"},
};

static void lines_are_clean(void **unused)
{
    char text[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *wanted = cases[i].escaped ? cases[i].escaped : cases[i].text;
        assert_string_equal(escape_shown(cases[i].text), wanted);
        /* The output has as many whole characters as fit, for any size. */
        for (size_t room = 1; room < sizeof text; room++) {
            escape_text(ESCAPE_ALL, cases[i].text, strlen(cases[i].text), text, room);
            assert_true(strlen(text) < room && strncmp(wanted, text, strlen(text)) == 0);
        }
    }
    assert_string_equal(escape_text(ESCAPE_INVALID, "\x1b\xff", 2, text, sizeof text), "\x1b\\xff");
}

static void reasons_are_clean(void **unused)
{
    assert_int_equal(fail(EIO, "%s: lost", "\x1b[31mred\nINVALID\xff"), -EIO);
    assert_string_equal(fail_reason(), "\\x1b[31mred\\x0aINVALID\\xff: lost");
    fail(EIO, "again: %s", fail_reason());
    assert_string_equal(fail_reason(), "again: \\x1b[31mred\\x0aINVALID\\xff: lost");
}

/* Check the bytes that reach the descriptor when text is written in pieces of this size. */
static void check_stream(const char *text, size_t piece, const char *wanted)
{
    int file = memfd_create("output", 0), former = dup(STDOUT_FILENO);
    FILE *output, *errors;
    char got[256] = "";

    assert_true(file >= 0 && former >= 0);
    dup2(file, STDOUT_FILENO);
    assert_int_equal(escape_streams(&output, &errors), 0);
    for (size_t i = 0; i < strlen(text); i += piece) {
        size_t left = strlen(text) - i;
        fwrite(text + i, 1, left < piece ? left : piece, output);
        assert_int_equal(fflush(output), 0);
    }
    dup2(former, STDOUT_FILENO);
    assert_true(pread(file, got, sizeof got - 1, 0) >= 0);
    assert_string_equal(got, wanted);
    fclose(output);
    fclose(errors);
    close(file);
    close(former);
}

static void streams_are_clean(void **unused)
{
    for (size_t piece = 1; piece < 8; piece++) {
        check_stream("M\xc3\xbc"
                     "nchen\t\xf0\x9f\x90\xa7\n",
                     piece, "M\xc3\xbcnchen\t\xf0\x9f\x90\xa7\n");
        check_stream("\x1b[1m\r\xc2\x9b\xe6\x9d"
                     "a\xff\n",
                     piece, "\\x1b[1m\\x0d\\xc2\\x9b\\xe6\\x9da\\xff\n");
    }
}

static void a_full_disk_is_seen(void **unused)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC), former = dup(STDOUT_FILENO);
    FILE *output, *errors;

    if (full < 0)
        skip();
    dup2(full, STDOUT_FILENO);
    assert_int_equal(escape_streams(&output, &errors), 0);
    fputs("lost", output);
    errno = 0;
    int flushed = fflush(output), code = errno;
    dup2(former, STDOUT_FILENO);
    assert_int_equal(flushed, EOF);
    assert_int_equal(code, ENOSPC);
    assert_true(ferror(output));
    assert_int_equal(escape_output_error(), ENOSPC);
    fclose(output);
    fclose(errors);
    close(full);
    close(former);
}

static void json_keeps_every_name_and_member(void **unused)
{
    json_t *object = json_object();

    json_object_set_new(object, "path", json_text("/sets/\xff\xfe/\x1b[2J\x7f\xc2\x9b"));
    json_t *alone = json_text("\xff"); /* four bytes of one */
    assert_string_equal(json_string_value(alone), "\\xff");
    json_decref(alone);
    json_object_set_new(object, "none", json_text(NULL));
    json_object_set_new(object, "diverged", json_number(NAN));
    json_object_set_new(object, "loss", json_number(0.5));
    char *text = json_to_text(object, JSON_SORT_KEYS);
    assert_non_null(text);
    assert_string_equal(text, "{\"diverged\": null, \"loss\": 0.5, \"none\": null, \"path\": "
                              "\"/sets/\\\\xff\\\\xfe/\\u001B[2J\\u007f\\u009B\"}");
    json_t *again = json_loads(text, 0, NULL);
    assert_non_null(again);
    assert_string_equal(json_string_value(json_object_get(again, "path")),
                        "/sets/\\xff\\xfe/\x1b[2J\x7f\xc2\x9b");
    json_decref(again);
    json_decref(object);
    free(text);
}

static char *build(void)
{
    json_t *object = json_object(), *rows = json_array();

    for (int i = 0; i < 40; i++)
        json_array_append_new(rows, json_text("a\xff"));
    json_object_set_new(object, "rows", rows);
    json_object_set_new(object, "last", json_integer(7));
    char *text = json_to_text(object, 0);
    json_decref(object);
    return text;
}

static char *write_stream(void)
{
    struct text_stream stream;
    char *text;
    size_t bytes;

    if (text_stream_open(&stream))
        return NULL;
    for (int i = 0; i < 4000; i++)
        fprintf(stream.stream, "row %d\n", i);
    return text_stream_take(&stream, &text, &bytes) ? NULL : text;
}

/* Whichever allocation fails, the text is complete or there is an error; the next text is
 * complete. */
static void check_sweep(char *(*make)(void))
{
    char *whole = make();

    assert_non_null(whole);
    for (uint64_t k = 1;; k++) {
        fail_clear();
        const uint64_t before = counter_get(&allocations);
        allocation_refused = before + k;
        char *text = make();
        const bool met = counter_get(&allocations) >= allocation_refused;
        allocation_refused = 0;
        if (text)
            assert_string_equal(text, whole);
        else
            assert_reason("memory");
        free(text);
        text = make();
        assert_non_null(text);
        assert_string_equal(text, whole);
        free(text);
        if (!met)
            break;
    }
    free(whole);
}

static void short_memory_is_an_error(void **unused)
{
    if (!allocations_counted)
        skip();
    check_sweep(build);
    check_sweep(write_stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_clean),
        cmocka_unit_test(reasons_are_clean),
        cmocka_unit_test(streams_are_clean),
        cmocka_unit_test(a_full_disk_is_seen),
        cmocka_unit_test(json_keeps_every_name_and_member),
        cmocka_unit_test(short_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
