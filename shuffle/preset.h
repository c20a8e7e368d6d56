/* SPDX-License-Identifier: Apache-2.0
 *
 * preset: input pipelines of known training frameworks, as job options. Names and values only, as a
 * user would type them; the caller applies them through the job's option table.
 */
#ifndef IOBENCH_SHUFFLE_PRESET_H
#define IOBENCH_SHUFFLE_PRESET_H

enum { PRESET_SETTINGS = 8 };

struct preset {
    const char *name;
    const char *summary; /* one line, no full stop */
    struct {
        const char *option, *value; /* of `iobench run`; terminated by a row without an option */
    } settings[PRESET_SETTINGS];
};

extern const struct preset preset_table[]; /* terminated by a row without a name */

const struct preset *preset_find(const char *name); /* NULL: none of this name */
/* Return the preset's value of an option; NULL if it sets none. */
const char *preset_value(const struct preset *preset, const char *option);

#endif
