/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch.cuh"

#ifdef KERNELS_EMULATED
#include <time.h>
#endif

namespace
{

/* A thread takes PIXELS of a row, a part of the row apart, and reads all before it writes. */
template <class T, int CHANNELS, int PIXELS>
struct normalise {
    device_input input;
    float shares[3]; /* 1 / deviation: a division is ten instructions */
    divide part;
    const uint8_t *rows;
    T *output;

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t line = part.quotient(index), first = part.rest(index);
        uint8_t bytes[PIXELS][3];

        for (int i = 0; i < PIXELS; i++) {
            const uint64_t pixel = (uint64_t)line * input.width + first + (uint32_t)i * part.by;
            for (int c = 0; c < 3; c++)
                bytes[i][c] = rows[3 * pixel + (uint32_t)c];
        }
        for (int i = 0; i < PIXELS; i++) {
            lanes<T, CHANNELS> pixel;
            for (int c = 0; c < CHANNELS; c++)
                pixel.set(c, c < 3 ? ((float)bytes[i][c] - input.mean[c]) * shares[c] : 0.0f);
            pixel.write(output, (uint64_t)line * input.width + first + (uint32_t)i * part.by);
        }
    }
};

template <class T, int CHANNELS, int PIXELS>
int launch_normalise(const device_input &input, const uint8_t *rows, void *output, void *stream)
{
    const uint32_t part = input.width / PIXELS;
    const normalise<T, CHANNELS, PIXELS> kernel = {
        input,
        {1 / input.deviation[0], 1 / input.deviation[1], 1 / input.deviation[2]},
        divide::make(part),
        rows,
        (T *)output};

    return launch_each("normalise", kernel, (uint64_t)input.images * input.height * part, stream);
}

template <class T, int CHANNELS>
int launch_normalise(const device_input &input, const uint8_t *rows, void *output, void *stream)
{
    return input.width % 2 ? launch_normalise<T, CHANNELS, 1>(input, rows, output, stream)
                           : launch_normalise<T, CHANNELS, 2>(input, rows, output, stream);
}

struct stamp {
    uint64_t *moment;

    KERNEL_CODE void each(uint32_t) const
    {
#ifdef __CUDA_ARCH__
        uint64_t now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        *moment = now;
#elif defined KERNELS_EMULATED
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        *moment = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
#endif
    }
};

} // namespace

int device_normalise(const struct device_input *input, const uint8_t *rows, void *output,
                     void *stream)
{
    return with_type(input->type, [&]<class T>(T *) {
        if (input->channels == 4)
            return launch_normalise<T, 4>(*input, rows, output, stream);
        if (input->channels == 8)
            return launch_normalise<T, 8>(*input, rows, output, stream);
        return fail(EINVAL, "an image has 4 or 8 channels on a device, not %u", input->channels);
    });
}

int device_stamp(uint64_t *moment, void *stream)
{
    return launch_each("stamp", stamp{moment}, 1, stream);
}
