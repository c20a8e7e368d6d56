/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNIT_MAX = 4, ESCAPED = 4, CHUNK = 16384, WRITE = 4096 };

/* ---- one character ---- */

struct unit {
    size_t bytes;       /* its length, at least 1; 1 for an invalid sequence */
    bool valid, begins; /* UTF-8; may become UTF-8 with more bytes */
    uint32_t code;
};

static size_t sequence_bytes(unsigned char first)
{
    return first < 0x80                     ? 1
           : first >= 0xc2 && first < 0xe0  ? 2
           : first >= 0xe0 && first < 0xf0  ? 3
           : first >= 0xf0 && first <= 0xf4 ? 4
                                            : 0;
}

/* `at` has `left` bytes, at least one. Overlong forms and surrogates are not UTF-8. */
static struct unit unit_at(const unsigned char *at, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t bytes = sequence_bytes(at[0]);
    uint32_t code = bytes <= 1 ? at[0] : at[0] & (0x7fu >> bytes);

    for (size_t i = 1; i < bytes; i++) {
        if (i == left)
            return (struct unit){.bytes = 1, .begins = true};
        if ((at[i] & 0xc0) != 0x80)
            return (struct unit){.bytes = 1};
        code = code << 6 | (at[i] & 0x3f);
    }
    if (bytes == 0 || code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return (struct unit){.bytes = 1};
    return (struct unit){.bytes = bytes, .valid = true, .code = code};
}

static bool turns_direction(uint32_t code)
{
    return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

static bool must_escape(unsigned kinds, const struct unit *unit)
{
    const uint32_t code = unit->code;

    if (!unit->valid)
        return kinds & ESCAPE_INVALID;
    if (code == '\n' || code == '\t')
        return kinds & ESCAPE_LINES;
    if (code == 0x2028 || code == 0x2029) /* line and paragraph separators */
        return kinds & ESCAPE_LINES;
    return (kinds & ESCAPE_CONTROL) &&
           (code < 0x20 || (code >= 0x7f && code < 0xa0) || turns_direction(code));
}

/* Returns the bytes written: at most UNIT_MAX * ESCAPED. */
static size_t put_unit(unsigned kinds, const struct unit *unit, const unsigned char *at, char *to)
{
    static const char digits[] = "0123456789abcdef";

    if (!must_escape(kinds, unit)) {
        memcpy(to, at, unit->bytes);
        return unit->bytes;
    }
    for (size_t i = 0; i < unit->bytes; i++) {
        const char escaped[ESCAPED] = {'\\', 'x', digits[at[i] >> 4], digits[at[i] & 15]};
        memcpy(to + i * ESCAPED, escaped, ESCAPED);
    }
    return unit->bytes * ESCAPED;
}

char *escape_text(unsigned kinds, const char *text, size_t bytes, char *to, size_t room)
{
    size_t used = 0;

    for (size_t i = 0; i < bytes;) {
        const unsigned char *at = (const unsigned char *)text + i;
        const struct unit unit = unit_at(at, bytes - i);
        char put[UNIT_MAX * ESCAPED];
        const size_t length = put_unit(kinds, &unit, at, put);
        if (used + length >= room)
            break;
        memcpy(to + used, put, length);
        used += length;
        i += unit.bytes;
    }
    if (room)
        to[used] = '\0';
    return to;
}

const char *escape_shown(const char *text)
{
    static _Thread_local char lines[4][CHUNK];
    static _Thread_local unsigned next;

    return escape_text(ESCAPE_ALL, text, strlen(text), lines[next++ % 4], CHUNK);
}

/* ---- a stream ---- */

/* A character or colour sequence may be split across writes; its first bytes wait here. */
struct filter {
    int error; /* of the first write that failed */
    int fd;
    bool colors;
    size_t held;
    unsigned char bytes[16];
};

static int write_all(int fd, const char *bytes, size_t count)
{
    while (count) {
        ssize_t put = write(fd, bytes, count);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        bytes += put;
        count -= (size_t)put;
    }
    return 0;
}

/* Length of a colour sequence at the start of text; begins: it may be one with more bytes. */
static size_t color_at(const unsigned char *at, size_t left, bool *begins)
{
    static const char *const colors[] = {ESCAPE_BOLD, ESCAPE_ALARM, ESCAPE_PLAIN};

    *begins = false;
    for (size_t i = 0; i < sizeof colors / sizeof colors[0]; i++) {
        const size_t length = strlen(colors[i]);
        if (left >= length && memcmp(at, colors[i], length) == 0)
            return length;
        *begins |= left < length && memcmp(at, colors[i], left) == 0;
    }
    return 0;
}

/* Write the first unit of `at`; returns the bytes consumed, 0 if more are needed. */
static size_t put_next(const struct filter *filter, const unsigned char *at, size_t left, char *to,
                       size_t *used)
{
    bool begins = false;
    const size_t color = filter->colors ? color_at(at, left, &begins) : 0;
    const struct unit unit = unit_at(at, left);

    if (color) {
        memcpy(to + *used, at, color);
        *used += color;
        return color;
    }
    if (begins || unit.begins)
        return 0;
    *used += put_unit(ESCAPE_INVALID | ESCAPE_CONTROL, &unit, at, to + *used);
    return unit.bytes;
}

static ssize_t filter_write(void *cookie, const char *bytes, size_t count)
{
    struct filter *filter = cookie;
    char put[WRITE + UNIT_MAX * ESCAPED];
    unsigned char text[WRITE];

    for (size_t taken = 0; taken < count;) {
        size_t length = filter->held, used = 0, at = 0, done;
        memcpy(text, filter->bytes, length);
        const size_t more =
            count - taken < WRITE / ESCAPED - length ? count - taken : WRITE / ESCAPED - length;
        memcpy(text + length, bytes + taken, more);
        length += more;
        while (at < length && (done = put_next(filter, text + at, length - at, put, &used)))
            at += done;
        if (write_all(filter->fd, put, used)) {
            filter->error = filter->error ? filter->error : errno;
            return 0; /* an error in fopencookie()'s terms */
        }
        filter->held = length - at;
        memcpy(filter->bytes, text + at, filter->held);
        taken += more;
    }
    return (ssize_t)count;
}

static FILE *stream_to(int fd, struct filter *filter)
{
    *filter = (struct filter){.fd = fd, .colors = isatty(fd)};
    return fopencookie(filter, "w", (cookie_io_functions_t){.write = filter_write});
}

static struct filter filters[2]; /* live as long as the process */

int escape_streams(FILE **output, FILE **errors)
{
    FILE *first = stream_to(STDOUT_FILENO, &filters[0]);
    FILE *second = first ? stream_to(STDERR_FILENO, &filters[1]) : NULL;

    if (!second) {
        if (first)
            fclose(first);
        return -ENOMEM;
    }
    if (isatty(STDOUT_FILENO))
        setvbuf(first, NULL, _IOLBF, 0);
    setvbuf(second, NULL, _IOLBF, 0);
    *output = first;
    *errors = second;
    return 0;
}

int escape_output_error(void)
{
    return filters[0].error;
}
