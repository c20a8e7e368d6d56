/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sample.h"

#include "base/fail.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void sample_set_label(struct sample *sample, double label)
{
    const bool whole = isfinite(label) && label == rint(label) && label <= INT32_MAX;

    sample->label = whole && label >= 0 ? (int32_t)label : -1;
    sample->has_odd_label = !whole;
    sample->odd_label = label;
}

static bool is_blank(char byte)
{
    return byte == '\0' || isspace((unsigned char)byte);
}

void sample_set_label_text(struct sample *sample, const char *text, size_t bytes)
{
    char word[sizeof sample->odd_text] = "", *end;

    while (bytes > 0 && is_blank(*text))
        text++, bytes--;
    while (bytes > 0 && is_blank(text[bytes - 1]))
        bytes--;
    memcpy(word, text, bytes < sizeof word ? bytes : sizeof word - 1);
    const double number = strtod(word, &end);
    if (bytes == 0)
        return;
    if (bytes < sizeof word && *end == '\0' && strspn(word, "+-.0123456789eE") == bytes) {
        sample_set_label(sample, number);
        return;
    }
    sample_set_label(sample, (double)NAN);
    memcpy(sample->odd_text, word, sizeof word);
}

int sample_refuse_label(const struct sample *sample)
{
    return sample->odd_text[0] ? fail(EBADMSG, "label '%s' is not a class number", sample->odd_text)
                               : fail(EBADMSG, "label %g is not a class number", sample->odd_label);
}

void sample_round_label(struct sample *sample)
{
    if (isfinite(sample->odd_label))
        sample_set_label(sample, round(sample->odd_label));
}
