/* SPDX-License-Identifier: Apache-2.0
 * Replies of a driver's NVML: any counts, codes, numbers and texts. This program is the library:
 * dlopen() of any name returns itself. */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "telemetry/probe.h"

#include <dlfcn.h>
#include <limits.h>

static const uint8_t *at, *end;

static uint64_t take(size_t bytes)
{
    uint64_t number = 0;

    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | (at < end ? *at++ : 0);
    return number;
}

/* Most calls succeed. */
static int code(void)
{
    const uint64_t byte = take(1);

    return byte < 224 ? 0 : (int)byte;
}

static int put(void *numbers, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t number = take(size);
        memcpy((char *)numbers + i * size, &number, size);
    }
    return code();
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int what);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle);
int nvmlDeviceGetUtilizationRates(void *device, unsigned *shares);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *bytes);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *megahertz);
int nvmlDeviceGetPcieThroughput(void *device, int which, unsigned *kilobytes);
int nvmlDeviceGetFieldValues(void *device, int count, void *fields);

int nvmlInit_v2(void)
{
    return code();
}

int nvmlShutdown(void)
{
    return code();
}

const char *nvmlErrorString(int what)
{
    static char text[300];
    const size_t length = (size_t)what < sizeof text ? (size_t)what : sizeof text - 1;

    memset(text, 'x', length);
    text[length] = '\0';
    return text;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    const uint64_t byte = take(1);

    *count = byte < 250 ? (unsigned)byte : UINT_MAX;
    return code();
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    *handle = (void *)(uintptr_t)index;
    return code();
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned *shares)
{
    (void)device;
    return put(shares, 2, 4);
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *bytes)
{
    (void)device;
    return put(bytes, 3, 8);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    (void)device;
    return put(milliwatts, 1, 4);
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    (void)device;
    return put(millijoules, 1, 8);
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    (void)device, (void)sensor;
    return put(celsius, 1, 4);
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *megahertz)
{
    (void)device, (void)which;
    return put(megahertz, 1, 4);
}

int nvmlDeviceGetPcieThroughput(void *device, int which, unsigned *kilobytes)
{
    (void)device, (void)which;
    return put(kilobytes, 1, 4);
}

/* Two fields of 40 bytes. */
int nvmlDeviceGetFieldValues(void *device, int count, void *fields)
{
    (void)device;
    return put(fields, (size_t)count * 5, 8);
}

void *dlopen(const char *name, int flags)
{
    static void *(*own)(const char *, int);

    if (!own)
        *(void **)(void *)&own = dlsym(RTLD_NEXT, "dlopen");
    return own(name && strcmp(name, "fuzz") == 0 ? NULL : name, flags);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct plugin_choice choice;
    const struct probe_site site = {.roots = &telemetry_roots_usual};
    struct probe probe;
    uint64_t values[1024];

    if (!choice.plugin)
        FUZZ_CHECK(plugin_choose("probe", probe_registry, "gpu:library=fuzz", &choice) == 0);
    at = bytes;
    end = bytes + count;
    fail_clear();
    if (probe_open(&probe, &choice, &site) == 0) {
        FUZZ_CHECK(probe.metrics.count <= sizeof values / sizeof values[0]);
        for (int i = 0; i < 3; i++)
            probe_sample(&probe, values);
    } else {
        FUZZ_CHECK(*fail_reason());
    }
    probe_close(&probe);
    return 0;
}
