/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/process.h"

bool process_parse_io(struct text text, struct process_counters *counters)
{
    struct text line, name;
    bool found = false;

    *counters = (struct process_counters){0};
    while (text_line(&text, &line)) {
        uint64_t value;
        if (!text_word(&line, &name) || !text_u64(&line, &value))
            continue;
        if (text_is(name, "rchar:"))
            counters->read_calls_bytes = value;
        else if (text_is(name, "syscr:"))
            counters->read_calls = value;
        else if (text_is(name, "read_bytes:"))
            counters->read_bytes = value, found = true;
        else if (text_is(name, "write_bytes:"))
            counters->write_bytes = value;
    }
    return found;
}
