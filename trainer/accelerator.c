/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/accelerator.h"

#include "base/nearest.h"
#include "profiles/profiles.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { ACCELERATORS_MOST = 63 };

/* The last row stays empty. Texts belong to the parsed profiles, which are kept. */
static struct accelerator table[ACCELERATORS_MOST + 1];
static struct ini profiles[ACCELERATORS_MOST];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static struct accelerator row_of(const char *name, const struct ini *ini)
{
    return (struct accelerator){
        .name = name,
        .title = profiles_text(ini, "gpu", "title"),
        .mixed_samples_per_s = profiles_number(ini, "resnet50", "samples-per-s"),
        .mixed_source = profiles_text(ini, "resnet50", "source"),
        .fp32_samples_per_s = profiles_number(ini, "resnet50 fp32", "samples-per-s"),
        .fp32_source = profiles_text(ini, "resnet50 fp32", "source"),
        .peak = {.capability = (unsigned)profiles_number(ini, "peak", "capability"),
                 .fp32_flops_per_s = profiles_number(ini, "peak", "fp32-flops-per-s"),
                 .tf32_flops_per_s = profiles_number(ini, "peak", "tf32-flops-per-s"),
                 .fp16_flops_per_s = profiles_number(ini, "peak", "fp16-flops-per-s"),
                 .bf16_flops_per_s = profiles_number(ini, "peak", "bf16-flops-per-s"),
                 .int8_flops_per_s = profiles_number(ini, "peak", "int8-flops-per-s"),
                 .memory_bytes_per_s = profiles_number(ini, "peak", "memory-bytes-per-s"),
                 .source = profiles_text(ini, "peak", "source")}};
}

/* A GPU without a ResNet-50 rate is not in the table. */
static void fill_table(void)
{
    size_t count = 0;

    for (const struct profile_shipped *shipped = profile_shipped; shipped->family; shipped++) {
        if (strcmp(shipped->family, "gpu") != 0 || count == ACCELERATORS_MOST)
            continue;
        if (profiles_parse(shipped->name, shipped->text, &profiles[count]) == 0 &&
            profiles_section(&profiles[count], "resnet50")) {
            table[count] = row_of(shipped->name, &profiles[count]);
            count++;
        } else {
            ini_release(&profiles[count]);
        }
    }
}

const struct accelerator *accelerator_table(void)
{
    pthread_once(&table_once, fill_table);
    return table;
}

const struct accelerator *accelerator_find(const char *name)
{
    struct nearest nearest = nearest_start(name);

    for (const struct accelerator *row = accelerator_table(); row->name; row++) {
        if (strcasecmp(row->name, name) == 0)
            return row;
        nearest_offer(&nearest, row->name);
    }
    nearest_fail(&nearest, EINVAL, "unknown GPU");
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
