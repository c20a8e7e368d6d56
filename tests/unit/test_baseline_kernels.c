/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of the baseline decoder at each level of this CPU against those in plain C, each by
 * itself: bit for bit, for any coefficients, and nothing written besides. Needs the C library and
 * decode/baseline/ alone, to be built for other CPUs (tests/cli/baseline_cross.sh).
 *
 * With FILEs: decodes each at all levels and scales, which must agree, and prints sums of the
 * pixels, for comparison with those of another CPU.
 */
#include "decode/baseline/baseline.h"
#include "decode/baseline/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_MAX = 11,
    STRIDE = 128,
    ROWS = 10,
    ROUNDS = 20000,
    COUNT_MAX = 150,
    BYTES_MAX = 1 << 20
};

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "line %d, level %d: %s\n", __LINE__, level, #condition); \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

static int level;
static const struct kernels *plain, *tried;

/* xorshift64* */
static uint32_t below(uint32_t limit)
{
    static uint64_t state = 88172645463325252U;

    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 2685821657736338717U >> 32) * limit >> 32);
}

static void fill(void *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((uint8_t *)at)[i] = (uint8_t)below(256);
}

/* ---- inverse DCTs ---- */

/* Positions in zigzag order of the low 4 x 4. */
static const uint8_t low_positions[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 17, 18, 24};

/* From a lone DC value to what no encoder writes, and to the edges of what is sane; half of them
 * within the low 4 x 4, or but for one coefficient. */
static void make_block(int16_t *block, uint16_t *quantisers)
{
    const uint32_t kind = below(7), count = kind == 0 ? 1 : 1 + below(64);
    const uint32_t most = kind == 1 ? 65536 : kind == 2 ? 4096 : 1 + below(200);
    const bool is_low = below(2);

    memset(block, 0, 64 * sizeof *block);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = below(kind == 3 ? 64 : count);
        block[is_low ? low_positions[at % sizeof low_positions] : at] =
            (int16_t)((int32_t)below(most) - (int32_t)most / 2);
    }
    if (is_low && below(4) == 0)
        block[below(64)] = (int16_t)below(3);
    for (int i = 0; i < 64; i++)
        quantisers[i] = (uint16_t)(kind == 4 ? below(65536) : 1 + below(kind == 1 ? 2 : 30));
    if (kind == 6) { /* rows 0 and 4, at the edges */
        static const uint8_t edges[] = {0, 10, 1, 5, 6, 14};
        for (uint32_t i = 0; i < 1 + below(2); i++) {
            const uint32_t at = edges[below(sizeof edges)];
            block[at] = (int16_t)((below(2) ? IDCT_SANE : -IDCT_SANE - 1) + (int32_t)below(3) - 1);
        }
        for (int i = 0; i < 64; i++)
            quantisers[i] = 1;
    }
}

/* Of any count, whose outputs are side by side. */
static int idct(idct_each *plain_idct, idct_each *tried_idct)
{
    _Alignas(64) static uint8_t expected[ROWS * STRIDE], found[ROWS * STRIDE];
    _Alignas(128) int16_t coefficients[BLOCKS_MAX][64];
    uint16_t natural[64];
    struct idct_quantisers quantisers;
    struct idct_block blocks[BLOCKS_MAX], same[BLOCKS_MAX];
    const uint32_t count = 1 + below(BLOCKS_MAX);

    fill(expected, sizeof expected);
    memcpy(found, expected, sizeof found);
    for (uint32_t i = 0; i < count; i++) {
        make_block(coefficients[i], natural);
        blocks[i] = (struct idct_block){coefficients[i], expected + 8 * (i + 1)};
        same[i] = (struct idct_block){coefficients[i], found + 8 * (i + 1)};
    }
    baseline_idct_prepare(&quantisers, natural);
    const bool good = plain_idct(blocks, count, &quantisers, STRIDE);
    CHECK(tried_idct(same, count, &quantisers, STRIDE) == good);
    CHECK(!good || memcmp(found, expected, sizeof found) == 0);
    return good;
}

static void idcts(void)
{
    int good[4] = {0};

    for (int i = 0; i < ROUNDS; i++) {
        good[0] += idct(plain->idct, tried->idct);
        good[1] += idct(plain->idct_to_four, tried->idct_to_four);
        good[2] += idct(plain->idct_to_two, tried->idct_to_two);
        good[3] += idct(plain->idct_to_one, tried->idct_to_one);
    }
    CHECK(good[0] == ROUNDS);
    for (int i = 1; i < 4; i++)
        CHECK(good[i] > ROUNDS / 10 && good[i] < ROUNDS);
}

/* ---- upsampling ---- */

