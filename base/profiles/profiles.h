/* SPDX-License-Identifier: Apache-2.0
 *
 * profiles: published and measured figures of GPUs, networks, nodes, storages and fabrics, each
 * with its source. A profile is an ini file; those below base/profiles/ are part of the program,
 * and users add their own. It knows no figure by name. Any thread.
 */
#ifndef IOBENCH_BASE_PROFILES_PROFILES_H
#define IOBENCH_BASE_PROFILES_PROFILES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- ini ----
 *
 * Parses files of sections with key=value lines or bare keys, and comments on lines that start
 * with # or ;. Job files and profiles are such files. Leading dashes of a key are dropped, and _
 * in it becomes -. It knows no key. Any thread. */

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

/* ---- profiles ---- */

/* A profile in the program. */
struct profile_shipped {
    const char *family, *name, *text;
};

extern const struct profile_shipped profile_shipped[]; /* ends with a NULL family */

/* Parse a profile: a file if name has a slash or ends in ".ini", else FOLDER/FAMILY/NAME.ini if
 * folder is not NULL and that file exists, else the shipped one. A section without source= is
 * refused. Always call ini_release(). Returns 0, or a negative errno with a reason. */
int profiles_load(const char *family, const char *name, const char *folder, struct ini *ini);
/* The same from text. */
int profiles_parse(const char *path, const char *text, struct ini *ini);

/* NULL: none. */
const struct ini_section *profiles_section(const struct ini *ini, const char *name);
const char *profiles_text(const struct ini *ini, const char *section, const char *key);

/* A figure and how well it is known: "14e9 +-10%" lies within 10% of 14e9 in 90% of cases. */
struct quantity {
    double value, spread; /* spread: 0.1 */
};

/* Return a measured figure whose spread is the distance to the farther end of its 95% interval low
 * .. high. */
struct quantity quantity_of_interval(double value, double low, double high);
/* Print it as quantity_parse() reads it: 5 digits. */
void quantity_print(FILE *stream, const struct quantity *quantity);

/* Return the standard deviation of its logarithm: values are log-normal, 90% within the spread. */
double quantity_deviation(const struct quantity *quantity);
/* Returns 0 or -EINVAL without a reason. */
int quantity_parse(const char *text, struct quantity *quantity);
/* Value of a key; 0 if there is none. Shipped figures are checked by a test. */
double profiles_number(const struct ini *ini, const char *section, const char *key);

#endif
