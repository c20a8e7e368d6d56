/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu: NVIDIA GPUs through NVML, loaded at run time, so building needs nothing. Declares only the
 * part of its ABI that is used, which is stable since driver 340.
 *
 * Utilisation is the share of NVML's last sample period (1/6 to 1 s) in which a kernel ran; it does
 * not show how busy the GPU was. A PCIe query takes 20 ms, hence a slow probe. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "telemetry/plugins.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvml_device *nvml_handle;

struct nvml_utilization {
    unsigned gpu, memory;
};

struct nvml_memory {
    unsigned long long total, free, used;
};

/* Argument of field queries. scope: link index; UINT_MAX: all links. */
struct nvml_field {
    unsigned id, scope;
    long long timestamp, latency_us;
    int type, code;
    union {
        double real;
        unsigned number;
        unsigned long long long_number;
    } value;
};

enum { NVML_TEMPERATURE_GPU = 0, NVML_PCIE_TX = 0, NVML_PCIE_RX = 1 };
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };
enum { NVML_NVLINK_TRANSMIT_KIB = 138, NVML_NVLINK_RECEIVE_KIB = 139 };
enum { NVML_TYPE_UNSIGNED_LONG_LONG = 3 };
enum { GPUS_MAX = 64 };

/* Only the first four are required: older drivers lack some. */
struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*device_count)(unsigned *count);
    int (*device)(unsigned index, nvml_handle *handle);
    const char *(*error_text)(int code);
    int (*utilization)(nvml_handle, struct nvml_utilization *);
    int (*memory)(nvml_handle, struct nvml_memory *);
    int (*power)(nvml_handle, unsigned *milliwatts);
    int (*energy)(nvml_handle, unsigned long long *millijoules);
    int (*temperature)(nvml_handle, int sensor, unsigned *celsius);
    int (*clock)(nvml_handle, int which, unsigned *megahertz);
    int (*pcie)(nvml_handle, int which, unsigned *kilobytes_per_s);
    int (*fields)(nvml_handle, int count, struct nvml_field *fields);
};

static const struct {
    const char *symbol;
    size_t offset;
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init)},
    {"nvmlShutdown", offsetof(struct nvml, shutdown)},
    {"nvmlDeviceGetCount_v2", offsetof(struct nvml, device_count)},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml, device)},
    {"nvmlErrorString", offsetof(struct nvml, error_text)},
    {"nvmlDeviceGetUtilizationRates", offsetof(struct nvml, utilization)},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct nvml, memory)},
    {"nvmlDeviceGetPowerUsage", offsetof(struct nvml, power)},
    {"nvmlDeviceGetTotalEnergyConsumption", offsetof(struct nvml, energy)},
    {"nvmlDeviceGetTemperature", offsetof(struct nvml, temperature)},
    {"nvmlDeviceGetClockInfo", offsetof(struct nvml, clock)},
    {"nvmlDeviceGetPcieThroughput", offsetof(struct nvml, pcie)},
    {"nvmlDeviceGetFieldValues", offsetof(struct nvml, fields)},
};

struct gpu_settings {
    char *library;
};

struct gpu_probe {
    void *library;
    struct nvml nvml;
    bool ready;
    nvml_handle devices[GPUS_MAX];
    unsigned count;
};

struct gpu_levels {
    uint64_t utilization, memory_utilization, memory_used, power, energy, temperature, clock;
    uint64_t memory_clock, pcie_receive, pcie_transmit, nvlink_receive, nvlink_transmit;
};

static const struct option_spec gpu_options[] = {
    {.name = "library",
     .type = OPTION_TEXT,
     .offset = offsetof(struct gpu_settings, library),
     .metavar = "PATH",
     .summary = "path of the NVML library; default: search for it"},
    {0},
};

static const struct metric_row rows[] = {
    {"utilization_percent", offsetof(struct gpu_levels, utilization), METRIC_LEVEL, 1},
    {"memory_utilization_percent", offsetof(struct gpu_levels, memory_utilization), METRIC_LEVEL,
     1},
    {"memory_used_bytes", offsetof(struct gpu_levels, memory_used), METRIC_LEVEL, 1},
    {"power_milliwatts", offsetof(struct gpu_levels, power), METRIC_LEVEL, 1},
    {"energy_millijoules", offsetof(struct gpu_levels, energy), METRIC_COUNTER, 1},
    {"temperature_celsius", offsetof(struct gpu_levels, temperature), METRIC_LEVEL, 1},
    {"sm_clock_megahertz", offsetof(struct gpu_levels, clock), METRIC_LEVEL, 1},
    {"memory_clock_megahertz", offsetof(struct gpu_levels, memory_clock), METRIC_LEVEL, 1},
    {"pcie_receive_kb_per_s", offsetof(struct gpu_levels, pcie_receive), METRIC_LEVEL, 1},
    {"pcie_transmit_kb_per_s", offsetof(struct gpu_levels, pcie_transmit), METRIC_LEVEL, 1},
    {"nvlink_receive_bytes", offsetof(struct gpu_levels, nvlink_receive), METRIC_COUNTER, 1024},
    {"nvlink_transmit_bytes", offsetof(struct gpu_levels, nvlink_transmit), METRIC_COUNTER, 1024},
    {0},
};

