/* SPDX-License-Identifier: Apache-2.0
 * The shuffle strategies, for shuffle/registry.c only. */
#ifndef IOBENCH_SHUFFLE_PLUGINS_H
#define IOBENCH_SHUFFLE_PLUGINS_H

#include "shuffle/plan.h"

extern const struct shuffle_ops shuffle_none;
extern const struct shuffle_ops shuffle_epoch;
extern const struct shuffle_ops shuffle_buffer;
extern const struct shuffle_ops shuffle_block;
extern const struct shuffle_ops shuffle_mxnet;
extern const struct shuffle_ops shuffle_mxnet_chunk;
extern const struct shuffle_ops shuffle_tfdata;
extern const struct shuffle_ops shuffle_dali;
extern const struct shuffle_ops shuffle_webdataset;
extern const struct shuffle_ops shuffle_ffcv;
extern const struct shuffle_ops shuffle_corgipile;
extern const struct shuffle_ops shuffle_py1s;
extern const struct shuffle_ops shuffle_py2s;
extern const struct shuffle_ops shuffle_py1br;
extern const struct shuffle_ops shuffle_py1e;
extern const struct shuffle_ops shuffle_naive;

#endif
