/* SPDX-License-Identifier: Apache-2.0 */
#include "report/words.h"

#include "base/bytes.h"
#include "base/escape.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Wider lines of prose are hard to read. */
enum { WIDTH_MAX = 100 };

const char *words_count(uint64_t count, char *text)
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *at = text;

    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return text;
}

const char *words_window(uint32_t window, uint64_t read_bytes, char *text)
{
    char count[WORDS_BYTES], bytes[WORDS_BYTES];

    if (window == 1)
        snprintf(text, WORDS_WINDOW_BYTES, "each record read alone, in draw order");
    else
        snprintf(text, WORDS_WINDOW_BYTES, "windows of %s sorted by offset, reads up to %s",
                 words_count(window, count), bytes_text(read_bytes, bytes, sizeof bytes));
    return text;
}

const char *words_rate(double rate, char *text)
{
    if (!isfinite(rate) || rate < 0)
        snprintf(text, WORDS_BYTES, "-");
    else if (rate >= 999.5 && rate < 1e18)
        return words_count((uint64_t)llround(rate), text);
    else if (rate > 0 && rate < 0.005)
        snprintf(text, WORDS_BYTES, "%.1g", rate); /* do not round it to 0 */
    else
        snprintf(text, WORDS_BYTES, rate >= 99.95 ? "%.0f" : rate >= 9.995 ? "%.1f" : "%.2f", rate);
    return text;
}

const char *words_percent(double share, char *text)
{
    snprintf(text, WORDS_BYTES, "%.*f%%", share < 0.99995 ? 2 : 1, 100 * share);
    return text;
}

const char *words_duration(uint64_t duration_ns, char *text)
{
    static const struct {
        double ns;
        const char *unit;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
    double value = (double)duration_ns;

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (value >= 0.9995 * units[i].ns) {
            char number[WORDS_BYTES];
            snprintf(text, WORDS_BYTES, "%s %s", words_rate(value / units[i].ns, number),
                     units[i].unit);
            return text;
        }
    }
    snprintf(text, WORDS_BYTES, "%.0f ns", value);
    return text;
}

static bool begins_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80; /* UTF-8 */
}

size_t words_line(const char *text, size_t width)
{
    size_t at = 0, blank = 0, characters = 0;

    for (; text[at] && text[at] != '\n'; at++) {
        if (text[at] == ' ')
            blank = at;
        if (!begins_character(text[at]) || characters++ < width)
            continue;
        /* Do not break a word longer than the line. */
        return blank ? blank : at + strcspn(text + at, " \n");
    }
    return at;
}

void words_name(FILE *stream, const char *name, size_t width)
{
    size_t used = 0;

    for (const char *at = name; *at; at++)
        used += begins_character(*at);
    fputs(name, stream);
    if (used && used >= width) {
        fputc('\n', stream);
        used = 0;
    }
    fprintf(stream, "%*s", (int)(width - used), "");
}

void words_print(FILE *stream, const char *before, size_t column, const char *text)
{
    const unsigned columns = terminal_width(STDOUT_FILENO);
    const size_t width = (columns < WIDTH_MAX ? columns : WIDTH_MAX) - column;

    words_name(stream, before, column);
    do {
        const size_t length = words_line(text, width);
        fprintf(stream, "%.*s\n", (int)length, text);
        text += length;
        text += strspn(text, " \n");
        fprintf(stream, "%*s", *text ? (int)column : 0, "");
    } while (*text);
}

void words_printf(FILE *stream, const char *before, size_t column, const char *format, ...)
{
    char text[4096];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    words_print(stream, before, column, text);
}

/* "58.3 GB/s", "54.9 k" */
static const char *scaled(double value, const char *const units[6], char *text)
{
    char number[WORDS_BYTES];
    int unit = 0;

    while (isfinite(value) && value >= 999.5 && unit < 5) {
        value /= 1000;
        unit++;
    }
    snprintf(text, WORDS_BYTES, "%s%s", words_rate(value, number), units[unit]);
    return text;
}

const char *words_byte_rate(double bytes_per_s, char *text)
{
    static const char *const units[] = {" B/s", " kB/s", " MB/s", " GB/s", " TB/s", " PB/s"};

    return scaled(bytes_per_s, units, text);
}

const char *words_short_rate(double rate, char *text)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P"};

    return scaled(rate, units, text);
}
