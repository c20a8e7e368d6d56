/* SPDX-License-Identifier: Apache-2.0
 * The formats, in the order users see them. */
#include "base/fail.h"
#include "formats/caffe.h"
#include "formats/plugins.h"

#include <errno.h>

const struct plugin *const format_registry[] = {
    &format_recordio.plugin,
    &format_shards.plugin,
    &format_lmdb.plugin,
    &format_tar.plugin,
    &format_files.plugin,
    &format_mds.plugin,
    NULL,
};

#ifndef HAVE_LMDB
int lmdb_writable(void)
{
    return fail(ENOTSUP,
                "this build reads LMDB but does not write it; install liblmdb-dev and build again");
}

int lmdb_write_open(void *state, const void *settings, const char *path)
{
    (void)state, (void)settings, (void)path;
    return lmdb_writable();
}

int lmdb_write_append(void *state, const struct sample *sample)
{
    (void)state, (void)sample;
    return -ENOTSUP;
}

int lmdb_write_close(void *state, bool commit)
{
    (void)state, (void)commit;
    return 0;
}
#endif
