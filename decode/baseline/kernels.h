/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels: the inner loops of the decoder for one level of a CPU. Each level compiles the same
 * templates; all give the same results.
 */
#ifndef IOBENCH_DECODE_BASELINE_KERNELS_H
#define IOBENCH_DECODE_BASELINE_KERNELS_H

#include "decode/baseline/entropy.h"

/* ---- upsampling of rows of samples, and their conversion to RGBX: equal to libjpeg-turbo ----
 *
 * Plain C that compilers vectorise, compiled once per CPU (kernels_template.h). */

/* The next three process counts rounded up to a multiple of COLOUR_STEP, so that no rest is left to
 * scalar code: all arrays have room for that, with any contents. */
enum { COLOUR_STEP = 32 };

static inline uint32_t colour_steps(uint32_t count)
{
    return (count + COLOUR_STEP - 1) / COLOUR_STEP * COLOUR_STEP;
}

/* out[i] = 3 x near[i] + far[i] */
typedef void colour_blend(const uint8_t *near, const uint8_t *far, uint32_t count, uint16_t *out);

/* Two outputs per input, each interpolated: in[-1] and in[count] are read.
 * out[2i] = (3 in[i] + in[i - 1] + even) >> 4, out[2i + 1] = (3 in[i] + in[i + 1] + odd) >> 4 */
typedef void colour_double(const uint16_t *in, uint32_t count, uint32_t even, uint32_t odd,
                           uint8_t *out);

/* out[i] = (in[i] + bias) >> 2 */
typedef void colour_quarter(const uint16_t *in, uint32_t count, uint32_t bias, uint8_t *out);

typedef void colour_rgbx(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint32_t count,
                         uint8_t *rgbx);
/* Chroma for rgbx() of pixels [x, x + width), x being 0 or 1: interpolated as by colour_double,
 * from samples that are blended. */
struct colour_halves {
    const uint16_t *cb, *cr;
    uint32_t even, odd;
};

typedef void colour_rgbx_twice(const uint8_t *y, const struct colour_halves *halves, uint32_t x,
                               uint32_t width, uint8_t *rgbx);
typedef void colour_grey(const uint8_t *y, uint32_t count, uint8_t *rgbx);

/* ---- dequantisation and the inverse DCT, the accurate integer one of libjpeg ("islow") ----
 *
 * Equal to libjpeg-turbo's vector code for x86 for any coefficients: products and sums of inputs
 * wrap to 16 bits, results of both passes saturate. */

enum { IDCT_BLOCKS = 64 }; /* at most per call */

/* 64 coefficients in zigzag order, and where their samples go. */
struct idct_block {
    const int16_t *coefficients;
    uint8_t *output;
};

/* The quantisers in each order that some level needs. */
struct idct_quantisers {
    uint16_t natural[64], zigzag[64];
    uint16_t twice[8][16]; /* each eight of zigzag, for two blocks side by side */
};

void baseline_idct_prepare(struct idct_quantisers *quantisers, const uint16_t natural[64]);

/* Transform to 8 x 8 samples, or to fewer: 4 x 4, 2 x 2 or 1 x 1. All outputs have the same stride.
 * Returns false, the samples then arbitrary, if libjpeg's plain and vector code for fewer samples
 * may differ, because no encoder writes such coefficients. */
typedef bool idct_each(const struct idct_block *blocks, size_t count,
                       const struct idct_quantisers *quantisers, size_t stride);

/* Zigzag position of each coefficient in natural order. */
extern const uint16_t baseline_idct_positions[64];

/* The same in the order of vector code: idct_template.h says which. Of the low 4 x 4 alone, only
 * the first 16 count. */
extern const uint16_t baseline_idct_pairs[64], baseline_idct_low_pairs[64];

/* For each byte of a row, whose columns are in that order: its index among the bytes of
 * coefficients [8 x from, 8 x from + 8) in zigzag order, or 0x80 if it is not one of these. For two
 * blocks side by side. */
extern const uint8_t baseline_idct_zigzag[8][8][32], baseline_idct_low_zigzag[2][4][32];

/* All ones at zigzag positions outside of the low 4 x 4. */
extern const uint16_t baseline_idct_high[64];

/* Transform one block in plain C: the reference, and the only code for extreme coefficients. */
void baseline_idct_reference(const struct idct_block *block,
                             const struct idct_quantisers *quantisers, size_t stride);

/* Constants with 13 fractional bits. */
enum {
    IDCT_0_211 = 1730,
    IDCT_0_298 = 2446,
    IDCT_0_390 = 3196,
    IDCT_0_509 = 4176,
    IDCT_0_541 = 4433,
    IDCT_0_601 = 4926,
    IDCT_0_720 = 5906,
    IDCT_0_765 = 6270,
    IDCT_0_850 = 6967,
    IDCT_0_899 = 7373,
    IDCT_1_061 = 8697,
    IDCT_1_175 = 9633,
    IDCT_1_272 = 10426,
    IDCT_1_451 = 11893,
    IDCT_1_501 = 12299,
    IDCT_1_847 = 15137,
    IDCT_1_961 = 16069,
    IDCT_2_053 = 16819,
    IDCT_2_172 = 17799,
    IDCT_2_562 = 20995,
    IDCT_3_072 = 25172,
    IDCT_3_624 = 29692,
};

enum { IDCT_SHIFT_1 = 11, IDCT_SHIFT_2 = 18 };           /* of the two passes */
enum { IDCT_FOUR_SHIFT_1 = 12, IDCT_FOUR_SHIFT_2 = 19 }; /* to 4 x 4 samples */
enum { IDCT_TWO_SHIFT_1 = 13, IDCT_TWO_SHIFT_2 = 20 };   /* to 2 x 2 */

/* A dequantised DC beyond this may overflow where the two forms of pass 1 differ; two such values
 * do not where only their 16-bit sum would. */
enum { IDCT_SANE = 8191 };

/* Bound at which 1 x 1 samples clamp; beyond, libjpeg's table wraps. */
enum { IDCT_SANE_ONE = 4000 };

/* ---- a level ---- */

/* Moves if byte 0 of the entry is negative, which compilers would make a branch that is
 * mispredicted at every block's end. */
#if defined __x86_64__
#define BASELINE_CMOVS(entry, a, x, b, y, c, z)                              \
    __asm__("testb %b3, %b3\n\tcmovs %4, %0\n\tcmovs %5, %1\n\tcmovs %6, %2" \
            : "+&r"(a), "+&r"(b), "+r"(c)                                    \
            : "q"(entry), "rm"(x), "r"(y), "r"(z)                            \
            : "cc")
#elif defined __aarch64__
#define BASELINE_CMOVS(entry, a, x, b, y, c, z)                                 \
    __asm__("tst %w3, #0x80\n\t"                                                \
            "csel %0, %4, %0, ne\n\tcsel %1, %5, %1, ne\n\tcsel %2, %6, %2, ne" \
            : "+&r"(a), "+&r"(b), "+r"(c)                                       \
            : "r"(entry), "r"(x), "r"(y), "r"(z)                                \
            : "cc")
#endif

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

/* Return the kernels whose progressive scans to use. Zen 1 and 2 deposit bits (PDEP) by microcode,
 * some cycles each; for AVX-512 gcc keeps what does not fit into registers in vectors: 1.1 times as
 * long. */
const struct kernels *baseline_kernels_progressive(const struct kernels *kernels);

#endif
