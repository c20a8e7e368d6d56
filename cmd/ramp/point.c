/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ramp/point.h"

#include <math.h>

struct ramp_point ramp_point_of(struct ramp_step step, const struct result_run *run,
                                double limit_percent, double *step_ns)
{
    const struct result_epoch *epoch = &run->epochs[0];
    const struct histogram *late = &run->batch_late_ns;
    struct ramp_point point = {
        .load = step.load,
        .preview = step.preview,
        .offered_samples_per_s = (double)epoch->samples / (double)epoch->nominal_ns * 1e9,
        .samples_per_s = result_epoch_paced_samples_per_s(epoch),
        .bytes_per_s = result_epoch_paced_bytes_per_s(epoch),
        .read_samples_per_s = result_epoch_read_samples_per_s(epoch),
        .batches = late->count,
        .late_p50_ns = histogram_quantile(late, 0.5),
        .late_p99_ns = histogram_quantile(late, 0.99),
        .late_max_ns = histogram_quantile(late, 1),
        .cache = run->cold.state,
        .limit = epoch->limit,
    };

    *step_ns = (double)epoch->nominal_ns / (double)epoch->batches * step.load;
    point.stall_percent = 100 * (double)point.late_p99_ns / *step_ns;
    /* What was read before the first batch, a window and more, is no rate of the storage. */
    point.is_behind = point.read_samples_per_s < point.samples_per_s;
    if (point.is_behind) {
        point.bytes_per_s *= point.read_samples_per_s / point.samples_per_s;
        point.samples_per_s = point.read_samples_per_s;
    }
    point.holds = point.stall_percent < limit_percent && !point.is_behind;
    return point;
}
