/* SPDX-License-Identifier: Apache-2.0
 *
 * profiles: published and measured figures of GPUs, networks, nodes, storages and fabrics, each
 * with its source. A profile is an ini file; those below base/profiles/ are part of the program,
 * and users add their own. It knows no figure by name. Any thread.
 */
#ifndef IOBENCH_BASE_PROFILES_PROFILES_H
#define IOBENCH_BASE_PROFILES_PROFILES_H

#include "base/ini.h"

#include <stdio.h>

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

/* Return a measured figure with its 95% interval low .. high, of which the farther end is its
 * spread. */
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
