/* SPDX-License-Identifier: Apache-2.0
 * The kinds of storage that dataset/registry.c lists. */
#ifndef IOBENCH_DATASET_STORE_MEMBERS_H
#define IOBENCH_DATASET_STORE_MEMBERS_H

#include "dataset/store.h"

extern const struct store_ops store_local, store_nfs;

#endif
