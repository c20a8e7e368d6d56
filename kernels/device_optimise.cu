/* SPDX-License-Identifier: Apache-2.0
 *
 * All parameters at once: the arenas are split into chunks of DEVICE_CHUNK_FLOATS, one per block,
 * none of which crosses a parameter boundary. LARS takes three launches: squares per chunk, rate
 * per parameter, update; clipping adds one to find the factor for all gradients after the squares.
 */
#include "kernels/launch.cuh"

namespace {

/* Where a parameter's numbers are in memory: in rows that are padded, or not. */
struct layout {
    uint32_t channels, padded;

    KERNEL_CODE uint32_t place_of(uint32_t number) const
    {
        return padded == channels ? number : number / channels * padded + number % channels;
    }
    /* Read W numbers from `number` on, which is a multiple of W. */
    template <int W, class T> KERNEL_CODE floats<W> read(const T *from, uint32_t number) const
    {
        lanes<T, W> some;

        if (padded == channels)
            some = lanes<T, W>::read(from + number, 0);
        else
            for (int i = 0; i < W; i++)
                some.at[i] = from[place_of(number + (uint32_t)i)];
        return floats<W>::of(some);
    }
    template <int W, class T>
    KERNEL_CODE void write(T *to, uint32_t number, const floats<W> &values) const
    {
        lanes<T, W> some;

        for (int i = 0; i < W; i++)
            some.set(i, values.at[i]);
        if (padded == channels)
            some.write(to + number, 0);
        else
            for (int i = 0; i < W; i++)
                to[place_of(number + (uint32_t)i)] = some.at[i];
    }
};

/* Where the gradients of a parameter are, and what they are to be multiplied by. */
struct gradients_of {
    const void *from;
    enum device_type type;
    layout rows;
    float factor;

    KERNEL_CODE gradients_of(const device_parameters &all, const device_parameter &parameter,
                             bool collected)
    {
        const bool given = !collected && parameter.gradient;

        from = given ? parameter.gradient : all.gradients + parameter.offset;
        type = given ? parameter.gradient_type : DEVICE_FP32;
        rows = given ? layout{parameter.channels, parameter.padded} : layout{1, 1};
        factor = given && all.unscale ? *all.unscale : 1;
    }
    template <int W> KERNEL_CODE floats<W> read(uint32_t number) const
    {
        floats<W> values = type == DEVICE_FP32   ? rows.read<W>((const float *)from, number)
                           : type == DEVICE_FP16 ? rows.read<W>((const __half *)from, number)
                                                 : rows.read<W>((const __nv_bfloat16 *)from, number);

        for (int i = 0; i < W; i++)
            values.at[i] *= factor;
        return values;
    }
};

/* Store the copy that layers read. */
template <int W>
KERNEL_CODE void store(const device_parameter &parameter, uint32_t number, const floats<W> &values)
{
    const layout rows = {parameter.channels, parameter.padded};

    if (!parameter.compute)
        return;
    if (parameter.type == DEVICE_FP32)
        rows.write((float *)parameter.compute, number, values);
    else if (parameter.type == DEVICE_FP16)
        rows.write((__half *)parameter.compute, number, values);
    else
        rows.write((__nv_bfloat16 *)parameter.compute, number, values);
}

enum { CHUNK_VECTOR = 4, CHUNK_AT_ONCE = DEVICE_CHUNK_FLOATS / CHUNK_VECTOR / KERNEL_THREADS };

/* Call kernel.read<W>(parameter, index, of), and kernel.use<W>(parameter, index, row, state...) of
 * what it returns, for a thread's numbers of a chunk: 4 at once where the arenas are aligned; more
 * would split what neighbours read and write. A thread reads all before it writes any, which the
 * compiler cannot know to be allowed. */
template <int W, class Kernel, class Of, class... State>
KERNEL_CODE void walk_by(const Kernel &kernel, uint64_t start, uint32_t first, uint32_t count,
                         const device_parameter &parameter, const Of &of, State &...state)
{
    for (uint32_t i = first; i < count; i += CHUNK_AT_ONCE * KERNEL_THREADS) {
        typename Kernel::template row<W> rows[CHUNK_AT_ONCE];
KERNEL_UNROLL
        for (uint32_t j = 0; j < CHUNK_AT_ONCE; j++)
            if (i + j * KERNEL_THREADS < count)
                rows[j] =
                    kernel.template read<W>(parameter, start + (i + j * KERNEL_THREADS) * W, of);
KERNEL_UNROLL
        for (uint32_t j = 0; j < CHUNK_AT_ONCE; j++)
            if (i + j * KERNEL_THREADS < count)
                kernel.template use<W>(parameter, start + (i + j * KERNEL_THREADS) * W, rows[j],
                                       state...);
    }
}

template <class Kernel, class Of, class... State>
KERNEL_CODE void walk(const Kernel &kernel, const device_chunk &chunk,
                      const device_parameter &parameter, uint32_t thread, const Of &of,
                      State &...state)
{
    const uint32_t vectors = chunk.start % CHUNK_VECTOR == 0 ? chunk.count / CHUNK_VECTOR : 0;

    walk_by<CHUNK_VECTOR>(kernel, chunk.start, thread, vectors, parameter, of, state...);
    walk_by<1>(kernel, chunk.start, vectors * CHUNK_VECTOR + thread, chunk.count, parameter, of,
               state...);
}

/* Sum over a block's threads in three phases: each thread stores its own, some threads add up a row
 * each, and one adds up the rows. */
struct block_sum {
    enum { ROW = 16 };
    double of[KERNEL_THREADS];

