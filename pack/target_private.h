/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by pack/target.c and pack/target_proof.c: which names in the folder are known, and
 * removing those that a manifest lists. */
#ifndef IOBENCH_PACK_TARGET_PRIVATE_H
#define IOBENCH_PACK_TARGET_PRIVATE_H

#include "pack/target.h"

#define TARGET_LOCK ".iobench-lock"
#define TARGET_REPLACED ".iobench-replaced" /* manifest of a set being removed */
#define TARGET_INDEX ".iobench-index"       /* kept beside the data by its readers */
#define TARGET_HINTS ".iobench-hints"

/* Ignored names: the lock, and what file systems create. */
bool target_is_neutral(const char *name);

/* Returns 0 if every name in the folder belongs to the old set or to an interrupted pack; else
 * -EEXIST with the first that does not. */
int target_prove(struct target *target);

/* Remove what a manifest lists, and folders that become empty. Only files of that owner. */
int target_remove_listed(struct target *target, const struct manifest *manifest, uint64_t owner);

#endif
