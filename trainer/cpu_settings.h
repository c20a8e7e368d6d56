/* SPDX-License-Identifier: Apache-2.0
 * The options of the cpu backend: parsed by the program, used by the module. */
#ifndef IOBENCH_TRAINER_CPU_SETTINGS_H
#define IOBENCH_TRAINER_CPU_SETTINGS_H

enum cpu_precision { CPU_FP32, CPU_BF16 };

/* How gradients of the weights of 1 x 1 convolutions are computed. */
enum cpu_gradients { CPU_GRADIENTS_AUTO, CPU_GRADIENTS_PRODUCTS, CPU_GRADIENTS_CONVOLUTIONS };

struct cpu_settings {
    int precision; /* enum cpu_precision */
    int gradients; /* enum cpu_gradients */
};

#endif
