/* SPDX-License-Identifier: Apache-2.0 */
#include "report/sizing.h"

#include <math.h>

struct sizing_need sizing_of(const struct sizing_basis *basis, double gpu_samples_per_s,
                             double gpus, double busy)
{
    struct sizing_need need = {.samples_per_s = gpu_samples_per_s * gpus * busy};

    need.bytes_per_s = need.samples_per_s * basis->sample_bytes * basis->amplification;
    need.bits_per_s = 8 * need.bytes_per_s;
    need.nodes =
        basis->node_samples_per_s > 0 ? need.samples_per_s / basis->node_samples_per_s : NAN;
    return need;
}
