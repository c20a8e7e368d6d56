/* SPDX-License-Identifier: Apache-2.0
 *
 * All parameters at once: the arenas are split into chunks of DEVICE_CHUNK_FLOATS, one per block,
 * none of which crosses a parameter boundary. LARS takes three launches: squares per chunk, rate
 * per parameter, update; clipping adds one to find the factor for all gradients after the squares.
 */
#include "kernels/launch.cuh"

namespace {

/* Where number `index` of a parameter is among padded rows. */
KERNEL_CODE uint64_t padded_place(const device_parameter &parameter, uint64_t index)
{
    return parameter.padded == parameter.channels
               ? index
               : index / parameter.channels * parameter.padded + index % parameter.channels;
}

/* The gradient at an index of the arenas. */
KERNEL_CODE float gradient_at(const device_parameters &all, const device_parameter &parameter,
                              uint64_t index, bool collected)
{
    if (collected || !parameter.gradient)
        return all.gradients[index];
    const uint64_t place = padded_place(parameter, index - parameter.offset);
    const float given = parameter.gradient_type == DEVICE_FP32
                            ? ((const float *)parameter.gradient)[place]
                        : parameter.gradient_type == DEVICE_FP16
                            ? as_float(((const __half *)parameter.gradient)[place])
                            : as_float(((const __nv_bfloat16 *)parameter.gradient)[place]);
    return given * (all.unscale ? *all.unscale : 1);
}

KERNEL_CODE void store(const device_parameter &parameter, uint64_t index, float value)
{
    if (!parameter.compute)
        return;
    index = padded_place(parameter, index);
    if (parameter.type == DEVICE_FP32)
        ((float *)parameter.compute)[index] = value;
    else if (parameter.type == DEVICE_FP16)
        ((__half *)parameter.compute)[index] = number<__half>::from(value);
    else
        ((__nv_bfloat16 *)parameter.compute)[index] = number<__nv_bfloat16>::from(value);
}

/* norms[chunk]: |weight|^2, norms[chunks + chunk]: |gradient|^2. */
struct squares {
    enum { phases = 2 };
    struct shared_t {
        double weights[KERNEL_THREADS], gradients[KERNEL_THREADS];
    };
    struct local_t {};
    device_parameters all;

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        const device_chunk chunk = all.chunks[at.block];
        const device_parameter parameter = all.parameters[chunk.parameter];
        double weights = 0, gradients = 0;

        if (phase == 0) {
            for (uint32_t i = at.thread; i < chunk.count; i += KERNEL_THREADS) {
                const double w = all.weights[chunk.start + i];
                const double g = gradient_at(all, parameter, chunk.start + i, all.collected);
                weights += w * w;
                gradients += g * g;
            }
            shared.weights[at.thread] = weights;
            shared.gradients[at.thread] = gradients;
        } else if (at.thread == 0) {
            for (int i = 0; i < KERNEL_THREADS; i++) {
                weights += shared.weights[i];
                gradients += shared.gradients[i];
            }
            all.norms[at.block] = (float)weights;
            all.norms[all.chunk_count + at.block] = (float)gradients;
        }
    }
};

/* norms[2 * chunks + parameters]: the factor of all gradients. */
struct clip {
    enum { phases = 2 };
    struct shared_t {
        double gradients[KERNEL_THREADS];
    };
    struct local_t {};
    device_parameters all;
    device_update update;

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        double gradients = 0;

        if (phase == 0) {
            for (uint32_t i = at.thread; i < all.chunk_count; i += KERNEL_THREADS)
                gradients += all.norms[all.chunk_count + i];
            shared.gradients[at.thread] = gradients;
        } else if (at.thread == 0) {
            for (int i = 0; i < KERNEL_THREADS; i++)
                gradients += shared.gradients[i];
            gradients = update.gradient_scale * sqrt(gradients);
            all.norms[2 * all.chunk_count + all.parameter_count] =
                gradients > update.clip_norm ? (float)(update.clip_norm / gradients) : 1;
        }
    }
};

/* Of the gradients of all parameters. */
KERNEL_CODE double gradient_scale(const device_parameters &all, const device_update &update)
{
    return update.clip_norm > 0
               ? update.gradient_scale * all.norms[2 * all.chunk_count + all.parameter_count]
               : update.gradient_scale;
}

/* norms[2 * chunks + parameter]: the factor of the rate. */
struct local_rates {
    device_parameters all;
    device_update update;

