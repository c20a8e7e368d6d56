/* SPDX-License-Identifier: Apache-2.0
 * Tensors for the tests of device kernels: images x channels x plane of floats on the host, as
 * kernels/kernels.h has them, and pixels x channels of a number type on the device. */
#ifndef IOBENCH_TESTS_CUDA_PLACE_H
#define IOBENCH_TESTS_CUDA_PLACE_H

#include "tests/cuda/half.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/random.h"
#include "kernels/device.h"
#include "kernels/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct runtime place_runtime;

static inline void must(int code)
{
    if (code)
        fail_msg("%s", fail_reason());
}

static inline void *place_bytes(const void *from, size_t bytes)
{
    void *memory = runtime_allocate(bytes + 16);

    if (!memory)
        fail_msg("%s", fail_reason());
    if (from)
        must(runtime_copy(memory, from, bytes, place_runtime.stream));
    must(runtime_wait(place_runtime.stream));
    return memory;
}

static inline void fetch_bytes(void *to, const void *from, size_t bytes)
{
    must(runtime_copy(to, from, bytes, place_runtime.stream));
    must(runtime_wait(place_runtime.stream));
}

static inline float *host_floats(size_t count)
{
    float *memory = calloc(count + 1, sizeof *memory);

    assert_non_null(memory);
    return memory;
}

/* A tensor on both sides. */
struct place {
    enum device_type type;
    uint32_t images, channels;
    size_t plane;
    float *host;  /* exactly what the device has */
    void *device; /* poison until put() */
};

static inline size_t place_count(const struct place *place)
{
    return (size_t)place->images * place->channels * place->plane;
}

static inline size_t nhwc(const struct place *place, size_t index)
{
    const size_t image = index / (place->channels * place->plane);
    const size_t channel = index / place->plane % place->channels, pixel = index % place->plane;

    return (image * place->plane + pixel) * place->channels + channel;
}

/* Host to device. */
static inline void put(struct place *place)
{
    const size_t count = place_count(place), size = device_type_bytes(place->type);
    char *bytes = calloc(count + 1, size);

    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++) {
        place->host[i] = place_round(place->type, place->host[i]);
        const uint16_t bits = place_bits(place->type, place->host[i]);
        memcpy(bytes + nhwc(place, i) * size,
               place->type == DEVICE_FP32 ? (void *)&place->host[i] : (void *)(uintptr_t)&bits,
               size);
    }
    must(runtime_copy(place->device, bytes, count * size, place_runtime.stream));
    must(runtime_wait(place_runtime.stream));
    free(bytes);
}

static inline struct place place_empty(enum device_type type, uint32_t images, uint32_t channels,
                                       size_t plane)
{
    struct place place = {type, images, channels, plane, NULL, NULL};
    const size_t bytes = place_count(&place) * device_type_bytes(type);
    void *poison = malloc(bytes + 1);

    assert_non_null(poison);
    memset(poison, 0xff, bytes);
    place.host = host_floats(place_count(&place));
    place.device = place_bytes(poison, bytes);
    free(poison);
    return place;
}

/* Normal random numbers, mean 0, deviation 1. */
static inline struct place place_random(enum device_type type, uint32_t images, uint32_t channels,
                                        size_t plane, uint64_t seed)
{
    struct place place = place_empty(type, images, channels, plane);
    struct random random = random_start(seed);

    for (size_t i = 0; i < place_count(&place); i++)
        place.host[i] = (float)random_normal(&random);
    put(&place);
    return place;
}

static inline void place_free(struct place *place)
{
    free(place->host);
    runtime_release(place->device);
}

/* The relative L2 distance of what the device has to `wanted`. */
static inline double place_distance(const struct place *place, const float *wanted)
{
    const size_t count = place_count(place), size = device_type_bytes(place->type);
    char *bytes = calloc(count + 1, size);
    double apart = 0, norm = 0;

    assert_non_null(bytes);
    fetch_bytes(bytes, place->device, count * size);
    for (size_t i = 0; i < count; i++) {
        const char *at = bytes + nhwc(place, i) * size;
        uint16_t bits;
        float found;
        memcpy(&found, at, size < 4 ? 0 : 4);
        memcpy(&bits, at, 2);
        if (place->type != DEVICE_FP32)
            found = place_value(place->type, bits);
        apart += ((double)found - wanted[i]) * ((double)found - wanted[i]);
        norm += (double)wanted[i] * wanted[i];
    }
    free(bytes);
    return sqrt(apart / (norm > 0 ? norm : 1));
}

/* The same of floats on the device. */
static inline double floats_distance(const float *device, const float *wanted, size_t count)
{
    float *found = host_floats(count);
    double apart = 0, norm = 0;

    fetch_bytes(found, device, count * sizeof *found);
    for (size_t i = 0; i < count; i++) {
        apart += ((double)found[i] - wanted[i]) * ((double)found[i] - wanted[i]);
        norm += (double)wanted[i] * wanted[i];
    }
    free(found);
    return sqrt(apart / (norm > 0 ? norm : 1));
}

#endif
