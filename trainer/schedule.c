/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/schedule.h"

#include "base/clock.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const schedule_phases[SCHEDULE_PHASES] = {
    [SCHEDULE_ONCE] = "once",         [SCHEDULE_FORWARD] = "forward", [SCHEDULE_LOSS] = "loss",
    [SCHEDULE_BACKWARD] = "backward", [SCHEDULE_UPDATE] = "update",
};

double schedule_predict_ns(const struct schedule_step *step, double flops_per_s, double bytes_per_s)
{
    const double bytes = (double)(step->read_bytes + step->write_bytes);

    return 1e9 * fmax(step->flops / flops_per_s, bytes / bytes_per_s);
}

void schedule_lap(uint64_t *took_ns, uint64_t *since_ns)
{
    if (!took_ns)
        return;
    const uint64_t now_ns = clock_now_ns();
    *took_ns += now_ns - *since_ns;
    *since_ns = now_ns;
}

int schedule_add(struct schedule *schedule, const struct schedule_step *step)
{
    int code = memory_room(&schedule->steps, schedule->count, sizeof *schedule->steps,
                           "steps of a schedule");

    if (code == 0)
        schedule->steps[schedule->count++] = *step;
    return code;
}

int schedule_add_update(struct schedule *schedule, const struct graph *graph, const char *engine,
                        double measured_ns)
{
    const uint64_t bytes = graph->parameter_floats * sizeof(float);
    struct schedule_step step = {.phase = SCHEDULE_UPDATE,
                                 .node = UINT32_MAX,
                                 .operation = "SGD",
                                 .read_bytes = 3 * bytes, /* parameters, gradients, momenta */
                                 .write_bytes = 2 * bytes,
                                 .measured_ns = measured_ns};

    snprintf(step.engine, sizeof step.engine, "%s", engine);
    return schedule_add(schedule, &step);
}

void schedule_free(struct schedule *schedule)
{
    free(schedule->steps);
    *schedule = (struct schedule){0};
}