    KERNEL_CODE void each(uint32_t index) const
    {
        const device_parameter parameter = all.parameters[index];
        double weights = 0, gradients = 0, local = 1;

        for (uint32_t i = 0; i < parameter.chunk_count; i++) {
            weights += all.norms[parameter.first_chunk + i];
            gradients += all.norms[all.chunk_count + parameter.first_chunk + i];
        }
        weights = sqrt(weights);
        gradients = gradient_scale(all, update) * sqrt(gradients);
        if (parameter.decay == DEVICE_DECAY_WEIGHT && update.eta > 0 && weights > 0 && gradients > 0)
            local = update.eta * weights / (gradients + update.decay * weights);
        all.norms[2 * all.chunk_count + index] = (float)local;
    }
};

struct optimise {
    enum { phases = 1 };
    struct shared_t {};
    struct local_t {};
    device_parameters all;
    device_update update;

    KERNEL_CODE void run(int, shared_t &, local_t &, const place &at) const
    {
        const device_chunk chunk = all.chunks[at.block];
        const device_parameter parameter = all.parameters[chunk.parameter];
        const bool decays = parameter.decay == DEVICE_DECAY_WEIGHT ||
                            (parameter.decay == DEVICE_DECAY_FC_BIAS && update.decays_fc_bias);
        const float decay = decays ? (float)update.decay : 0;
        const float scale = (float)gradient_scale(all, update);
        const bool rescales = update.adapts && update.rate_before > 0;
        const float momentum = (float)(rescales ? update.momentum * update.rate / update.rate_before
                                                : update.momentum);
        const float local =
            update.adapts ? all.norms[2 * all.chunk_count + chunk.parameter] : 1.0f;
        const float rate = (float)update.rate * local;

        for (uint32_t i = at.thread; i < chunk.count; i += KERNEL_THREADS) {
            const uint64_t index = chunk.start + i;
            const float weight = all.weights[index];
            const float step = scale * gradient_at(all, parameter, index, all.collected) + decay * weight;
            const float kept = momentum * all.momenta[index] + (update.adapts ? rate * step : step);
            const float renewed = weight - (update.adapts ? kept : rate * kept);
            all.momenta[index] = kept;
            all.weights[index] = renewed;
            store(parameter, index - parameter.offset, renewed);
        }
    }
};

struct renew {
    enum { phases = 1 };
    struct shared_t {};
    struct local_t {};
    device_parameters all;

    KERNEL_CODE void run(int, shared_t &, local_t &, const place &at) const
    {
        const device_chunk chunk = all.chunks[at.block];
        const device_parameter parameter = all.parameters[chunk.parameter];

        for (uint32_t i = at.thread; i < chunk.count; i += KERNEL_THREADS)
            store(parameter, chunk.start + i - parameter.offset, all.weights[chunk.start + i]);
    }
};

struct collect {
    enum { phases = 1 };
    struct shared_t {};
    struct local_t {};
    device_parameters all;
    uint32_t first;

    /* A factor of 0 drops what the arena has, NaN too. */
    KERNEL_CODE void add(uint64_t index, float value) const
    {
        if (all.sum)
            value *= all.sum[1];
        if (all.sum && all.sum[0] != 0)
            value += all.sum[0] * all.gradients[index];
        all.gradients[index] = value;
    }

    KERNEL_CODE void run(int, shared_t &, local_t &, const place &at) const
    {
        const device_chunk chunk = all.chunks[first + at.block];
        const device_parameter parameter = all.parameters[chunk.parameter];

        for (uint32_t i = at.thread; i < chunk.count && parameter.gradient; i += KERNEL_THREADS)
            add(chunk.start + i, gradient_at(all, parameter, chunk.start + i, false));
    }
};

} // namespace

int device_optimise(const struct device_parameters *parameters, const struct device_update *update,
                    void *stream)
{
    int code = 0;

    if (update->adapts || update->clip_norm > 0)
        code = launch_phases("squares", squares{*parameters}, parameters->chunk_count, stream);
    if (code == 0 && update->clip_norm > 0)
        code = launch_phases("clip", clip{*parameters, *update}, 1, stream);
    if (code == 0 && update->adapts)
        code = launch_each("local_rates", local_rates{*parameters, *update},
                           parameters->parameter_count, stream);
    return code ? code
                : launch_phases("optimise", optimise{*parameters, *update},
                                parameters->chunk_count, stream);
}

int device_renew(const struct device_parameters *parameters, void *stream)
{
    return launch_phases("renew", renew{*parameters}, parameters->chunk_count, stream);
}

int device_collect(const struct device_parameters *parameters, uint32_t first, uint32_t count,
                   void *stream)
{
    return launch_phases("collect", collect{*parameters, first}, count, stream);
}
