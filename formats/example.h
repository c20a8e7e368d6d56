/* SPDX-License-Identifier: Apache-2.0
 *
 * example: read, in place, and write tf.train.Example, the message in a TFRecord of images. Knows
 * nothing of the record around it. Pure, any thread.
 *
 * Example{Features features=1}, Features{map<string,Feature> feature=1}, Feature{oneof{BytesList=1,
 * FloatList=2, Int64List=3}}, each {repeated value=1}. */
#ifndef IOBENCH_FORMATS_EXAMPLE_H
#define IOBENCH_FORMATS_EXAMPLE_H

#include "base/sample.h"

enum example_base { EXAMPLE_BASE_AUTO, EXAMPLE_BASE_0, EXAMPLE_BASE_1 };

struct example_keys {
    const char *image;      /* NULL: image/encoded, else image as in TensorFlow Datasets */
    const char *label;      /* NULL: image/class/label, else label */
    enum example_base base; /* number of the first class; AUTO: 1 for image/class/label, else 0 */
};

/* Parse image, label and name of the Example. Returns 0, or -EBADMSG with a reason. */
int example_parse(const struct example_keys *keys, const void *message, size_t bytes,
                  struct sample *sample);

enum { EXAMPLE_HEAD_BYTES = 8192 };

/* Write the Example of a sample to head, except the image bytes, which come last. Returns the
 * number of bytes, or a negative errno. */
int example_head(const struct example_keys *keys, const struct sample *sample,
                 uint8_t head[EXAMPLE_HEAD_BYTES]);

#endif
