/* SPDX-License-Identifier: Apache-2.0
 * For modules: the program loads only those of its own version. */
extern const char iobench_module_version[];

const char iobench_module_version[] = PACKAGE_VERSION;