    KERNEL_CODE void add_row(uint32_t thread)
    {
        if (thread < KERNEL_THREADS / ROW)
            of[thread * ROW] = total(thread * ROW, 1);
    }
    KERNEL_CODE double total(uint32_t first = 0, uint32_t step = ROW) const
    {
        double sum = 0;

        for (uint32_t i = 0; i < ROW; i++)
            sum += of[first + i * step];
        return sum;
    }
};

/* norms[chunk]: |weight|^2, norms[chunks + chunk]: |gradient|^2. */
struct squares {
    enum { phases = 3 };
    struct shared_t {
        block_sum weights, gradients;
    };
    struct local_t {};
    device_parameters all;

    template <int W> struct row {
        floats<W> weight, gradient;
    };

    template <int W>
    KERNEL_CODE row<W> read(const device_parameter &parameter, uint64_t index,
                            const gradients_of &from) const
    {
        return {floats<W>::read(all.weights + index, 0),
                from.read<W>((uint32_t)(index - parameter.offset))};
    }
    template <int W>
    KERNEL_CODE void use(const device_parameter &, uint64_t, const row<W> &row, double &weights,
                         double &gradients) const
    {
        for (int i = 0; i < W; i++) {
            weights += (double)row.weight.at[i] * row.weight.at[i];
            gradients += (double)row.gradient.at[i] * row.gradient.at[i];
        }
    }

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        if (phase == 0) {
            const device_chunk chunk = all.chunks[at.block];
            const device_parameter parameter = all.parameters[chunk.parameter];
            const gradients_of from(all, parameter, all.collected);
            double weights = 0, gradients = 0;
            walk(*this, chunk, parameter, at.thread, from, weights, gradients);
            shared.weights.of[at.thread] = weights;
            shared.gradients.of[at.thread] = gradients;
        } else if (phase == 1) {
            shared.weights.add_row(at.thread);
            shared.gradients.add_row(at.thread);
        } else if (at.thread == 0) {
            all.norms[at.block] = (float)shared.weights.total();
            all.norms[all.chunk_count + at.block] = (float)shared.gradients.total();
        }
    }
};

