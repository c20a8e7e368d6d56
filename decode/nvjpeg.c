/* SPDX-License-Identifier: Apache-2.0
 *
 * The nvjpeg decoder's front end: its options; the decoder is in the module iobench-nvjpeg.so. A
 * program built with CUDA therefore starts on machines without it.
 */
#include "base/plugin.h"
#include "decode/plugins.h"

static const struct module module_nvjpeg = {
    .file = "iobench-nvjpeg.so",
    .variable = "IOBENCH_NVJPEG_MODULE",
    /* Either libnvjpeg will do; if both are missing, the module reports it. */
    .libraries = {"libcuda.so.1", "libnvjpeg.so.13", "libnvjpeg.so.12"},
    .remedy = "install the NVIDIA driver",
};

static const char *const engines[] = {
    [NVJPEG_AUTO] = "auto", [NVJPEG_HARDWARE] = "hardware", [NVJPEG_GPU] = "gpu", NULL};

static const struct option_spec nvjpeg_options[] = {
    LOOK_ROWS,
    {"engine", 0, OPTION_CHOICE, offsetof(struct nvjpeg_settings, engine), .fallback = "auto",
     .choices = engines,
     .summary =
         "the GPU's JPEG engines (hardware), its SMs (gpu), or the first that it has (auto)"},
    {"device", 0, OPTION_COUNT, offsetof(struct nvjpeg_settings, device), .fallback = "0",
     .maximum = 63, .summary = "GPU number, as CUDA counts"},
    {"images", 0, OPTION_COUNT, offsetof(struct nvjpeg_settings, images), .fallback = "64",
     .minimum = 1, .maximum = NVJPEG_IMAGES_MAX,
     .summary = "images decoded at a time by each decode thread"},
    {"memory", 0, OPTION_SIZE, offsetof(struct nvjpeg_settings, memory), .fallback = "256MiB",
     .minimum = 1 << 20, .maximum = 17179869184.0,
     .summary = "GPU memory for decoded images of each decode thread; larger images are left to "
                "the CPU"},
    {0},
};

const struct decoder_ops decoder_nvjpeg = {
    .plugin = {.name = "nvjpeg",
               .summary = "decodes, crops and resizes on an NVIDIA GPU (nvJPEG); what that cannot, "
                          "on the CPU",
               .options = nvjpeg_options,
               .settings_size = sizeof(struct nvjpeg_settings),
               .module = &module_nvjpeg,
               .symbol = "iobench_decoder_nvjpeg"},
    .gives_pixels = true,
};
