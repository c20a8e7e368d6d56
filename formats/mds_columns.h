/* SPDX-License-Identifier: Apache-2.0
 *
 * mds_columns: where image and label are in a sample of an MDS shard. The columns of a shard are
 * packed into one number, its layout, because a sample alone does not tell its columns. Knows no
 * files. Any thread. */
#ifndef IOBENCH_FORMATS_MDS_COLUMNS_H
#define IOBENCH_FORMATS_MDS_COLUMNS_H

#include "base/sample.h"

/* Names of columns; NULL: the usual ones. */
struct mds_choice {
    const char *image, *label;
};

/* Derive the layout from a shard's column description (JSON). path: for reasons. Returns 0,
 * -EBADMSG (not a description) or -ENOTSUP (no column to use, too many). */
int mds_layout(const char *path, const char *json, size_t bytes, const struct mds_choice *choice,
               uint64_t *layout);

/* Returns 0, or -EBADMSG with a reason. */
int mds_columns_parse(uint64_t layout, const void *record, size_t bytes, struct sample *sample);

#endif