static void upsampling(void)
{
    uint8_t near[COUNT_MAX + COLOUR_STEP], far[sizeof near];
    uint16_t wide[2][COUNT_MAX + COLOUR_STEP + 2];
    uint8_t expected[2 * sizeof near], found[2 * sizeof near];

    for (int i = 0; i < ROUNDS; i++) {
        const uint32_t count = 1 + below(COUNT_MAX);
        fill(near, sizeof near);
        fill(far, sizeof far);
        memset(wide, 0, sizeof wide);
        plain->blend(near, far, count, wide[0] + 1);
        tried->blend(near, far, count, wide[1] + 1);
        CHECK(memcmp(wide[0] + 1, wide[1] + 1, count * sizeof **wide) == 0);
        const uint32_t even = below(2) ? 8 : 4, odd = even == 8 ? 7 : 8;
        plain->twice(wide[0] + 1, count, even, odd, expected);
        tried->twice(wide[0] + 1, count, even, odd, found);
        CHECK(memcmp(found, expected, 2 * (size_t)count) == 0);
        const uint32_t bias = 1 + below(2);
        plain->quarter(wide[0], count, bias, expected);
        tried->quarter(wide[0], count, bias, found);
        CHECK(memcmp(found, expected, count) == 0);
    }
}

/* ---- colour ---- */

/* Of any width; nothing is written after the last pixel. */
static void colours(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint32_t count)
{
    static uint8_t expected[4 * 257], found[4 * 257];

    memset(expected, 0x5a, sizeof expected);
    memset(found, 0x5a, sizeof found);
    plain->rgbx(y, cb, cr, count, expected);
    tried->rgbx(y, cb, cr, count, found);
    CHECK(memcmp(found, expected, sizeof found) == 0);
}

/* The same of chroma that is interpolated on the way. */
static void halves(const uint8_t *y, uint32_t width)
{
    static uint8_t expected[4 * 257], found[4 * 257];
    uint16_t cb[COLOUR_STEP + 160], cr[COLOUR_STEP + 160];
    const uint32_t x = below(2);
    const bool rounds_up = below(2);
    const struct colour_halves halves = {cb + 1, cr + 1, rounds_up ? 4 : 8, rounds_up ? 8 : 7};

    for (size_t i = 0; i < sizeof cb / sizeof *cb; i++) {
        cb[i] = (uint16_t)below(4 * 255 + 1);
        cr[i] = (uint16_t)(below(2) ? below(4 * 255 + 1) : below(2) * 4 * 255);
    }
    memset(expected, 0x5a, sizeof expected);
    memset(found, 0x5a, sizeof found);
    plain->rgbx_twice(y, &halves, x, width, expected);
    tried->rgbx_twice(y, &halves, x, width, found);
    CHECK(memcmp(found, expected, sizeof found) == 0);
}

static void each_colour(void)
{
    static uint8_t y[256], cb[256], cr[256], grey[2][4 * 257];

    for (uint32_t blue = 0; blue < 256; blue++)
        for (uint32_t light = 0; light < 256; light += 15) { /* each red with it */
            memset(y, (int)light, sizeof y);
            memset(cb, (int)blue, sizeof cb);
            for (uint32_t i = 0; i < 256; i++)
                cr[i] = (uint8_t)i;
            colours(y, cb, cr, 256);
        }
    for (uint32_t count = 1; count <= 256; count++) {
        fill(y, sizeof y);
        fill(cb, sizeof cb);
        fill(cr, sizeof cr);
        colours(y, cb, cr, count);
        for (int i = 0; i < 20; i++)
            halves(y, count);
        memset(grey, 0x5a, sizeof grey);
        plain->grey(y, count, grey[0]);
        tried->grey(y, count, grey[1]);
        CHECK(memcmp(grey[0], grey[1], sizeof *grey) == 0);
    }
}

/* ---- scans of progressive images ---- */

enum { SCAN_BLOCKS = 3, SCAN_BYTES = 400 };

/* What a scan finds, and leaves. */
struct scan {
    _Alignas(128) int16_t ac[SCAN_BLOCKS][64];
    uint64_t nonzero[SCAN_BLOCKS];
    struct entropy_stream stream;
    uint32_t ended;
};

/* Ends of one and of many blocks, 16 zeros, and values: of one bit if they are refined. */
static void make_codes(struct huffman_codes *codes, bool refines)
{
    static const uint8_t symbols[] = {0x00, 0x01, 0x11, 0x21, 0x31, 0xf0, 0x10, 0x51, 0x20, 0xe0};
    struct markers_table table = {.defined = true,
                                  .counts = {0, 1, 3, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1}};

    memcpy(table.symbols, symbols, sizeof symbols);
    for (uint32_t i = 0; !refines && i < sizeof symbols; i++)
        table.symbols[i] = (uint8_t)(symbols[i] + (symbols[i] & 1 ? below(10) : 0));
    CHECK(baseline_huffman_list(codes, &table, false));
}

