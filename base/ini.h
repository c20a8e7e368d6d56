/* SPDX-License-Identifier: Apache-2.0
 *
 * ini: parses files of sections with key=value lines or bare keys, and comments on lines that start
 * with # or ;. Job files and profiles are such files. Leading dashes of a key are dropped, and _ in
 * it becomes -. It knows no key. Any thread.
 */
#ifndef IOBENCH_BASE_INI_H
#define IOBENCH_BASE_INI_H

#include <stddef.h>
#include <stdint.h>

struct ini_entry {
    char *key;
    char *value; /* NULL for a bare key */
    uint32_t line;
};

struct ini_section {
    char *name;
    size_t first, count; /* range of entries */
};

struct ini {
    char *path;
    struct ini_entry *entries;
    size_t entry_count;
    struct ini_section *sections;
    size_t section_count;
};

/* Always call ini_release(). Return 0, or a negative errno with a reason "FILE:LINE: ...". */
int ini_load(const char *path, struct ini *ini);
int ini_parse(const char *path, const char *text, size_t bytes, struct ini *ini);
void ini_release(struct ini *ini);

/* Refuse a section or key that is given twice, for files in which the last one would silently
 * count. Returns 0 or -EINVAL with a reason. */
int ini_refuse_repeats(const struct ini *ini);

/* Return the last entry of this key in a section; NULL: none. */
const struct ini_entry *ini_find(const struct ini *ini, const struct ini_section *section,
                                 const char *key);

#endif
