/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/accelerator.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

const struct accelerator accelerator_table[] = {
    {"v100", "V100", 1396, "MLPerf Training v0.7, V100-SXM2, batch 208", 367,
     "NVIDIA DeepLearningExamples, PyTorch 21.03, V100 16 GB, FP32",
     .peak = {.capability = 70,
              .fp32_flops_per_s = 15.7e12,
              .fp16_flops_per_s = 125e12,
              .int8_flops_per_s = 62.8e12,
              .memory_bytes_per_s = 900e9,
              .source = "NVIDIA V100 data sheet, SXM2 16 GB"}},
    {"a100", "A100", 3576, "MLPerf Training v3.0, A100-SXM4 80 GB, batch 408", 938,
     "NVIDIA DeepLearningExamples, PyTorch 21.03, A100 80 GB, TF32",
     .peak = {.capability = 80,
              .fp32_flops_per_s = 19.5e12,
              .tf32_flops_per_s = 156e12,
              .fp16_flops_per_s = 312e12,
              .bf16_flops_per_s = 312e12,
              .int8_flops_per_s = 624e12,
              .memory_bytes_per_s = 2039e9,
              .source = "NVIDIA A100 data sheet, SXM4 80 GB"}},
    {"h100", "H100", 7449, "MLPerf Training v4.0, H100-SXM5, batch 816", 0, NULL,
     .peak = {.capability = 90,
              .fp32_flops_per_s = 67e12,
              .tf32_flops_per_s = 494.7e12,
              .fp16_flops_per_s = 989.4e12,
              .bf16_flops_per_s = 989.4e12,
              .int8_flops_per_s = 1978.9e12,
              .memory_bytes_per_s = 3350e9,
              .source = "NVIDIA H100 data sheet, SXM5, without sparsity"}},
    {"h200", "H200", 7950, "MLPerf Training v4.0, H200-SXM, batch 400", 0, NULL,
     .peak = {.capability = 90,
              .fp32_flops_per_s = 67e12,
              .tf32_flops_per_s = 494.7e12,
              .fp16_flops_per_s = 989.4e12,
              .bf16_flops_per_s = 989.4e12,
              .int8_flops_per_s = 1978.9e12,
              .memory_bytes_per_s = 4800e9,
              .source = "NVIDIA H200 data sheet, SXM, without sparsity"}},
    {0},
};

const struct accelerator *accelerator_find(const char *name)
{
    for (const struct accelerator *row = accelerator_table; row->name; row++)
        if (strcasecmp(row->name, name) == 0)
            return row;
    return NULL;
}

double accelerator_flops_per_s(const struct accelerator *accelerator, const char *precision)
{
    const struct accelerator_peak *peak = &accelerator->peak;
    const struct {
        const char *precision;
        double flops_per_s;
    } rows[] = {{"fp32", peak->fp32_flops_per_s},
                {"tf32", peak->tf32_flops_per_s},
                {"fp16", peak->fp16_flops_per_s},
                {"bf16", peak->bf16_flops_per_s},
                {"int8", peak->int8_flops_per_s}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].precision, precision) == 0)
            return rows[i].flops_per_s;
    return 0;
}
