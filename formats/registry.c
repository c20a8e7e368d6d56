/* SPDX-License-Identifier: Apache-2.0
 * The formats, in the order users see them. */
#include "formats/plugins.h"

const struct plugin *const format_registry[] = {
    &format_recordio.plugin,
    &format_shards.plugin,
    &format_lmdb.plugin,
    &format_tar.plugin,
    &format_files.plugin,
    &format_mds.plugin,
    NULL,
};
