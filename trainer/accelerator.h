/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerator: the figures of base/profiles/gpu that a run needs: ResNet-50 training rates, used by
 * the replay trainer and for the number of GPUs that storage would feed, and the peak rates used
 * for predicted times. Any thread.
 */
#ifndef IOBENCH_TRAINER_ACCELERATOR_H
#define IOBENCH_TRAINER_ACCELERATOR_H

struct ini;

/* One GPU; ResNet-50 v1.5 on 224 x 224 images, JPEG decoding included. */
struct accelerator {
    const char *name;  /* as in replay:NAME */
    const char *title; /* as in a report */
    double mixed_samples_per_s;
    const char *mixed_source;
    double fp32_samples_per_s; /* FP32, or TF32 where supported; 0: not published */
    const char *fp32_source;
    unsigned capability; /* compute capability, 90: 9.0 */
    double memory_bytes_per_s;
    const char *peak_source;
    const struct ini *profile;
};

/* The GPUs of base/profiles/ that have a ResNet-50 rate; ends with a row whose name is NULL. */
const struct accelerator *accelerator_table(void);

/* Return how many of them a rate of samples keeps busy. */
static inline double accelerator_count(const struct accelerator *gpu, double samples_per_s)
{
    return samples_per_s / gpu->mixed_samples_per_s;
}

/* Returns NULL with a reason if the name is unknown. */
const struct accelerator *accelerator_find(const char *name);
/* Peak by precision, "fp32", "tf32", "fp16", "bf16" or "int8": dense, by tensor cores where it has
 * them; 0: unsupported. */
double accelerator_flops_per_s(const struct accelerator *accelerator, const char *precision);

#endif
