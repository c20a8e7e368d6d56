/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/accelerator.h"

#include "base/option.h"
#include "base/profiles/profiles.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { ACCELERATORS_MOST = 63 };

/* The last row stays empty. Texts belong to the parsed profiles, which are kept. */
static struct accelerator table[ACCELERATORS_MOST + 1];
static struct ini profiles[ACCELERATORS_MOST];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

/* A GPU without a ResNet-50 rate is not in the table. */
static void fill_table(void)
{
    size_t count = 0;

    for (const struct profile_shipped *shipped = profile_shipped; shipped->family; shipped++) {
        if (strcmp(shipped->family, "gpu") != 0 || count == ACCELERATORS_MOST)
            continue;
        if (profiles_parse(shipped->name, shipped->text, &profiles[count]) == 0 &&
            profiles_section(&profiles[count], "resnet50")) {
            const struct ini *ini = &profiles[count];
            table[count] = (struct accelerator){
                .name = shipped->name,
                .title = profiles_text(ini, "gpu", "title"),
                .mixed_samples_per_s = profiles_number(ini, "resnet50", "samples-per-s"),
                .mixed_source = profiles_text(ini, "resnet50", "source"),
                .fp32_samples_per_s = profiles_number(ini, "resnet50 fp32", "samples-per-s"),
                .fp32_source = profiles_text(ini, "resnet50 fp32", "source"),
                .capability = (unsigned)profiles_number(ini, "peak", "capability"),
                .memory_bytes_per_s = profiles_number(ini, "peak", "memory-bytes-per-s"),
                .peak_source = profiles_text(ini, "peak", "source"),
                .profile = ini};
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
    char key[32];

    snprintf(key, sizeof key, "%s-flops-per-s", precision);
    return profiles_number(accelerator->profile, "peak", key);
}
