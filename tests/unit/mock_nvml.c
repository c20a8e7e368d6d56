/* SPDX-License-Identifier: Apache-2.0
 * A mock of NVML: two GPUs, the second without power, PCIe and NVLink counters. $NVML_FAILS names a
 * step that does.
 */
#include <stdlib.h>
#include <string.h>

enum { NOT_SUPPORTED = 3 };

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle);
int nvmlDeviceGetUtilizationRates(void *device, unsigned *shares);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *bytes);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetPcieThroughput(void *device, int which, unsigned *kilobytes);
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *megahertz);

struct field {
    unsigned id, scope;
    long long timestamp, latency_us;
    int type, code;
    unsigned long long value;
};
int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields);

static int gpus[2];

static int fails(const char *step)
{
    const char *wanted = getenv("NVML_FAILS");

    return wanted && strcmp(wanted, step) == 0 ? NOT_SUPPORTED : 0;
}

int nvmlInit_v2(void)
{
    return fails("init");
}

int nvmlShutdown(void)
{
    return 0;
}

const char *nvmlErrorString(int code)
{
    return code == NOT_SUPPORTED ? "Not Supported" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = fails("none") ? 0 : 2;
    return fails("count");
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    *handle = &gpus[index];
    return index == 0 ? fails("first") : 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned *shares)
{
    shares[0] = device == &gpus[0] ? 87 : 12;
    shares[1] = 41;
    return fails("utilization");
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *bytes)
{
    (void)device;
    if (fails("memory"))
        return NOT_SUPPORTED;
    bytes[0] = 80ull << 30;
    bytes[1] = 68ull << 30;
    bytes[2] = 12ull << 30;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = 312500;
    return device == &gpus[1] ? NOT_SUPPORTED : 0;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    (void)device;
    *celsius = sensor == 0 ? 61 : 0;
    return fails("temperature");
}

int nvmlDeviceGetPcieThroughput(void *device, int which, unsigned *kilobytes)
{
    *kilobytes = which ? 9100000 : 120000;
    return device == &gpus[1] ? NOT_SUPPORTED : 0;
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *megahertz)
{
    (void)device;
    *megahertz = which == 1 ? 1980 : which == 2 ? 3201 : 0;
    return fails("clock");
}

/* 138 and 139, over all links: KiB sent and KiB received. */
int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields)
{
    for (int i = 0; i < count; i++) {
        const int known = device == &gpus[0] && fields[i].scope == 0xffffffff;
        fields[i].type = fails("type") ? 1 : 3;
        fields[i].code = known && (fields[i].id == 138 || fields[i].id == 139) ? 0 : NOT_SUPPORTED;
        fields[i].value = fields[i].id == 138 ? 5000 : 7000;
    }
    return 0;
}
