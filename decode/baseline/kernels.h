/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels: the inner loops of the decoder for one level of a CPU. Each level compiles the same
 * templates; all give the same results.
 */
#ifndef IOBENCH_DECODE_BASELINE_KERNELS_H
#define IOBENCH_DECODE_BASELINE_KERNELS_H

#include "decode/baseline/colour.h"
#include "decode/baseline/entropy.h"
#include "decode/baseline/idct.h"

struct kernels {
    entropy_run *run;
    entropy_skip *skip;
    entropy_sum_dc *sum_dc;
    progressive_decode_ac *first_ac, *refine_ac;                /* not of every level: see below */
    idct_each *idct, *idct_to_four, *idct_to_two, *idct_to_one; /* samples a side */
    colour_blend *blend;
    colour_double *twice;
    colour_quarter *quarter;
    colour_rgbx *rgbx;
    colour_rgbx_twice *rgbx_twice;
    colour_grey *grey;
};

extern const struct kernels baseline_kernels_c;
#if defined __x86_64__
#define KERNELS_X86
extern const struct kernels baseline_kernels_avx2, baseline_kernels_avx512;
#elif defined __aarch64__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define KERNELS_NEON
extern const struct kernels baseline_kernels_neon;
#endif

/* 0: plain C; on x86-64, 1: AVX2 and BMI2, 2: also AVX-512BW; on AArch64, 1: NEON. */
int baseline_kernels_best_level(void);
const struct kernels *baseline_kernels_of(int level);

/* Whose scans of progressive images to use. Zen 1 and 2 deposit bits (PDEP) by microcode, some
 * cycles each; for AVX-512 gcc keeps what does not fit into registers in vectors: 1.1 times as
 * long. */
const struct kernels *baseline_kernels_progressive(const struct kernels *kernels);

#endif
