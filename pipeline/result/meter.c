/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/result/meter.h"

#include <errno.h>

#define ROW(what, name, scale)                                                                    \
    {                                                                                             \
        .key = name, .probe = "pipeline", .quantity = what, .how = MONITOR_RATE, .factor = scale, \
    }
#define PERCENT 1e-7 /* of one thread, summed over workers: 200 is two busy threads */

const struct monitor_figure meter_figures[METER_COUNTS] = {
    [METER_READ_BYTES] = ROW("read_bytes", "read_bytes_per_s", 1),
    [METER_READ_COUNT] = ROW("read_count", NULL, 1),
    [METER_PASSTHROUGH_BYTES] = ROW("passthrough_bytes", NULL, 1),
    [METER_CLIENT_BYTES] = ROW("client_bytes", NULL, 1),
    [METER_RECORD_BYTES] = ROW("record_bytes", "record_bytes_per_s", 1),
    [METER_RECORD_COUNT] = ROW("record_count", "records_per_s", 1),
    [METER_TRAINED_COUNT] = ROW("trained_count", "trained_samples_per_s", 1),
    [METER_LOADER_STORAGE_NS] =
        ROW("loader_storage_wait_ns", "loader_for_storage_percent", PERCENT),
    [METER_LOADER_MEMORY_NS] = ROW("loader_memory_wait_ns", "loader_for_memory_percent", PERCENT),
    [METER_DECODE_RECORD_NS] = ROW("decode_record_wait_ns", "decode_for_records_percent", PERCENT),
    [METER_DECODE_BATCH_NS] = ROW("decode_batch_wait_ns", "decode_for_batch_percent", PERCENT),
    [METER_DECODE_BUSY_NS] = ROW("decode_busy_ns", "decode_busy_percent", PERCENT),
    [METER_DECODE_HINTS_NS] = ROW("decode_hints_ns", "decode_entry_points_percent", PERCENT),
    [METER_TRAINER_BATCH_NS] = ROW("trainer_batch_wait_ns", "trainer_for_batch_percent", PERCENT),
    [METER_TRAINER_BUSY_NS] = ROW("trainer_busy_ns", "trainer_busy_percent", PERCENT),
    [METER_GRADIENT_BYTES] = ROW("gradient_bytes", NULL, 1),
};

struct meter_probe {
    const struct meter_list *list;
};

static int meter_open(struct probe *probe, const struct probe_site *site)
{
    (void)site;
    ((struct meter_probe *)probe->state)->list = probe->settings;
    for (int i = 0; i < METER_COUNTS; i++)
        if (!metric_add(&probe->metrics, "", meter_figures[i].quantity, METRIC_COUNTER, 1))
            return -ENOMEM;
    return 0;
}

static void meter_sample(const struct probe *probe, uint64_t *values)
{
    const struct meter_list *list = ((const struct meter_probe *)probe->state)->list;

    for (int i = 0; i < METER_COUNTS; i++) {
        values[i] = 0;
        for (uint32_t k = 0; k < list->count; k++)
            values[i] += counter_get(&list->meters[k]->counts[i]);
    }
}

const struct probe_ops meter_probe = {
    .plugin = {.name = "pipeline",
               .summary = "what the program itself read, decoded and waited for",
               .state_size = sizeof(struct meter_probe)},
    .open = meter_open,
    .sample = meter_sample,
};
