/* SPDX-License-Identifier: Apache-2.0
 * The sources of pack, in the order users see them. The first one reads data sets. */
#include "pack/plugins.h"

const struct plugin *const origin_registry[] = {
    &origin_dataset.plugin,
    &origin_idx.plugin,
    &origin_synthetic.plugin,
#ifdef HAVE_ARCHIVE
    &origin_archive.plugin,
#endif
    NULL,
};
