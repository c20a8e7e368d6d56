/* SPDX-License-Identifier: Apache-2.0
 *
 * The logits of a network with weights from a safetensors file, for images given as raw pixels; for
 * bench/parity.py.
 *
 *   bench/forward NETWORK BACKEND WEIGHTS CLASSES SIDE ROWS LOGITS
 *   bench/forward NETWORK BACKEND "" CLASSES SIDE "" WEIGHTS: write random weights instead
 * ROWS: count x SIDE x SIDE x 3 bytes, RGB; LOGITS: count x CLASSES floats.
 */
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "trainer/training.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4 };
static const size_t ROWS_MOST = (size_t)1 << 30;

static int infer_all(struct training *training, const uint8_t *rows, uint64_t images,
                     size_t row_bytes, FILE *out)
{
    const uint32_t classes = training->config.classes;
    float *logits = memory_array((size_t)BATCH * classes, sizeof *logits);
    int code = logits ? 0 : -1;

    for (uint64_t at = 0; at < images && code == 0; at += BATCH) {
        const struct trainer_batch batch = {
            .rows = rows + at * row_bytes,
            .count = (uint32_t)(images - at < BATCH ? images - at : BATCH)};
        code = backend_infer(&training->backend, &batch, logits, NULL);
        if (code == 0 && fwrite(logits, sizeof *logits * classes, batch.count, out) != batch.count)
            code = fail(EIO, "cannot write the logits");
    }
    free(logits);
    return code;
}

static int infer_file(struct training *training, const char *rows_path, const char *logits_path)
{
    const size_t row_bytes = (size_t)training->config.side * training->config.side * 3;
    FILE *out = fopen(logits_path, "wb");
    char *rows = NULL;
    size_t bytes = 0;
    int code = out ? file_load(rows_path, ROWS_MOST, &rows, &bytes)
                   : fail(errno, "%s: cannot be written", logits_path);

    if (code == 0)
        code = infer_all(training, (const uint8_t *)rows, bytes / row_bytes, row_bytes, out);
    free(rows);
    if (out && fclose(out) && code == 0)
        code = fail(EIO, "%s: cannot be written", logits_path);
    return code;
}

int main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr, "usage: forward NETWORK BACKEND WEIGHTS CLASSES SIDE ROWS LOGITS\n");
        return 2;
    }
    const struct training_config config = {.network = network_find(argv[1]),
                                           .backend = argv[2],
                                           .precision = "fp32",
                                           .classes = (uint32_t)atoi(argv[4]),
                                           .side = (uint32_t)atoi(argv[5]),
                                           .batch_size = BATCH,
                                           .seed = 1};
    struct training training = {0};
    int code = config.network ? training_open(&training, &config) : -1;

    if (code == 0 && !*argv[3])
        code = training_export(&training, argv[7]);
    else if (code == 0)
        code = training_import(&training, argv[3]);
    if (code == 0 && *argv[6])
        code = infer_file(&training, argv[6], argv[7]);
    if (code)
        fprintf(stderr, "forward: %s\n", fail_reason());
    if (config.network)
        training_close(&training);
    return code ? 1 : 0;
}
