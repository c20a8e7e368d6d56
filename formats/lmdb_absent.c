/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/lmdb_write.h"

#include "base/fail.h"

#include <errno.h>

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
