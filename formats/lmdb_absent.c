/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/lmdb_write.h"

#include "base/fail.h"

#include <errno.h>

int lmdb_writable(void)
{
    return fail(ENOTSUP,
                "this build reads LMDB but does not write it; install liblmdb-dev and build again");
}

int lmdb_write_open(struct lmdb_write *write, enum caffe_flavour flavour, const char *path)
{
    (void)write, (void)flavour, (void)path;
    return lmdb_writable();
}

int lmdb_write_append(struct lmdb_write *write, const struct sample *sample)
{
    (void)write, (void)sample;
    return -ENOTSUP;
}

int lmdb_write_close(struct lmdb_write *write, bool commit)
{
    (void)write, (void)commit;
    return 0;
}
