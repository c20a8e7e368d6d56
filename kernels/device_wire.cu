/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch.cuh"

namespace {

template <class T> struct widen {
    const T *from;
    float factor;
    float *to;

    KERNEL_CODE void each(uint32_t index) const { to[index] = as_float(from[index]) * factor; }
};

template <class T> struct narrow {
    const float *from;
    float factor;
    T *to;

    KERNEL_CODE void each(uint32_t index) const
    {
        to[index] = number<T>::from(from[index] * factor);
    }
};

} // namespace

int device_widen(enum device_type type, uint64_t count, const void *from, float factor, float *to,
                 void *stream)
{
    return with_type(type, [&]<class T>(T *) {
        return launch_each("widen", widen<T>{(const T *)from, factor, to}, count, stream);
    });
}

int device_narrow(enum device_type type, uint64_t count, const float *from, float factor, void *to,
                  void *stream)
{
    return with_type(type, [&]<class T>(T *) {
        return launch_each("narrow", narrow<T>{from, factor, (T *)to}, count, stream);
    });
}
