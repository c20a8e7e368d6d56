/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/synthesis: how fast one core makes images, and how near their sizes come to the aim.
 *
 *     bench/synthesis [--long]
 *
 * CPU time of this thread, medians over the rounds; every round makes other images.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "base/stats.h"
#include "dataset/synthesis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 9 };

int main(int argc, char **argv)
{
    const int images = argc > 1 && strcmp(argv[1], "--long") == 0 ? 2000 : 150;
    struct synthesis *synthesis = synthesis_open(&synthesis_imagenet);
    double rates[ROUNDS], total = 0, logs = 0, squares = 0;
    struct sample sample;

    for (int round = 0; synthesis && round < ROUNDS; round++) {
        double bytes = 0;
        uint64_t start = clock_cpu_ns();
        for (int i = 0; i < images; i++) {
            if (synthesis_make(synthesis, (uint64_t)(round * images + i), &sample)) {
                fprintf(stderr, "bench/synthesis: %s\n", fail_reason());
                return 1;
            }
            const double size = (double)sample.image_bytes;
            bytes += size;
            logs += log(size);
            squares += log(size) * log(size);
        }
        rates[round] = bytes * 1e3 / (double)(clock_cpu_ns() - start);
        total += bytes;
    }
    if (!synthesis) {
        fprintf(stderr, "bench/synthesis: %s\n", fail_reason());
        return 1;
    }
    synthesis_close(synthesis);
    const double count = ROUNDS * images;
    struct stats_summary summary = stats_summarise(rates, ROUNDS);
    printf("%.0f images: mean %.0f bytes, deviation of the logarithm %.3f\n", count, total / count,
           sqrt(squares / count - logs * logs / count / count));
    printf("MB/s of one core, %d rounds: median %.1f, %.1f to %.1f\n", ROUNDS, summary.median,
           summary.minimum, summary.maximum);
    printf("claim synthesis_rate %.1f MB/s goal >=50 %s\n", summary.median,
           summary.median >= 50 ? "ok" : "short");
    return 0;
}
