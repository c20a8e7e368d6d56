/* SPDX-License-Identifier: Apache-2.0
 *
 * sample: one labelled image, as formats store it and decoders take it.
 */
#ifndef IOBENCH_BASE_SAMPLE_H
#define IOBENCH_BASE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sample_encoding {
    SAMPLE_ENCODED,     /* a JPEG, PNG, ... file image; look at its first bytes */
    SAMPLE_RAW_HWC,     /* height x width x channels bytes, RGB */
    SAMPLE_RAW_CHW,     /* channels x height x width bytes, BGR planes (Caffe) */
    SAMPLE_RAW_HWC_BGR, /* height x width x channels bytes, BGR (Caffe2) */
};

struct sample {
    const void *image; /* borrowed from the record, or from the scratch given to parse */
    size_t image_bytes;
    int32_t label; /* 0-based class; -1 if the record has none */
    bool has_odd_label;
    double odd_label;  /* a value that is not a class: 3.7, NaN; label is then -1 */
    char odd_text[24]; /* if it is a word: its beginning; odd_label is then NaN */
    enum sample_encoding encoding;
    uint32_t width, height, channels; /* of raw images; 0: unknown */
    uint64_t id;                      /* RecordIO image id; 0 if the format has none */
    const char *name;                 /* not NUL-terminated; name_bytes 0 if there is none */
    size_t name_bytes;
};

/* Set a label that is stored as a real number. Negative integers mean none. */
void sample_set_label(struct sample *sample, double label);
/* Set a label that is stored as text: a number, none if it is blank, or an odd one. */
void sample_set_label_text(struct sample *sample, const char *text, size_t bytes);
/* Returns -EBADMSG with the reason: the odd label. */
int sample_refuse_label(const struct sample *sample);
/* Round an odd label to the nearest class; one that has none (NaN, 1e12) stays odd. */
void sample_round_label(struct sample *sample);

#endif
