/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerator: how fast GPUs train ResNet-50, as published. The one table behind the replay
 * trainer and behind what a report says storage would feed. Pure; any thread.
 */
#ifndef IOBENCH_TRAINER_ACCELERATOR_H
#define IOBENCH_TRAINER_ACCELERATOR_H

/* One GPU; ResNet-50 v1.5 on 224 x 224 images, JPEG decoding included. */
struct accelerator {
    const char *name;  /* as in replay:NAME */
    const char *title; /* as in a report */
    double mixed_samples_per_s;
    const char *mixed_source;
    double fp32_samples_per_s; /* FP32, or TF32 where there is that; 0: not published */
    const char *fp32_source;
};

extern const struct accelerator accelerator_table[]; /* ends with a row whose name is NULL */

/* NULL when there is none. */
const struct accelerator *accelerator_find(const char *name);

#endif
