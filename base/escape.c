/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { UNIT_MAX = 4, ESCAPED = 4, CHUNK = 16384, WRITE = 4096 };

/* ---- one character ---- */

struct unit {
    size_t bytes;       /* its length, at least 1; 1 for an invalid sequence */
    bool valid, begins; /* UTF-8; may become UTF-8 with more bytes */
    uint32_t code;
};

/* `at` has `left` bytes, at least one. Overlong forms and surrogates are not UTF-8. */
static struct unit unit_at(const unsigned char *at, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t bytes = at[0] < 0x80                     ? 1
                         : at[0] >= 0xc2 && at[0] < 0xe0  ? 2
                         : at[0] >= 0xe0 && at[0] < 0xf0  ? 3
                         : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                          : 0;
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

/* Returns the bytes written: at most UNIT_MAX * ESCAPED. */
static size_t put_unit(unsigned kinds, const struct unit *unit, const unsigned char *at, char *to)
{
    static const char digits[] = "0123456789abcdef";
    const uint32_t code = unit->code;
    unsigned kind = 0; /* that escapes it */

    if (!unit->valid)
        kind = ESCAPE_INVALID;
    else if (code == '\n' || code == '\t' || code == 0x2028 || code == 0x2029)
        kind = ESCAPE_LINES; /* the last two: line and paragraph separators */
    else if (code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
             (code >= 0x2066 && code <= 0x2069))
        kind = ESCAPE_CONTROL; /* the last two: bidirectional overrides */
    if (!(kinds & kind)) {
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

static ssize_t filter_write(void *cookie, const char *bytes, size_t count)
{
    static const char *const colors[] = {ESCAPE_BOLD, ESCAPE_ALARM, ESCAPE_PLAIN};
    struct filter *filter = cookie;
    char put[WRITE + UNIT_MAX * ESCAPED];
    unsigned char text[WRITE];

    for (size_t taken = 0; taken < count;) {
        size_t length = filter->held, used = 0, at = 0;
        memcpy(text, filter->bytes, length);
        const size_t more =
            count - taken < WRITE / ESCAPED - length ? count - taken : WRITE / ESCAPED - length;
        memcpy(text + length, bytes + taken, more);
        length += more;
        while (at < length) {
            const struct unit unit = unit_at(text + at, length - at);
            const size_t left = length - at;
            /* Bytes of a colour sequence; begins: it may be one with more bytes. */
            size_t color = 0;
            bool begins = false;
            for (size_t i = 0; filter->colors && i < sizeof colors / sizeof colors[0]; i++) {
                const size_t all = strlen(colors[i]);
                if (left >= all && memcmp(text + at, colors[i], all) == 0)
                    color = all;
                begins |= left < all && memcmp(text + at, colors[i], left) == 0;
            }
            if (color) {
                memcpy(put + used, text + at, color);
                used += color;
                at += color;
                continue;
            }
            if (begins || unit.begins)
                break;
            used += put_unit(ESCAPE_INVALID | ESCAPE_CONTROL, &unit, text + at, put + used);
            at += unit.bytes;
        }
        for (size_t written = 0; written < used;) {
            const ssize_t done = write(filter->fd, put + written, used - written);
            if (done < 0 && errno == EINTR)
                continue;
            if (done < 0) {
                filter->error = filter->error ? filter->error : errno;
                return 0; /* an error in fopencookie()'s terms */
            }
            written += (size_t)done;
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

/* ---- terminal ---- */

enum { WIDTH_MIN = 40, WIDTH_MAX = 4096 };

unsigned terminal_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    const unsigned long asked = columns ? strtoul(columns, NULL, 10) : 0;
    struct winsize size;

    if (asked >= WIDTH_MIN && asked <= WIDTH_MAX)
        return (unsigned)asked;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN)
        return size.ws_col;
    return TERMINAL_WIDTH;
}
