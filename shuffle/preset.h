/* SPDX-License-Identifier: Apache-2.0
 *
 * preset: how known training frameworks feed themselves, as settings of a job. Names and values
 * only, written as a user would: whoever takes them applies them by the option table of the job.
 */
#ifndef IOBENCH_SHUFFLE_PRESET_H
#define IOBENCH_SHUFFLE_PRESET_H

enum { PRESET_SETTINGS = 8 };

struct preset {
    const char *name;
    const char *summary; /* one line, no full stop */
    struct {
        const char *option, *value; /* of `iobench run`; ends with a row without option */
    } settings[PRESET_SETTINGS];
};

extern const struct preset preset_table[]; /* ends with a row without a name */

const struct preset *preset_find(const char *name); /* NULL when there is none */
/* The value that it gives to an option, NULL when it gives none. */
const char *preset_value(const struct preset *preset, const char *option);

#endif
