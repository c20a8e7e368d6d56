/* SPDX-License-Identifier: Apache-2.0
 *
 * hints_file: the hints of a data set, kept where its index is (dataset/sidecar.h), as
 * .iobench-hints. Used only for a data set with as many records and bytes, and only if nobody else
 * may have written it: see file_trusted(). Its contents are untrusted.
 */
#ifndef IOBENCH_DATASET_HINTS_FILE_H
#define IOBENCH_DATASET_HINTS_FILE_H

#include "dataset/catalog.h"
#include "dataset/hints.h"

/* Stores where: to free(). */
int hints_file_save(const struct catalog *catalog, const struct hints *hints, char **path);

/* Returns 0 and *hints, the newest usable ones of all places; NULL if there are none; a negative
 * errno with the file in the reason if they are damaged, of other data (-ESTALE), or untrusted
 * (-EPERM). */
int hints_file_load(const struct catalog *catalog, struct hints **hints);

#endif
