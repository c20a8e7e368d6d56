/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runtime.h"

#include "base/clock.h"
#include "base/fail.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <nvtx3/nvToolsExt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CAPABILITY_LEAST = 80, PAUSE_NS = 20000 };

/* A CUDA status as a code. */
static int check_cuda(cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return 0;
    cudaGetLastError(); /* clear it, or the next check finds it again */
    return fail(status == cudaErrorMemoryAllocation ? ENOMEM : EIO, "CUDA: %s: %s", what,
                cudaGetErrorString(status));
}

int runtime_usable(void)
{
    int count = 0, driver = 0;

    /* 0: there is no libcuda.so.1 */
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
        return fail(ENODEV, "there is no NVIDIA driver: libcuda.so.1 cannot be loaded");
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaErrorInsufficientDriver)
        return fail(
            ENODEV,
            "the driver supports CUDA %d.%d, this program needs %d.%d: update the driver, or "
            "build with an older toolkit",
            driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    if (status != cudaSuccess) {
        cudaGetLastError();
        return fail(ENODEV, "CUDA finds no GPU: %s", cudaGetErrorString(status));
    }
    return count > 0 ? 0 : fail(ENODEV, "CUDA finds no GPU");
}

/* DDR: two transfers per clock. */
static double memory_rate(uint32_t device)
{
    int clock_khz = 0, bus_bits = 0;

    if (cudaDeviceGetAttribute(&clock_khz, cudaDevAttrMemoryClockRate, (int)device) ||
        cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, (int)device))
        return 0;
    return 2.0 * clock_khz * bus_bits / 8;
}

int runtime_open(struct runtime *runtime, uint32_t device, uint32_t local_rank)
{
    struct cudaDeviceProp properties;
    int count = 1, code = 0;

    if (local_rank > 0)
        code = check_cuda(cudaGetDeviceCount(&count), "count the GPUs");
    if (local_rank > 0 && code == 0)
        device = (device + local_rank) % (uint32_t)count;
    if (code == 0)
        code = runtime_use(device);
    if (code == 0)
        code = check_cuda(cudaGetDeviceProperties(&properties, (int)device), "ask what GPU it is");
    int driver = 0;
    if (code == 0)
        code = check_cuda(cudaDriverGetVersion(&driver), "ask for the driver's version");
    if (code)
        return code;
    *runtime = (struct runtime){
        .device = device,
        .capability = (uint32_t)(properties.major * 10 + properties.minor),
        .multiprocessors = (uint32_t)properties.multiProcessorCount,
        .driver = (uint32_t)driver,
        .memory_bytes = properties.totalGlobalMem,
        .memory_rate = memory_rate(device),
        .captures = true,
    };
    snprintf(runtime->name, sizeof runtime->name, "%.63s", properties.name);
    if (runtime->capability < CAPABILITY_LEAST)
        return fail(ENODEV, "the %s has compute capability %d.%d; the cuda backend needs 8.0",
                    runtime->name, properties.major, properties.minor);
    code = runtime_stream_create(&runtime->stream);
    return code ? code : runtime_stream_create(&runtime->upload);
}

void runtime_close(struct runtime *runtime)
{
    runtime_stream_destroy(runtime->stream);
    runtime_stream_destroy(runtime->upload);
}

int runtime_use(uint32_t device)
{
    return check_cuda(cudaSetDevice((int)device), "take the GPU");
}

int runtime_stream_create(void **stream)
{
    return check_cuda(cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking),
                      "make a stream");
}

void runtime_stream_destroy(void *stream)
{
    if (stream)
        cudaStreamDestroy(stream);
}

void *runtime_allocate(uint64_t bytes)
{
    void *memory = NULL;
    size_t left = 0, all = 0;
    char what[128];

    cudaError_t status = cudaMalloc(&memory, bytes ? bytes : 1);
    if (status == cudaSuccess)
        return memory;
    cudaMemGetInfo(&left, &all);
    snprintf(what, sizeof what,
             "%llu bytes of GPU memory, %zu of %zu free: use a smaller batch, or see nvidia-smi "
             "for other processes",
             (unsigned long long)bytes, left, all);
    check_cuda(status, what);
    return NULL;
}

void runtime_release(void *memory)
{
    if (memory)
        cudaFree(memory);
}

void *runtime_pin(uint64_t bytes)
{
    void *memory = NULL;
    char what[64];

    snprintf(what, sizeof what, "%llu bytes of pinned memory", (unsigned long long)bytes);
    return check_cuda(cudaMallocHost(&memory, bytes ? bytes : 1), what) ? NULL : memory;
}

void runtime_unpin(void *memory)
{
    if (memory)
        cudaFreeHost(memory);
}

int runtime_share(void *memory, uint8_t handle[RUNTIME_HANDLE_BYTES])
{
    cudaIpcMemHandle_t made;

    _Static_assert(sizeof made == RUNTIME_HANDLE_BYTES, "a handle's size");
    int code = check_cuda(cudaIpcGetMemHandle(&made, memory), "share memory with other processes");
    memcpy(handle, &made, sizeof made);
    return code;
}

