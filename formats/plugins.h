/* SPDX-License-Identifier: Apache-2.0
 * The formats, for formats/registry.c only. */
#ifndef IOBENCH_FORMATS_PLUGINS_H
#define IOBENCH_FORMATS_PLUGINS_H

#include "formats/format.h"

extern const struct format_ops format_recordio;
extern const struct format_ops format_shards;
extern const struct format_ops format_lmdb;
extern const struct format_ops format_tar;
extern const struct format_ops format_files;
extern const struct format_ops format_mds;

#endif
