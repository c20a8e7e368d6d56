/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/text.h"

#include <string.h>

struct text text_of(const char *bytes, size_t count)
{
    return (struct text){bytes, bytes + count};
}

struct text text_of_string(const char *string)
{
    return text_of(string, strlen(string));
}

bool text_until(struct text *text, char mark, struct text *part)
{
    if (text->at == text->end)
        return false;
    const char *found = memchr(text->at, mark, (size_t)(text->end - text->at));
    *part = (struct text){text->at, found ? found : text->end};
    text->at = found ? found + 1 : text->end;
    return true;
}

bool text_line(struct text *text, struct text *line)
{
    return text_until(text, '\n', line);
}

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\n';
}

bool text_word(struct text *text, struct text *word)
{
    while (text->at < text->end && is_blank(*text->at))
        text->at++;
    word->at = text->at;
    while (text->at < text->end && !is_blank(*text->at))
        text->at++;
    word->end = text->at;
    return word->at < word->end;
}

bool text_u64(struct text *text, uint64_t *value)
{
    struct text rest = *text, word;
    uint64_t sum = 0;

    if (!text_word(&rest, &word))
        return false;
    for (const char *at = word.at; at < word.end; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (digit > 9 || __builtin_mul_overflow(sum, UINT64_C(10), &sum) ||
            __builtin_add_overflow(sum, digit, &sum))
            return false;
    }
    *value = sum;
    *text = rest;
    return true;
}

bool text_starts(struct text text, const char *prefix)
{
    size_t length = strlen(prefix);

    return (size_t)(text.end - text.at) >= length && memcmp(text.at, prefix, length) == 0;
}

bool text_is(struct text text, const char *string)
{
    return (size_t)(text.end - text.at) == strlen(string) && text_starts(text, string);
}

bool text_skip(struct text *text, const char *prefix)
{
    if (!text_starts(*text, prefix))
        return false;
    text->at += strlen(prefix);
    return true;
}

char *text_copy(struct text text, char *copy, size_t copy_bytes)
{
    size_t length = (size_t)(text.end - text.at);

    if (length >= copy_bytes)
        length = copy_bytes - 1;
    if (length)
        memcpy(copy, text.at, length);
    copy[length] = '\0';
    return copy;
}
