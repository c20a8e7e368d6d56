/* SPDX-License-Identifier: Apache-2.0
 * The options of the cpu backend: parsed by the program, used by the module. */
#ifndef IOBENCH_TRAINER_CPU_SETTINGS_H
#define IOBENCH_TRAINER_CPU_SETTINGS_H

enum cpu_precision { CPU_FP32, CPU_BF16 };

struct cpu_settings {
    int precision; /* enum cpu_precision */
};

#endif