static int load_nvml(struct gpu_probe *gpu, const char *named)
{
    /* The unversioned soname is for linking only, and may be a stub. */
    static const char *const places[] = {"libnvidia-ml.so.1", "/usr/lib64/libnvidia-ml.so.1",
                                         "/usr/local/nvidia/lib64/libnvidia-ml.so.1"};

    if (named)
        gpu->library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !named && i < sizeof places / sizeof places[0] && !gpu->library; i++)
        gpu->library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    if (!gpu->library)
        return fail(ENOENT, "no NVIDIA driver: %s cannot be loaded",
                    named ? named : "libnvidia-ml.so.1");
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = dlsym(gpu->library, symbols[i].symbol);
        memcpy((char *)&gpu->nvml + symbols[i].offset, &symbol, sizeof symbol);
    }
    if (!gpu->nvml.init || !gpu->nvml.shutdown || !gpu->nvml.device_count || !gpu->nvml.device)
        return fail(ENOENT, "the NVML library is too old: it lacks nvmlInit_v2 or similar");
    int code = gpu->nvml.init();
    if (code)
        return fail(ENOENT, "NVML failed to start: %s",
                    gpu->nvml.error_text ? gpu->nvml.error_text(code) : "no reason given");
    gpu->ready = true;
    return 0;
}

static void gpu_close(struct probe *probe)
{
    struct gpu_probe *gpu = probe->state;

    if (gpu->ready)
        gpu->nvml.shutdown();
    if (gpu->library)
        dlclose(gpu->library);
}

static int gpu_usable(void)
{
    struct gpu_probe gpu = {0};
    int code = load_nvml(&gpu, NULL);

    gpu_close(&(struct probe){.state = &gpu});
    return code;
}

static int gpu_open(struct probe *probe, const struct probe_site *site)
{
    struct gpu_probe *gpu = probe->state;
    unsigned count = 0;
    int code = load_nvml(gpu, ((const struct gpu_settings *)probe->settings)->library);

    (void)site;
    if (code)
        return code;
    if (gpu->nvml.device_count(&count) || count == 0)
        return fail(ENOENT, "NVML reports no GPU");
    for (unsigned i = 0; i < count && gpu->count < GPUS_MAX && code == 0; i++) {
        char part[16];
        if (gpu->nvml.device(i, &gpu->devices[gpu->count]))
            continue;
        gpu->count++;
        snprintf(part, sizeof part, "%u", i);
        code = metric_add_rows(&probe->metrics, part, rows);
    }
    probe->slow_interval_ns = 500000000;
    return code;
}

#define ANSWERS(call, ...) ((call) && (call)(__VA_ARGS__) == 0)

static void gpu_sample(const struct probe *probe, uint64_t *values)
{
    const struct gpu_probe *gpu = probe->state;
    const struct nvml *nvml = &gpu->nvml;

    for (unsigned i = 0; i < gpu->count; i++) {
        const nvml_handle device = gpu->devices[i];
        struct gpu_levels levels;
        struct nvml_utilization utilization;
        struct nvml_memory memory;
        /* Payload over all links since the driver was loaded; GPUs without NVLink lack these. */
        struct nvml_field fields[] = {{.id = NVML_NVLINK_RECEIVE_KIB, .scope = UINT_MAX},
                                      {.id = NVML_NVLINK_TRANSMIT_KIB, .scope = UINT_MAX}};
        uint64_t *const kib[] = {&levels.nvlink_receive, &levels.nvlink_transmit};
        unsigned long long energy;
        unsigned number;
        memset(&levels, 0xff, sizeof levels); /* PROBE_MISSING */
        if (ANSWERS(nvml->utilization, device, &utilization)) {
            levels.utilization = utilization.gpu;
            levels.memory_utilization = utilization.memory;
        }
        if (ANSWERS(nvml->memory, device, &memory))
            levels.memory_used = memory.used;
        if (ANSWERS(nvml->power, device, &number))
            levels.power = number;
        if (ANSWERS(nvml->energy, device, &energy))
            levels.energy = energy;
        if (ANSWERS(nvml->temperature, device, NVML_TEMPERATURE_GPU, &number))
            levels.temperature = number;
        if (ANSWERS(nvml->clock, device, NVML_CLOCK_SM, &number))
            levels.clock = number;
        if (ANSWERS(nvml->clock, device, NVML_CLOCK_MEMORY, &number))
            levels.memory_clock = number;
        if (ANSWERS(nvml->pcie, device, NVML_PCIE_RX, &number))
            levels.pcie_receive = number;
        if (ANSWERS(nvml->pcie, device, NVML_PCIE_TX, &number))
            levels.pcie_transmit = number;
        if (ANSWERS(nvml->fields, device, 2, fields))
            for (int k = 0; k < 2; k++)
                if (fields[k].code == 0 && fields[k].type == NVML_TYPE_UNSIGNED_LONG_LONG)
                    *kib[k] = fields[k].value.long_number;
        values = metric_put_rows(rows, &levels, values);
    }
}

const struct probe_ops probe_gpu = {
    .plugin = {.name = "gpu",
               .summary =
                   "NVIDIA GPUs: utilisation, memory, power, temperature, clocks, PCIe, NVLink",
               .options = gpu_options,
               .settings_size = sizeof(struct gpu_settings),
               .state_size = sizeof(struct gpu_probe),
               .usable = gpu_usable},
    .open = gpu_open,
    .close = gpu_close,
    .sample = gpu_sample,
};
