/* SPDX-License-Identifier: Apache-2.0
 *
 * What pack/target.c and pack/target_proof.c share: which names in the folder are known, and the
 * removal of those that a manifest lists. */
#ifndef IOBENCH_PACK_TARGET_PRIVATE_H
#define IOBENCH_PACK_TARGET_PRIVATE_H

#include "pack/target.h"

#define TARGET_LOCK ".iobench-lock"
#define TARGET_REPLACED ".iobench-replaced" /* the manifest of a set that is being removed */
#define TARGET_INDEX ".iobench-index"       /* kept beside the data by whoever reads it */

/* Not part of what is there: the lock, and what file systems have by themselves. */
bool target_is_neutral(const char *name);

/* 0 when every name in the folder is of the set that is replaced or of an interrupted pack; else
 * -EEXIST, and the reason has the first that is not. */
int target_prove(struct target *target);

/* Remove what a manifest lists, and folders that become empty. Files of that owner alone. */
int target_remove_listed(struct target *target, const struct manifest *manifest, uint64_t owner);

#endif
