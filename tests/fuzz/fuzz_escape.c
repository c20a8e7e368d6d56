/* SPDX-License-Identifier: Apache-2.0
 * Foreign text on its way to a terminal. The first byte chooses what is escaped, the second the
 * buffer size, or where a stream's text is split: the split changes nothing. */
#include "tests/fuzz/fuzz.h"

#include <unistd.h>

enum { SINK_BYTES = 1 << 17 };
static char sink[SINK_BYTES];
static size_t sink_used;

static ssize_t put_in_sink(int fd, const void *bytes, size_t count)
{
    (void)fd;
    FUZZ_CHECK(count <= SINK_BYTES - sink_used);
    memcpy(sink + sink_used, bytes, count);
    sink_used += count;
    return (ssize_t)count;
}

/* Replace its functions, not its symbols: the stream's code is included. */
#define write(fd, bytes, count) put_in_sink(fd, bytes, count)
#include "base/escape.c"
#undef write

static void check_clean(const char *text, unsigned kinds)
{
    for (const char *byte = text; *byte; byte++) {
        const bool is_line = *byte == '\n' || *byte == '\t';
        FUZZ_CHECK(is_line ? !(kinds & ESCAPE_LINES)
                           : (unsigned char)*byte >= ' ' || !(kinds & ESCAPE_CONTROL));
    }
}

static void escape_once(unsigned kinds, const char *text, size_t bytes, size_t room)
{
    char *to = malloc(room ? room : 1), *again = malloc(room ? room : 1);

    FUZZ_CHECK(to && again && escape_text(kinds, text, bytes, to, room) == to);
    if (room) {
        const size_t length = strnlen(to, room);
        FUZZ_CHECK(length < room);
        check_clean(to, kinds);
        /* Clean text stays unchanged. */
        FUZZ_CHECK(kinds != ESCAPE_ALL ||
                   strcmp(escape_text(kinds, to, length, again, room), to) == 0);
    }
    free(to);
    free(again);
}

static void stream_twice(bool colors, const char *text, size_t bytes, size_t cut)
{
    struct filter whole = {.colors = colors}, parts = {.colors = colors};

    sink_used = 0;
    FUZZ_CHECK(filter_write(&whole, text, bytes) == (ssize_t)bytes);
    const size_t used = sink_used;
    FUZZ_CHECK(filter_write(&parts, text, cut) == (ssize_t)cut);
    FUZZ_CHECK(filter_write(&parts, text + cut, bytes - cut) == (ssize_t)(bytes - cut));
    FUZZ_CHECK(sink_used == 2 * used && memcmp(sink, sink + used, used) == 0);
    FUZZ_CHECK(whole.held == parts.held && whole.held <= sizeof whole.bytes);
    FUZZ_CHECK(memcmp(whole.bytes, parts.bytes, whole.held) == 0);
    FUZZ_CHECK(colors || !memchr(sink, '\033', used));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    if (count < 2 || count > SINK_BYTES / 8)
        return 0;
    char *text = (char *)fuzz_exact(bytes + 2, count - 2);
    const size_t cut = bytes[1] < count - 2 ? bytes[1] : count - 2;

    if (bytes[0] & 8)
        stream_twice(bytes[0] & 1, text, count - 2, cut);
    else
        escape_once(bytes[0] & ESCAPE_ALL, text, count - 2, bytes[1] * 4u);
    free(text);
    return 0;
}
