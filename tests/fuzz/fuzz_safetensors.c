/* SPDX-License-Identifier: Apache-2.0
 * Safetensors: a header that is accepted describes data within the file, and F32 tensors that were
 * read can be written, giving the same numbers. */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "trainer/weights.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_again(struct safetensors *file)
{
    char path[4096 + 8];
    struct safetensors again;

    snprintf(path, sizeof path, "%s.again", file->path);
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].type, "F32") != 0)
            return;
    FUZZ_CHECK(safetensors_write(path, file->tensors, file->count) == 0);
    FUZZ_CHECK(safetensors_open(&again, path) == 0);
    FUZZ_CHECK(again.count == file->count);
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensor *tensor = &file->tensors[i],
                                *same = safetensors_find(&again, tensor->name);
        FUZZ_CHECK(same && same->bytes == tensor->bytes);
        float *floats = malloc(same->bytes + 1);
        FUZZ_CHECK(floats && safetensors_read(&again, same, floats) == 0);
        FUZZ_CHECK(memcmp(floats, tensor->floats, same->bytes) == 0);
        free(floats);
    }
    safetensors_close(&again);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct safetensors file;
    char text[SAFETENSORS_SHAPE_BYTES];
    const char *path = fuzz_write("safetensors", bytes, count);

    fail_clear();
    if (safetensors_open(&file, path)) {
        FUZZ_CHECK(*fail_reason());
        safetensors_close(&file);
        return 0;
    }
    for (size_t i = 0; i < file.count; i++) {
        struct safetensor *tensor = &file.tensors[i];
        FUZZ_CHECK(file.data_at + tensor->begin + tensor->bytes <= count);
        FUZZ_CHECK(strlen(safetensor_shape(tensor, text)) < sizeof text);
        tensor->floats = malloc(safetensor_count(tensor) * sizeof(float) + 1);
        FUZZ_CHECK(tensor->floats);
        fail_clear();
        if (safetensors_read(&file, tensor, tensor->floats))
            FUZZ_CHECK(*fail_reason());
    }
    write_again(&file);
    for (size_t i = 0; i < file.count; i++)
        free(file.tensors[i].floats);
    safetensors_close(&file);
    return 0;
}