/* norms[2 * chunks + parameters]: the factor of all gradients. */
struct clip {
    enum { phases = 3 };
    struct shared_t {
        block_sum gradients;
    };
    struct local_t {};
    device_parameters all;
    kernel_update update;

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        if (phase == 0) {
            double gradients = 0;
            for (uint32_t i = at.thread; i < all.chunk_count; i += KERNEL_THREADS)
                gradients += all.norms[all.chunk_count + i];
            shared.gradients.of[at.thread] = gradients;
        } else if (phase == 1)
            shared.gradients.add_row(at.thread);
        else if (at.thread == 0) {
            const double gradients = update.gradient_scale * sqrt(shared.gradients.total());
            all.norms[2 * all.chunk_count + all.parameter_count] =
                gradients > update.clip_norm ? (float)(update.clip_norm / gradients) : 1;
        }
    }
};

/* Return the factor of all gradients, clipping included. */
KERNEL_CODE double gradient_scale(const device_parameters &all, const kernel_update &update)
{
    return update.clip_norm > 0
               ? update.gradient_scale * all.norms[2 * all.chunk_count + all.parameter_count]
               : update.gradient_scale;
}

/* norms[2 * chunks + parameter]: the factor of the rate. A block per parameter. */
struct local_rates {
    enum { phases = 3 };
    struct shared_t {
        block_sum weights, gradients;
    };
    struct local_t {};
    device_parameters all;
    kernel_update update;

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        const device_parameter parameter = all.parameters[at.block];

        if (phase == 0) {
            double weights = 0, gradients = 0;
            for (uint32_t i = at.thread; i < parameter.chunk_count; i += KERNEL_THREADS) {
                weights += all.norms[parameter.first_chunk + i];
                gradients += all.norms[all.chunk_count + parameter.first_chunk + i];
            }
            shared.weights.of[at.thread] = weights;
            shared.gradients.of[at.thread] = gradients;
        } else if (phase == 1) {
            shared.weights.add_row(at.thread);
            shared.gradients.add_row(at.thread);
        } else if (at.thread == 0) {
            const double weights = sqrt(shared.weights.total());
            const double gradients = gradient_scale(all, update) * sqrt(shared.gradients.total());
            const bool adapts = parameter.decay == KERNEL_DECAY_WEIGHT && update.eta > 0 &&
                                weights > 0 && gradients > 0;
            all.norms[2 * all.chunk_count + at.block] =
                adapts ? (float)(update.eta * weights / (gradients + update.decay * weights)) : 1;
        }
    }
};

struct optimise {
    enum { phases = 1 };
    struct shared_t {};
    struct local_t {};
    device_parameters all;
    kernel_update update;

    /* What is the same for all of a parameter. */
    struct factors {
        float scale, decay, momentum, rate;
    };

    KERNEL_CODE factors factors_of(const device_parameter &parameter, uint32_t number) const
    {
        const bool decays = parameter.decay == KERNEL_DECAY_WEIGHT ||
                            (parameter.decay == KERNEL_DECAY_FC_BIAS && update.decays_fc_bias);
        const bool rescales = update.adapts && update.rate_before > 0;
        const float local = update.adapts ? all.norms[2 * all.chunk_count + number] : 1.0f;

        return {(float)gradient_scale(all, update), decays ? (float)update.decay : 0,
                (float)(rescales ? update.momentum * update.rate / update.rate_before
                                 : update.momentum),
                (float)update.rate * local};
    }

    template <int W> struct row {
        floats<W> weight, kept, gradient;
    };

