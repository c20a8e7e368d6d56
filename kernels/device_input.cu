/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch.cuh"

namespace {

template <class T, int CHANNELS> struct normalise {
    device_input input;
    divide width, height;
    const uint8_t *rows;
    T *output;

    /* One pixel. */
    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t line_number = width.quotient(index), x = width.rest(index);
        const uint32_t image = height.quotient(line_number), y = height.rest(line_number);
        device_view view = {0, 0, 0};

        if (input.views)
            view = input.views[image];
        const uint32_t column = view.left + (view.mirror ? input.width - 1 - x : x);
        const uint64_t line = (uint64_t)image * input.source_height + view.top + y;
        const uint8_t *from = rows + 3 * (line * input.source_width + column);
        lanes<T, CHANNELS> pixel;
        for (int c = 0; c < CHANNELS; c++)
            pixel.set(c, c < 3 ? ((float)from[c] - input.mean[c]) / input.deviation[c] : 0.0f);
        pixel.write(output, index);
    }
};

} // namespace

int device_normalise(const struct device_input *input, const uint8_t *rows, void *output,
                     void *stream)
{
    const uint64_t pixels = (uint64_t)input->images * input->height * input->width;
    const divide width = divide::make(input->width), height = divide::make(input->height);

    return with_type(input->type, [&](auto *null) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        if (input->channels == 4)
            return launch_each("normalise", normalise<T, 4>{*input, width, height, rows, (T *)output}, pixels,
                               stream);
        if (input->channels == 8)
            return launch_each("normalise", normalise<T, 8>{*input, width, height, rows, (T *)output}, pixels,
                               stream);
        return fail(EINVAL, "an image has 4 or 8 channels on a device, not %u", input->channels);
    });
}
