/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/schedule.h"

#include "base/memory.h"

#include <stdlib.h>

int schedule_add(struct schedule *schedule, const struct schedule_step *step)
{
    int code = memory_room(&schedule->steps, schedule->count, sizeof *schedule->steps,
                           "steps of a schedule");

    if (code == 0)
        schedule->steps[schedule->count++] = *step;
    return code;
}

void schedule_free(struct schedule *schedule)
{
    free(schedule->steps);
    *schedule = (struct schedule){0};
}
