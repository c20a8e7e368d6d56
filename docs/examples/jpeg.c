/* SPDX-License-Identifier: Apache-2.0
 * A JPEG to a PPM, by decode/baseline alone (its page says how to compile it). */
#include "decode/baseline/baseline.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    static unsigned char jpeg[1 << 24];
    const size_t bytes = fread(jpeg, 1, sizeof jpeg, stdin);
    struct baseline *decoder = baseline_create();
    struct baseline_image image;
    unsigned char *row = NULL; /* red, green, blue, 255 */
    void *memory = NULL;
    int code = decoder ? baseline_open(decoder, jpeg, bytes, &image) : BASELINE_OTHER;

    if (code == 0) {
        const struct baseline_region all = {0, 0, image.width, image.height};
        memory = aligned_alloc(64, baseline_select(decoder, &all));
        row = malloc((size_t)image.width * 4);
        code = memory && row ? baseline_start(decoder, memory) : BASELINE_OTHER;
    }
    for (uint32_t y = 0; code == 0 && y < image.height; y++) {
        if (y == 0)
            printf("P6 %u %u 255\n", (unsigned)image.width, (unsigned)image.height);
        code = baseline_read(decoder, row);
        for (uint32_t x = 0; code == 0 && x < image.width; x++)
            fwrite(row + 4 * x, 1, 3, stdout);
    }
    if (code)
        fputs("This one is for libjpeg-turbo.\n", stderr); /* what was printed is void */
    baseline_destroy(decoder);
    free(memory);
    free(row);
    return code != 0;
}