int runtime_reach(const uint8_t handle[RUNTIME_HANDLE_BYTES], void **theirs)
{
    cudaIpcMemHandle_t made;

    memcpy(&made, handle, sizeof made);
    return check_cuda(cudaIpcOpenMemHandle(theirs, made, cudaIpcMemLazyEnablePeerAccess),
                      "reach another process' memory (do its GPU and this one see each other?)");
}

void runtime_leave(void *theirs)
{
    cudaIpcCloseMemHandle(theirs);
}

int runtime_copy_peer(void *to, uint32_t device, const void *theirs, uint64_t offset,
                      uint64_t bytes, void *stream)
{
    struct cudaPointerAttributes where;
    int code = check_cuda(cudaPointerGetAttributes(&where, theirs), "find another GPU's memory");

    return code ? code
                : check_cuda(cudaMemcpyPeerAsync(to, (int)device, (const char *)theirs + offset,
                                                 where.device, bytes, stream),
                             "copy from another GPU");
}

int runtime_copy(void *to, const void *from, uint64_t bytes, void *stream)
{
    return check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copy");
}

int runtime_zero(void *memory, uint64_t bytes, void *stream)
{
    return check_cuda(cudaMemsetAsync(memory, 0, bytes, stream), "clear memory");
}

int runtime_wait(void *stream)
{
    return check_cuda(cudaStreamSynchronize(stream), "compute");
}

int runtime_event_create(void **event)
{
    return check_cuda(cudaEventCreateWithFlags((cudaEvent_t *)event, cudaEventBlockingSync),
                      "make an event");
}

void runtime_event_destroy(void *event)
{
    if (event)
        cudaEventDestroy(event);
}

int runtime_event_record(void *event, void *stream)
{
    return check_cuda(cudaEventRecord(event, stream), "mark a moment");
}

int runtime_event_stamp(void *event, void *stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    int code = check_cuda(cudaStreamIsCapturing(stream, &status), "ask for a capture");
    const unsigned int flags =
        status == cudaStreamCaptureStatusActive ? cudaEventRecordExternal : cudaEventRecordDefault;

    return code ? code
                : check_cuda(cudaEventRecordWithFlags(event, stream, flags), "mark a moment");
}

int runtime_event_await(void *event, void *stream)
{
    return check_cuda(cudaStreamWaitEvent(stream, event, 0), "wait for a moment");
}

int runtime_event_synchronise(void *event)
{
    return check_cuda(cudaEventSynchronize(event), "compute");
}

int runtime_event_test(void *event, bool *happened)
{
    const cudaError_t status = cudaEventQuery(event);

    *happened = status == cudaSuccess;
    if (status != cudaErrorNotReady)
        return check_cuda(status, "compute");
    cudaGetLastError(); /* clear it, or the next kernel reports it */
    return 0;
}

int runtime_event_wait_for(void *event, uint64_t timeout_ns)
{
    const uint64_t start_ns = clock_now_ns();

    if (timeout_ns == 0)
        return runtime_event_synchronise(event);
    for (;;) {
        cudaError_t status = cudaEventQuery(event);
        if (status != cudaErrorNotReady)
            return check_cuda(status, "compute");
        cudaGetLastError(); /* clear it, or the next kernel reports it */
        if (clock_now_ns() - start_ns > timeout_ns) {
            int device = 0;
            cudaGetDevice(&device);
            return fail(ETIMEDOUT,
                        "backend cuda: GPU %d has not finished a step after %llu s: another rank "
                        "is unresponsive, or the GPU hangs",
                        device, (unsigned long long)(timeout_ns / 1000000000));
        }
        clock_sleep_ns(PAUSE_NS);
    }
}

int runtime_event_elapsed(void *first, void *last, double *milliseconds)
{
    float elapsed = 0;
    int code = check_cuda(cudaEventElapsedTime(&elapsed, first, last), "read the time");

    *milliseconds = elapsed;
    return code;
}

int runtime_capture_begin(void *stream)
{
    return check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                      "begin a CUDA graph");
}

int runtime_capture_end(void *stream, void **graph)
{
    cudaGraph_t captured = NULL;
    int code = check_cuda(cudaStreamEndCapture(stream, &captured), "end a CUDA graph");

    if (code == 0)
        code = check_cuda(cudaGraphInstantiate((cudaGraphExec_t *)graph, captured, 0),
                          "prepare a CUDA graph");
    if (captured)
        cudaGraphDestroy(captured);
    return code;
}

int runtime_graph_launch(void *graph, void *stream)
{
    return check_cuda(cudaGraphLaunch(graph, stream), "start a CUDA graph");
}

void runtime_graph_destroy(void *graph)
{
    if (graph)
        cudaGraphExecDestroy(graph);
}

void runtime_range_push(const char *name)
{
    nvtxRangePushA(name);
}

void runtime_range_pop(void)
{
    nvtxRangePop();
}
