/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static double per_second(uint64_t amount, uint64_t duration_ns)
{
    return duration_ns ? (double)amount * 1e9 / (double)duration_ns : 0;
}

double result_epoch_samples_per_s(const struct result_epoch *epoch)
{
    return per_second(epoch->samples, epoch->wall_ns);
}

double result_epoch_bytes_per_s(const struct result_epoch *epoch)
{
    return per_second(epoch->record_bytes, epoch->wall_ns);
}

static double au_percent(uint64_t compute_ns, uint64_t wait_ns)
{
    return compute_ns ? 100.0 * (double)compute_ns / (double)(compute_ns + wait_ns) : 0;
}

double result_epoch_au_percent(const struct result_epoch *epoch)
{
    return au_percent(epoch->compute_ns, epoch->wait_ns);
}

/* A run as if it were one long epoch. */
static struct result_epoch total_of(const struct result_run *run)
{
    struct result_epoch total = {0};

    for (uint32_t i = 0; i < run->epoch_count; i++) {
        total.samples += run->epochs[i].samples;
        total.record_bytes += run->epochs[i].record_bytes;
        total.wall_ns += run->epochs[i].wall_ns;
        total.compute_ns += run->epochs[i].compute_ns;
        total.wait_ns += run->epochs[i].wait_ns;
    }
    return total;
}

double result_run_samples_per_s(const struct result_run *run)
{
    struct result_epoch total = total_of(run);

    return result_epoch_samples_per_s(&total);
}

double result_run_bytes_per_s(const struct result_run *run)
{
    struct result_epoch total = total_of(run);

    return result_epoch_bytes_per_s(&total);
}

double result_run_au_percent(const struct result_run *run)
{
    struct result_epoch total = total_of(run);

    return result_epoch_au_percent(&total);
}

double result_run_device_percent(const struct result_run *run)
{
    if (run->epoch_count == 0 || !run->epochs[0].device.known || run->epochs[0].record_bytes == 0)
        return -1;
    return 100.0 * (double)run->epochs[0].device.bytes / (double)run->epochs[0].record_bytes;
}

void result_notice(struct result *result, const char *format, ...)
{
    va_list arguments;

    if (result->notice_count == RESULT_NOTICES)
        return;
    va_start(arguments, format);
    vsnprintf(result->notices[result->notice_count++], RESULT_NOTICE_BYTES, format, arguments);
    va_end(arguments);
}

void result_invalid(struct result *result, const char *format, ...)
{
    va_list arguments;

    if (!result->valid && result->invalid_reason[0])
        return; /* the first reason is the cause */
    result->valid = false;
    va_start(arguments, format);
    vsnprintf(result->invalid_reason, sizeof result->invalid_reason, format, arguments);
    va_end(arguments);
}

void result_destroy(struct result *result)
{
    for (uint32_t i = 0; i < result->run_count; i++)
        free(result->runs[i].epochs);
    free(result->runs);
    timeline_destroy(result->timeline);
    result->timeline = NULL;
    result->runs = NULL;
    result->run_count = 0;
}
