/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/disk.h"

bool disk_parse_stat(struct text text, struct disk_counters *counters)
{
    uint64_t *const fields[] = {
        &counters->reads,         &counters->reads_merged, &counters->read_sectors,
        &counters->read_ms,       &counters->writes,       &counters->writes_merged,
        &counters->write_sectors, &counters->write_ms,     &counters->in_flight,
        &counters->busy_ms,       &counters->queue_ms,
    };

    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (!text_u64(&text, fields[i]))
            return false;
    return true;
}

bool disk_parse_diskstats(struct text diskstats, unsigned device_major, unsigned device_minor,
                          struct disk_counters *counters)
{
    struct text line, name;
    uint64_t line_major, line_minor;

    while (text_line(&diskstats, &line))
        if (text_u64(&line, &line_major) && text_u64(&line, &line_minor) &&
            line_major == device_major && line_minor == device_minor && text_word(&line, &name))
            return disk_parse_stat(line, counters);
    return false;
}