    template <int W>
    KERNEL_CODE row<W> read(const device_parameter &parameter, uint64_t index,
                            const gradients_of &from) const
    {
        return {floats<W>::read(all.weights + index, 0), floats<W>::read(all.momenta + index, 0),
                from.read<W>((uint32_t)(index - parameter.offset))};
    }
    template <int W>
    KERNEL_CODE void use(const device_parameter &parameter, uint64_t index, row<W> &row,
                         const factors &by) const
    {
        for (int i = 0; i < W; i++) {
            const float step = by.scale * row.gradient.at[i] + by.decay * row.weight.at[i];
            row.kept.at[i] = by.momentum * row.kept.at[i] + (update.adapts ? by.rate * step : step);
            row.weight.at[i] -= update.adapts ? row.kept.at[i] : by.rate * row.kept.at[i];
        }
        row.kept.write(all.momenta + index, 0);
        row.weight.write(all.weights + index, 0);
        store(parameter, (uint32_t)(index - parameter.offset), row.weight);
    }

    KERNEL_CODE void run(int, shared_t &, local_t &, const place &at) const
    {
        const device_chunk chunk = all.chunks[at.block];
        const device_parameter parameter = all.parameters[chunk.parameter];
        const gradients_of from(all, parameter, all.collected);
        const factors by = factors_of(parameter, chunk.parameter);

        walk(*this, chunk, parameter, at.thread, from, by);
    }
};

struct renew {
    enum { phases = 1 };
    struct shared_t {};
    struct local_t {};
    device_parameters all;

    template <int W> using row = floats<W>;

    template <int W>
    KERNEL_CODE row<W> read(const device_parameter &, uint64_t index, const float *weights) const
    {
        return floats<W>::read(weights + index, 0);
    }
    template <int W>
    KERNEL_CODE void use(const device_parameter &parameter, uint64_t index, const row<W> &row) const
    {
        store(parameter, (uint32_t)(index - parameter.offset), row);
    }

    KERNEL_CODE void run(int, shared_t &, local_t &, const place &at) const
    {
        const device_chunk chunk = all.chunks[at.block];

        walk(*this, chunk, all.parameters[chunk.parameter], at.thread, all.weights);
    }
};

struct collect {
    enum { phases = 1 };
    struct shared_t {};
    struct local_t {};
    device_parameters all;
    uint32_t first;

    template <int W> using row = floats<W>;

    template <int W>
    KERNEL_CODE row<W> read(const device_parameter &parameter, uint64_t index,
                            const gradients_of &from) const
    {
        return from.read<W>((uint32_t)(index - parameter.offset));
    }
    /* A factor of 0 drops what the arena has, NaN too. */
    template <int W>
    KERNEL_CODE void use(const device_parameter &, uint64_t index, row<W> &sum, const float &keep,
                         const float &add) const
    {
        for (int i = 0; i < W; i++)
            sum.at[i] *= add;
        if (keep != 0) {
            const floats<W> had = floats<W>::read(all.gradients + index, 0);
            for (int i = 0; i < W; i++)
                sum.at[i] += keep * had.at[i];
        }
        sum.write(all.gradients + index, 0);
    }

    KERNEL_CODE void run(int, shared_t &, local_t &, const place &at) const
    {
        const device_chunk chunk = all.chunks[first + at.block];
        const device_parameter parameter = all.parameters[chunk.parameter];
        const gradients_of from(all, parameter, false);
        const float keep = all.sum ? all.sum[0] : 0, add = all.sum ? all.sum[1] : 1;

        if (parameter.gradient)
            walk(*this, chunk, parameter, at.thread, from, keep, add);
    }
};

} // namespace

int device_optimise(const struct device_parameters *parameters, const struct kernel_update *update,
                    void *stream)
{
    int code = 0;

    if (update->adapts || update->clip_norm > 0)
        code = launch_phases("squares", squares{*parameters}, parameters->chunk_count, stream);
    if (code == 0 && update->clip_norm > 0)
        code = launch_phases("clip", clip{*parameters, *update}, 1, stream);
    if (code == 0 && update->adapts)
        code = launch_phases("local_rates", local_rates{*parameters, *update},
                             parameters->parameter_count, stream);
    return code ? code
                : launch_phases<5>("optimise", optimise{*parameters, *update},
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
