/* SPDX-License-Identifier: Apache-2.0
 * The sources of pack, in the order shown to users. The first reads data sets. */
#include "cmd/pack/plugins.h"

const struct plugin *const source_registry[] = {
    &source_dataset.plugin,
    &source_mnist.plugin,
    &source_synthetic.plugin,
#ifdef HAVE_ARCHIVE
    &source_archive.plugin,
#endif
    NULL,
};
