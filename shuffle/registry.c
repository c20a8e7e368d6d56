/* SPDX-License-Identifier: Apache-2.0
 * The shuffle strategies, in the order users see them. */
#include "shuffle/plugins.h"

const struct plugin *const shuffle_registry[] = {
    &shuffle_epoch.plugin,
    &shuffle_none.plugin,
    &shuffle_block.plugin,
    &shuffle_buffer.plugin,
    &shuffle_mxnet.plugin,
    &shuffle_mxnet_chunk.plugin,
    &shuffle_tfdata.plugin,
    &shuffle_dali.plugin,
    &shuffle_webdataset.plugin,
    &shuffle_ffcv.plugin,
    &shuffle_corgipile.plugin,
    &shuffle_py1s.plugin,
    &shuffle_py2s.plugin,
    &shuffle_py1br.plugin,
    &shuffle_py1e.plugin,
    &shuffle_naive.plugin,
    NULL,
};
