/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/result/meter.h"

#include <errno.h>

static const char *const quantities[METER_COUNTS] = {
    [METER_READ_BYTES] = "read_bytes",
    [METER_READ_COUNT] = "read_count",
    [METER_RECORD_BYTES] = "record_bytes",
    [METER_RECORD_COUNT] = "record_count",
    [METER_TRAINED_COUNT] = "trained_count",
    [METER_LOADER_STORAGE_NS] = "loader_storage_wait_ns",
    [METER_LOADER_MEMORY_NS] = "loader_memory_wait_ns",
    [METER_DECODE_RECORD_NS] = "decode_record_wait_ns",
    [METER_DECODE_BATCH_NS] = "decode_batch_wait_ns",
    [METER_DECODE_BUSY_NS] = "decode_busy_ns",
    [METER_TRAINER_BATCH_NS] = "trainer_batch_wait_ns",
    [METER_TRAINER_BUSY_NS] = "trainer_busy_ns",
    [METER_GRADIENT_BYTES] = "gradient_bytes",
};

struct meter_probe {
    const struct meter_list *list;
};

static int meter_open(void *state, const void *settings, const struct probe_site *site,
                      struct probe_traits *traits)
{
    (void)site;
    ((struct meter_probe *)state)->list = settings;
    for (int i = 0; i < METER_COUNTS; i++)
        if (!metric_add(&traits->metrics, "", quantities[i], METRIC_COUNTER, 1))
            return -ENOMEM;
    return 0;
}

static void meter_close(void *state)
{
    (void)state;
}

static void meter_sample(void *state, uint64_t *values)
{
    const struct meter_list *list = ((const struct meter_probe *)state)->list;

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
    .close = meter_close,
    .sample = meter_sample,
};
