/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/accelerator.h"

#include <stddef.h>
#include <strings.h>

const struct accelerator accelerator_table[] = {
    {"v100", "V100", 1396, "MLPerf Training v0.7, V100-SXM2, batch 208", 367,
     "NVIDIA DeepLearningExamples, PyTorch 21.03, V100 16 GB, FP32"},
    {"a100", "A100", 3576, "MLPerf Training v3.0, A100-SXM4 80 GB, batch 408", 938,
     "NVIDIA DeepLearningExamples, PyTorch 21.03, A100 80 GB, TF32"},
    {"h100", "H100", 7449, "MLPerf Training v4.0, H100-SXM5, batch 816", 0, NULL},
    {"h200", "H200", 7950, "MLPerf Training v4.0, H200-SXM, batch 400", 0, NULL},
    {0},
};

const struct accelerator *accelerator_find(const char *name)
{
    for (const struct accelerator *row = accelerator_table; row->name; row++)
        if (strcasecmp(row->name, name) == 0)
            return row;
    return NULL;
}
