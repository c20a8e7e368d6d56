/* SPDX-License-Identifier: Apache-2.0
 * What a step begins and ends with: the images, the loss, and moments between. */
#include "kernels/launch.cuh"

#ifdef KERNELS_EMULATED
#include <time.h>
#endif

namespace {

/* A thread takes PIXELS pixels, spread evenly over a row, and reads all before it writes. */
template <class T, int CHANNELS, int PIXELS> struct normalise {
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
        input, {1 / input.deviation[0], 1 / input.deviation[1], 1 / input.deviation[2]},
        divide::make(part), rows, (T *)output};

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

/* ---- the loss ---- */

/* One block per image. */
template <class T> struct cross_entropy {
    enum { phases = 4 };
    struct shared_t {
        float most[KERNEL_THREADS];
        double powers[KERNEL_THREADS], logits[KERNEL_THREADS];
        uint32_t above[KERNEL_THREADS];
        double total;
    };
    struct local_t {};
    uint32_t classes;
    const T *logits;
    const int32_t *labels;
    double smoothing;
    const float *gradient_scale;
    T *d_logits;
    device_loss *per_image;

    KERNEL_CODE float largest(const shared_t &shared) const
    {
        float most = shared.most[0];
        for (int i = 1; i < KERNEL_THREADS; i++)
            most = shared.most[i] > most ? shared.most[i] : most;
        return most;
    }

    /* Each thread's partial sums, and the number of classes ranked before the label: an equal logit
     * with a lower number counts, too. */
    KERNEL_CODE void add_up(shared_t &shared, const T *row, int32_t label, uint32_t thread) const
    {
        const float most = largest(shared), own = label < 0 ? 0 : as_float(row[label]);
        double powers = 0, sum = 0;
        uint32_t above = 0;

        for (uint32_t c = thread; c < classes; c += KERNEL_THREADS) {
            const float value = as_float(row[c]);
            powers += expf(value - most);
            sum += value - most;
            /* Not "value > own": NaN is never correct. */
            if (label >= 0 && (int32_t)c != label &&
                !(value < own || (value == own && (int32_t)c > label)))
                above++;
        }
        shared.powers[thread] = powers;
        shared.logits[thread] = sum;
        shared.above[thread] = above;
    }

    KERNEL_CODE void conclude(shared_t &shared, const T *row, int32_t label, uint32_t image) const
    {
        const float most = largest(shared);
        double powers = 0, sum = 0;
        uint32_t above = 0;
        device_loss loss = {};

        for (int i = 0; i < KERNEL_THREADS; i++) {
            powers += shared.powers[i];
            sum += shared.logits[i];
            above += shared.above[i];
        }
        shared.total = powers;
        if (label >= 0) {
            const double own = as_float(row[label]) - most;
            loss.loss = log(powers) - (1 - smoothing) * own;
            if (smoothing > 0) /* an infinite logit with weight 0 must not count */
                loss.loss -= smoothing / classes * sum;
            loss.counted = 1;
            loss.correct = above < 1 && own == own;
            loss.correct_top5 = above < 5 && own == own;
        }
        per_image[image] = loss;
    }

    KERNEL_CODE void differentiate(const shared_t &shared, const T *row, T *d_row, int32_t label,
                                   uint32_t thread) const
    {
        const float most = largest(shared), scale = label < 0 ? 0 : *gradient_scale;
        const float even = (float)(smoothing / classes), own = (float)(1 - smoothing) + even;
        const float inverse = (float)(1 / shared.total);

        for (uint32_t c = thread; c < classes; c += KERNEL_THREADS) {
            const float chance = expf(as_float(row[c]) - most) * inverse;
            const float wanted = (int32_t)c == label ? own : even;
            d_row[c] = number<T>::from(label < 0 ? 0.0f : (chance - wanted) * scale);
        }
    }

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        const T *row = logits + (uint64_t)at.block * classes;
        const int32_t label = labels[at.block];

        if (phase == 0) {
            float most = -INFINITY;
            for (uint32_t c = at.thread; c < classes; c += KERNEL_THREADS)
                most = as_float(row[c]) > most ? as_float(row[c]) : most;
            shared.most[at.thread] = most;
        } else if (phase == 1)
            add_up(shared, row, label, at.thread);
        else if (phase == 2) {
            if (at.thread == 0)
                conclude(shared, row, label, at.block);
        } else if (d_logits)
            differentiate(shared, row, d_logits + (uint64_t)at.block * classes, label, at.thread);
    }
};

struct loss_total {
    enum { phases = 2 };
    struct shared_t {
        device_loss sums[KERNEL_THREADS];
    };
    struct local_t {};
    uint32_t images;
    const device_loss *per_image;
    device_loss *total;

    KERNEL_CODE static void add(device_loss &sum, const device_loss &term)
    {
        sum.loss += term.loss;
        sum.counted += term.counted;
        sum.correct += term.correct;
        sum.correct_top5 += term.correct_top5;
    }

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        device_loss sum = {};

        if (phase == 0) {
            for (uint32_t i = at.thread; i < images; i += KERNEL_THREADS)
                add(sum, per_image[i]);
            shared.sums[at.thread] = sum;
        } else if (at.thread == 0) {
            for (int i = 0; i < KERNEL_THREADS; i++)
                add(sum, shared.sums[i]);
            *total = sum;
        }
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

int device_cross_entropy(enum device_type type, uint32_t images, uint32_t classes,
                         const void *logits, const int32_t *labels, double smoothing,
                         const float *gradient_scale, void *d_logits,
                         struct device_loss *per_image, struct device_loss *total, void *stream)
{
    int code = with_type(type, [&]<class T>(T *) {
        const cross_entropy<T> kernel = {classes,        (const T *)logits, labels,   smoothing,
                                         gradient_scale, (T *)d_logits,     per_image};
        return launch_phases("cross_entropy", kernel, images, stream);
    });

    return code ? code
                : launch_phases("loss_total", loss_total{images, per_image, total}, 1, stream);
}
