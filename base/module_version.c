/* SPDX-License-Identifier: Apache-2.0
 * For modules: the program loads only those of its own version. A function, as several modules of
 * a process must not define the same variable. */
const char *iobench_module_release(void);

const char *iobench_module_release(void)
{
    return PACKAGE_VERSION;
}