/* Coefficients whose lowest bits are still to come; undefined in a block that has none. */
static void make_scan(struct scan *scan, uint8_t *bytes, const struct progressive_ac *ac)
{
    fill(bytes, SCAN_BYTES);
    memset(bytes + SCAN_BYTES - ENTROPY_PADDING, 0, ENTROPY_PADDING);
    scan->stream = (struct entropy_stream){
        .start = bytes, .next = bytes, .end = bytes + SCAN_BYTES - ENTROPY_PADDING};
    scan->ended = below(3) ? 0 : below(4);
    fill(scan->ac, sizeof scan->ac);
    for (int i = 0; i < SCAN_BLOCKS; i++) {
        scan->nonzero[i] = 0;
        for (uint32_t k = 1; k < 64 && i % 3; k++)
            scan->nonzero[i] |= (uint64_t)(below(4) == 0) << k;
        for (uint32_t k = 0; k < 64 && scan->nonzero[i]; k++) {
            const int32_t size = (int32_t)(1 + below(9)) << (ac->low + 1);
            scan->ac[i][k] = (int16_t)(scan->nonzero[i] >> k & 1 ? below(2) ? size : -size : 0);
        }
    }
}

static bool same_scans(const struct scan *a, const struct scan *b)
{
    if (a->ended != b->ended || a->stream.next != b->stream.next ||
        a->stream.count != b->stream.count ||
        memcmp(a->nonzero, b->nonzero, sizeof a->nonzero) != 0)
        return false;
    for (int i = 0; i < SCAN_BLOCKS; i++)
        if (a->nonzero[i] && memcmp(a->ac[i], b->ac[i], sizeof a->ac[i]) != 0)
            return false;
    return true;
}

static bool scan_with(progressive_decode_ac *decode, struct progressive_ac ac, struct scan *scan)
{
    const struct baseline_stored stored = {.nonzero = scan->nonzero, .ac = scan->ac};

    ac.stored = &stored;
    ac.stream = &scan->stream;
    ac.ended = &scan->ended;
    return decode(&ac, 0, SCAN_BLOCKS);
}

static void scans(void)
{
    static uint8_t bytes[SCAN_BYTES];
    static struct huffman_codes codes;
    static struct scan expected, found;
    const struct kernels *best = baseline_kernels_progressive(tried);
    int good[2] = {0};

    for (int i = 0; i < ROUNDS; i++) {
        const bool refines = i & 1;
        const uint32_t first = 1 + below(below(2) ? 1 : 63);
        const struct progressive_ac ac = {.codes = &codes,
                                          .first = (uint8_t)first,
                                          .last = (uint8_t)(first + below(64 - first)),
                                          .low = (uint8_t)below(4)};
        make_codes(&codes, refines);
        make_scan(&expected, bytes, &ac);
        found = expected;
        const bool fits = scan_with(refines ? plain->refine_ac : plain->first_ac, ac, &expected);
        CHECK(scan_with(refines ? best->refine_ac : best->first_ac, ac, &found) == fits);
        CHECK(!fits || same_scans(&expected, &found));
        good[refines] += fits;
    }
    CHECK(good[0] > ROUNDS / 20 && good[1] > ROUNDS / 20);
}

/* ---- whole files ---- */

/* FNV-1a */
static uint64_t add(uint64_t sum, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3U;
    return sum;
}

/* Of all pixels, if the decoder takes the file. */
static uint64_t sum_pixels(const uint8_t *bytes, size_t count, uint32_t eighths)
{
    struct baseline *decoder = baseline_create();
    struct baseline_image image;
    uint64_t sum = 0;

    if (!decoder)
        exit(1);
    if (baseline_open(decoder, bytes, count, &image) == 0 &&
        baseline_scale(decoder, eighths, &image) == 0) {
        const struct baseline_region all = {0, 0, image.width, image.height};
        void *memory = aligned_alloc(64, baseline_select(decoder, &all));
        uint8_t *row = malloc((size_t)image.width * 4);
        if (!memory || !row)
            exit(1);
        int code = baseline_start(decoder, memory);
        for (uint32_t y = 0; code == 0 && y < image.height; y++) {
            code = baseline_read(decoder, row);
            sum = add(sum, row, (size_t)image.width * 4);
        }
        sum = code ? 0 : sum;
        free(row);
        free(memory);
    }
    baseline_destroy(decoder);
    return sum;
}

static int decode_file(const char *path, int best)
{
    static uint8_t bytes[BYTES_MAX];
    const char *name = strrchr(path, '/');
    FILE *file = fopen(path, "rb");

    if (!file) {
        perror(path);
        return 1;
    }
    const size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (uint32_t eighths = 8; eighths > 0; eighths /= 2) {
        baseline_limit_level(0);
        const uint64_t expected = sum_pixels(bytes, count, eighths);
        for (level = 1; level <= best; level++) {
            baseline_limit_level(level);
            CHECK(sum_pixels(bytes, count, eighths) == expected);
        }
        printf("%s %u %016llx\n", name ? name + 1 : path, eighths, (unsigned long long)expected);
    }
    return 0;
}

int main(int count, char **files)
{
    const int best = baseline_kernels_best_level();

    for (int i = 1; i < count; i++)
        if (decode_file(files[i], best))
            return 1;
    if (count > 1)
        return 0;
    plain = baseline_kernels_of(0);
    for (level = 1; level <= best; level++) {
        tried = baseline_kernels_of(level);
        idcts();
        upsampling();
        each_colour();
        scans();
    }
    printf("levels 1 to %d equal plain C\n", best);
    return 0;
}
